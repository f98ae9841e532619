//! [`Metered`]: an engine's session, with what it counts: each operation is counted, and some are timed.
//! Here a call is matched to its engine, once.

use chimera_pmem::Pmem;
use chimera_pmem::environment::Origin;

use super::forked::refuse;
use crate::engine::contract::client::{Client, Written};
use crate::engine::contract::listed::Listed;
use crate::engine::shared::batch::{self, Outcome};
#[cfg(feature = "baselines")]
use crate::engine::shared::read;
use crate::engine::shared::{conditional, order, scan, settle, update, writes};
use crate::engine::{AnySession, Engine, each_session};
use crate::metrics::{Meter, Started};
use crate::ordered::{Cursor, Direction};
use crate::types::batch::Batch;
use crate::types::error::{Error, Result};
use crate::types::operations::{Count, OperationStats, Timed};
use crate::types::swap::Swap;

/// Bytes that an update in place writes.
const IN_PLACE_BYTES: u64 = 8;

/// What a session keeps between operations.
pub(super) struct Metered<P: Pmem> {
    session: AnySession<P>,
    meter: Meter,
    /// The process that it may be used in.
    origin: Origin,
}

impl<P: Pmem> Metered<P> {
    pub(super) fn new(session: AnySession<P>, meter: Meter) -> Self {
        let origin = *meter.origin();
        Self { session, meter, origin }
    }

    pub(super) fn number(&self) -> u32 {
        self.session.client().number
    }

    pub(super) fn stats(&self) -> OperationStats {
        self.meter.totals().stats()
    }

