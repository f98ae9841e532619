//! Listings: every record, in the order of the hashes of keys, which stays the same for as long as the store lives. A
//! *position* is a hash. A shard has one range of them.

use std::ops::RangeInclusive;

use chimera_pmem::Pmem;

use super::flush::owner;
use super::{Chameleon, ChameleonClient};
use crate::engine::shared::listing::Listed;
use crate::index::Probe;
use crate::index::probing_table::{Found, PersistentTable, Slot};
use crate::types::error::Result;

/// Hashes that are gathered at a time, about.
const GATHERED: u64 = 64 << 10;

impl<P: Pmem> Chameleon<P> {
    /// See [`Engine::list`](crate::engine::Engine::list). Hashes that were there when the listing came to their part are
    /// looked up one after the other; a key that is gone by then is left out.
    pub(super) fn list_from(
        &self,
        client: &mut ChameleonClient,
        from: u64,
        mut take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()> {
        let (mut hashes, mut next) = (Vec::new(), Some(from));
        while let Some(from) = next {
            let part = self.part_of(from);
            self.gather_hashes(from..=*part.end(), &mut hashes)?;
            for hash in &hashes {
                if !self.list_hash(client, *hash, &mut take)? {
                    return Ok(());
                }
            }
            next = part.end().checked_add(1);
        }
        Ok(())
    }

    /// The part of a shard's hashes that this one is in: not more of them than are gathered at a time.
    fn part_of(&self, hash: u64) -> RangeInclusive<u64> {
        let (shape, number) = (&self.index.shape, self.index.number_of(hash));
        let shard = self.index.shard(number);
        let tables = shard.dumps().chain(shard.last());
        let slots = tables.map(|table| table.bytes / u64::from(super::shape::SLOT_BYTES)).sum::<u64>();
        let entries = slots + u64::from(shape.bypass_slots()) + u64::from(shape.memtable_slots);
        let bits = shape.shard_bits + entries.div_ceil(GATHERED).next_power_of_two().ilog2();
        let rest = u64::MAX.checked_shr(bits).unwrap_or(0);
        (hash & !rest)..=(hash | rest)
    }

    /// Puts every hash of a range within a shard into `hashes`, in their order, once each.
    fn gather_hashes(&self, range: RangeInclusive<u64>, hashes: &mut Vec<u64>) -> Result<()> {
        hashes.clear();
        let number = self.index.number_of(*range.start());
        let pmem = &self.core.pool.pmem;
        let mut enter = |slot: Slot| {
            if range.contains(&slot.hash) {
                hashes.push(slot.hash);
            }
        };
        // Tables stay where they are, and what they have.
        let work = self.lock_work(number);
        {
            let _writing = self.lock_to_look(number);
            self.index.memtable(number).iter().for_each(&mut enter);
        }
        self.complete_bypass(number, &work)?;
        self.index.bypass(number).iter().for_each(&mut enter);
        let (tables, upper) = (work.current.tables, self.index.shape.upper_levels());
        let dumps = tables.dumps.into_iter().flatten().map(|dump| (dump, upper + 1));
        for (place, level) in dumps.chain(tables.last.map(|last| (last, upper))) {
            let table = PersistentTable::open(pmem, self.index.extent(place), owner(number, level))?;
            if self.salvages {
                table.for_each_sound(pmem, |slot| {
                    enter(slot);
                    Ok(())
                })?;
            } else {
                table.for_each(pmem, |slot| {
                    enter(slot);
                    Ok(())
                })?;
            }
        }
        drop(work);
        hashes.sort_unstable();
        hashes.dedup();
        Ok(())
    }

    /// Hands the records of all keys of a hash to `take`, as long as it says `true`.
    fn list_hash(
        &self,
        client: &mut ChameleonClient,
        hash: u64,
        take: &mut impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<bool> {
        let records = self.read_alike(client, hash)?;
        let count = records.len();
        for (number, (key, value)) in records.into_iter().enumerate() {
            let done_below = hash.saturating_add(u64::from(number + 1 == count));
            let listed = Listed { key: &key, value: &value, position: hash, done_below };
            let goes_on = take(&listed);
            // To be used again.
            client.shared.value = value;
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The records of all keys of a hash, as they are at one moment.
    fn read_alike(
        &self,
        client: &mut ChameleonClient,
        hash: u64,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let number = self.index.number_of(hash);
        let _writing = self.lock_to_look(number);
        let mut newest: Vec<(Vec<u8>, Found)> = Vec::new();
        let probed = self.index.probe(number, hash, |found| {
            let Some(record) = self.log.decode(found.offset) else { return Probe::Found(found) };
            let mut key = Vec::new();
            self.log.read_key(&record, &mut key);
            if !self.log.is_sound(&record, hash, None) {
                return Probe::Found(found);
            }
            if newest.iter().all(|(other, _)| *other != key) {
                newest.push((key, found));
            }
            Probe::NotThis
        })?;
        if let (Probe::Found(damaged), false) = (probed, self.salvages) {
            let what = "a record of the log is damaged";
            return Err(crate::types::error::Error::corrupted(what, damaged.offset));
        }
        let mut records = Vec::new();
        for (key, found) in newest.into_iter().filter(|(_, found)| !found.is_tombstone) {
            let mut value = std::mem::take(&mut client.shared.value);
            match self.read_found(found, hash, &mut value) {
                Ok(()) => records.push((key, value)),
                Err(_) if self.salvages => {}
                Err(error) => return Err(error),
            }
        }
        Ok(records)
    }
}
