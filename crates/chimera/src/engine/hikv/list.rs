//! Listings: every record, in the order of the hashes of keys, which stays the same for as long as the store lives. A
//! *position* is a hash.

use std::ops::RangeInclusive;

use chimera_pmem::Pmem;

use super::items::{Items, Unsound};
use crate::engine::contract::client::SharedClient;
use crate::engine::contract::listed::{Listed, hand_out};
use crate::index::Probe;
use crate::index::persistent::partitioned_hash::Batch;
use crate::types::error::{Error, Result};

/// Items whose loads are started before a key is read.
const AHEAD: usize = 8;

impl<P: Pmem> Items<P> {
    /// See [`Engine::list`](crate::engine::Engine::list). What of a segment was there when the listing came to it is
    /// read key by key; a key that is gone by then is left out.
    pub(super) fn list(
        &self,
        client: &mut SharedClient,
        from: u64,
        mut take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()> {
        let (mut batch, mut next) = (Batch::default(), Some(from));
        while let Some(from) = next {
            self.index().list(from, &mut batch);
            next = batch.next;
            self.pass_over(&batch)?;
            for alike in batch.entries.chunk_by(|one, other| one.0 == other.0) {
                if !self.list_hash(client, alike, &mut take)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Hands every key at these positions to `take`, in the order of positions. Values are not read. Others may write: a
    /// key that is there all the time comes, because its hash is in the index when the listing comes to its segment, and
    /// then all keys of this hash are read as they are at one moment.
    pub(super) fn list_keys(
        &self,
        positions: &RangeInclusive<u64>,
        mut take: impl FnMut(&[u8]),
    ) -> Result<()> {
        let (mut batch, mut keys, mut next) =
            (Batch::default(), Vec::<Vec<u8>>::new(), Some(*positions.start()));
        while let Some(from) = next.filter(|next| positions.contains(next)) {
            self.index().list(from, &mut batch);
            next = batch.next;
            self.pass_over(&batch)?;
            batch.entries.retain(|(hash, _)| positions.contains(hash));
            batch.entries.dedup_by_key(|(hash, _)| *hash);
            for (number, (hash, _)) in batch.entries.iter().enumerate() {
                if let Some((_, ahead)) = batch.entries.get(number + AHEAD) {
                    self.heap().prefetch(*ahead);
                }
                let count = self.read_keys(*hash, &mut keys)?;
                if count == 0 && self.salvages() {
                    self.note_lost(*hash);
                }
                keys[..count].iter().for_each(|key| take(key));
            }
        }
        Ok(())
    }

    /// Notes what is damaged in a part of the index that salvage lists without it.
    ///
    /// # Errors
    /// `Corrupted`, unless the store salvages.
    fn pass_over(&self, batch: &Batch) -> Result<()> {
        match batch.damages.first() {
            Some(at) if !self.salvages() => {
                Err(Error::corrupted("a part of the index is damaged", *at))
            }
            _ => {
                let damages = batch.damages.iter();
                damages.for_each(|at| self.note_loss(*at, "an entry of the index is damaged"));
                Ok(())
            }
        }
    }

    /// Reads all keys of this hash, as they are at one moment, into the first so many of `keys`.
    fn read_keys(&self, hash: u64, keys: &mut Vec<Vec<u8>>) -> Result<usize> {
        let mut count = 0;
        let outcome = self.core().read_unlocked(|| {
            count = 0;
            // Each entry is looked at: what is taken is what the whole window had when nobody changed it.
            self.index().find_once(hash, &mut |at| {
                if keys.len() == count {
                    keys.push(Vec::new());
                }
                match self.heap().decode(at) {
                    Some(item) if self.read_key(&item, hash, &mut keys[count]) => {
                        count += 1;
                        Probe::NotThis
                    }
                    _ => self.judge::<()>(Err(Unsound { at })),
                }
            })
        });
        if let Some(outcome) = outcome {
            let found = outcome?.transpose().map_err(Unsound::into_error);
            return found.map(|_| count);
        }
        let _key = self.lock_key_to_look(hash);
        let items = self.find_same_hash(hash)?;
        keys.resize_with(keys.len().max(items.len()), Vec::new);
        for (item, key) in items.iter().zip(keys) {
            self.heap().read_key(item, key);
        }
        Ok(items.len())
    }

    /// Hands the records of all keys of a hash to `take`, which has these entries, as long as it says `true`.
    fn list_hash(
        &self,
        client: &mut SharedClient,
        entries: &[(u64, u64)],
        take: &mut impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<bool> {
        let (hash, mut records) = (entries[0].0, Vec::new());
        let key_lock = self.lock_key_to_look(hash);
        let items = self.find_same_hash(hash)?;
        for item in &items {
            let (mut key, mut value) = (Vec::new(), std::mem::take(&mut client.value));
            self.heap().read_key(item, &mut key);
            match self.read_item(item, hash, &mut value, true) {
                Ok(()) => records.push((key, value)),
                Err(_) if self.salvages() => {}
                Err(unsound) => return Err(Unsound::into_error(unsound)),
            }
        }
        drop(key_lock);
        if records.len() < entries.len() && self.salvages() {
            self.note_lost(hash);
        }
        Ok(hand_out(hash, records, &mut client.value, take))
    }
}
