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

use super::items::{DAMAGED_RECORD, Items, Unsound};
use crate::engine::contract::client::SharedClient;
use crate::index::Probe;
use crate::sync::until_some;
use crate::types::error::Result;
use crate::types::verify_reads::VerifyReads;

impl<P: Pmem> Items<P> {
    /// Reads the value of `key` into the client's buffer, and verifies its sum if it is this get's turn. `false` when
    /// there is none.
    #[inline]
    pub(super) fn get_in_turn(
        &self,
        client: &mut SharedClient,
        hash: u64,
        key: &[u8],
    ) -> Result<bool> {
        let sum = self.verify_reads() == VerifyReads::Always
            || self.verify_reads().is_turn(&mut client.gets_left);
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
        let _booked = self.core().book(Operation::Get, client.number);
        let value = &mut client.value;
        let mut probe = |at| self.probe_value(at, hash, key, value, sum);
        let once = || self.index().find_once(hash, &mut probe);
        let Some(outcome) = self.core().read_unlocked(once) else {
            return self.read_locked(client, hash, key, sum);
        };
        let found = outcome?.transpose().map_err(Unsound::into_error)?;
        Ok(found.is_some() || self.is_missing(hash))
    }

    /// As [`read_value`](Self::read_value), with the key locked.
    #[cold]
    pub(super) fn read_locked(
        &self,
        client: &mut SharedClient,
        hash: u64,
        key: &[u8],
        sum: bool,
    ) -> Result<bool> {
        let key_lock = self.lock_key_to_look(hash);
        if let Some(item) = self.find_locked(hash, key)? {
            match self.read_item(&item, hash, &mut client.value, sum) {
                Ok(()) => return Ok(true),
                Err(_) if self.salvages() => {}
                Err(unsound) => return Err(unsound.into_error()),
            }
        }
        drop(key_lock);
        Ok(self.is_missing(hash))
    }

    /// Whether a key of this hash that was looked for in vain is there: never. What damage has left out of a salvaged store
    /// is noted.
    #[inline]
    fn is_missing(&self, hash: u64) -> bool {
        if self.salvages() {
            self.note_lost(hash);
        }
        false
    }

    /// Notes which items of this hash a salvaged store leaves out, as they are at one moment.
    #[cold]
    pub(super) fn note_lost(&self, hash: u64) {
        let _key = self.lock_key_to_look(hash);
        let (mut lost, mut value) = (Vec::new(), Vec::new());
        // That a slot is damaged is said by who lists it.
        let _: Result<Option<()>> = until_some(&**self.core().environment(), || {
            lost.clear();
            self.index().find_once(hash, &mut |at| {
                let item = self.heap().decode(at).filter(|item| self.is_of(item, hash));
                let read = item.ok_or(Unsound { at });
                if read.and_then(|item| self.read_item(&item, hash, &mut value, true)).is_err() {
                    lost.push(at);
                }
                Probe::NotThis
            })
        });
        for at in lost {
            self.note_loss(at, DAMAGED_RECORD);
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
        match self.heap().decode(at) {
            Some(item) if self.heap().key_is(&item, key) => {
                self.judge(self.read_item(&item, hash, value, sum))
            }
            other => self.other_key(at, hash, other),
        }
    }
}
