//! HiKV (ATC'17): items and a partitioned hash table, both in persistent memory. The point index is there when a store is
//! opened. Keys in their order are the business of an add-on that is told of each change of the index.
//!
//! # Protocol
//! Every write holds the lock of its key, a word in DRAM, from before it looks for the key's entry until it is done.
//! - **put**: look for the entry; write the item, flush, *fence*; make the entry, or lead the old one to the new item,
//!   flush, *fence*. Then, in DRAM alone, free the room of the old item. Two fences, whether the key is new or not.
//! - **get**: no lock. Find the entry, read the item, verify that the index has not changed meanwhile. Which changes
//!   matter is said in [`read`].
//! - **update**: read, change a private copy outside of all locks, and if the value is still the same under the key's
//!   lock, put it.
//! - With a write-ahead log ([`log`]) a put and a delete begin with a record of what they will do, in the log: flush,
//!   *fence*. That is one fence more.
//! - **delete**: make the entry empty, flush, *fence*. Then free the room of the item.
//! - **growth**: where a window of the index is full, its segment is split; where the heap has no room, it takes a run; a
//!   run without items is given back. Counters book these apart from the operation that they happen in.
//! - **recovery**: the headers of the index's segments say which are in force. Each entry is looked at, its item
//!   verified, and the item's room marked as taken. What is not reached is free. If the options leave out verifying at
//!   open, items are looked at beside sessions, as [`rebuild`] says. The last change of each area of a log is made again.
//!
//! # Invariants
//! 1. An item is durable before an entry leads to it, and an entry is durable before anybody sees it.
//! 2. The room of an item is free only when no entry leads to it, durably.
//! 3. A key has at most one entry. One step changes it from the old item to the new one, so a crash leaves one of both,
//!    and recovery has nothing to decide.
//! 4. Of a new key an add-on is told before its entry is made, so whoever can find the key can find it there as well. Of
//!    a removal it is told when the entry is gone.
//!
//! docs/DURABILITY.md has what a crash in each step leaves.

mod check;
mod creation;
mod engine;
mod list;
mod log;
mod options;
mod order;
mod read;
mod rebuild;
mod recovery;
mod report;
#[cfg(test)]
mod tests;
mod write;

use chimera_pmem::Pmem;

use crate::engine::Core;
use crate::engine::shared::KeyLocks;
use crate::index::persistent::partitioned_hash::PartitionedHash;
use crate::pool::BlockKind;
use crate::pool::runs::Run;
use crate::records::item_heap::ItemHeap;
use crate::records::limits::Limits;
use crate::records::redo_log::RedoLog;
use crate::sync::Mutex;
use crate::types::totals::Totals;
use crate::types::verify_reads::VerifyReads;
use creation::Parameters;
pub(crate) use creation::Type;
pub use options::{Consistency, HikvOptions};
use rebuild::Rebuild;
pub use report::{HikvInspect, HikvStats};
pub(crate) use report::{HikvInspect as Inspect, HikvStats as Stats};

/// Steps of recovery that a tool can leave out.
mod steps {
    chimera_pmem::steps! {
        /// Marking the room of items that are reached as taken.
        MARK_ITEMS = "hikv.step.mark_items";
        /// Freeing the segments that a crash left beside the one that they were split off.
        FREE_ORPHANS = "hikv.step.free_orphans";
        /// Making again what the log says.
        REDO = "hikv.step.redo";
    }
}

/// The kinds of runs.
const HASH: BlockKind = BlockKind::new(1, "hikv.hash");
const HEAP: BlockKind = BlockKind::new(2, "hikv.heap");
const ORDER: BlockKind = BlockKind::new(3, "hikv.order");
const LOG: BlockKind = BlockKind::new(4, "hikv.log");

/// The kinds that a store has.
fn kinds(parameters: &Parameters) -> &'static [BlockKind] {
    match parameters.log_area_bytes {
        Some(_) => &[HASH, HEAP, ORDER, LOG],
        None => &[HASH, HEAP, ORDER],
    }
}

/// The engine: one open store.
pub(crate) struct Hikv<P: Pmem> {
    core: Core<P>,
    parameters: Parameters,
    limits: Limits,
    index: PartitionedHash<P>,
    heap: ItemHeap<P>,
    rebuild: Rebuild,
    keys: KeyLocks,
    /// Of a store with a write-ahead log; none where nothing may be written.
    log: Option<RedoLog<P>>,
    /// Whether gets verify the sums of values: never where there are none.
    verify_reads: VerifyReads,
    /// Runs that the last life wrote keys to, in their order. None any more once the store takes writes.
    dumped: Mutex<Vec<Run>>,
    /// What is damaged is passed over.
    salvages: bool,
    /// What opening has found in the index.
    found: Mutex<Totals>,
}
