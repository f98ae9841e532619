//! What ChameleonDB says of itself.

use chimera_pmem::Pmem;

use super::counts::{IndexWritten, TablesWritten};
use super::index::Index;
use super::latency::ProtectSwitch;
#[cfg(feature = "baselines")]
use super::shape::Shape;
use super::shard::Shard;
use super::store::Chameleon;
use crate::RunCounts;
use crate::engine::ChameleonMode;
#[cfg(feature = "baselines")]
use crate::engine::options::variants::{Compaction, UpperIndex};

/// What ChameleonDB says of its store.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ChameleonStats {
    /// Shards of the index.
    pub shards: u32,
    /// Slots of a MemTable.
    pub memtable_slots: u32,
    /// Slots of a bypass index.
    pub bypass_slots: u32,
    /// Levels, the last one included.
    pub levels: u32,
    /// Tables of a level that make one of the next.
    pub ratio: u32,
    /// How tables are put together.
    #[cfg(feature = "baselines")]
    pub compaction: Compaction,
    /// Slots of a MemTable that are used until it is full, in percent: of the shard with the fewest, and with the most.
    pub memtable_load_percent: (u32, u32),
    /// Entries of all MemTables.
    pub memtable_entries: u64,
    /// How gets find entries of the levels above the last one.
    #[cfg(feature = "baselines")]
    pub upper_index: UpperIndex,
    /// Bytes of DRAM of bypass indexes, or of helpers of tables.
    pub upper_index_bytes: u64,
    /// Bits of filters for each entry of the tables that have one, where there are filters.
    #[cfg(feature = "baselines")]
    pub filter_bits_per_key: Option<f64>,
    /// Entries of all bypass indexes.
    pub bypass_entries: u64,
    /// The same in percent of their slots.
    pub bypass_load_percent: f64,
    /// Shards whose bypass index has entries that are in no table.
    pub shards_ahead: u32,
    /// Shards whose bypass index is complete. Until it is, a get looks at every table of its shard.
    pub shards_bypassed: u32,
    /// Tables of each level above the last one.
    pub level_tables: Vec<u64>,
    /// Runs that levels above the last one have, of all shards.
    pub level_runs: u64,
    /// Tables of the last level.
    pub last_tables: u64,
    /// Bytes of these.
    pub last_bytes: u64,
    /// Entries of these.
    pub last_entries: u64,
    /// Dumps of all shards, and their bytes.
    pub dumps: TablesWritten,
    /// Runs of the log.
    pub log_runs: u64,
    /// Their bytes.
    pub log_bytes: u64,
    /// Bytes of the records in them that something refers to.
    pub log_live_bytes: u64,
    /// What was written to tables since the store was opened.
    pub written: Box<IndexWritten>,
    /// Where full MemTables go now.
    pub mode: ChameleonMode,
    /// How often the Get-Protect Mode began or ended since the store was opened.
    pub protect_switches: u64,
    /// When it last did, the latest one last.
    pub protect_switched: Vec<ProtectSwitch>,
    /// Bytes of the log that opening has replayed.
    pub replayed_log_bytes: u64,
    /// Bytes that a restart would replay now, at most: runs that sessions append to count as full.
    pub replay_log_bytes: u64,
    /// Bytes that it is to replay at most, in the normal mode.
    pub replay_log_bytes_max: u64,
}

