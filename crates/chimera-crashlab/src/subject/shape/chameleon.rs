//! [`ChameleonShape`]: a store of the engine `chameleon`.

use std::time::Duration;

use chimera::baselines::{Compaction, FilterKind, UpperIndex};
use chimera::{EngineInspect, EngineKind, Options};
use serde::{Deserialize, Serialize};

use super::store_shape::{Abilities, StoreShape};
use crate::chance::Chance;
use crate::durability::{End, Loss};
use crate::simulated::{Mutation, MutationKind};

/// Bytes after the words of a value: so few that a run of the log has many records, and so many that it has one.
const EXTRA_BYTES: [usize; 8] = [0, 0, 1, 13, 40, 150, 450, 900];
/// Bytes of the shortest record, a tombstone.
pub(super) const RECORD_BYTES_MIN: u32 = 32;
/// Records that damage of a line can reach at the end of a run of the log.
pub(super) const UNCHECKED_RECORDS: usize = 3;
/// Steps of the log without which recovery finds the same.
const SAME_RECORDS: [&str; 4] =
    ["chameleon.marks", "storage_log.certify", "storage_log.flushed", "storage_log.seal"];
/// Steps that another one makes up for.
const DONE_TWICE: [&str; 3] = [
    "probing_table.step.header_check",
    "probing_table.step.table_check",
    "storage_log.step.free_sync",
];
/// The smallest that there are: 16 slots.
const MEMTABLE_BYTES: u32 = 256;

/// Where full MemTables go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Normal,
    WriteIntensive,
    /// Get-Protect Mode, always, with so many dumps at most.
    Protect(u32),
}

/// How tables above the last level are found: the comparison points are the same code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Upper {
    #[default]
    Bypass,
    Tables,
    BloomFilters,
    BlockedFilters,
    Pinned,
}

impl Upper {
    const OTHERS: [Self; 4] =
        [Self::Tables, Self::BloomFilters, Self::BlockedFilters, Self::Pinned];

    fn index(self) -> UpperIndex {
        match self {
            Self::Bypass => UpperIndex::Bypass,
            Self::Tables => UpperIndex::Tables,
            Self::BloomFilters => UpperIndex::Filters(FilterKind::Bloom),
            Self::BlockedFilters => UpperIndex::Filters(FilterKind::Blocked),
            Self::Pinned => UpperIndex::Pinned,
        }
    }
}

/// A store of the engine `chameleon`: all that a test may vary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChameleonShape {
    shards: u32,
    levels: u32,
    ratio: u32,
    log_run_bytes: u32,
    /// How many percent full a MemTable gets: a table has few entries, so that there are many tables.
    load_percent: u32,
    level_by_level: bool,
    #[serde(default)]
    upper: Upper,
    /// Normal where there is no bypass index.
    mode: Mode,
    /// Bytes of records that a session may lose; 0 for none.
    log_batch_bytes: u32,
    /// Bytes that a restart may replay; none: more than there are.
    #[serde(default)]
    replay_log_bytes: Option<u64>,
    /// Bypass indexes are not made when the store is opened, but by a task beside the operations, or by who needs them.
    looks_later: bool,
    /// Puts do not look whether their key is there.
    #[serde(default)]
    blind_puts: bool,
    ordered: bool,
    keys: u64,
    /// Most bytes of blocks; none: as many as there is room for.
    capacity_bytes: Option<u64>,
    segment_bytes: u64,
}

impl StoreShape for ChameleonShape {
    fn random(chance: &mut Chance) -> Self {
        let keys = match chance.below(3) {
            0 => 2 + chance.below(7),
            1 => 10 + chance.below(16),
            // Last tables get longer.
            _ => 24 + chance.below(20),
        };
        let upper = match chance.below(6) {
            0 => Upper::OTHERS[chance.below(4) as usize],
            _ => Upper::Bypass,
        };
        let ordered = chance.below(4) == 0;
        Self {
            upper,
            shards: 1 << chance.below(2),
            levels: 2 + chance.below(3) as u32,
            ratio: 2,
            log_run_bytes: 512 << chance.below(3),
            load_percent: match chance.below(6) {
                // More entries than damage at the end of a log may take without a word.
                0 => 60,
                _ => 7 * (1 + chance.below(4) as u32),
            },
            level_by_level: chance.below(3) == 0,
            mode: match chance.below(6) {
                _ if upper != Upper::Bypass => Mode::Normal,
                0 => Mode::WriteIntensive,
                1 | 2 => Mode::Protect(1 + chance.below(2) as u32),
                _ => Mode::Normal,
            },
            log_batch_bytes: if chance.below(3) == 0 { 128 << chance.below(2) } else { 0 },
            replay_log_bytes: (chance.below(4) == 0).then(|| 1024 << chance.below(4)),
            looks_later: chance.below(2) == 0,
            ordered,
            blind_puts: !ordered && chance.below(4) == 0,
            keys,
            // Four segments of 32 blocks at most.
            capacity_bytes: Some(256 * (64 + chance.below(64))),
            segment_bytes: 16 << 10,
        }
    }

    fn for_files(number: u64) -> Self {
        Self {
            shards: 2,
            levels: 3,
            ratio: 2,
            log_run_bytes: if number < 8 { 8192 } else { 1024 },
            load_percent: 70,
            level_by_level: number % 4 == 3,
            upper: if number % 8 == 7 { Upper::Pinned } else { Upper::Bypass },
            mode: match number % 8 {
                5 => Mode::WriteIntensive,
                6 => Mode::Protect(1),
                _ => Mode::Normal,
            },
            log_batch_bytes: 0,
            replay_log_bytes: (number % 8 == 2).then_some(64 << 10),
            looks_later: number % 2 == 1,
            blind_puts: number % 8 == 4,
            ordered: false,
            keys: 0,
            capacity_bytes: None,
            segment_bytes: 256 << 10,
        }
    }

