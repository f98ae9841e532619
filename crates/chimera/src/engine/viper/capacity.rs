//! How large a pool must be for what is to be kept in it.
//!
//! The answer is an estimate from above. Records of a fixed size are refilled into blocks that are partly
//! free, so what is live decides. Records of any size are appended, and a block is filled again once
//! reclamation has emptied it; reclamation may be slower than writers, so all that is written decides.

use crate::records::vpage::{LogPages, PageLayout};
use crate::types::error::{Error, Result};
use crate::types::options::{Geometry, Options};

/// Blocks that a session may hold while others need room: one or two that it fills, and what is left in
/// those that it has left.
const BLOCKS_PER_SESSION: u64 = 4;
/// Of records that are overwritten in random order, a session leaves so many percent of the space of
/// retired records unused: a block is filled again once a quarter of it is free.
const REWRITTEN_SPACE_PERCENT: u64 = 45;
/// Of a value that is spilled to chunks, one part in so many is the headers of chunks and the ends of blocks.
const CHUNK_PART: u64 = 8;

/// What a store is to keep and to take in, for [`Options::pool_bytes_for`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Most records that are live at a time.
    pub live: u64,
    /// How many of these are overwritten in random order, again and again.
    pub rewritten: u64,
    /// Records that are written in all, by inserts and overwrites.
    pub written: u64,
    /// Bytes of a key, or their mean. Not used with [`Options::fixed_size`].
    pub key_bytes: u32,
    /// Bytes of a value, or their mean. Not used with [`Options::fixed_size`].
    pub value_bytes: u32,
    /// Sessions that write at the same time.
    pub sessions: u64,
}

impl Options {
    /// The geometry of a store that is created with these options: the one asked for, or the default
    /// with pages large enough for a record of the [fixed size](Self::fixed_size).
    pub fn creation_geometry(&self) -> Geometry {
        let mut geometry = self.geometry.unwrap_or_else(|| {
            let page_bytes = Geometry::default().page_bytes;
            let slot_bytes = self.bounded_sizes().map_or(0, |(key_bytes, value_bytes)| {
                PageLayout::slot_bytes_of(self.layout.unwrap_or_default(), key_bytes, value_bytes)
            });
            // The page's header takes at least two words beside one record.
            let pages = (slot_bytes + 16).div_ceil(page_bytes);
            Geometry { page_bytes: page_bytes * pages, ..Geometry::default() }
        });
        if let Some(segment_bytes) = self.segment_bytes {
            geometry.segment_bytes = segment_bytes;
        }
        geometry
    }

    /// Bytes of a pool that has room for `demand`: for [`capacity_bytes`](Self::capacity_bytes) and
    /// [`anonymous`](Self::anonymous) of a store that is created with these options. An estimate from
    /// above; reclamation may make less enough.
    ///
    /// # Errors
    /// [`Error::InvalidOptions`] when no page holds such a record, or no pool can be so large.
    pub fn pool_bytes_for(&self, demand: &Demand) -> Result<u64> {
        let geometry = self.creation_geometry();
        geometry.validate().map_err(Error::InvalidOptions)?;
        let page_bytes = u64::from(geometry.page_bytes);
        let block_bytes = page_bytes * u64::from(geometry.pages_per_block);
        let blocks = match self.bounded_sizes() {
            Some(sizes) => self.slotted_blocks(&geometry, sizes, demand),
            None => log_blocks(page_bytes, block_bytes, demand),
        };
        let spare = demand.sessions.checked_mul(BLOCKS_PER_SESSION);
        blocks
            .zip(spare)
            .and_then(|(blocks, spare)| blocks.checked_add(spare)?.checked_mul(block_bytes))
            .ok_or_else(|| {
                let what = "no pool has room for so many records, or no page for one of them";
                Error::InvalidOptions(what.to_owned())
            })
    }

    /// The fixed sizes, made small enough to be added: what is larger than the largest page fits none.
    fn bounded_sizes(&self) -> Option<(u32, u32)> {
        let bounded = |bytes: u32| bytes.min(Geometry::PAGE_BYTES_MAX);
        self.sizes.map(|(key_bytes, value_bytes)| (bounded(key_bytes), bounded(value_bytes)))
    }

    fn slotted_blocks(
        &self,
        geometry: &Geometry,
        (key_bytes, value_bytes): (u32, u32),
        demand: &Demand,
    ) -> Option<u64> {
        let layout = self.layout.unwrap_or_default();
        let page = PageLayout::new(geometry, layout, key_bytes, value_bytes)?;
        let per_block = u64::from(page.slots) * u64::from(geometry.pages_per_block);
        let retired = demand.rewritten.checked_mul(REWRITTEN_SPACE_PERCENT)? / 100;
        Some(demand.live.checked_add(retired)?.div_ceil(per_block))
    }
}

/// Blocks for the records of a log. At the end of each page, or of a block that is one page, half a record
/// is lost.
fn log_blocks(page_bytes: u64, block_bytes: u64, demand: &Demand) -> Option<u64> {
    let span = LogPages::record_bytes(demand.key_bytes as usize, demand.value_bytes as usize);
    let room = if span < page_bytes { page_bytes } else { block_bytes };
    let record_bytes = match (room - span.min(room) / 2) / span {
        0 if span > room => span + span / CHUNK_PART,
        0 => room,
        records => room / records,
    };
    Some(demand.written.checked_mul(record_bytes)?.div_ceil(block_bytes))
}
