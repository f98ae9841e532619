//! How large a pool must be for a [`Demand`].
//!
//! The answer is an estimate from above. Records of a fixed size are refilled into blocks that are partly
//! free, so the live records decide. Records of any size are appended, and a block is filled again once
//! reclamation has emptied it. Reclamation may be slower than writers, so all written records decide.

use crate::engine::Demand;
use crate::records::lengths::span;
use crate::records::vpage::{PageLayout, PageParameters};
use crate::types::error::{Error, Result};

/// Blocks that a session may hold while others need room: one or two that it fills, and what is left in
/// those that it has left.
const BLOCKS_PER_SESSION: u64 = 4;
/// Of records that are overwritten in random order, a session leaves so many percent of the space of
/// retired records unused: a block is filled again once a quarter of it is free.
const REWRITTEN_SPACE_PERCENT: u64 = 45;
/// Of a value that is spilled to chunks, one part in so many is the headers of chunks and the ends of blocks.
const CHUNK_PART: u64 = 8;

/// See [`Options::pool_bytes_for`](crate::Options::pool_bytes_for).
pub(super) fn pool_bytes(parameters: &PageParameters, demand: &Demand) -> Result<u64> {
    let page_bytes = u64::from(parameters.geometry.page_bytes);
    let block_bytes = page_bytes * u64::from(parameters.geometry.pages_per_block);
    let blocks = if parameters.is_variable() {
        log_blocks(page_bytes, block_bytes, demand)
    } else {
        slotted_blocks(parameters, demand)
    };
    let spare = demand.sessions.checked_mul(BLOCKS_PER_SESSION);
    blocks
        .zip(spare)
        .and_then(|(blocks, spare)| blocks.checked_add(spare)?.checked_mul(block_bytes))
        .ok_or_else(|| Error::InvalidOptions("no pool has room for so many records".to_owned()))
}

fn slotted_blocks(parameters: &PageParameters, demand: &Demand) -> Option<u64> {
    let PageParameters { geometry, layout, key_bytes, value_bytes } = parameters;
    let page = PageLayout::new(geometry, *layout, *key_bytes, *value_bytes)?;
    let per_block = u64::from(page.slots) * u64::from(geometry.pages_per_block);
    let retired = demand.rewritten.checked_mul(REWRITTEN_SPACE_PERCENT)? / 100;
    Some(demand.live.checked_add(retired)?.div_ceil(per_block))
}

/// Blocks for the records of a log. At the end of each page, or of a block that is one page, half a record
/// is lost.
fn log_blocks(page_bytes: u64, block_bytes: u64, demand: &Demand) -> Option<u64> {
    let span = span(demand.key_bytes as usize, demand.value_bytes as usize);
    let room = if span < page_bytes { page_bytes } else { block_bytes };
    let record_bytes = match (room - span.min(room) / 2) / span {
        0 if span > room => span + span / CHUNK_PART,
        0 => room,
        records => room / records,
    };
    Some(demand.written.checked_mul(record_bytes)?.div_ceil(block_bytes))
}
