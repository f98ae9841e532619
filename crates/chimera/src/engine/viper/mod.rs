//! Viper (PVLDB'21) for records of fixed size: slotted VPages in persistent memory, an extendible
//! hash table in DRAM ("offset map") that is rebuilt at open.
//!
//! # Protocol
//! Every write holds the lock of its key, a word in DRAM chosen by the key's hash, from before it
//! looks for the key's record until it is done. So at most one record of a key is in the making.
//!
//! - **put**: copy key and value into a free slot of the session's own block, with checksums and a
//!   version; flush, *fence*, and meanwhile start loading what the index leads to; look for an old
//!   record; set the new one's bit, flush, *fence*; enter the location in the index; if there was an
//!   old record, clear its bit, flush, *fence*. Two fences for an insert, three for an overwrite.
//! - A **version** is one more than the last one its session gave. Should the old record's not be
//!   lower, because sessions' clocks differ, the new one is given a higher one, with a flush and a
//!   fence more, before its bit is set.
//! - **get**: no lock. Find the location in the index, read the page's version, the key and the
//!   value, the page's version again; checksums last.
//! - **update in place**, of one aligned word: store, flush, *fence*. The record's header names this word, and the
//!   value's checksum leaves it out. A record that does not name it is written anew, as an overwrite, and names it.
//! - **update** otherwise: read, change a private copy outside of all locks, and if the value is
//!   still the same under the key's lock, write it as an overwrite.
//! - **delete**: clear the bit, flush, *fence*; remove the location from the index.
//!
//! # Locks
//! A **page lock** is a version in DRAM, held by whoever writes bytes of records in the page, for
//! readers to notice. The order is key, page, segment of the index; nobody holds two of one kind but
//! whoever locks a block with `Supply::lock_pages`: it holds the page locks of one block, taken in ascending order,
//! and waits for nothing else but the pool's lock of handing out blocks, under which nobody takes a page lock. So nothing
//! deadlocks.
//! In the paper the page lock protects the bitset as well; here bits change by compare and swap, so
//! that clearing the bit of an old record in another page needs no second page lock.
//!
//! # Parts
//! Each calls those before it only. What must go back is a value that is returned.
//! - `blocks`: what is known of blocks in DRAM. `supply`: taking blocks and leaving them. `emptied`: those for large values
//!   on plain files. `space`: sessions and the blocks that they fill. `pieces`: blocks with records of batches. `records`: records and
//!   the index, and the record of a key whose lock is held.
//! - `read`, `list`, `scan`, `check`, `inspect`: looking at records. `recovery`: making the index.
//! - `write`, `update`: changing records. `mover`: moving them. `reclaim`: which blocks are to be emptied.
//! - `store`: one open store. `upkeep`: its work beside sessions. `engine`: what the rest of the store calls.
//!
//! # Invariants
//! 1. Only a block's owner sets bits and writes records into free slots, and only into slots that
//!    were free, durably, when the owner came to their word of the bitset.
//! 2. A record is durable before its bit is set; its bit is durable before the index leads to it;
//!    the index no longer leads to it, or it is being deleted under its key's lock, when its bit is
//!    cleared.
//! 3. For every key at most two bits are set, and two only while its lock is held or after a crash:
//!    then the record with the higher version stays (in the published layout: with the higher location), and
//!    recovery clears the other.
//!
//! docs/DURABILITY.md has what a crash in each step leaves.

mod blocks;
mod capacity;
mod check;
mod creation;
mod emptied;
mod engine;
mod inspect;
mod list;
mod mover;
mod pieces;
mod read;
mod reclaim;
mod records;
mod recovery;
mod report;
mod scan;
mod sites;
mod space;
mod steps;
mod store;
mod supply;
#[cfg(all(test, not(loom)))]
mod tests;
mod update;
mod upkeep;
mod write;

pub(crate) use creation::Type;
pub use report::{
    BlockCounts, ByteCounts, FillHistogram, IndexReport, PageCounts, ViperInspect, ViperStats,
};
pub(crate) use report::{ViperInspect as Inspect, ViperStats as Stats};
pub(crate) use store::{AnySize, FixedSize};
