//! The teaching engine as an [`Engine`]: what the rest of the store calls.

use std::collections::BTreeMap;
use std::ops::Bound;

use chimera_pmem::{Operation, Pmem};

use super::{LOG, State, Teaching, TeachingReport, Type};
use crate::engine::contract::client::SharedClient;
use crate::engine::contract::listed::Listed;
use crate::engine::contract::reports::{Dram, EngineFigures, Reports};
use crate::engine::contract::upkeep::{Point, Scrubbed, Upkeep};
use crate::engine::shared::writes::swap_read;
use crate::engine::shared::{listing, update::update_bytes};
use crate::engine::{Core, Engine, KeyChange, Options, Recovered};
use crate::records::locked_log::LockedLog;
use crate::sync::{Mutex, MutexGuard, lock_relaxing};
use crate::types::check::CheckReport;
use crate::types::error::{Error, Result};
use crate::types::progress::Progress;
use crate::types::swap::Swap;
use crate::types::totals::Totals;

/// The work of a store beside its sessions.
pub(crate) struct TeachingUpkeep<'a, P: Pmem>(&'a Teaching<P>);

impl<P: Pmem> Teaching<P> {
    fn lock(&self) -> MutexGuard<'_, State<P>> {
        lock_relaxing(&self.state, &**self.core.environment())
    }

    /// Locks the store for a write, of batch `own` or of none, to a key with this hash: waits for another batch that holds it.
    fn lock_to_write(&self, hash: u64, own: u64) -> Result<MutexGuard<'_, State<P>>> {
        let (poison, environment) = (&self.core.poison, &**self.core.environment());
        poison.admit((hash, own), environment, self.lock(), || self.lock())
    }

    /// Writes a record of `key`; tells whether the key is new.
    fn write(&self, state: &mut State<P>, hash: u64, key: &[u8], value: &[u8]) -> Result<bool> {
        let at = state.log.append(hash, key, value)?;
        let old = state.map.insert((hash, key.to_vec()), at);
        let retired = old.map_or(Ok(()), |old| state.log.retire(old));
        let change = if old.is_none() { KeyChange::Inserted } else { KeyChange::Replaced };
        self.core.changes.tell(key, change);
        retired.map(|()| old.is_none())
    }

    /// Removes the record of `key`, which is there.
    fn remove(&self, state: &mut State<P>, hash: u64, key: &[u8]) -> Result<()> {
        let at = state.map.remove(&(hash, key.to_vec())).expect("just found");
        let retired = state.log.retire(at);
        self.core.changes.tell(key, KeyChange::Removed);
        retired
    }

    fn report(&self) -> TeachingReport {
        TeachingReport { runs: self.core.pool.count_runs(&[LOG]) }
    }
}

impl<P: Pmem> State<P> {
    /// Reads the value of `key` into `value`, and verifies it, its sum only if `sum`. `false` when there is none.
    fn find(&self, hash: u64, key: &[u8], value: &mut Vec<u8>, sum: bool) -> Result<bool> {
        let Some(at) = self.map.get(&(hash, key.to_vec())).copied() else { return Ok(false) };
        if !self.log.read(at, key, value, sum)? {
            return Err(Error::corrupted("a record is not the one that its key had", at));
        }
        Ok(true)
    }
}

impl<P: Pmem> Engine<P> for Teaching<P> {
    type Type = Type;
    type Client = SharedClient;
    type Upkeep<'a> = TeachingUpkeep<'a, P>;

    fn takes((): &()) -> bool {
        true
    }

    fn open(core: Core<P>, (): (), options: &Options) -> Result<(Self, Recovered)> {
        let log = LockedLog::new(core.pool.clone(), core.hash, LOG);
        let (limits, state) = (log.limits(), State { map: BTreeMap::new(), log });
        let engine = Self { core, limits, state: Mutex::new(state) };
        let recovered = engine.recover(&mut engine.lock(), options)?;
        Ok((engine, recovered))
    }

    fn core(&self) -> &Core<P> {
        &self.core
    }

    fn client(&self, number: u32) -> SharedClient {
        SharedClient::new(number)
    }

    fn check_key(&self, key: &[u8]) -> Result<()> {
        self.limits.check_key(key)
    }

    fn check_value(&self, value: &[u8]) -> Result<()> {
        self.limits.check_value(value)
    }