pub(super) fn report<P: Pmem>(engine: &Chameleon<P>) -> ChameleonStats {
    let (flusher, index, shards) = (engine.flusher(), engine.index(), engine.index().shards());
    let (shape, upper) = (shards.shape(), shards.shape().upper_levels());
    let numbers = || 0..shape.shards();
    let level_tables = |level| shards.all().map(|shard| u64::from(shard.level(level).1)).sum();
    let (lasts, dumps, shards_ahead) = lower_tables(index);
    let bypass_entries = numbers().map(|shard| u64::from(shards.bypass(shard).len())).sum();
    let bypass_slots: u64 = numbers().map(|shard| u64::from(shards.bypass(shard).slots())).sum();
    let (protect_switches, protect_switched) = flusher.modes().switches();
    let log = index.log().counts();
    let has_run = |shard: &Shard, level: usize| u64::from(shard.level(level).0 > 0);
    let runs_of = |shard| (0..upper).map(|level| has_run(shard, level)).sum::<u64>();
    ChameleonStats {
        shards: shape.shards(),
        memtable_slots: shape.memtable_slots,
        bypass_slots: shape.bypass_slots(),
        levels: shape.levels,
        ratio: shape.ratio,
        #[cfg(feature = "baselines")]
        compaction: flusher.compactor().compaction(),
        memtable_load_percent: memtable_loads(index),
        memtable_entries: numbers().map(|shard| u64::from(shards.memtable(shard).len())).sum(),
        #[cfg(feature = "baselines")]
        upper_index: shards.helpers().upper_index(),
        upper_index_bytes: shards.bytes().1,
        #[cfg(feature = "baselines")]
        filter_bits_per_key: filter_bits_per_key(index),
        bypass_entries,
        bypass_load_percent: bypass_entries as f64 * 100.0 / bypass_slots as f64,
        shards_ahead,
        shards_bypassed: shards.all().filter(|shard| shard.is_bypassed()).count() as u32,
        level_tables: (0..upper).map(level_tables).collect(),
        level_runs: shards.all().map(runs_of).sum(),
        last_tables: lasts.0.tables,
        last_bytes: lasts.0.bytes,
        last_entries: lasts.1,
        dumps,
        log_runs: log.runs,
        log_bytes: log.bytes,
        log_live_bytes: log.live_bytes,
        written: Box::new(flusher.tables().written()),
        mode: flusher.modes().mode(),
        protect_switches,
        protect_switched,
        replayed_log_bytes: engine.opened.replayed_bytes,
        replay_log_bytes: log.replay_bytes,
        replay_log_bytes_max: flusher.replay_bytes_max(),
    }
}

/// Tables of the last level, and their entries; dumps; and shards that are ahead of their tables.
fn lower_tables<P: Pmem>(index: &Index<P>) -> ((TablesWritten, u64), TablesWritten, u32) {
    let (mut lasts, mut dumps, mut entries) = <(TablesWritten, TablesWritten, u64)>::default();
    let mut ahead = 0;
    for number in 0..index.shards().shape().shards() {
        // Tables stay where they are.
        let work = index.lock_work(number);
        ahead += u32::from(work.ahead.is_some());
        if let Some(last) = work.current.tables.last {
            lasts.add(last.bytes);
            entries += u64::from(index.shards().entries_of(last).unwrap_or(0));
        }
        let of_shard = work.current.tables.dumps.into_iter().flatten();
        of_shard.for_each(|dump| dumps.add(dump.bytes));
    }
    ((lasts, entries), dumps, ahead)
}

#[cfg(feature = "baselines")]
fn filter_bits_per_key<P: Pmem>(index: &Index<P>) -> Option<f64> {
    let shards = index.shards();
    let kind = shards.helpers().filter_kind()?;
    let (mut bits, mut entries) = (0, 0);
    for number in 0..shards.shape().shards() {
        // Tables stay where they are.
        let _work = index.lock_work(number);
        let uppers = shards.upper_tables(number).map(|(_, table)| table);
        for table in uppers.chain(shards.shard(number).last()) {
            bits += 8 * kind.bytes_for(Shape::slots_of(table.bytes));
            entries += u64::from(shards.entries_of(table).unwrap_or(0));
        }
    }
    (entries > 0).then(|| bits as f64 / entries as f64)
}

fn memtable_loads<P: Pmem>(index: &Index<P>) -> (u32, u32) {
    let slots = u64::from(index.shards().memtable_slots());
    let load = |entries_max: u32| (u64::from(entries_max) * 100 / slots) as u32;
    let shards = 0..index.shards().shape().shards();
    let loads = shards.map(|shard| load(index.lock_to_look(shard).entries_max));
    loads.fold((100, 0), |(least, most), load| (load.min(least), load.max(most)))
}

/// What a store of ChameleonDB is made of.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ChameleonInspect {
    /// As [`Stats`](crate::Stats) has them.
    pub sizes: ChameleonStats,
    /// Runs of blocks.
    pub runs: RunCounts,
}
