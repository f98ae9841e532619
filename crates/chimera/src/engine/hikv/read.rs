//! Lookups: without a lock, validated by the index.
//!
//! # Why a value is whole, also where its sum is not verified
//! A reader takes an answer only if the version of the entry's segment was even before the first slot was read, and is
//! the same after the last byte of the item was. Then the entry led to the item all the time, because entries change only
//! while the version is odd. Nobody writes into an item that an entry leads to, and its room is not used again before the
//! entry has changed. So what was read is the item, all of it. The entry was durable, because the version stays odd until
//! it is, and so was the item before it.
//!
//! Other keys of the segment may be written so often, or the value be so large, that a reader has no such moment. After
//! some attempts it takes the lock of its key: then nobody changes the key's entry, and its item stays where it is. The
//! entry is found as before, which is short, and the item is read at leisure.

use chimera_pmem::{Operation, Pmem};

use super::Hikv;
use crate::engine::shared::client::SharedClient;
use crate::index::Probe;
use crate::pool::Held;
use crate::records::item_heap::Item;
use crate::types::error::{Error, Result};
use crate::types::verify_reads::VerifyReads;

/// Attempts without a lock.
pub(super) const ATTEMPTS: u32 = 8;
/// Keys of a `multi_get` whose misses overlap.
const GROUP: usize = 16;

/// What is said of an item that is damaged.
pub(super) const DAMAGED_RECORD: &str = "a record does not match its checksum";

/// An item that is damaged.
pub(super) struct Unsound {
    pub(super) at: u64,
}

impl Unsound {
    #[cold]
    pub(super) fn into_error(self) -> Error {
        Error::corrupted(DAMAGED_RECORD, self.at)
    }
}

impl<P: Pmem> Hikv<P> {
    /// Hands the values of `keys` to `take`, with the key's number. Cache misses of up to 16 keys overlap.
    pub(super) fn read_group<K: AsRef<[u8]>>(
        &self,
        client: &mut SharedClient,
        keys: &[K],
        mut take: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        for (group_number, group) in keys.chunks(GROUP).enumerate() {
            let mut hashes = [0; GROUP];
            for (hash, key) in hashes.iter_mut().zip(group) {
                *hash = self.core.hash.of(key.as_ref());
                self.index.prefetch(*hash);
            }
            for at in hashes[..group.len()].iter().filter_map(|hash| self.index.peek(*hash)) {
                self.heap.prefetch(at);
            }
            for (number, (hash, key)) in hashes.iter().zip(group).enumerate() {
                let found = self.get_in_turn(client, *hash, key.as_ref())?;
                take(group_number * GROUP + number, found.then_some(&client.value));
            }
        }
        Ok(())
    }

    /// Reads the value of `key` into the client's buffer, and verifies its sum if it is this get's turn. `false` when
    /// there is none.
    #[inline]
    pub(super) fn get_in_turn(
        &self,
        client: &mut SharedClient,
        hash: u64,
        key: &[u8],
    ) -> Result<bool> {
        let sum = self.verify_reads == VerifyReads::Always
            || self.verify_reads.is_turn(&mut client.gets_left);
        self.read_value(client, hash, key, sum)
    }

    /// Reads the value of `key` into the client's buffer, and verifies it, its sum only if `sum`. `false` when there is
    /// none.
    pub(super) fn read_value(
        &self,
        client: &mut SharedClient,
        hash: u64,
        key: &[u8],
        sum: bool,
    ) -> Result<bool> {
        let _booked = self.core.book(Operation::Get, client.number);
        let value = &mut client.value;
        let mut probe = |at| self.probe_value(at, hash, key, value, sum);
        for attempt in 0..ATTEMPTS {
            if let Some(outcome) = self.index.find_once(hash, &mut probe) {
                let found = outcome?.transpose().map_err(Unsound::into_error)?;
                return Ok(found.is_some() || self.is_missing(hash));
            }
            self.core.pool.pmem.operation_rereads();
            self.core.environment().relax(attempt);
        }
        self.read_locked(client, hash, key, sum)
    }

    /// As [`read_value`](Self::read_value), with the key locked.
    #[cold]
    fn read_locked(
        &self,
        client: &mut SharedClient,
        hash: u64,
        key: &[u8],
        sum: bool,
    ) -> Result<bool> {
        let key_lock = self.keys.lock_to_look(hash, &self.core.poison);
        let Some(item) = self.find_locked(hash, key)? else {
            drop(key_lock);
            return Ok(self.is_missing(hash));
        };
        self.read_item(&item, hash, &mut client.value, sum).map_err(Unsound::into_error)?;
        Ok(true)
    }

    /// Whether a key of this hash that was looked for in vain is there: never. What damage has left out of a salvaged store
    /// is noted.
    #[inline]
    fn is_missing(&self, hash: u64) -> bool {
        if self.salvages {
            self.note_lost(hash);
        }
        false
    }

