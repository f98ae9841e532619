//! Recovery: the manifest says which tables there are, and the log which writes are in none of them yet (ChameleonDB,
//! section 2.1). Bypass indexes are made anew beside sessions.
//!
//! - `found`: the runs of the store. Then its tables, here. `replay`: what the log has beyond them goes to MemTables.
//! - `compare`: whether the store is what it was when it was closed in order, before anything is changed.

mod compare;
mod found;
mod replay;

use chimera_pmem::{Operation, Pmem};

use super::flusher::Flusher;
use super::index::{Index, verify_all};
use super::shard::Shard;
use super::shards::owner;
use crate::engine::{self, Options};
use crate::index::persistent::shard_manifest::{self, Current, LevelAt, TableAt};
use crate::index::probing_table::{PersistentTable, Slot, TABLE_ALIGN};
use crate::pool::Sums;
use crate::types::error::{Error, Result};
use crate::types::stats::RecoveryStats;
use crate::types::totals::Totals;
pub(super) use found::Found;

/// How many writes before its own turn what a write looks at is being loaded: it looks at every table of its shard.
const PREFETCHED: usize = 8;

/// A write that is in no table yet.
struct Unflushed {
    shard: u32,
    version: u64,
    slot: Slot,
}

/// A store that is being opened.
struct Recovery<'a, P: Pmem> {
    flusher: &'a mut Flusher<P>,
    salvage: bool,
    /// What opening has found in the manifest and in the headers of the log, before it changed any of them.
    totals: Totals,
}

/// What opening has found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened {
    /// Bytes of the log that it has replayed.
    pub(super) replayed_bytes: u64,
    /// Records that are counted, and that salvage has left out. They stay counted, as in the manifest, because the next opening
    /// counts them as well.
    pub(super) left_out: u64,
}

/// Makes a store ready, of what was found.
pub(super) fn recover<P: Pmem>(
    flusher: &mut Flusher<P>,
    mut found: Found,
    options: &Options,
) -> Result<(Opened, engine::Recovered)> {
    let pool = flusher.index().core().pool.clone();
    let salvage = options.pool.salvage;
    let mut recovery = Recovery { flusher, salvage, totals: Totals::default() };
    let booked = recovery.index().core().book(Operation::Recovery, 0);
    found.lost += recovery.recover_tables(&mut found)?;
    drop(booked);
    recovery.totals = recovery.index().manifest_totals();
    let lost = found.lost;
    if lost > 0 {
        // Before anything is written over what is left: what was lost may be where its parts are not looked for.
        let poison = &recovery.index().core().poison;
        poison.poison("a part of the index or of the log is missing");
    }
    let replayed = recovery.replay(found)?;
    let compared = pool.compare_with_closing(salvage, Sums::Parts, || recovery.found_totals())?;
    flusher.keep_growth_room();
    flusher.tables_mut().begin_recounting();
    let verifies = options.verify_at_open.unwrap_or(salvage);
    // What replay has found is found once more, where a table refers to it.
    let (damaged, left_out) = if verifies { verify_all(flusher.index())? } else { (0, 0) };
    if let Some(progress) = &options.progress {
        progress(pool.used_blocks(), pool.used_blocks());
    }
    let stats = RecoveryStats {
        blocks_scanned: pool.used_blocks(),
        records: flusher.index().count_records() - left_out,
        records_damaged: damaged.max(replayed.damaged) + lost,
        threads: 1,
        ..RecoveryStats::default()
    };
    let opened = Opened { replayed_bytes: replayed.bytes, left_out };
    Ok((opened, engine::Recovered { stats, compared }))
}

impl<P: Pmem> Recovery<'_, P> {
    fn index(&self) -> &Index<P> {
        self.flusher.index()
    }

    /// Reads the manifest, and takes over the runs of tables that it names. How many shards were lost.
    fn recover_tables(&self, found: &mut Found) -> Result<u64> {
        let (index, space) = (self.index(), self.flusher.tables().space());
        let (pool, shards) = (&index.core().pool, index.shards());
        let (mut used, mut lost) = (Vec::new(), 0);
        for number in 0..shards.shape().shards() {
            match self.recover_shard(number, found, &mut used) {
                Err(error) if self.salvage => {
                    pool.note_lost(&error, 0);
                    lost += 1;
                }
                recovered => recovered?,
            }
        }
        if !pool.read_only {
            pool.pmem.fence(shard_manifest::sites::FOUND);
            for number in 0..shards.shape().shards() {
                shards.manifest().settled(number, &index.lock_work(number).current);
            }
        }
        for at in used {
            if let Some(run) = found.tables.remove(&at) {
                space.put(at, run);
            }
        }
        let lasts = shards.all().filter_map(Shard::last);
        space.set_reserve(lasts.map(|last| last.bytes).max().unwrap_or(0));
        Ok(lost)
    }

    fn recover_shard(&self, number: u32, found: &Found, used: &mut Vec<u64>) -> Result<()> {
        let (index, shards) = (self.index(), self.index().shards());
        let (pool, shape) = (&index.core().pool, shards.shape());
        let current: Current = shards.manifest().load(number)?;
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
                let place = shards.table_at(level, place.at, table);
                PersistentTable::open(&pool.pmem, shards.extent(place), owner(number, level))?;
            }
        }
        let dumps = tables.dumps.into_iter().flatten().map(|dump| (dump, shape.upper_levels() + 1));
        for (place, level) in dumps.chain(tables.last.map(|last| (last, shape.upper_levels()))) {
            if !found.has(place, used, pool) {
                return Err(wrong(place.at));
            }
            let table =
                PersistentTable::open(&pool.pmem, shards.extent(place), owner(number, level))?;
            if PersistentTable::bytes_of(table.slots()) != place.bytes {
                return Err(wrong(place.at));
            }
        }
        let shard = shards.shard(number);
        let has_tables = tables.last.is_some()
            || tables.dumps.iter().any(Option::is_some)
            || tables.levels.iter().any(|level| level.tables > 0);
        if has_tables && shards.helpers().are_made_of_tables() {
            shards.set_unbypassed(number);
        }
        shard.set_tables(tables);
        let mut writing = index.lock_to_look(number);
        (writing.version, writing.records) = (tables.flushed_version, tables.records);
        drop(writing);
        index.lock_work(number).current = current;
        Ok(())
    }
}
