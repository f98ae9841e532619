//! Puts, replacements and removals: what of them is done under the key's lock, in its order.

use chimera_pmem::{Operation, Pmem};

use super::items::Unsound;
use super::store::Hikv;
use crate::engine::KeyChange;
use crate::engine::contract::client::SharedClient;
use crate::engine::shared::writes::swap_read;
use crate::records::item_heap::Item;
use crate::types::error::{Error, Result};
use crate::types::swap::Swap;

impl<P: Pmem> Hikv<P> {
    /// Stores `value` under `key`; tells whether the key is new.
    pub(super) fn put_value(
        &self,
        client: &mut SharedClient,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let (items, core) = (self.items(), self.items().core());
        let booked = core.book(Operation::Insert, client.number);
        let hash = core.hash.of(key);
        items.index().prefetch(hash);
        let _key = items.lock_key_to_write(hash, client.batch)?;
        let old = items.find_locked(hash, key)?;
        if old.is_some() {
            booked.is(Operation::Overwrite);
        }
        self.write(client.number, hash, key, value, old)?;
        Ok(old.is_none())
    }

    /// Stores `value` under `key`, which has this hash, if there is no such key; tells whether there was none.
    pub(super) fn insert_value(
        &self,
        client: &mut SharedClient,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let items = self.items();
        let _booked = items.core().book(Operation::Insert, client.number);
        items.index().prefetch(hash);
        let _key = items.lock_key_to_write(hash, client.batch)?;
        if items.find_locked(hash, key)?.is_some() {
            return Ok(false);
        }
        self.write(client.number, hash, key, value, None)?;
        Ok(true)
    }

    /// Writes an item of `key`, whose lock the caller holds, in place of the old one, if there is one.
    ///
    /// # Durability
    /// The new item is durable on return, and the old one is durably gone.
    ///
    /// # Cost
    /// The lines of the item and 1 more, 2 fences. With a log also the lines of its record, and 1 fence more.
    fn write(
        &self,
        number: u32,
        hash: u64,
        key: &[u8],
        value: &[u8],
        old: Option<Item>,
    ) -> Result<()> {
        let room = self.writer.room_for(number, key.len(), value.len())?;
        #[cfg(feature = "baselines")]
        let logged = self.log.write(hash, key, Some(value));
        let tell = |change| self.items().core().changes.tell(key, change);
        let mut written = self.writer.write_item(number, hash, (key, value), room, old, tell);
        if matches!(written, Err(Error::PoolFull { .. })) {
            let record = (key, value);
            written = self.writer.write_where_there_is_room(number, hash, record, old, tell);
        }
        #[cfg(feature = "baselines")]
        if written.is_err() {
            logged.withdraw();
        }
        written
    }

    /// See [`Engine::replace`](crate::engine::Engine::replace).
    pub(super) fn replace_value(
        &self,
        client: &mut SharedClient,
        hash: u64,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
    ) -> Result<Swap> {
        let items = self.items();
        let _booked = items.core().book(Operation::Update, client.number);
        items.index().prefetch(hash);
        let _key = items.lock_key_to_write(hash, client.batch)?;
        let Some(old) = items.find_locked(hash, key)? else { return Ok(Swap::Missing) };
        items.read_item(&old, hash, &mut client.value, true).map_err(Unsound::into_error)?;
        swap_read(client, expected, new, |client| {
            self.write(client.number, hash, key, new, Some(old))
        })
    }

    /// Removes `key`; tells whether it was there.
    pub(super) fn remove(&self, client: &mut SharedClient, key: &[u8]) -> Result<bool> {
        let (items, core) = (self.items(), self.items().core());
        let _booked = core.book(Operation::Delete, client.number);
        let hash = core.hash.of(key);
        items.index().prefetch(hash);
        let _key = items.lock_key_to_write(hash, client.batch)?;
        let Some(old) = items.find_locked(hash, key)? else { return Ok(false) };
        self.remove_found(client, hash, key, &old)?;
        Ok(true)
    }

    /// Removes `key`, which has this hash, if its value is `expected`.
    pub(super) fn remove_if_value(
        &self,
        client: &mut SharedClient,
        hash: u64,
        key: &[u8],
        expected: &[u8],
    ) -> Result<Swap> {
        let items = self.items();
        let _booked = items.core().book(Operation::Delete, client.number);
        items.index().prefetch(hash);
        let _key = items.lock_key_to_write(hash, client.batch)?;
        let Some(old) = items.find_locked(hash, key)? else { return Ok(Swap::Missing) };
        items.read_item(&old, hash, &mut client.value, true).map_err(Unsound::into_error)?;
        if client.value != expected {
            return Ok(Swap::Different);
        }
        self.remove_found(client, hash, key, &old)?;
        Ok(Swap::Swapped)
    }

    /// Removes the item that `key` has, whose lock the caller holds.
    #[inline(always)]
    fn remove_found(&self, client: &SharedClient, hash: u64, key: &[u8], old: &Item) -> Result<()> {
        #[cfg(feature = "baselines")]
        let logged = self.log.write(hash, key, None);
        let removed = self.writer.remove_item(client.number, hash, old);
        #[cfg(feature = "baselines")]
        if removed.is_err() {
            logged.withdraw();
        }
        removed?;
        self.items().core().changes.tell(key, KeyChange::Removed);
        Ok(())
    }
}