    /// Notes which items of this hash a salvaged store leaves out, as they are at one moment.
    #[cold]
    pub(super) fn note_lost(&self, hash: u64) {
        let _key = self.keys.lock_to_look(hash, &self.core.poison);
        let (mut lost, mut value, mut attempt) = (Vec::new(), Vec::new(), 0);
        loop {
            lost.clear();
            let looked = self.index.find_once(hash, &mut |at| {
                let item = self.heap.decode(at).filter(|item| self.is_of(item, hash));
                let read = item.ok_or(Unsound { at });
                if read.and_then(|item| self.read_item(&item, hash, &mut value, true)).is_err() {
                    lost.push(at);
                }
                Probe::<()>::NotThis
            });
            if looked.is_some() {
                for at in &lost {
                    self.note_loss(*at, DAMAGED_RECORD);
                }
                return;
            }
            self.core.environment().relax(attempt);
            attempt = attempt.saturating_add(1);
        }
    }

    /// Notes damage at byte `at` that a salvaged store leaves out.
    #[cold]
    pub(super) fn note_loss(&self, at: u64, what: &str) {
        if self.salvages {
            // Opening has counted each entry.
            self.core.pool.note_loss_of(Held::Nothing, at, what);
        }
    }

    /// Reads the item at `at`, if it is that of `key`.
    #[inline(always)]
    fn probe_value(
        &self,
        at: u64,
        hash: u64,
        key: &[u8],
        value: &mut Vec<u8>,
        sum: bool,
    ) -> Probe<Result<(), Unsound>> {
        match self.heap.decode(at) {
            Some(item) if self.heap.key_is(&item, key) => {
                self.judge(self.read_item(&item, hash, value, sum))
            }
            other => self.other_key(at, hash, other),
        }
    }

    /// Reads the value of an item of this hash, and verifies the item, the value only if `sum`.
    #[inline(always)]
    pub(super) fn read_item(
        &self,
        item: &Item,
        hash: u64,
        value: &mut Vec<u8>,
        sum: bool,
    ) -> Result<(), Unsound> {
        let summed = if sum {
            Some(self.heap.read_summed(item, value))
        } else {
            self.heap.read_value(item, value);
            None
        };
        if self.heap.is_sound(item, hash, summed) { Ok(()) } else { Err(Unsound { at: item.at }) }
    }

    /// What a lookup makes of an item that was found, or is damaged.
    #[inline(always)]
    pub(super) fn judge<T>(&self, outcome: Result<T, Unsound>) -> Probe<Result<T, Unsound>> {
        if outcome.is_err() && self.salvages { Probe::NotThis } else { Probe::Found(outcome) }
    }

    /// What to make of an entry under `hash` whose item has another key: 64 bits of two keys' hashes agree, or the item is
    /// damaged, or has gone.
    #[cold]
    fn other_key<T>(&self, at: u64, hash: u64, item: Option<Item>) -> Probe<Result<T, Unsound>> {
        let is_other = item.is_some_and(|item| self.is_of(&item, hash));
        if is_other { Probe::NotThis } else { self.judge(Err(Unsound { at })) }
    }

    /// Whether an item has a key of this hash, as it was written.
    pub(super) fn is_of(&self, item: &Item, hash: u64) -> bool {
        self.read_key(item, hash, &mut Vec::new())
    }

    /// Reads the key of an item. Whether it has this hash, as it was written.
    pub(super) fn read_key(&self, item: &Item, hash: u64, key: &mut Vec<u8>) -> bool {
        self.heap.read_key(item, key);
        self.core.hash.of(key) == hash && self.heap.is_sound(item, hash, None)
    }

    /// Finds the item of `key`, whose lock the caller holds.
    #[inline]
    pub(super) fn find_locked(&self, hash: u64, key: &[u8]) -> Result<Option<Item>> {
        let found = self.index.find(hash, |at| match self.heap.decode(at) {
            Some(item) if self.heap.key_is(&item, key) => {
                let is_sound = self.heap.is_sound(&item, hash, None);
                self.judge(if is_sound { Ok(item) } else { Err(Unsound { at }) })
            }
            other => self.other_key(at, hash, other),
        })?;
        found.transpose().map_err(Unsound::into_error)
    }

    /// The items of all keys of this hash, whose lock the caller holds.
    pub(super) fn find_alike(&self, hash: u64) -> Result<Vec<Item>> {
        let mut items: Vec<Item> = Vec::new();
        let found = self.index.find(hash, |at| {
            let Some(item) = self.heap.decode(at).filter(|item| self.is_of(item, hash)) else {
                return self.judge::<()>(Err(Unsound { at }));
            };
            if !items.contains(&item) {
                items.push(item);
            }
            Probe::NotThis
        })?;
        found.transpose().map_err(Unsound::into_error).map(|_| items)
    }
}
