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
//! - With a write-ahead log (`log`, to compare with) a put and a delete begin with a record of what they will do, in the
//!   log: flush, *fence*. That is one fence more.
//! - **delete**: make the entry empty, flush, *fence*. Then free the room of the item.
//! - **growth**: where a window of the index is full, its segment is split; where the heap has no room, it takes a run; a
//!   run without items is given back. Counters book these apart from the operation that they happen in.
//! - **compaction**: items of runs that are mostly free are written anew elsewhere, so that the runs become free.
//! - **recovery**: the headers of the index's segments say which are in force. Each entry is looked at, its item
//!   verified, and the item's room marked as taken. What is not reached is free. If the options leave out verifying at
//!   open, items are looked at beside sessions, as [`rebuild`] says. The last change of each area of a log is made again.
//!
//! # Parts
//! Each calls those before it only. What must go back is a value that is returned.
//! - `items`: the items, the index, and the item of a key whose lock is held. `read`, `list`: looking at them.
//! - `rebuild`: what is free, found out beside sessions. `check`: verification.
//! - `write`: items and entries, written and removed. `mover`, `reclaim`: items of runs that are mostly free are moved, and
//!   which, and when. `log`: what a store with a write-ahead log does before.
//! - `order`: the order of keys, from one life to the next. [`Hikv`]: one open store. `recovery`: opening one.
//! - `put`: what a put, a replacement and a removal are made of. `upkeep`: the work beside sessions. `engine`: what the rest
//!   of the store calls.
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
mod findings;
mod items;
mod kinds;
mod list;
#[cfg(feature = "baselines")]
mod log;
mod mover;
mod order;
mod put;
mod read;
mod rebuild;
mod reclaim;
mod recovery;
mod report;
mod steps;
mod store;
#[cfg(test)]
mod tests;
mod upkeep;
mod write;

pub(crate) use creation::Type;
pub use report::{HikvInspect, HikvStats};
pub(crate) use report::{HikvInspect as Inspect, HikvStats as Stats};
pub(crate) use store::Hikv;
