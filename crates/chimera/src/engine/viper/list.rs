//! Listings: every record, in an order that stays the same for as long as the store lives.
//!
//! The order is that of the index, which follows from the keys' hashes and so from the superblock's seed.
//! A *position* is a place in it; each key has one, and hardly ever two keys the same.

use std::ops::RangeInclusive;

use chimera_pmem::Pmem;

use super::records::{Records, Unsound};
use super::space::Client;
use crate::engine::contract::listed::Listed;
use crate::index::Probe;
use crate::index::volatile::extendible_hash::position_of;
use crate::pool::Location;
use crate::records::vpage::Pages;
use crate::types::error::Result;

/// Records whose loads are started before a key is read.
const AHEAD: usize = 8;

impl<P: Pmem, V: Pages> Records<P, V> {
    /// Hands every record from position `from` on to `take`, in the order of positions: keys that are
    /// there all the time exactly once, with a value that they have at that moment. Ends early when
    /// `take` says `false`. Nothing is locked while `take` runs.
    pub(super) fn list(
        &self,
        client: &mut Client,
        from: u64,
        mut take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()> {
        let (mut batch, mut key) = (Vec::new(), Vec::new());
        let mut next = Some(from);
        while let Some(from) = next {
            batch.clear();
            next = self.index().list(from, &mut batch);
            batch.sort_unstable_by_key(|(hash, _)| position_of(*hash));
            for alike in batch.chunk_by(|one, other| one.0 == other.0) {
                let goes_on = match alike {
                    [(hash, listed)] => {
                        let position = position_of(*hash);
                        let done_below = position.saturating_add(1);
                        !self.read_listed(client, *hash, *listed, &mut key)?
                            || take(&Listed {
                                key: &key,
                                value: &client.shared.value,
                                position,
                                done_below,
                            })
                    }
                    _ => self.list_alike(client, alike, &mut take)?,
                };
                if !goes_on {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Hands every key at these positions to `take`, in no order, perhaps more than once. Values are not read. Others may
    /// write: a key that is there all the time comes, because its hash is in the index when the listing comes to its
    /// segment, and then all keys of this hash are read as they are at one moment.
    pub(super) fn list_keys(
        &self,
        positions: &RangeInclusive<u64>,
        mut take: impl FnMut(&[u8]),
    ) -> Result<()> {
        let (mut batch, mut keys) = (Vec::new(), Vec::new());
        let mut next = Some(*positions.start());
        while let Some(from) = next.filter(|next| positions.contains(next)) {
            batch.clear();
            next = self.index().list(from, &mut batch);
            batch.retain(|(hash, _)| positions.contains(&position_of(*hash)));
            for (number, (hash, location)) in batch.iter().enumerate() {
                if let Some((_, ahead)) = batch.get(number + AHEAD) {
                    let (pool, pages) = (self.pool(), self.pages());
                    let key_bytes = keys.last().map_or(0, Vec::len);
                    pool.pmem.prefetch(pages.head(pool, &pages.place_of(*ahead), key_bytes));
                }
                let (count, is_there) = self.read_keys(*hash, *location, &mut keys);
                keys[..count].iter().for_each(|key| take(key));
                if !is_there {
                    self.is_gone(*hash, *location)?;
                }
            }
        }
        Ok(())
    }

    /// Reads all keys of a hash, as they are at one moment, into the first so many of `keys`; perhaps also keys that were
    /// there before. And whether one of them lies at `listed`.
    ///
    /// A look at `listed` alone would not do: of two keys of one hash each may have moved to where the other one was.
    fn read_keys(&self, hash: u64, listed: Location, keys: &mut Vec<Vec<u8>>) -> (usize, bool) {
        let (mut count, mut is_there) = (0, false);
        self.index().find_observed(hash, |found| {
            if keys.len() == count {
                keys.push(Vec::new());
            }
            let (before, key) = keys.split_at_mut(count);
            match self.read_listed_key(hash, found.location, &mut key[0]) {
                Probe::Found(()) => {
                    is_there |= found.location == listed;
                    count += usize::from(!before.contains(&key[0]));
                    Probe::NotThis
                }
                probe => probe,
            }
        });
        (count, is_there)
    }

    /// Reads the record that the index listed at `location`, or wherever it has moved since. `false`
    /// when it is gone.
    fn read_listed(
        &self,
        client: &mut Client,
        hash: u64,
        listed: Location,
        key: &mut Vec<u8>,
    ) -> Result<bool> {
        let still_there = matches!(self.read_listed_key(hash, listed, key), Probe::Found(()));
        let mut look = || {
            let index = self.index();
            index.find(hash, |found| self.read_listed_key(hash, found.location, key)).is_some()
        };
        if still_there || look() {
            return self.read_hashed(client, hash, key);
        }
        self.is_gone(hash, listed).map(|()| false)
    }

    /// Nothing, when the record that was listed at `location` and not found is gone or has moved.
    ///
    /// # Errors
    /// `Corrupted` when it is there, with another key than the index says.
    #[cold]
    fn is_gone(&self, hash: u64, location: Location) -> Result<()> {
        let _key = self.lock_key_to_look(hash);
        let mut key = Vec::new();
        let place = self.pages().place_of(location);
        let is_damaged = self.index().contains_exact(hash, location)
            && !(self.decode_with_key(&place, &mut key).is_some()
                && self.core().hash.of(&key) == hash);
        if is_damaged { Err(Unsound { at: place.record_at }.into_error()) } else { Ok(()) }
    }

    fn read_listed_key(&self, hash: u64, location: Location, key: &mut Vec<u8>) -> Probe<()> {
        let place = self.pages().place_of(location);
        if place.block >= self.pool().used_blocks() {
            // Given back since it was listed: there may be no storage any more.
            return Probe::NotThis;
        }
        let lock = self.page_lock(&place);
        let Some(version) = lock.read_begin() else { return Probe::Retry };
        let is_record = self.decode_with_key(&place, key).is_some();
        match lock.read_is_valid(version) {
            false => Probe::Retry,
            true if is_record && self.core().hash.of(key) == hash => Probe::Found(()),
            true => Probe::NotThis,
        }
    }

    /// As [`list`](Self::list), for keys of one hash. It is not known which of them have moved since they
    /// were listed, so a record at another location is taken only if its key was not found yet.
    #[cold]
    fn list_alike(
        &self,
        client: &mut Client,
        alike: &[(u64, Location)],
        take: &mut impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<bool> {
        let (hash, mut keys) = (alike[0].0, Vec::new());
        let (count, _) = self.read_keys(hash, alike[0].1, &mut keys);
        alike.iter().try_for_each(|(hash, listed)| self.is_gone(*hash, *listed))?;
        keys.truncate(count);
        let position = position_of(hash);
        for (number, key) in keys.iter().enumerate() {
            let is_last = number + 1 == keys.len();
            let done_below = if is_last { position.saturating_add(1) } else { position };
            if self.read_hashed(client, hash, key)?
                && !take(&Listed { key, value: &client.shared.value, position, done_below })
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