    fn equivalent(mutation: Mutation) -> Option<&'static str> {
        // A run that is not sealed is walked to its end, and one that is not marked is replayed: chameleon/tests/replay.rs
        // asserts the bytes. What is not certified is found as well. The log's own tests notice each.
        let same = "recovery finds the same records without it, by their checks and versions, unless the crash damages them, too";
        // A header is covered by the sizes that the manifest has and by the checksum of all slots; the checksum by the check of
        // each slot. Runs are marked before they are freed, and marking syncs. Fences of the manifest come behind those of the
        // pool. Tests of tables, of the log and of runs notice each.
        let twice = "another step of the engine does the same";
        match (mutation.kind, mutation.site) {
            (_, site) if SAME_RECORDS.contains(&site) => Some(same),
            (MutationKind::Skip, site) if DONE_TWICE.contains(&site) => Some(twice),
            (kind, "pool.run.found") if kind != MutationKind::DropFlush => Some(twice),
            // Left out, the fence is missed.
            (MutationKind::DelayFence, "storage_log.highest") => Some(
                "it comes with the flush of the freed run's word, and no crash is tried between the two",
            ),
            (
                MutationKind::DelayFlush | MutationKind::DropFence | MutationKind::DelayFence,
                "batch.found",
            ) => {
                Some("whoever makes a batch again takes a run of the log first, which has a fence")
            }
            _ => None,
        }
    }

    fn abilities(&self) -> Abilities {
        // Only the engine itself collects its log.
        let reclaim = self.upper == Upper::Bypass;
        Abilities {
            in_place: false,
            knows_new: !self.blind_puts,
            reclaim,
            frees: reclaim,
            deletes_when_full: false,
            salvages_when_full: reclaim,
            ..Abilities::ALL
        }
    }

    fn steps_tasks(&self) -> bool {
        self.looks_later
    }

    /// The manifest names each run of tables, and each run of the log is known.
    fn verify_structure(
        &self,
        found: &EngineInspect,
        _records: &[(usize, usize)],
    ) -> Result<(), String> {
        let EngineInspect::Chameleon(found) = found else {
            return Err("another engine".to_owned());
        };
        let runs = |kind: &str| {
            let of_kind = found.runs.kinds.iter().find(|runs| runs.kind == kind);
            of_kind.map_or(0, |runs| runs.runs)
        };
        let sizes = &found.sizes;
        let named = (1, sizes.level_runs, sizes.last_tables + sizes.dumps.tables);
        let in_use = (runs("chameleon.manifest"), runs("chameleon.level"), runs("chameleon.table"));
        if named != in_use || sizes.log_runs != runs("chameleon.log") {
            let log = (sizes.log_runs, runs("chameleon.log"));
            let what = "runs of manifest, levels, tables";
            return Err(format!(
                "{what}: {named:?} are named, and {in_use:?} in use; of the log {log:?} are known and in use"
            ));
        }
        Ok(())
    }

    /// A session may lose what it has not written yet: less than a batch, and the record that fills it.
    fn loss(&self, _end: End) -> Loss {
        match self.log_batch_bytes.div_ceil(RECORD_BYTES_MIN) {
            0 => Loss::Nothing,
            operations_max => Loss::SuffixOfEachSession { operations_max },
        }
    }

    /// What may be pending, and the records that share a line with it.
    fn unchecked_tail(&self) -> usize {
        self.log_batch_bytes.div_ceil(RECORD_BYTES_MIN) as usize + UNCHECKED_RECORDS
    }

    fn image_bytes(&self) -> u64 {
        80 << 10
    }

    fn keys(&self) -> u64 {
        self.keys
    }

    fn key_bytes(&self, key: u64) -> usize {
        8 + key as usize % 5 * 7
    }

    fn extra_bytes(&self) -> &'static [usize] {
        &EXTRA_BYTES
    }

    fn options(&self) -> Options {
        let compaction =
            if self.level_by_level { Compaction::LevelByLevel } else { Compaction::Direct };
        let load = f64::from(self.load_percent) / 100.0;
        let options = Options::new()
            .engine(EngineKind::Chameleon)
            .segment_bytes(self.segment_bytes)
            .ordered(self.ordered)
            .order(|order| {
                order.this_time(true).node_bytes(256).queues(2).queue_requests(2).part_keys(8)
            })
            .verify_at_open(!self.looks_later)
            .chameleon(|chameleon| {
                let (protect, dumps) = match self.mode {
                    Mode::Protect(dumps) => (Some(Duration::ZERO), dumps),
                    Mode::Normal | Mode::WriteIntensive => (None, 1),
                };
                chameleon
                    .shards(self.shards)
                    .memtable_bytes(MEMTABLE_BYTES)
                    .levels(self.levels)
                    .ratio(self.ratio)
                    .upper_index(self.upper.index())
                    .log_run_bytes(self.log_run_bytes)
                    .log_batch_bytes(self.log_batch_bytes)
                    .load_factors(load..=load)
                    .compaction(compaction)
                    .write_intensive(self.mode == Mode::WriteIntensive)
                    .get_protect(protect)
                    .dumps_max(dumps)
                    .blind_puts(self.blind_puts)
            });
        let options = match self.replay_log_bytes {
            Some(bytes) => options.chameleon(|options| options.replay_log_bytes_max(bytes)),
            None => options,
        };
        match self.capacity_bytes {
            Some(bytes) => options.capacity_bytes(bytes),
            None => options,
        }
    }
}
