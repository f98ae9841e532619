//! The item heap: records of any size, each written once and never changed, in runs of blocks. HiKV (ATC'17, section
//! 3.4.1) calls a record an item.
//!
//! ```text
//! run         64 bytes of the pool | units of 32 bytes
//! checked     [key length: 13 bits | value length: 31 | check: 20]
//!             [check of place, version, key: 4 | check of place, value: 4] [version: 8] key value
//! published   [key length: 10 bits | value length: 22 | 0: 32] key value
//! ```
//! Keys and values are padded to 8 bytes. An item begins with a unit and takes as many as it needs, in one run.
//!
//! # Space
//! What is free is known in DRAM alone, by a bitmap of each run. The media have no word of it. So a crash between taking
//! room for an item and whatever makes the item reachable leaks nothing: at the next opening the engine marks the items
//! that it reaches, and everything else is free.
//!
//! An item that is larger than the usual run gets a run for itself, and what that has left is for others. A run without
//! items is given back.
//!
//! # Protocol
//! - **write**: key, value and header into room that nobody else has; flush, *fence*. Nothing leads to the item yet.
//! - **free**: the bits are cleared. Nothing durable leads to the item any more, and nobody reads it but readers who find
//!   out afterwards that it was gone. Under a journal the room of a large item [waits](large) before that.
//!
//! # Invariants
//! 1. Room is taken once: its bits are set from then until the item is freed, and until the room has waited.
//! 2. An item is durable before the engine makes anything lead to it.
//! 3. Lengths that were read from media are used only where the item lies inside of the used blocks.
//!
//! Any number of threads may call anything but recovery. The heap is told nothing of any index.

mod compaction;
mod large;
mod layout;
mod read;
mod recovery;
mod space;
#[cfg(test)]
mod tests;
mod units;
mod write;

use std::sync::Arc;

use chimera_pmem::{CACHE_LINE, Pmem};

use super::limits::Limits;
use crate::pool::{BlockKind, Pool};
use crate::sync::Mutex;
use crate::types::layout::RecordLayout;
pub(crate) use layout::item_bytes;
pub(crate) use read::Item;
pub(crate) use recovery::Places;
use space::Space;
pub(crate) use space::SparseRun;

/// Where the heap stores, flushes and fences.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// An item, before anything leads to it.
        ITEM = "heap.item";
    }
}

/// Checks that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::steps! {
        /// The checks of an item that is read.
        READ_CHECK = "heap.step.read_check";
    }
}

/// Longest key, in bytes, where a run has room for it.
const KEY_BYTES_MAX: usize = 4096;
/// Longest value, in bytes, where a run has room for it: not in a segment of 1 GiB.
const VALUE_BYTES_MAX: u64 = 1 << 30;

/// Items in runs of blocks.
pub(crate) struct ItemHeap<P: Pmem> {
    pool: Arc<Pool<P>>,
    /// The kind of its runs.
    kind: BlockKind,
    layout: RecordLayout,
    /// Blocks of a run, unless an item needs more.
    run_blocks: u32,
    space: Mutex<Space>,
}

impl<P: Pmem> ItemHeap<P> {
    /// A heap without runs, which takes those of this kind.
    pub(crate) fn new(
        pool: Arc<Pool<P>>,
        kind: BlockKind,
        layout: RecordLayout,
        run_blocks: u32,
    ) -> Self {
        Self { pool, kind, layout, run_blocks, space: Mutex::new(Space::default()) }
    }

    /// The longest key and value.
    pub(crate) fn limits(&self) -> Limits {
        let pool = &self.pool;
        let room = u64::from(pool.run_blocks_max()) * pool.map.block_bytes - CACHE_LINE;
        let (key_most, value_most) = layout::length_limits(self.layout);
        let key_bytes = KEY_BYTES_MAX.min(room as usize / 4).min(key_most);
        let left = room - layout::span(self.layout, key_bytes, 0);
        let value_bytes = left.min(VALUE_BYTES_MAX).min(value_most) as usize;
        let is_cut = value_bytes as u64 == left;
        Limits { key_bytes, value_bytes: if is_cut { value_bytes & !31 } else { value_bytes } }
    }
}
