//! Recovery: the manifest says which tables there are, and the log which writes are in none of them yet (ChameleonDB,
//! section 2.1). Bypass indexes are made anew beside sessions.

use std::collections::{BTreeMap, HashMap};

use chimera_pmem::{Operation, Pmem};

use super::alike::DAMAGED_RECORD;
use super::creation::Parameters;
use super::shards::owner;
use super::space::Spend;
use super::{Chameleon, LEVEL, LOG, MANIFEST, TABLE, blocks_for, steps};
use crate::engine::{self, Core, Options};
use crate::index::Probe;
use crate::index::persistent::shard_manifest::{self, Current, LevelAt, ShardManifest, TableAt};
use crate::index::probing_table::{self, PersistentTable, Slot, TABLE_ALIGN};
use crate::pool::runs::{FoundRun, Run};
use crate::pool::{Held, Pool, Sums, TOTALS_AT};
use crate::records::storage_log::Recovered;
use crate::types::error::{Error, Result};
use crate::types::stats::RecoveryStats;
use crate::types::totals::Totals;

/// How many writes before its own turn what a write looks at is being loaded: it looks at every table of its shard.
const PREFETCHED: usize = 8;

/// The runs of a store.
#[derive(Default)]
pub(super) struct Found {
    pub(super) manifest: Option<Run>,
    log: Vec<Run>,
    /// Runs of tables, by the offset of the first of their bytes where one can begin.
    tables: BTreeMap<u64, Run>,
    lost: u64,
}

/// A write that is in no table yet.
struct Unflushed {
    shard: u32,
    version: u64,
    slot: Slot,
}