    fn put(&self, client: &mut SharedClient, key: &[u8], value: &[u8]) -> Result<bool> {
        let booked = self.core.book(Operation::Insert, client.number);
        let hash = self.core.hash.of(key);
        let is_new = self.write(&mut *self.lock_to_write(hash, client.batch)?, hash, key, value)?;
        if !is_new {
            booked.is(Operation::Overwrite);
        }
        Ok(is_new)
    }

    fn get(&self, client: &mut SharedClient, hash: u64, key: &[u8]) -> Result<bool> {
        let _booked = self.core.book(Operation::Get, client.number);
        let sum = self.core.verify_reads.is_turn(&mut client.gets_left);
        // Nobody writes meanwhile, so what is read is whole, with or without its sum.
        self.lock().find(hash, key, &mut client.value, sum)
    }

    fn read(&self, client: &mut SharedClient, hash: u64, key: &[u8]) -> Result<bool> {
        let _booked = self.core.book(Operation::Get, client.number);
        self.lock().find(hash, key, &mut client.value, true)
    }

    fn replace(
        &self,
        client: &mut SharedClient,
        hash: u64,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
        _verify: bool,
    ) -> Result<Swap> {
        let _booked = self.core.book(Operation::Update, client.number);
        let mut state = self.lock_to_write(hash, client.batch)?;
        if !state.find(hash, key, &mut client.value, true)? {
            return Ok(Swap::Missing);
        }
        swap_read(client, expected, new, |_| self.write(&mut state, hash, key, new).map(drop))
    }

    fn insert(
        &self,
        client: &mut SharedClient,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let _booked = self.core.book(Operation::Insert, client.number);
        let mut state = self.lock_to_write(hash, client.batch)?;
        if state.find(hash, key, &mut client.value, true)? {
            return Ok(false);
        }
        self.write(&mut state, hash, key, value)
    }

    fn remove_if(
        &self,
        client: &mut SharedClient,
        hash: u64,
        key: &[u8],
        expected: &[u8],
    ) -> Result<Swap> {
        let _booked = self.core.book(Operation::Delete, client.number);
        let mut state = self.lock_to_write(hash, client.batch)?;
        if !state.find(hash, key, &mut client.value, true)? {
            return Ok(Swap::Missing);
        }
        if client.value != expected {
            return Ok(Swap::Different);
        }
        self.remove(&mut state, hash, key).map(|()| Swap::Swapped)
    }

    fn update_word(
        &self,
        client: &mut SharedClient,
        key: &[u8],
        at: usize,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>> {
        update_bytes(self, client, key, at, change)
    }

    fn delete(&self, client: &mut SharedClient, key: &[u8]) -> Result<bool> {
        let _booked = self.core.book(Operation::Delete, client.number);
        let hash = self.core.hash.of(key);
        let mut state = self.lock_to_write(hash, client.batch)?;
        // A record that is damaged is not touched.
        if !state.find(hash, key, &mut client.value, true)? {
            return Ok(false);
        }
        self.remove(&mut state, hash, key)?;
        Ok(true)
    }

    fn list(
        &self,
        client: &mut SharedClient,
        from: u64,
        take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()> {
        listing::by_key(self, client, from, take, |after| {
            let state = self.lock();
            let mut keys = state.map.range((after, Bound::Unbounded)).map(|(key, _)| key);
            let key = keys.next()?.clone();
            let is_last = keys.next().is_none_or(|next| next.0 != key.0);
            Some((key, is_last))
        })
    }

    fn records(&self) -> u64 {
        self.lock().map.len() as u64
    }

    fn totals(&self) -> Totals {
        self.lock().totals()
    }

    fn upkeep(&self) -> TeachingUpkeep<'_, P> {
        TeachingUpkeep(self)
    }
}

impl<P: Pmem> Upkeep for TeachingUpkeep<'_, P> {
    fn pass(&self, _hash: u64) {
        drop(self.0.lock());
    }

    fn scrub_step(&self, from: Point, report: &mut CheckReport) -> Scrubbed {
        listing::scrub_step(self.0, from, report)
    }
}

impl<P: Pmem> Reports<P> for Teaching<P> {
    type Stats = TeachingReport;
    type Inspect = TeachingReport;

    fn inspect(&self, _progress: Option<&Progress>) -> TeachingReport {
        self.report()
    }

    fn dram(&self) -> Dram {
        let keys: usize = self.lock().map.keys().map(|(_, key)| 40 + key.len()).sum();
        Dram { index_bytes: (size_of::<State<P>>() + keys) as u64, table_bytes: 0 }
    }

    fn stats(&self) -> EngineFigures<TeachingReport> {
        EngineFigures { blocks_free: 0, details: self.report() }
    }
}
