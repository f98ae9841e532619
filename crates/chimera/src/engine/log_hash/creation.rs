//! What a new store is, by the options; what an existing one is, by its superblock.
//!
//! The engine's area of the superblock is one word: blocks of a segment of the index, and blocks of a run of the log.

use crate::engine::shared::creation::{agree, plan_of_runs, same};
use crate::engine::{Capabilities, LogHashOptions, Options, Plan};
use crate::index::persistent::extendible_hash;
use crate::pool::{AREA_AT, BlockMap, PoolGeometry, Superblock};
use crate::types::error::{Error, Result};
use crate::types::stream::StreamKind;

/// What is fixed when a store is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(super) index_segment_blocks: u32,
    pub(super) log_run_blocks: u32,
}

pub(super) const CAPABILITIES: Capabilities =
    Capabilities { any_size: true, ordered: true, ..Capabilities::SHARED };

const SEGMENT_BYTES: u64 = 1 << 30;
const LOG_RUN_BYTES: u32 = 256 << 10;

/// See [`EngineType::plan`](crate::engine::EngineType::plan).
pub(super) fn plan(options: &Options) -> Result<Plan> {
    let segment_bytes = options.segment_bytes.unwrap_or(SEGMENT_BYTES);
    let plan = plan_of_runs(&options.clone().segment_bytes(segment_bytes))?;
    let LogHashOptions { index_segment_bytes, log_run_bytes, .. } = options.log_hash;
    let block_bytes = plan.geometry.block_bytes;
    let blocks = blocks_per_segment(&plan.geometry);
    let index_segment_bytes = index_segment_bytes.unwrap_or(extendible_hash::SEGMENT_BYTES);
    let log_run_blocks = log_run_bytes.unwrap_or(LOG_RUN_BYTES).div_ceil(block_bytes);
    let parameters = Parameters {
        index_segment_blocks: index_segment_bytes.div_ceil(block_bytes),
        log_run_blocks: log_run_blocks.min(blocks / 4).max(1),
    };
    if !is_possible(parameters, &plan.geometry) {
        let text = "there is no such index: a segment of the index has 256 bytes to 1 MiB and lies in a segment of the pool";
        return Err(Error::InvalidOptions(text.to_owned()));
    }
    let is_segment_fixed = options.segment_bytes.is_some();
    Ok(Plan { area: vec![encode(parameters)], is_segment_fixed, ..plan })
}

/// See [`EngineType::parameters`](crate::engine::EngineType::parameters).
pub(super) fn parameters(superblock: &Superblock, options: &Options) -> Result<Parameters> {
    let geometry = &superblock.geometry;
    let found = match superblock.area[..] {
        [word] => Some(decode(word)).filter(|found| is_possible(*found, geometry)),
        _ => None,
    };
    let invalid = || Error::corrupted("the superblock's area of the engine is not valid", AREA_AT);
    let found = found.ok_or_else(invalid)?;
    agree(superblock, StreamKind { key_bytes: 0, value_bytes: 0 }, options)?;
    let wanted = options.log_hash.index_segment_bytes;
    let wanted = wanted.map(|bytes| bytes.div_ceil(geometry.block_bytes));
    let wanted = wanted.unwrap_or(found.index_segment_blocks).to_string();
    same("blocks in an index segment:", found.index_segment_blocks.to_string(), wanted)?;
    Ok(found)
}

fn blocks_per_segment(geometry: &PoolGeometry) -> u32 {
    let blocks = BlockMap::new(0, geometry).map_or(0, |map| map.blocks_per_segment);
    blocks.min(u64::from(u32::MAX)) as u32
}

/// Whether there can be a store like this.
fn is_possible(parameters: Parameters, geometry: &PoolGeometry) -> bool {
    let Parameters { index_segment_blocks, log_run_blocks } = parameters;
    let blocks = blocks_per_segment(geometry);
    let bytes = u64::from(index_segment_blocks) * u64::from(geometry.block_bytes);
    let possible = extendible_hash::SEGMENT_BYTES_MIN..=extendible_hash::SEGMENT_BYTES_MAX;
    possible.contains(&bytes)
        && index_segment_blocks <= blocks
        && (1..=blocks).contains(&log_run_blocks)
        // A run of one block has room for a header.
        && geometry.block_bytes >= 256
}

fn encode(parameters: Parameters) -> u64 {
    u64::from(parameters.index_segment_blocks) | u64::from(parameters.log_run_blocks) << 32
}

fn decode(word: u64) -> Parameters {
    Parameters { index_segment_blocks: word as u32, log_run_blocks: (word >> 32) as u32 }
}
