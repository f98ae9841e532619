//! Lookups: without a lock, validated afterwards.
//!
//! # Why a value is whole, also where its sum is not verified
//! A reader takes an answer only if the places of its shard's tables were the same all the time, and no run of the log was
//! freed meanwhile. Then each table that it looked at was in force, and each record that it read was what it had been
//! written to be: records never change, and their bytes are used again only after their run was freed. The MemTable and the
//! bypass index only get more entries, or newer ones, while places stay.

use chimera_pmem::{Operation, Pmem};

use super::{Chameleon, ChameleonClient};
use crate::index::Probe;
use crate::index::probing_table::{Found, Slot};
use crate::records::storage_log::Record;
use crate::types::error::{Error, Result};

/// Attempts without a lock.
const ATTEMPTS: u32 = 8;
/// Keys of a `multi_get` whose misses overlap.
const GROUP: usize = 16;

/// The record that an entry leads to: both must say whether the key was deleted. A record of an earlier moment, which lay there
/// before, is right by its own check.
///
/// # Errors
/// `Corrupted` when they do not agree.
#[inline(always)]
pub(super) fn agreeing(record: Option<Record>, found: Found) -> Result<Option<Record>> {
    match record {
        Some(record) if record.is_tombstone() != found.is_tombstone => {
            Err(Error::corrupted("a record of the log is another one than was meant", found.offset))
        }
        record => Ok(record),
    }
}

impl<P: Pmem> Chameleon<P> {
    /// Hands the values of `keys` to `take`, with the key's number. Cache misses of up to 16 keys overlap.
    pub(super) fn read_group<K: AsRef<[u8]>>(
        &self,
        client: &mut ChameleonClient,
        keys: &[K],
        mut take: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        for (group_number, group) in keys.chunks(GROUP).enumerate() {
            let mut hashes = [0; GROUP];
            for (hash, key) in hashes.iter_mut().zip(group) {
                *hash = self.core.hash.of(key.as_ref());
                self.index.prefetch(*hash);
            }
            hashes[..group.len()].iter().for_each(|hash| self.index.prefetch_last(*hash));
            for at in hashes[..group.len()].iter().filter_map(|hash| self.index.peek(*hash)) {
                self.log.prefetch(at);
            }
            for (number, (hash, key)) in hashes.iter().zip(group).enumerate() {
                let found = self.get_or_time(client, *hash, key.as_ref())?;
                take(group_number * GROUP + number, found.then_some(&client.shared.value));
            }
        }
        Ok(())
    }

    /// As [`get_in_turn`](Self::get_in_turn). One in so many looks at the clock, for the Get-Protect Mode.
    #[inline(always)]
    pub(super) fn get_or_time(
        &self,
        client: &mut ChameleonClient,
        hash: u64,
        key: &[u8],
    ) -> Result<bool> {
        if client.sampler.is_turn() {
            return self.get_timed(client, hash, key);
        }
        self.get_in_turn(client, hash, key)
    }

    /// Reads the value of `key` into the client's buffer, and verifies its sum if it is this get's turn. `false` when
    /// there is none.
    #[inline]
    pub(super) fn get_in_turn(
        &self,
        client: &mut ChameleonClient,
        hash: u64,
        key: &[u8],
    ) -> Result<bool> {
        let sum = self.core.verify_reads.is_turn(&mut client.shared.gets_left);
        self.read_value(client, hash, key, sum)
    }

    /// As [`get_in_turn`](Self::get_in_turn), and looks at the clock.
    #[cold]
    pub(super) fn get_timed(
        &self,
        client: &mut ChameleonClient,
        hash: u64,
        key: &[u8],
    ) -> Result<bool> {
        let environment = &**self.core.environment();
        let began_ns = environment.now_ns();
        let found = self.get_in_turn(client, hash, key);
        let now_ns = environment.now_ns();
        self.modes.protect.note(&mut client.sampler, now_ns.saturating_sub(began_ns), now_ns);
        found
    }

    /// Reads the value of `key` into the client's buffer, and verifies it, its sum only if `sum`. `false` when there is
    /// none.
    pub(super) fn read_value(
        &self,
        client: &mut ChameleonClient,
        hash: u64,
        key: &[u8],
        sum: bool,
    ) -> Result<bool> {
        let _booked = self.core.book(Operation::Get, client.shared.number);
        self.index.prefetch(hash);
        let number = self.index.number_of(hash);
        let shard = self.index.shard(number);
        for attempt in 0..ATTEMPTS {
            let freed = self.log.freed();
            if let Some(seen) = shard.begin() {
                let read = self.read_once(client, number, hash, key, sum);
                if shard.is_valid(seen)
                    && self.log.is_unchanged(freed)
                    && let Some(read) = read.transpose()
                {
                    return Ok(read? || self.is_missing(hash));
                }
            }
            self.core.pool.pmem.operation_rereads();
            self.core.environment().relax(attempt);
        }
        let writing = self.lock_to_look(number);
        let read = self.read_once(client, number, hash, key, sum)?;
        drop(writing);
        let is_there = read.expect("nothing changes in a shard that is locked");
        Ok(is_there || self.is_missing(hash))
    }

