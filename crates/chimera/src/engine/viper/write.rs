//! Inserts, overwrites and deletes. The order of steps is argued in docs/DURABILITY.md.

use chimera_pmem::{Operation, Pmem};

use super::read::Existing;
use super::{Client, Viper, no_index_memory};
use crate::index::volatile::extendible_hash::Words;
use crate::records::vpage::{VPages, sites};
use crate::types::error::{Error, Result};

impl<P: Pmem, W: Words> Viper<P, W> {
    /// Stores `value` under `key`; tells whether the key is new.
    #[inline]
    pub(crate) fn put(&self, client: &mut Client, key: &[u8], value: &[u8]) -> Result<bool> {
        self.check_key(key)?;
        self.check_value(value)?;
        // Before a block is looked for: where nobody may write, none may be made ready.
        self.poison.check()?;
        let booked = self.begin(Operation::Insert, client);
        let hash = self.hash.of(key);
        self.index.prefetch_to_change(hash);
        // A block, if one is needed, before the lock: others need not wait for it.
        client.slot(self)?;
        let _key = self.keys.lock(hash, &self.poison)?;
        self.index.prepare_insert().map_err(no_index_memory)?;
        let existing = self.write(client, hash, key, value, || {
            self.find_locked(hash, key, |place| self.prefetch_to_retire(place))
        })?;
        if existing.is_some() {
            booked.is(Operation::Overwrite);
        }
        Ok(existing.is_none())
    }

    /// Writes a record of `key`, whose lock the caller holds, in place of the one that `existing`
    /// finds; returns that one.
    ///
    /// # Durability
    /// The new record is durable on return, and the old one is durably gone.
    ///
    /// # Cost
    /// The lines of a slot, 1 for its bit, 2 fences; 1 line and 1 fence more for an old record.
    #[inline(always)]
    pub(super) fn write(
        &self,
        client: &mut Client,
        hash: u64,
        key: &[u8],
        value: &[u8],
        existing: impl FnOnce() -> Result<Option<Existing>>,
    ) -> Result<Option<Existing>> {
        let (pool, pages) = (&*self.pool, &self.pages);
        let place = client.slot(self)?;
        let mut page = Some(self.page_lock(&place).lock(&*pool.environment));
        // The record is copied while the index's lines are on their way.
        let value_checksum = pages.write_body(pool, &place, key, value);
        let existing = existing()?;
        let version = next_version(existing.as_ref())?;
        pages.write_header(pool, &place, hash, version, value_checksum);
        if pages.layout.checked {
            page = None;
        }
        pages.flush_record(pool, &place);
        pool.pmem.fence(sites::RECORD);
        let location = VPages::location(&place);
        let set_bit = || pages.set_bit(pool, &place);
        let entered = match &existing {
            None => self.index.insert_after(hash, location, set_bit).map(|()| true),
            Some(old) => self.index.swap_after(hash, old.location, location, set_bit),
        };
        match entered {
            Ok(entered) => assert!(entered, "the entry of a key changed while the key was locked"),
            Err(damage) => {
                client.abandon_word();
                return Err(damage);
            }
        }
        client.consume(self);
        if let Some(old) = &existing {
            self.retire(old)?;
        }
        // In the published layout nothing but the place tells the two records apart after a crash:
        // until the old one is gone nobody may see the new one.
        drop(page);
        Ok(existing)
    }

    /// Removes `key`; tells whether it was there.
    #[inline]
    pub(crate) fn delete(&self, client: &mut Client, key: &[u8]) -> Result<bool> {
        self.check_key(key)?;
        let _booked = self.begin(Operation::Delete, client);
        let hash = self.hash.of(key);
        self.index.prefetch_to_change(hash);
        let _key = self.keys.lock(hash, &self.poison)?;
        let Some(old) = self.find_locked(hash, key, |place| self.prefetch_to_retire(place))? else {
            return Ok(false);
        };
        let removed = self.index.remove_after(hash, old.location, || self.retire(&old))?;
        assert!(removed, "the entry of a key changed while the key was locked");
        Ok(true)
    }

    /// Clears the bit of a record durably: 1 line, 1 fence.
    #[inline(always)]
    fn retire(&self, old: &Existing) -> Result<()> {
        self.pages.clear_bit(&self.pool, &old.place, || self.blocks.note_freed(old.place.block))
    }
}

/// The version of a record that replaces `existing`.
#[inline(always)]
fn next_version(existing: Option<&Existing>) -> Result<u64> {
    let Some(old) = existing else { return Ok(1) };
    old.header.version.checked_add(1).ok_or_else(|| {
        Error::corrupted("a record's version leaves no room for another", old.place.record_at)
    })
}