    #[inline]
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        refuse(&self.origin)?;
        let started = self.meter.begin();
        let outcome = each_session!(&mut self.session, engine, client => {
            engine.core().settled(writes::put(&**engine, client, key, value))
        });
        match &outcome {
            Ok(is_new) => {
                let (count, timed) = match is_new {
                    true => (Count::Inserts, Timed::Insert),
                    false => (Count::Overwrites, Timed::Overwrite),
                };
                self.meter.count(count);
                self.meter.count_many(Count::ValueBytesWritten, value.len() as u64);
                self.meter.end(started, timed);
            }
            Err(error) => self.meter.failed(error),
        }
        outcome
    }

    pub(super) fn put_counter(&mut self, key: &[u8], value: &[u8], at: usize) -> Result<bool> {
        refuse(&self.origin)?;
        let started = self.meter.begin();
        let outcome = each_session!(&mut self.session, engine, client => {
            engine.core().settled(writes::put_counter(&**engine, client, key, value, at))
        });
        match &outcome {
            Ok(false) => {
                self.meter.count_many(Count::ValueBytesWritten, value.len() as u64);
                self.ended(started, &outcome, Count::Overwrites, Some(Timed::Overwrite));
            }
            _ => self.inserted(started, &outcome, value.len()),
        }
        outcome
    }

    /// Returns how many keys are new. Waits once, for all.
    pub(super) fn multi_put<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        records: &[(K, V)],
    ) -> Result<u64> {
        refuse(&self.origin)?;
        let started = self.meter.begin();
        let (mut inserted, mut overwritten, mut bytes) = (0, 0, 0);
        let done = |is_new: bool, value_bytes: usize| {
            inserted += u64::from(is_new);
            overwritten += u64::from(!is_new);
            bytes += value_bytes as u64;
        };
        let outcome = each_session!(&mut self.session, engine, client => {
            engine.core().settled(writes::put_many(&**engine, client, records, done))
        });
        self.meter.count_many(Count::Inserts, inserted);
        self.meter.count_many(Count::Overwrites, overwritten);
        self.meter.count_many(Count::ValueBytesWritten, bytes);
        self.ended(started, &outcome, Count::MultiPuts, Some(Timed::MultiPut));
        outcome.map(|()| inserted)
    }

    /// Waits once, for all writes of a batch.
    pub(super) fn write(&mut self, batch: &Batch) -> Result<()> {
        refuse(&self.origin)?;
        if batch.is_nothing() {
            return Ok(());
        }
        let started = self.meter.begin();
        let outcome = each_session!(&mut self.session, engine, client => {
            engine.core().settled(batch::write(&**engine, client, batch))
        });
        if let Ok(Outcome::Refused(condition)) = outcome {
            self.ended(started, &outcome, Count::SwapsRefused, Some(Timed::Batch));
            return Err(Error::ConditionFailed { condition });
        }
        if let Ok(Outcome::Done(done)) = &outcome {
            self.meter.count_many(Count::Inserts, done.inserted);
            self.meter.count_many(Count::Overwrites, done.overwritten);
            self.meter.count_many(Count::Deletes, done.deleted);
            self.meter.count_many(Count::ValueBytesWritten, done.value_bytes);
        }
        self.ended(started, &outcome, Count::Batches, Some(Timed::Batch));
        outcome.map(drop)
    }

    /// Lets others get on, between attempts.
    pub(super) fn relax(&self, attempt: u32) {
        each_session!(&self.session, engine, _client => engine.core().environment().relax(attempt));
    }

    #[inline]
    pub(super) fn get_with<T>(
        &mut self,
        key: &[u8],
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        refuse(&self.origin)?;
        let started = self.meter.begin();
        let mut bytes = 0;
        let counting = |value: &[u8]| {
            bytes = value.len() as u64;
            take(value)
        };
        let outcome = each_session!(&mut self.session, engine, client => {
            settle::get_with(&**engine, client, key, counting)
        });
        match &outcome {
            Ok(Some(_)) => {
                self.meter.count(Count::GetHits);
                self.meter.count_many(Count::ValueBytesRead, bytes);
                self.meter.end(started, Timed::Get);
            }
            Ok(None) => {
                self.meter.count(Count::GetMisses);
                self.meter.end(started, Timed::Get);
            }
            Err(error) => self.meter.failed(error),
        }
        outcome
    }

    /// Gets as the engine alone does them: matched once for all keys, not metered, not settled. Returns how many
    /// keys it found.
    #[cfg(feature = "baselines")]
    pub(super) fn get_by_engine<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        mut take: impl FnMut(&[u8]),
    ) -> Result<usize> {
        refuse(&self.origin)?;
        each_session!(&mut self.session, engine, client => {
            let mut found = 0;
            for key in keys {
                let taken = read::get_with(&**engine, client, key.as_ref(), &mut take)?;
                found += usize::from(taken.is_some());
            }
            Ok(found)
        })
    }

    pub(super) fn multi_get_with<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        mut take: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        refuse(&self.origin)?;
        let started = self.meter.begin();
        let (mut hits, mut misses, mut bytes) = (0, 0, 0);
        let counting = |number: usize, value: Option<&[u8]>| {
            match value {
                Some(value) => (hits, bytes) = (hits + 1, bytes + value.len() as u64),
                None => misses += 1,
            }
            take(number, value);
        };
        let outcome = each_session!(&mut self.session, engine, client => {
            settle::multi_get_with(&**engine, client, keys, counting)
        });
        self.meter.count_many(Count::MultiGetHits, hits);
        self.meter.count_many(Count::MultiGetMisses, misses);
        self.meter.count_many(Count::ValueBytesRead, bytes);
        self.ended(started, &outcome, Count::MultiGets, Some(Timed::MultiGet));
        outcome
    }

    /// Changes nothing where `change` says `false`.
    pub(super) fn update(
        &mut self,
        key: &[u8],
        mut change: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<bool> {
        refuse(&self.origin)?;
        let started = self.meter.begin();
        let mut bytes = 0;
        let counting = |value: &mut Vec<u8>| {
            let changes = change(value);
            bytes = value.len() as u64;
            changes
        };
        let outcome = each_session!(&mut self.session, engine, client => {
            engine.core().settled(update::update(&**engine, client, key, counting))
        });
        match &outcome {
            Ok(true) => self.updated(started, bytes),
            _ => self.ended(started, &outcome, Count::UpdateMisses, Some(Timed::Update)),
        }
        outcome
    }

    /// Tells whether the key is new. Changes nothing where `change` says `false`.
    pub(super) fn update_or_insert(
        &mut self,
        key: &[u8],
        absent: &[u8],
        mut change: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<bool> {
        refuse(&self.origin)?;
        let started = self.meter.begin();
        let mut bytes = 0;
        let counting = |value: &mut Vec<u8>| {
            let changes = change(value);
            bytes = value.len() as u64;
            changes
        };
        let outcome = each_session!(&mut self.session, engine, client => {
            engine.core().settled(conditional::update_or_insert(&**engine, client, key, absent, counting))
        });
        match &outcome {
            Ok(false) => self.updated(started, bytes),
            _ => self.inserted(started, &outcome, absent.len()),
        }
        outcome
    }

    pub(super) fn add_or_insert(
        &mut self,
        key: &[u8],
        field: (usize, u64),
        absent: &[u8],
    ) -> Result<u64> {
        refuse(&self.origin)?;
        let started = self.meter.begin();
        let outcome = each_session!(&mut self.session, engine, client => {
            engine.core().settled(conditional::add_or_insert(&**engine, client, key, field, absent))
        });
        match &outcome {
            Ok((_, false)) => self.updated(started, self.session.client().changed.len() as u64),
            _ => self.inserted(started, &outcome, absent.len()),
        }
        outcome.map(|(before, _)| before)
    }

    /// Tells whether the key is new: else nothing was stored.
    pub(super) fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        refuse(&self.origin)?;
        let started = self.meter.begin();
        let outcome = each_session!(&mut self.session, engine, client => {
            engine.core().settled(conditional::insert(&**engine, client, key, value))
        });
        match &outcome {
            Ok(false) => self.ended(started, &outcome, Count::SwapsRefused, Some(Timed::Update)),
            _ => self.inserted(started, &outcome, value.len()),
        }
        outcome
    }

    pub(super) fn delete_if(
        &mut self,
        key: &[u8],
        condition: impl FnMut(&[u8]) -> bool,
    ) -> Result<bool> {
        refuse(&self.origin)?;
        let started = self.meter.begin();
        let outcome = each_session!(&mut self.session, engine, client => {
            engine.core().settled(conditional::delete_if(&**engine, client, key, condition))
        });
        let count = match &outcome {
            Ok(Swap::Swapped) => Count::Deletes,
            Ok(Swap::Different) => Count::SwapsRefused,
            _ => Count::DeleteMisses,
        };
        self.ended(started, &outcome, count, Some(Timed::Delete));
        outcome.map(|swap| swap == Swap::Swapped)
    }

    #[inline]
    pub(super) fn update_u64(
        &mut self,
        key: &[u8],
        at: usize,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>> {
        refuse(&self.origin)?;
        let started = self.meter.begin();
        let outcome = each_session!(&mut self.session, engine, client => {
            engine.core().settled(update::update_u64(&**engine, client, key, at, change))
        });
        match &outcome {
            // Where it is not in place, the record is written anew with the value as the client has it.
            Ok(Some(_)) => self.updated(started, self.session.client().changed.len() as u64),
            _ => self.ended(started, &outcome, Count::UpdateMisses, Some(Timed::Update)),
        }
        outcome
    }

    /// `None` is that there is no such key.
    pub(super) fn compare_and_swap(
        &mut self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Swap> {
        refuse(&self.origin)?;
        let started = self.meter.begin();
        let outcome = each_session!(&mut self.session, engine, client => {
            engine.core().settled(conditional::swap(&**engine, client, key, expected, new))
        });
        let timed = Some(Timed::Update);
        match (&outcome, expected, new) {
            (Ok(Swap::Swapped), Some(_), Some(new)) => self.updated(started, new.len() as u64),
            (Ok(Swap::Swapped), None, Some(new)) => self.inserted(started, &outcome, new.len()),
            (Ok(Swap::Swapped), Some(_), None) => {
                self.ended(started, &outcome, Count::Deletes, Some(Timed::Delete));
            }
            (Ok(Swap::Swapped), None, None) => {
                self.ended(started, &outcome, Count::UpdatesUnchanged, timed);
            }
            (Ok(Swap::Different), ..) => self.ended(started, &outcome, Count::SwapsRefused, timed),
            _ => self.ended(started, &outcome, Count::UpdateMisses, timed),
        }
        outcome
    }

    #[inline]
    pub(super) fn delete(&mut self, key: &[u8]) -> Result<bool> {
        refuse(&self.origin)?;
        let started = self.meter.begin();
        let outcome = each_session!(&mut self.session, engine, client => {
            engine.core().settled(writes::delete(&**engine, client, key))
        });
        let count = match &outcome {
            Ok(true) => Count::Deletes,
            _ => Count::DeleteMisses,
        };
        self.ended(started, &outcome, count, Some(Timed::Delete));
        outcome
    }

    pub(super) fn list(
        &mut self,
        from: u64,
        mut take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()> {
        refuse(&self.origin)?;
        let started = self.meter.begin();
        let (mut records, mut bytes) = (0, 0);
        let counting = |listed: &Listed<'_>| {
            records += 1;
            bytes += listed.value.len() as u64;
            take(listed)
        };
        let outcome = each_session!(&mut self.session, engine, client => {
            settle::list(&**engine, client, from, counting)
        });
        self.meter.count_many(Count::RecordsListed, records);
        self.meter.count_many(Count::ValueBytesRead, bytes);
        // How long it takes says more of the caller than of the store.
        self.ended(started, &outcome, Count::Listings, None);
        outcome
    }

    /// Makes sure that a scan sees what was acknowledged before.
    pub(super) fn begin_scan(&mut self) -> Result<()> {
        refuse(&self.origin)?;
        let outcome = each_session!(&mut self.session, engine, client => {
            order::begin_scan(&**engine, client.shared_ref().number)
        });
        outcome.inspect_err(|error| self.meter.failed(error))
    }

    /// Hands the records of the next keys of a range to `take`, of `most` keys at the most; the keys that `take` has not
    /// seen stay in the range. `false` when there are no keys left.
    pub(super) fn scan(
        &mut self,
        cursor: &mut Cursor,
        direction: Direction,
        most: usize,
        mut take: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<bool> {
        refuse(&self.origin)?;
        let (mut records, mut bytes) = (0, 0);
        let counting = |key: &[u8], value: &[u8]| {
            records += 1;
            bytes += value.len() as u64;
            take(key, value)
        };
        let outcome = each_session!(&mut self.session, engine, client => {
            scan::next_records(&**engine, client, cursor, direction, most, counting)
        });
        self.meter.count_many(Count::RecordsScanned, records);
        self.meter.count_many(Count::ValueBytesRead, bytes);
        match &outcome {
            Ok(_) => self.meter.count(Count::Scans),
            Err(error) => self.meter.failed(error),
        }
        outcome
    }

    /// Gives back what the session holds, in the process that it may be used in.
    pub(super) fn end(&mut self) {
        if self.origin.is_here() {
            self.session.end();
        }
    }

    /// An update or swap has found what it looked for; a record written anew has `bytes` of value.
    #[inline(always)]
    fn updated(&self, started: Started, bytes: u64) {
        let (count, timed, bytes) = match self.session.client().written {
            Written::InPlace => (Count::UpdatesInPlace, Timed::UpdateInPlace, IN_PLACE_BYTES),
            Written::Anew => (Count::Updates, Timed::Update, bytes),
            Written::Nothing => (Count::UpdatesUnchanged, Timed::Update, 0),
        };
        self.meter.count(count);
        self.meter.count_many(Count::ValueBytesWritten, bytes);
        self.meter.end(started, timed);
    }

    /// A key is new, with `bytes` of value, unless that failed.
    fn inserted<T>(&self, started: Started, outcome: &Result<T>, bytes: usize) {
        if outcome.is_ok() {
            self.meter.count_many(Count::ValueBytesWritten, bytes as u64);
        }
        self.ended(started, outcome, Count::Inserts, Some(Timed::Insert));
    }

    /// An operation has ended: counted under `count`, unless it failed.
    #[inline(always)]
    fn ended<T>(&self, started: Started, outcome: &Result<T>, count: Count, timed: Option<Timed>) {
        match outcome {
            Ok(_) => {
                self.meter.count(count);
                if let Some(timed) = timed {
                    self.meter.end(started, timed);
                }
            }
            Err(error) => self.meter.failed(error),
        }
    }
}
