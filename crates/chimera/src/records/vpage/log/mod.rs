//! [`LogPages`]: VPages of records of any size, one after the other (section 3.2.3).
//!
//! ```text
//! byte 0   page word: where the log ends, if the page is sealed; in the first page the flags of the block
//! byte 8   the log: records and chunks, each a multiple of 8 bytes
//! ```
//! `records::lengths` and `records::chunks` tell what records and chunks consist of. A record larger
//! than a page lies in a block whose flag `LARGE` makes it one page.
//!
//! # Invariants
//! 1. The first word of a record is stored once the rest of it is durable or, in the same line, stored:
//!    stores to one line reach media in order. From then on only the word's lowest bit, with the check,
//!    changes: so the log can be walked.
//! 2. The word that follows the log in a page that a session writes to is zero, durably: so the log ends
//!    there, whatever a crash leaves of a record that was on its way. A record in a page is written with
//!    a zero behind it. In a block that is one page all is zero behind the log; under a journal a record has a zero behind it
//!    there, too, and behind a chunk, which has no fence before its first word, the zero is durable first.
//! 3. Places are not used again before no record of the page is live.
//! 4. The log of a page that is sealed ends where its first word says, whatever a crash leaves.
//!
//! In the paper the page itself says where its log ends and how much of it is deleted. Here both follow from
//! the log, and are looked for when a block is used again. Where the log ends the page says as well, once no session
//! appends to it, so that records that were lost are missed.

mod chunks;
mod clear;
mod codec;
mod commit;
mod cursor;
mod part;
mod scan;
mod seal;
mod view;
mod walk;

use chimera_pmem::{Extent, Pmem};

use super::{PageMap, PageParameters, Pages, Place, Record, damaged_word, sites, steps};
use crate::pool::Pool;
use crate::records::chunks::span as chunk_span;
use crate::records::lengths::{BESIDE_BYTES_MAX, KEY_AT, span};
use crate::records::limits::Limits;
use crate::types::error::{Error, Result};

/// Where the log begins in a page.
const LOG_AT: u64 = 8;
/// A page with less than one in so many of its bytes behind its log is full.
const FULL_PART: u64 = 4;
/// Under a journal a value is spilled from so many times the bytes on that are worth writing to their place: each chunk
/// has its own page in part.
const SPILL_TIMES_NEW: u64 = 4;
/// A value is spilled for want of room in the page when that saves one in so many of the page's bytes: without
/// it the end of the page is lost, with it the header of a chunk less that of a record and the key.
const SPILL_PART: u64 = 16;

/// The pages of a pool with records of any size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogPages {
    map: PageMap,
    pages_per_block: u64,
    key_bytes_max: usize,
    /// Of a value that can lie beside its key.
    beside_bytes_max: usize,
    /// Of one that does so, where there is room for chunks.
    usual_bytes_max: usize,
    spill_key_bytes_min: usize,
}

impl LogPages {
    /// Largest block: a location has 16 bits for a place in it.
    pub(crate) const BLOCK_BYTES_MAX: u64 = 8 * (u16::MAX as u64 - 1);

    /// Longest key, where pages have so many bytes.
    pub(crate) fn key_bytes_max(page_bytes: u64) -> usize {
        (page_bytes as usize - 64).min(4096)
    }

    /// Longest value.
    pub(crate) const VALUE_BYTES_MAX: usize = 1 << 30;

    /// The longest key and value.
    #[inline(always)]
    fn limits(&self) -> Limits {
        Limits { key_bytes: self.key_bytes_max, value_bytes: Self::VALUE_BYTES_MAX }
    }

    /// Where the block of a place ends.
    #[inline(always)]
    fn block_end(&self, place: &Place) -> u64 {
        place.page_at - place.page * self.map.page_bytes + self.map.block_bytes
    }

    /// The key of a record at a place.
    #[inline(always)]
    fn key_extent<P: Pmem>(pool: &Pool<P>, place: &Place, key_bytes: usize) -> Extent {
        pool.extent(place.record_at + KEY_AT, key_bytes as u64)
    }

    /// What lies beside the key of a record.
    #[inline(always)]
    fn beside_extent<P: Pmem>(pool: &Pool<P>, record: &Record) -> Extent {
        pool.extent(Self::beside_at(record), u64::from(record.lengths.beside_bytes))
    }

    /// Where what lies beside the key of a record begins.
    #[inline(always)]
    fn beside_at(record: &Record) -> u64 {
        record.place.record_at + record.lengths.beside_at()
    }
}

impl Pages for LogPages {
    fn takes(parameters: &PageParameters) -> bool {
        parameters.is_variable()
    }

    const RESERVE_BLOCKS: u32 = 2;

    fn of<P: Pmem>(pool: &Pool<P>, parameters: &PageParameters) -> Result<Self> {
        let geometry = parameters.geometry;
        let map = PageMap::new(pool.map, geometry.page_bytes);
        let key_bytes_max = Self::key_bytes_max(map.page_bytes);
        let whole = pool.map.block_bytes - LOG_AT;
        if pool.map.block_bytes > Self::BLOCK_BYTES_MAX {
            return Err(Error::corrupted("the superblock's blocks are too large for logs", 56));
        }
        let beside = (whole - span(key_bytes_max, 0)).min(u64::from(BESIDE_BYTES_MAX));
        let new_bytes_min = pool.pmem.journal().map_or(u64::MAX, |journal| journal.new_bytes_min());
        let usual = beside.min(new_bytes_min.saturating_mul(SPILL_TIMES_NEW));
        Ok(Self {
            map,
            pages_per_block: u64::from(geometry.pages_per_block),
            key_bytes_max,
            beside_bytes_max: beside as usize & !7,
            usual_bytes_max: usual as usize & !7,
            spill_key_bytes_min: (chunk_span(0) - span(0, 0) + map.page_bytes / SPILL_PART)
                as usize,
        })
    }

    #[inline(always)]
    fn spilling(&self) -> Option<&LogPages> {
        Some(self)
    }
}
