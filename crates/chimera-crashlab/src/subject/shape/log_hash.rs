//! [`LogHashShape`]: a store of `pmem-hash` or `dram-hash`, a storage log and one hash table.

use chimera::{EngineInspect, EngineKind, Options};
use serde::{Deserialize, Serialize};

use super::chameleon::{RECORD_BYTES_MIN, UNCHECKED_RECORDS};
use super::store_shape::{Abilities, StoreShape};
use crate::chance::Chance;
use crate::durability::{End, Loss};
use crate::simulated::Mutation;

/// Bytes after the words of a value: a run of the log has few records or many.
const EXTRA_BYTES: [usize; 6] = [0, 0, 1, 13, 40, 150];

/// A store whose table is in persistent memory, or in DRAM: all that a test may vary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogHashShape<const IS_PERSISTENT: bool> {
    /// Bytes of a segment of a table in persistent memory: 256 have room for few entries, so that it is split soon.
    index_segment_bytes: u32,
    log_run_bytes: u32,
    /// Of a table in DRAM alone.
    #[serde(default)]
    log_batch_bytes: u32,
    ordered: bool,
    keys: u64,
    /// Most bytes of blocks; none: as many as there is room for.
    capacity_bytes: Option<u64>,
    segment_bytes: u64,
}

impl<const IS_PERSISTENT: bool> StoreShape for LogHashShape<IS_PERSISTENT> {
    fn random(chance: &mut Chance) -> Self {
        Self {
            index_segment_bytes: 256 << chance.below(2),
            log_run_bytes: 512 << chance.below(3),
            log_batch_bytes: [0, 0, 128, 512][chance.below(4) as usize],
            ordered: chance.below(4) == 0,
            keys: if chance.below(2) == 0 { 2 + chance.below(7) } else { 10 + chance.below(40) },
            // Four segments of 64 blocks at most. Nothing of the log is ever freed, so that all get full.
            capacity_bytes: Some(256 * (64 + chance.below(160))),
            segment_bytes: 32 << 10,
        }
    }

    fn for_files(_number: u64) -> Self {
        Self {
            index_segment_bytes: 1024,
            log_run_bytes: 8192,
            log_batch_bytes: 0,
            ordered: false,
            keys: 0,
            capacity_bytes: None,
            segment_bytes: 256 << 10,
        }
    }

    fn equivalent(_mutation: Mutation) -> Option<&'static str> {
        None
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            in_place: false,
            reclaim: false,
            frees: false,
            deletes_when_full: IS_PERSISTENT,
            ..Abilities::ALL
        }
    }

    /// Each segment of the index and each run of the log is known.
    fn verify_structure(
        &self,
        found: &EngineInspect,
        _records: &[(usize, usize)],
    ) -> Result<(), String> {
        let (EngineInspect::PmemHash(found) | EngineInspect::DramHash(found)) = found else {
            return Err("another engine".to_owned());
        };
        let runs = |kind: &str| {
            let of_kind = found.runs.kinds.iter().find(|runs| runs.kind == kind);
            of_kind.map_or(0, |runs| runs.runs)
        };
        let segments = if IS_PERSISTENT { found.sizes.index_segments } else { 0 };
        let named = (segments, found.sizes.log_runs);
        let in_use = (runs("log_hash.segment"), runs("log_hash.log"));
        if named != in_use {
            return Err(format!(
                "of segments of the index and runs of the log {named:?} are known, and {in_use:?} in use"
            ));
        }
        Ok(())
    }

    /// As that of ChameleonDB.
    fn loss(&self, _end: End) -> Loss {
        match self.operations_pending_max() {
            0 => Loss::Nothing,
            operations_max => Loss::SuffixOfEachSession { operations_max },
        }
    }

    /// An index in persistent memory leads to every record.
    fn unchecked_tail(&self) -> usize {
        if IS_PERSISTENT { 0 } else { self.operations_pending_max() as usize + UNCHECKED_RECORDS }
    }

    fn image_bytes(&self) -> u64 {
        160 << 10
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
        let engine = if IS_PERSISTENT { EngineKind::PmemHash } else { EngineKind::DramHash };
        let options = Options::new()
            .engine(engine)
            .segment_bytes(self.segment_bytes)
            .ordered(self.ordered)
            .order(|order| {
                order.this_time(true).node_bytes(256).queues(2).queue_requests(2).part_keys(8)
            })
            .log_hash(|log_hash| {
                log_hash
                    .index_segment_bytes(self.index_segment_bytes)
                    .log_run_bytes(self.log_run_bytes)
                    .log_batch_bytes(self.log_batch_bytes)
            });
        match self.capacity_bytes {
            Some(bytes) => options.capacity_bytes(bytes),
            None => options,
        }
    }
}

impl<const IS_PERSISTENT: bool> LogHashShape<IS_PERSISTENT> {
    /// Writes of a session that may be missing after a crash.
    fn operations_pending_max(&self) -> u32 {
        if IS_PERSISTENT { 0 } else { self.log_batch_bytes.div_ceil(RECORD_BYTES_MIN) }
    }
}
