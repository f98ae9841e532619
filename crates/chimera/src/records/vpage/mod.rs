//! VPages (Viper, sections 3.2.2 and 3.2.3): pages of records, and the steps of which engines make their
//! protocols.
//!
//! - `slotted`: records of one size, in slots, with a bitset;
//! - `log`: records of any size, one after the other, each with its lengths in front.
//!
//! What an engine needs of either is in four parts:
//! - [`Codec`]: where key, value and header of a record lie; reading, comparing, writing and flushing them;
//! - [`Commit`]: the word that makes a record live;
//! - [`Cursor`]: where the next record of a session goes;
//! - [`BlockView`]: what a whole block holds.
//!
//! [`Pages`] is all of them. What only logs can do, to take chunks of spilled values, an engine reaches through
//! [`Pages::spilling`]. A step says what it flushes; fences are the caller's unless it says so.

mod codec;
mod commit;
mod cursor;
mod log;
mod page_map;
mod place;
mod record;
mod slotted;
#[cfg(test)]
mod tests;
mod view;

use chimera_pmem::{Pmem, Site};

use crate::pool::Pool;
use crate::types::error::{Error, Result};
use crate::types::layout::{Geometry, RecordLayout};
pub(crate) use codec::{Codec, Stored};
pub(crate) use commit::Commit;
pub(crate) use cursor::{Abandoned, Cursor, InsertPoint, PAGE_KINDS};
pub(crate) use log::LogPages;
pub(crate) use page_map::PageMap;
pub(crate) use place::Place;
pub(crate) use record::Record;
pub(crate) use slotted::{PageLayout, SlottedPages};
pub(crate) use view::{BlockView, IsSound, PageBuffers, Reuse, Room, Scan, Scanned, Usage};

/// The sites of pages.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// A record with its header, before it is live.
        RECORD = "vpage.record";
        /// The word that makes a record live.
        COMMIT = "vpage.commit";
        /// The word of a record that is retired: deleted, or replaced.
        RETIRE = "vpage.retire", unread;
        /// A word of a value, in place.
        VALUE_WORD = "vpage.value_word", in_place;
        /// What others left in a page, before it is used again.
        REUSE = "vpage.reuse", may_be_clean;
        /// Pages of a block that is made free.
        BLOCK_RESET = "vpage.block_reset";
        /// The pages of a fresh block, before the block is in use.
        FORMAT = "vpage.format";
        /// Where the log of a page ends that a session leaves.
        SEAL = "vpage.seal", deferred, may_be_clean;
        /// That the log of a page goes on, before a session appends to it.
        UNSEAL = "vpage.unseal";
    }
}

/// Making durable, under a journal, that a log ends behind a chunk before that is written. No memory without a journal comes to
/// it: tests leave it out.
pub(crate) const END_AHEAD: Site = Site::new("vpage.end_ahead");

/// Checks that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::steps! {
        /// The check of the word that makes records live.
        COMMIT_CHECK = "vpage.step.commit_check";
        /// The checksum of a key and its version, at recovery.
        KEY_CHECK = "vpage.step.key_check";
        /// The checksum of a value, at recovery.
        VALUE_CHECK = "vpage.step.value_check";
        /// The checksums of a record that is read.
        READ_CHECK = "vpage.step.read_check";
        /// The check of the lengths in a log, at recovery.
        LENGTHS_CHECK = "vpage.step.lengths_check";
        /// That a log ends where the seal of its page says.
        SEAL_CHECK = "vpage.step.seal_check";
        /// Storing a zero behind a record in a log.
        END = "vpage.step.end";
        /// Flushing it with the record.
        END_FLUSH = "vpage.step.end_flush";
        /// Clearing what lies behind a log before a session writes there.
        CLEAR_REST = "vpage.step.clear_rest";
        /// Making all pages of a block empty whose pages are about to begin at other offsets.
        CLEAR_HEADS = "vpage.step.clear_heads";
        /// Making durable that records are retired before their chunks go, or before nothing leads to them.
        CHUNKS_LAST = "vpage.step.chunks_last";
    }
}

/// What the pages of a store are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageParameters {
    pub(crate) geometry: Geometry,
    pub(crate) layout: RecordLayout,
    /// 0 where records have any size.
    pub(crate) key_bytes: u32,
    pub(crate) value_bytes: u32,
}

impl PageParameters {
    /// Whether records have any size.
    pub(crate) fn is_variable(&self) -> bool {
        self.key_bytes == 0
    }
}

/// Pages of one kind: what an engine is built on.
pub(crate) trait Pages: Codec + Commit + Cursor + BlockView {
    /// The pages of a pool, as its superblock says.
    ///
    /// # Errors
    /// `Corrupted` when the superblock cannot be right.
    fn of<P: Pmem>(pool: &Pool<P>, parameters: &PageParameters) -> Result<Self>;

    /// Whether these are the pages of a store with these parameters.
    fn takes(parameters: &PageParameters) -> bool;

    /// Blocks that reclamation may need before it has made room.
    const RESERVE_BLOCKS: u32;

    /// The pages that take chunks of values, if values may be too large to lie beside their keys.
    fn spilling(&self) -> Option<&LogPages>;
}

/// What is wrong with a page whose first word is damaged.
const DAMAGED_PAGE: &str = "the first word of a page is damaged: records in it may be lost";

#[cold]
fn damaged_word(at: u64) -> Error {
    Error::corrupted("the word that tells which records are live is damaged", at)
}
