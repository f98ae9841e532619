//! [`HikvShape`]: a store of the engine `hikv`.

use chimera::baselines::{Consistency, RecordLayout};
use chimera::{EngineInspect, EngineKind, Options};
use serde::{Deserialize, Serialize};

use super::store_shape::{Abilities, StoreShape};
use crate::chance::Chance;
use crate::simulated::{Mutation, MutationKind};

/// Bytes after the words of a value: so few that a run has several items, and so many that an item needs a run for itself.
const EXTRA_BYTES: [usize; 8] = [0, 0, 1, 13, 40, 150, 450, 900];
/// The same where a record must fit the log.
const LOGGED_EXTRA_BYTES: [usize; 7] = [0, 0, 1, 13, 40, 150, 450];
/// Bytes of the log for a partition: values have at most 696, more than those of histories.
const LOG_AREA_BYTES: u32 = 960;

/// A store of the engine `hikv`: all that a test may vary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HikvShape {
    /// Without checksums.
    published_layout: bool,
    partitions: u32,
    /// 256 bytes are 2 buckets, of 8 entries.
    index_segment_bytes: u32,
    heap_run_bytes: u32,
    keys: u64,
    /// Most bytes of blocks; none: as many as there is room for.
    capacity_bytes: Option<u64>,
    segment_bytes: u64,
    /// Keys are kept in their order, too.
    #[serde(default)]
    ordered: bool,
    /// Items are not looked at when the store is opened, but by a task beside the operations.
    #[serde(default)]
    looks_later: bool,
    /// With a write-ahead log.
    #[serde(default)]
    logged: bool,
}

impl StoreShape for HikvShape {
    fn random(chance: &mut Chance) -> Self {
        // A segment of the pool has 16 blocks of 256 bytes.
        let keys = match chance.below(3) {
            0 => 2 + chance.below(7),
            1 => 10 + chance.below(16),
            // Segments of the index are split several times.
            _ => 24 + chance.below(20),
        };
        let logged = chance.below(8) == 0;
        // The log takes 4 or 8 blocks.
        let (log_blocks, partition_shifts) = if logged { (8, 2) } else { (0, 3) };
        Self {
            published_layout: chance.below(6) == 0,
            partitions: 1 << chance.below(partition_shifts),
            index_segment_bytes: 256 << u32::from(chance.below(4) == 0),
            heap_run_bytes: 256 << chance.below(3),
            keys,
            // At most three segments: there is no memory for more.
            capacity_bytes: Some(256 * (12 + log_blocks + chance.below(37 - log_blocks))),
            segment_bytes: 8192,
            ordered: chance.below(2) == 0,
            looks_later: chance.below(2) == 0,
            logged,
        }
    }

    fn for_files(number: u64) -> Self {
        Self {
            published_layout: number % 4 == 3,
            partitions: 2,
            index_segment_bytes: 1024,
            heap_run_bytes: if number < 8 { 8192 } else { 1024 },
            keys: 0,
            capacity_bytes: None,
            segment_bytes: 64 << 10,
            ordered: false,
            looks_later: number % 2 == 1,
            logged: number % 8 == 5,
        }
    }

    fn equivalent(mutation: Mutation) -> Option<&'static str> {
        // The pool's own crash tests notice each of them.
        let run = "only runs of items are freed while the store is open: recovery frees one without items again";
        let found = "a run whose word a kill left behind is empty: the fence of an item comes before anything relies on it";
        match (mutation.kind, mutation.site) {
            (_, "pool.run.free") => Some(run),
            (MutationKind::DelayFlush, "pool.run.found") => Some(found),
            _ => None,
        }
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            in_place: false,
            reclaim: true,
            finds_damage: !self.published_layout,
            refuses_at_once: !self.logged,
            settles_when_read: !self.logged,
            ..Abilities::ALL
        }
    }

    fn steps_tasks(&self) -> bool {
        self.looks_later
    }

    /// Everything that the index leads to is in use, and nothing else.
    fn verify_structure(
        &self,
        found: &EngineInspect,
        records: &[(usize, usize)],
    ) -> Result<(), String> {
        let EngineInspect::Hikv(found) = found else { return Err("another engine".to_owned()) };
        let header = if self.published_layout { 8 } else { 24 };
        let item = |(key, value): &(usize, usize)| {
            (header + key.next_multiple_of(8) + value.next_multiple_of(8)).next_multiple_of(32)
        };
        let item_bytes = records.iter().map(item).sum::<usize>() as u64;
        let runs = |kind: &str| {
            let of_kind = found.runs.kinds.iter().find(|runs| runs.kind == kind);
            of_kind.map_or(0, |runs| runs.runs)
        };
        let sizes = &found.sizes;
        let reached = (item_bytes, sizes.index_segments, sizes.heap_runs);
        let in_use = (sizes.item_bytes, runs("hikv.hash"), runs("hikv.heap"));
        if reached != in_use {
            let what = "bytes of items, segments of the index, runs of items";
            return Err(format!("{what}: {reached:?} are reached, and {in_use:?} in use"));
        }
        Ok(())
    }

    fn keys(&self) -> u64 {
        self.keys
    }

    fn key_bytes(&self, key: u64) -> usize {
        8 + key as usize % 5 * 7
    }

    fn extra_bytes(&self) -> &'static [usize] {
        if self.logged { &LOGGED_EXTRA_BYTES } else { &EXTRA_BYTES }
    }

    fn options(&self) -> Options {
        let layout =
            if self.published_layout { RecordLayout::Published } else { RecordLayout::Checked };
        let options = Options::new()
            .engine(EngineKind::Hikv)
            .segment_bytes(self.segment_bytes)
            .ordered(self.ordered)
            .order(|order| {
                let order = order.this_time(true).node_bytes(256).queues(2).queue_requests(2);
                order.part_keys(8).dump_bytes(512)
            })
            .verify_at_open(!self.looks_later)
            .hikv(|hikv| {
                hikv.layout(layout)
                    .partitions(self.partitions)
                    .index_segment_bytes(self.index_segment_bytes)
                    .heap_run_bytes(self.heap_run_bytes)
                    // In most stores new items go to fresh runs, however few records there are.
                    .walked_first(if self.keys % 4 == 3 { 8 } else { 0 })
            });
        let options = if self.logged {
            options.hikv(|hikv| {
                hikv.consistency(Consistency::WriteAheadLog).log_area_bytes(LOG_AREA_BYTES)
            })
        } else {
            options
        };
        match self.capacity_bytes {
            Some(bytes) => options.capacity_bytes(bytes),
            None => options,
        }
    }
}