impl Found {
    /// Takes over all runs of the pool.
    pub(super) fn of<P: Pmem>(pool: &Pool<P>, salvage: bool) -> Result<Self> {
        let mut found = Self::default();
        pool.recover_runs(&[LOG, MANIFEST, LEVEL, TABLE], salvage, |run| {
            match run {
                FoundRun::InUse(run) if run.is(LOG) => found.log.push(run),
                FoundRun::InUse(run) if run.is(MANIFEST) => {
                    if found.manifest.is_some() {
                        let at = pool.run_bytes(&run).offset();
                        let error = Error::corrupted("the store has two manifests", at);
                        if !salvage {
                            return Err(error);
                        }
                        pool.note_lost(&error, at);
                    }
                    found.manifest.get_or_insert(run);
                }
                FoundRun::InUse(run) => {
                    let at = pool.run_bytes(&run).offset().next_multiple_of(TABLE_ALIGN);
                    found.tables.insert(at, run);
                }
                FoundRun::Damaged(_) => found.lost += 1,
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The manifest, which is made where the store has nothing yet.
    pub(super) fn manifest<P: Pmem>(
        &mut self,
        core: &Core<P>,
        parameters: &Parameters,
        salvage: bool,
    ) -> Result<ShardManifest<P>> {
        let (pool, shards) = (&core.pool, parameters.shape.shards());
        let none = || ShardManifest::none(pool.clone(), shards);
        let run = match self.manifest.take() {
            Some(run) => run,
            None if pool.read_only && self.is_empty() => {
                return Ok(none());
            }
            // One that was closed in order had a manifest.
            None if self.is_empty() && pool.closed_totals().is_none() => {
                let _booked = core.book(Operation::Recovery, 0);
                let blocks = blocks_for(pool, shard_manifest::run_bytes(shards));
                pool.take_run(MANIFEST, blocks, |bytes| shard_manifest::begin(pool, bytes, shards))?
            }
            None => {
                self.lose(pool, Error::corrupted("the store has no manifest", 0), salvage)?;
                return Ok(none());
            }
        };
        if let Some(manifest) = ShardManifest::new(pool.clone(), &run, shards) {
            return Ok(manifest);
        }
        let at = pool.run_bytes(&run).offset();
        let error = Error::corrupted("the manifest of the store is too short", at);
        self.lose(pool, error, salvage)?;
        Ok(none())
    }

    /// A part of the store is lost. All that salvage has is the log.
    fn lose<P: Pmem>(&mut self, pool: &Pool<P>, error: Error, salvage: bool) -> Result<()> {
        if !salvage {
            return Err(error);
        }
        pool.note_lost(&error, 0);
        self.lost += 1;
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.log.is_empty() && self.tables.is_empty() && self.lost == 0
    }

    /// Whether a table can lie here, in a run that is there. The run is used, then.
    fn has(&self, table: TableAt, used: &mut Vec<u64>, pool: &Pool<impl Pmem>) -> bool {
        let end = table.at.checked_add(table.bytes);
        let run = self.tables.get(&table.at).map(|run| pool.run_bytes(run));
        used.push(table.at);
        run.zip(end).is_some_and(|(run, end)| end <= run.end())
    }
}

impl<P: Pmem> Chameleon<P> {
    /// Makes the store ready, of what was found.
    pub(super) fn recover(
        &mut self,
        mut found: Found,
        options: &Options,
    ) -> Result<engine::Recovered> {
        let pool = self.core.pool.clone();
        let salvage = options.pool.salvage;
        let booked = self.core.book(Operation::Recovery, 0);
        found.lost += self.recover_tables(&mut found, salvage)?;
        drop(booked);
        self.found = self.manifest_totals();
        let lost = found.lost;
        if lost > 0 {
            // Before anything is written over what is left: what was lost may be where its parts are not looked for.
            self.core.poison.poison("a part of the index or of the log is missing");
        }
        let replayed = self.replay(found, salvage)?;
        let compared = pool.compare_with_closing(salvage, Sums::Parts, || self.found_totals())?;
        self.replayed_bytes = replayed.bytes;
        self.hold();
        self.recounts = true;
        let verifies = options.verify_at_open.unwrap_or(salvage);
        // What replay has found is found once more, where a table leads to it.
        let (damaged, left_out) = if verifies { self.verify_all()? } else { (0, 0) };
        self.left_out = left_out;
        if let Some(progress) = &options.progress {
            progress(pool.used_blocks(), pool.used_blocks());
        }
        let stats = RecoveryStats {
            blocks_scanned: pool.used_blocks(),
            records: self.count_records() - left_out,
            records_damaged: damaged.max(replayed.damaged) + lost,
            threads: 1,
            ..RecoveryStats::default()
        };
        Ok(engine::Recovered { stats, compared })
    }

    /// Reads the manifest, and takes over the runs of tables that it names. How many shards were lost.
    fn recover_tables(&self, found: &mut Found, salvage: bool) -> Result<u64> {
        let pool = self.core.pool.clone();
        let (mut used, mut lost) = (Vec::new(), 0);
        for number in 0..self.index.shape.shards() {
            match self.recover_shard(number, found, &mut used) {
                Err(error) if salvage => {
                    pool.note_lost(&error, 0);
                    lost += 1;
                }
                recovered => recovered?,
            }
        }
        if !pool.read_only {
            pool.pmem.fence(shard_manifest::sites::FOUND);
            for number in 0..self.index.shape.shards() {
                self.index.manifest.settled(number, &self.lock_work(number).current);
            }
        }
        for at in used {
            if let Some(run) = found.tables.remove(&at) {
                self.table_runs.put(at, run);
            }
        }
        for last in self.index.all().filter_map(super::shard::Shard::last) {
            self.note_last(last.bytes);
        }
        Ok(lost)
    }

    /// Frees runs of tables that nothing names, where no part of the store was lost. After the
    /// [comparison](Self::compare_state): they may belong to a part that is older.
    fn free_orphans(&self, found: Found) -> Result<()> {
        let pool = &self.core.pool;
        if pool.read_only || found.lost > 0 || pool.pmem.skips(steps::FREE_ORPHANS) {
            return Ok(());
        }
        found.tables.into_values().try_for_each(|run| pool.free_run(run))
    }

    /// What was found, to be compared with what the store held when it was closed in order.
    fn found_totals(&self) -> Totals {
        let pool = &self.core.pool;
        let mut found = Totals { records: self.count_records(), ..self.found };
        if let Some(closed) = pool.closed_totals().filter(|_| !pool.was_clean()) {
            // An opening that was interrupted may have flushed, and what it made is no older than the closing.
            found.state_sum = closed.state_sum;
        }
        found
    }

    /// Compares the tables and the log with what they were when the store was closed in order, before anything is changed:
    /// what is older may be put right by hand. How many records there are is known when the log was replayed; where that makes
    /// tables, they are [counted](Self::compare_count) before.
    ///
    /// # Errors
    /// `Corrupted` where a part is older, unless the store is salvaged.
    fn compare_state(&self, found: Totals, salvage: bool) -> Result<()> {
        let pool = &self.core.pool;
        let Some(closed) = pool.closed_totals().filter(|_| pool.was_clean() && !salvage) else {
            return Ok(());
        };
        let state = |totals: Totals| Totals { state_sum: totals.state_sum, ..Totals::default() };
        let difference = state(closed).difference(state(found));
        difference.map_or(Ok(()), |what| Err(Error::corrupted(what, TOTALS_AT)))
    }

    fn recover_shard(&self, number: u32, found: &Found, used: &mut Vec<u64>) -> Result<()> {
        let (pool, shape) = (&self.core.pool, &self.index.shape);
        let current: Current = self.index.manifest.load(number)?;
        let wrong = |at| Error::corrupted("the manifest names a table that is not there", at);
        let tables = &current.tables;
        let is_named = |place: &LevelAt| place.at > 0 || place.tables > 0;
        for (level, place) in tables.levels.iter().enumerate().filter(|(_, place)| is_named(place))
        {
            if level >= shape.upper_levels() || place.tables > shape.ratio {
                return Err(wrong(place.at));
            }
            let whole = TableAt { at: place.at, bytes: shape.level_bytes(level) - TABLE_ALIGN };
            if !found.has(whole, used, pool) {
                return Err(wrong(place.at));
            }
            for table in 0..place.tables {
                let place = self.index.table_at(level, place.at, table);
                PersistentTable::open(&pool.pmem, self.index.extent(place), owner(number, level))?;
            }
        }
        let dumps = tables.dumps.into_iter().flatten().map(|dump| (dump, shape.upper_levels() + 1));
        for (place, level) in dumps.chain(tables.last.map(|last| (last, shape.upper_levels()))) {
            if !found.has(place, used, pool) {
                return Err(wrong(place.at));
            }
            let table =
                PersistentTable::open(&pool.pmem, self.index.extent(place), owner(number, level))?;
            if PersistentTable::bytes_of(table.slots()) != place.bytes {
                return Err(wrong(place.at));
            }
        }
        let shard = self.index.shard(number);
        let has_tables = tables.last.is_some()
            || tables.dumps.iter().any(Option::is_some)
            || tables.levels.iter().any(|level| level.tables > 0);
        if has_tables && self.index.aids.is_made_of_tables() {
            self.index.set_unbypassed(number);
        }
        shard.set_tables(tables);
        let mut writing = self.lock_to_look(number);
        (writing.version, writing.records) = (tables.flushed_version, tables.records);
        drop(writing);
        self.lock_work(number).current = current;
        Ok(())
    }

    /// Enters the writes that are in no table into MemTables. What was replayed.
    ///
    /// A store that has lost tables makes no others: its MemTables have room for all of it, and so have those of a store that is
    /// open for reading only.
    fn replay(&mut self, mut runs: Found, salvage: bool) -> Result<Recovered> {
        let (log, is_lost) = (std::mem::take(&mut runs.log), runs.lost > 0);
        let mut unflushed = Vec::new();
        let shards = 0..self.index.shape.shards();
        // Without a bypass index the references of tables are never counted.
        let is_counted =
            self.index.has_bypass() || !shards.clone().any(|it| self.index.has_tables(it));
        let flushed: Vec<_> = shards.map(|shard| self.lock_to_look(shard).version).collect();
        let (recovered, unsettled) = {
            let _booked = self.core.book(Operation::Recovery, 0);
            self.log.recover_from(log, salvage, is_lost, |replayed| {
                let shard = self.index.number_of(replayed.hash);
                let is_unflushed = replayed.version > flushed[shard as usize];
                if is_unflushed {
                    let slot = Slot::new(
                        replayed.hash,
                        replayed.at,
                        replayed.bytes,
                        replayed.is_tombstone,
                    );
                    unflushed.push(Unflushed { shard, version: replayed.version, slot });
                }
                Ok(is_unflushed)
            })?
        };
        self.found.merge(recovered.totals);
        unflushed.sort_unstable_by_key(|write| (write.shard, write.version));
        self.compare_state(self.found, salvage)?;
        let makes_tables = !self.core.pool.read_only && !is_lost && !self.have_room_for(&unflushed);
        if makes_tables && !salvage {
            self.compare_count(&unflushed)?;
        }
        self.core.pool.begin_changes();
        let booked = self.core.book(Operation::Recovery, 0);
        self.free_orphans(runs)?;
        self.log.settle(unsettled);
        drop(booked);
        if self.core.pool.read_only || is_lost {
            self.make_room_for(&unflushed)?;
        }
        // All of them, before a table is made: the log frees runs once it knows all references.
        for found in unflushed.iter().filter_map(|write| write.slot.found()) {
            self.log.count_reference(found.offset, found.bytes);
        }
        if makes_tables {
            // Before tables take what was held by the process before.
            self.hold();
        }
        for (number, write) in unflushed.iter().enumerate() {
            if let Some(later) = unflushed.get(number + PREFETCHED) {
                self.index.prefetch_all(later.slot.hash);
            }
            self.replay_one(write)?;
        }
        if is_counted && self.index.unbypassed() == 0 {
            self.log.end_counting();
        }
        Ok(recovered)
    }

    /// Makes room for these writes, in the order of their shards, in MemTables.
    fn make_room_for(&mut self, unflushed: &[Unflushed]) -> Result<()> {
        let of_shards = unflushed.chunk_by(|one, next| one.shard == next.shard);
        let most = of_shards.map(<[_]>::len).max().unwrap_or(0);
        let entries_max = self.index.enlarge_memtables(most)?;
        for shard in 0..self.index.shape.shards() {
            self.lock_to_look(shard).entries_max = entries_max;
        }
        Ok(())
    }

    /// Whether the MemTables have room for these writes, in the order of their shards.
    fn have_room_for(&self, unflushed: &[Unflushed]) -> bool {
        unflushed.chunk_by(|one, next| one.shard == next.shard).all(|of_shard| {
            of_shard.len() as u64 <= u64::from(self.lock_to_look(of_shard[0].shard).entries_max)
        })
    }

    /// Compares how many records there will be when these writes are replayed, in the order of their shards and versions, with
    /// how many there were when the store was closed in order. Where replay makes tables, these say how many there are: a
    /// wrong number could not be put right by hand any more.
    ///
    /// # Errors
    /// `Corrupted` where there were others, or where something that has to be looked at is damaged.
    ///
    /// # Cost
    /// A look at the tables for each write.
    fn compare_count(&self, unflushed: &[Unflushed]) -> Result<()> {
        let count = |records| Totals { records, ..Totals::default() };
        let closed = self.core.pool.closed_totals().map(|closed| count(closed.records));
        let Some(closed) = closed.filter(|closed| closed.records != Totals::UNCOUNTED) else {
            return Ok(());
        };
        let mut records = self.count_records();
        let mut newest: HashMap<u64, Vec<Slot>> = HashMap::new();
        for (number, write) in unflushed.iter().enumerate().rev() {
            if let Some(earlier) = number.checked_sub(PREFETCHED).map(|number| &unflushed[number]) {
                self.index.prefetch_all(earlier.slot.hash);
            }
            let newer = newest.entry(write.slot.hash).or_default();
            if newer.iter().any(|newer| self.is_same_key(*newer, write.slot)) {
                continue;
            }
            newer.push(write.slot);
            let old = self.find_replaced(write.shard, write.slot)?;
            let is_live = write.slot.found().is_some_and(|found| !found.is_tombstone);
            records = records.saturating_add(is_live.into());
            records = records.saturating_sub(old.is_some_and(|old| !old.is_tombstone).into());
        }
        let difference = closed.difference(count(records));
        difference.map_or(Ok(()), |what| Err(Error::corrupted(what, TOTALS_AT)))
    }

    fn replay_one(&self, write: &Unflushed) -> Result<()> {
        let Unflushed { shard, version, slot } = *write;
        while self.is_memtable_full(shard) {
            match self.make_room(0, shard, Spend::Ballast) {
                Err(Error::PoolFull { .. }) if !self.core.pool.read_only => {
                    self.absorb_in_need(shard)?;
                }
                made => made?,
            }
        }
        let mut writing = self.lock_to_look(shard);
        let old = self.find_replaced(shard, slot)?;
        let found = slot.found().expect("just made");
        self.enter(shard, slot, old);
        let was_live = old.is_some_and(|old| !old.is_tombstone);
        let records = writing.records + u64::from(!found.is_tombstone);
        writing.records = records.saturating_sub(was_live.into());
        writing.version = writing.version.max(version);
        Ok(())
    }

    /// What the index has of the key of a replayed write, which is to take its place. With salvage the write may be counted
    /// twice where that is damaged, because it looks like another key, or cannot be looked at.
    fn find_replaced(&self, shard: u32, slot: Slot) -> Result<Option<probing_table::Found>> {
        let mut damaged = None;
        let probed = self.index.probe(shard, slot.hash, |found| {
            if self.is_same_key(slot, Slot { hash: slot.hash, location: found.location }) {
                return Probe::Found(found);
            }
            if self.salvages && damaged.is_none() && !self.is_whole(found, slot.hash) {
                damaged = Some(found.offset);
            }
            Probe::NotThis
        });
        match probed {
            Ok(Probe::Found(found)) => return Ok(Some(found)),
            Err(error) if !self.salvages => return Err(error),
            Err(error) => self.core.pool.note_lost_of(Held::Twice, &error, 0),
            Ok(_) => {}
        }
        if let Some(at) = damaged {
            self.core.pool.note_loss_of(Held::Twice, at, DAMAGED_RECORD);
        }
        Ok(None)
    }
}