    /// Reads the value of `key`, if the places of tables stay meanwhile. None where they did not, for certain.
    #[inline(always)]
    fn read_once(
        &self,
        client: &mut ChameleonClient,
        number: u32,
        hash: u64,
        key: &[u8],
        sum: bool,
    ) -> Result<Option<bool>> {
        let value = &mut client.shared.value;
        let probed = self.index.probe(number, hash, |found| {
            let read = self.log.read(found.offset, (hash, key), value, sum);
            match read.and_then(|record| agreeing(record, found)) {
                Ok(Some(_)) => Probe::Found(Ok(!found.is_tombstone)),
                Ok(None) => Probe::NotThis,
                // A key whose value is damaged is absent, where damage is passed over: what it had before is not its value.
                Err(_) if self.salvages && self.is_of(found, hash, key) => Probe::Found(Ok(false)),
                Err(error) => self.judge(Err(error)),
            }
        })?;
        match probed {
            Probe::Found(found) => found.map(Some),
            Probe::NotThis => Ok(Some(false)),
            Probe::Retry => Ok(None),
        }
    }

    /// What a writer makes of an entry of its key's hash.
    #[inline(always)]
    pub(super) fn probe_key(&self, found: Found, hash: u64, key: &[u8]) -> Probe<Result<Found>> {
        let record = self.log.find(found.offset, hash, key);
        match record.and_then(|record| agreeing(record, found)) {
            Ok(Some(_)) => Probe::Found(Ok(found)),
            Ok(None) => Probe::NotThis,
            Err(error) => self.judge(Err(error)),
        }
    }

    #[cold]
    fn is_of(&self, found: Found, hash: u64, key: &[u8]) -> bool {
        matches!(self.log.find(found.offset, hash, key), Ok(Some(_)))
    }

    /// What a lookup makes of damage.
    #[cold]
    fn judge<T>(&self, outcome: Result<T>) -> Probe<Result<T>> {
        if self.salvages { Probe::NotThis } else { Probe::Found(outcome) }
    }

    /// Whether the records of two slots of one hash are of one key. Where one of them is damaged they are not: then both
    /// slots stay, so that the damage is found.
    pub(super) fn is_same_key(&self, newer: Slot, older: Slot) -> bool {
        let (mut key, hash) = (Vec::new(), newer.hash);
        let Some(record) = newer.found().and_then(|found| self.log.decode(found.offset)) else {
            return false;
        };
        self.log.read_key(&record, &mut key);
        older
            .found()
            .is_some_and(|found| matches!(self.log.find(found.offset, hash, &key), Ok(Some(_))))
    }

    /// Checks that a tombstone is not damaged, unless damage is passed over: nobody knows what a damaged one has deleted, and
    /// without it that would be there again.
    ///
    /// # Errors
    /// `Corrupted`.
    #[cold]
    pub(super) fn check_tombstone(&self, slot: Slot) -> Result<()> {
        let Some(found) = slot.found().filter(|found| found.is_tombstone && !self.salvages) else {
            return Ok(());
        };
        let damaged = || Error::corrupted("a record of the log is damaged", found.offset);
        if self.is_whole(found, slot.hash) { Ok(()) } else { Err(damaged()) }
    }

    /// Whether the records of slots are there, and sound but for their values.
    #[cold]
    pub(super) fn are_whole(&self, slots: [Slot; 2]) -> bool {
        let is_whole =
            |slot: Slot| slot.found().is_some_and(|found| self.is_whole(found, slot.hash));
        slots.into_iter().all(is_whole)
    }

    /// Whether the record of an entry is there, and sound but for its value.
    pub(super) fn is_whole(&self, found: Found, hash: u64) -> bool {
        self.key_of_whole(found, hash).is_some()
    }

    /// The key of the record of an entry, if that is there, and sound but for its value.
    fn key_of_whole(&self, found: Found, hash: u64) -> Option<Vec<u8>> {
        let mut key = Vec::new();
        let record = self.log.decode(found.offset)?;
        self.log.read_key(&record, &mut key);
        let is_whole = self.core.hash.of(&key) == hash && self.log.is_sound(&record, hash, None);
        is_whole.then_some(key)
    }

    /// Whether an older slot of the same hash as a newer one was superseded: its record is of the same key, or not there
    /// any more. Records that are superseded by one in the levels above the last one may be gone. Their room may be written
    /// again at any time, so the older record is read once: what it is, and then whether it is of the same key, would be
    /// asked of two records.
    pub(super) fn is_superseded(&self, newer: Slot, older: Slot) -> bool {
        let (Some(older_found), Some(newer_found)) = (older.found(), newer.found()) else {
            return older.found().is_none();
        };
        let Some(key) = self.key_of_whole(older_found, older.hash) else { return true };
        matches!(self.log.find(newer_found.offset, newer.hash, &key), Ok(Some(_)))
    }
}
