//! [`TeachingShape`]: a store of the engine `teaching`.

use chimera::{EngineKind, Options};
use serde::{Deserialize, Serialize};

use super::store_shape::{Abilities, StoreShape};
use crate::chance::Chance;
use crate::simulated::{Mutation, MutationKind};

/// Bytes after the words of a value: so few that a run has many records, and so many that it has one.
const EXTRA_BYTES: [usize; 8] = [0, 0, 1, 13, 40, 150, 450, 900];

/// A store of the engine `teaching`: all that a test may vary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TeachingShape {
    keys: u64,
    /// Most bytes of blocks; none: as many as there is room for.
    capacity_bytes: Option<u64>,
    segment_bytes: u64,
}

impl StoreShape for TeachingShape {
    fn random(chance: &mut Chance) -> Self {
        // A segment has 16 blocks of 256 bytes, of which a run takes four or more.
        Self {
            keys: 2 + chance.below(7),
            capacity_bytes: Some(256 * (12 + chance.below(37))),
            segment_bytes: 8192,
        }
    }

    fn for_files(_number: u64) -> Self {
        Self { keys: 0, capacity_bytes: None, segment_bytes: 64 << 10 }
    }

    fn equivalent(mutation: Mutation) -> Option<&'static str> {
        // The pool's own crash tests notice each of them.
        match (mutation.kind, mutation.site) {
            (_, "pool.run.free") => Some(
                "recovery frees a run in which nothing is live, and never looks at dead records",
            ),
            // What is delayed is done with the fence of the first record, before that is live.
            (_, "pool.run.found") | (MutationKind::DelayFence, "pool.run.take") => Some(
                "a run whose word a crash finds not yet fenced has no live record: it is freed again",
            ),
            _ => None,
        }
    }

    fn abilities(&self) -> Abilities {
        Abilities { in_place: false, reclaim: false, ..Abilities::ALL }
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
        let options = Options::new().engine(EngineKind::Teaching).segment_bytes(self.segment_bytes);
        match self.capacity_bytes {
            Some(bytes) => options.capacity_bytes(bytes),
            None => options,
        }
    }
}
