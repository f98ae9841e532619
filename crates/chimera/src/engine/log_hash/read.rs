//! Lookups: without a lock, validated by the index.
//!
//! # Why a value is whole, also where its sum is not verified
//! A reader takes an answer only if its part of the index was the same all the time, and no run of the log was freed
//! meanwhile. Then the entry led to the record all the time, and the record was what it had been written to be: records never
//! change.

use chimera_pmem::{Operation, Pmem};

use super::index::LogIndex;
use super::{LogHash, LogHashClient};
use crate::index::Probe;
use crate::sync::until_some;
use crate::types::error::{Error, Result};

/// What the index had of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Old {
    pub(super) at: u64,
}

impl<P: Pmem, I: LogIndex<P>> LogHash<P, I> {
    /// Reads the value of `key` into the client's buffer, and verifies its sum if it is this get's turn. `false` when
    /// there is none.
    #[inline]
    pub(super) fn get_in_turn(
        &self,
        client: &mut LogHashClient,
        hash: u64,
        key: &[u8],
    ) -> Result<bool> {
        let sum = self.core.verify_reads.is_turn(&mut client.shared.gets_left);
        self.read_value(client, hash, key, sum)
    }

    /// Reads the value of `key` into the client's buffer, and verifies it, its sum only if `sum`. `false` when there is
    /// none.
    pub(super) fn read_value(
        &self,
        client: &mut LogHashClient,
        hash: u64,
        key: &[u8],
        sum: bool,
    ) -> Result<bool> {
        let _booked = self.core.book(Operation::Get, client.shared.number);
        let value = &mut client.shared.value;
        let mut probe = |at| match self.log.read(at, (hash, key), value, sum) {
            Ok(Some(_)) => Probe::Found(Ok(())),
            Ok(None) => Probe::NotThis,
            Err(error) => self.judge(error),
        };
        let read = self.core.read_unlocked(|| {
            let freed = self.log.freed();
            let outcome = self.index.find_once(hash, &mut probe);
            outcome.filter(|_| self.log.is_unchanged(freed))
        });
        if let Some(outcome) = read {
            let found = outcome?.transpose()?;
            return Ok(found.is_some() || self.is_missing(hash));
        }
        self.read_locked(client, hash, key)
    }

    /// As [`read_value`](Self::read_value), with the key locked: its entry and its record stay meanwhile. Verifies the sum.
    #[cold]
    pub(super) fn read_locked(
        &self,
        client: &mut LogHashClient,
        hash: u64,
        key: &[u8],
    ) -> Result<bool> {
        let key_lock = self.keys.lock_to_look(hash, &self.core.poison);
        if let (Some(old), _) = self.find_locked(hash, key)? {
            match self.read_found(old.at, hash, &mut client.shared.value) {
                Ok(()) => return Ok(true),
                Err(_) if self.salvages => {}
                Err(error) => return Err(error),
            }
        }
        drop(key_lock);
        Ok(self.is_missing(hash))
    }

    /// Looks for the entry of `key`, whose lock the caller holds, and counts those of other keys that have its hash and
    /// come before it.
    #[inline]
    pub(super) fn find_locked(&self, hash: u64, key: &[u8]) -> Result<(Option<Old>, u32)> {
        let mut alike = 0;
        let outcome = until_some(&**self.core.environment(), || {
            alike = 0;
            let outcome =
                self.index.find_once(hash, &mut |at| match self.log.find(at, hash, key) {
                    Ok(Some(_)) => Probe::Found(Ok(Old { at })),
                    Ok(None) => {
                        alike += 1;
                        Probe::NotThis
                    }
                    Err(error) => self.judge(error),
                });
            if outcome.is_none() {
                self.core.pool.pmem.operation_rereads();
            }
            outcome
        });
        outcome?.transpose().map(|old| (old, alike))
    }

    /// What a lookup makes of damage.
    #[cold]
    fn judge<T>(&self, error: Error) -> Probe<Result<T>> {
        if self.salvages { Probe::NotThis } else { Probe::Found(Err(error)) }
    }
}
