//! [`ViperShape`]: a store of the engine `viper`.

use chimera::baselines::RecordLayout;
use chimera::{EngineKind, Geometry, Options};
use serde::{Deserialize, Serialize};

use super::store_shape::{Abilities, StoreShape};
use crate::chance::Chance;
use crate::simulated::{Mutation, MutationKind};
use crate::subject::VALUE_BYTES;

/// Bytes after the words of a value of any size: none, some, so many that a page has one record, so many
/// that a record needs a block, and so many that it needs several.
const EXTRA_BYTES: [usize; 10] = [0, 0, 0, 1, 13, 40, 150, 220, 450, 700];

/// A store of the engine `viper`: all that a test may vary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ViperShape {
    /// Records of any size.
    variable: bool,
    /// Without checksums.
    published_layout: bool,
    key_bytes: u32,
    keys: u64,
    /// Most blocks; none: as many as there is room for.
    blocks: Option<u64>,
    /// Few, so that a page has four records.
    #[serde(default = "page_bytes")]
    page_bytes: u32,
    pages_per_block: u32,
    segment_bytes: u64,
    /// Of a segment of the index.
    index_segment_slots: u32,
    /// Keys are kept in their order, too.
    #[serde(default)]
    ordered: bool,
}

fn page_bytes() -> u32 {
    256
}

impl StoreShape for ViperShape {
    fn random(chance: &mut Chance) -> Self {
        let variable = chance.below(2) == 0;
        // Of blocks of 8 pages a segment has two, so that the pool grows again and again.
        let are_large = chance.below(4) == 0;
        let (pages, blocks_more) = match (are_large, variable) {
            (true, _) => (8, 5),
            (false, true) => (2, 19),
            (false, false) => (1 + chance.below(2) as u32, 11),
        };
        Self {
            variable,
            published_layout: !variable && chance.below(8) == 0,
            key_bytes: if chance.below(4) == 0 { 16 } else { 8 },
            keys: 2 + chance.below(7),
            // A large value takes up to three.
            blocks: Some(2 + chance.below(blocks_more)),
            page_bytes: page_bytes(),
            pages_per_block: pages,
            segment_bytes: 8192,
            index_segment_slots: 8 << chance.below(2),
            ordered: chance.below(4) == 0,
        }
    }

    fn for_files(number: u64) -> Self {
        // Blocks of several pages of the system: then all of a value but its ends has pages of its own.
        let are_large = number % 8 == 5;
        Self {
            variable: number % 4 == 1,
            published_layout: number % 4 == 3,
            key_bytes: 8,
            keys: 0,
            blocks: None,
            page_bytes: if are_large { 4096 } else { page_bytes() },
            pages_per_block: if are_large { 3 } else { 2 },
            segment_bytes: if are_large { 48 << 10 } else { 16 << 10 },
            index_segment_slots: 64,
            ordered: false,
        }
    }

    fn equivalent(mutation: Mutation) -> Option<&'static str> {
        match (mutation.kind, mutation.site) {
            (
                MutationKind::DelayFlush | MutationKind::DropFence | MutationKind::DelayFence,
                "pool.used_blocks",
            ) => Some(
                "one fence later it is still before the fence that makes the block's first record durable",
            ),
            (MutationKind::DropFlush | MutationKind::DelayFlush, "vpage.seal")
            | (MutationKind::Skip, "vpage.step.seal_check") => Some(
                "no crash ends a log before its seal, and one that takes a seal leaves the page open, as it was: only damage tells",
            ),
            (_, "batch.found") => Some("recovery has written back whole blocks by then"),
            _ => None,
        }
    }

    fn abilities(&self) -> Abilities {
        Abilities { finds_damage: !self.published_layout, ..Abilities::ALL }
    }

    fn keys(&self) -> u64 {
        self.keys
    }

    fn key_bytes(&self, key: u64) -> usize {
        if self.variable { 8 + key as usize % 5 * 7 } else { self.key_bytes as usize }
    }

    fn extra_bytes(&self) -> &'static [usize] {
        if self.variable { &EXTRA_BYTES } else { &[0] }
    }

    fn options(&self) -> Options {
        // Four records of keys of 8 bytes, three of 16.
        let geometry = Geometry {
            page_bytes: self.page_bytes,
            pages_per_block: self.pages_per_block,
            segment_bytes: self.segment_bytes,
            ..Geometry::default()
        };
        let block_bytes = u64::from(geometry.page_bytes * geometry.pages_per_block);
        let layout =
            if self.published_layout { RecordLayout::Published } else { RecordLayout::Checked };
        let mut options = Options::new()
            .engine(EngineKind::Viper)
            .viper(|viper| viper.geometry(geometry))
            .huge_pages(false)
            .viper(|viper| viper.index_segment_slots(self.index_segment_slots))
            .ordered(self.ordered)
            // A queue is full and a node splits after a few keys.
            .order(|order| {
                order.this_time(true).node_bytes(256).queues(2).queue_requests(2).part_keys(8)
            });
        if let Some(blocks) = self.blocks {
            options = options.capacity_bytes(blocks * block_bytes);
        }
        if self.variable {
            options
        } else {
            options
                .fixed_size(self.key_bytes, VALUE_BYTES as u32)
                .viper(|viper| viper.layout(layout))
        }
    }
}
