//! What a new store is, by the options; what an existing one is, by its superblock.
//!
//! The engine's area of the superblock is two words: shards, and slots of a MemTable; levels, ratio, and blocks of a run of
//! the log.

use chimera_pmem::{CACHE_LINE, Site};

use super::shape::{LAST_LOAD_PERCENT, LOG_RUN_BYTES, SEGMENT_BYTES, SLOT_BYTES, Shape};
use crate::engine::contract::demand::{self, Demand};
use crate::engine::options::variants::UpperIndex;
use crate::engine::shared::creation::{agree, plan_of_runs, same};
use crate::engine::{Capabilities, ChameleonOptions, EngineType, Options, Plan};
use crate::index::persistent::shard_manifest;
use crate::index::probing_table::{self, TABLE_ALIGN};
use crate::pool::{AREA_AT, BlockMap, Superblock, runs};
use crate::records::storage_log;
use crate::types::error::{Error, Result};
use crate::types::stream::StreamKind;

/// What is fixed when a store is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(super) shape: Shape,
    pub(super) log_run_blocks: u32,
}

/// What is known of the engine before a store is open.
pub(crate) struct Type;

impl EngineType for Type {
    type Parameters = Parameters;

    const CAPABILITIES: Capabilities =
        Capabilities { any_size: true, ordered: true, ..Capabilities::SHARED };

    fn plan(options: &Options) -> Result<Plan> {
        check_modes(options, false)?;
        let segment_bytes = options.segment_bytes.unwrap_or(SEGMENT_BYTES);
        let plan = plan_of_runs(&options.clone().segment_bytes(segment_bytes))?;
        let block_bytes = plan.geometry.block_bytes;
        let run_bytes = options.chameleon.log_run_bytes.unwrap_or(LOG_RUN_BYTES);
        let blocks = blocks_per_segment(&plan.geometry);
        let log_run_blocks = run_bytes.div_ceil(block_bytes).min(blocks / 4).max(1);
        let parameters = Parameters { shape: Shape::of(&options.chameleon), log_run_blocks };
        if !is_possible(&parameters, u64::from(block_bytes), blocks) {
            let text = "there is no such index: shards are a power of two up to 65536, a MemTable is one of 256 bytes to \
                        1 MiB, levels are 2 to 7, the ratio is a power of two from 2 to 16, and a level and the manifest \
                        lie in a segment of the pool";
            return Err(Error::InvalidOptions(text.to_owned()));
        }
        let is_segment_fixed = options.segment_bytes.is_some();
        Ok(Plan { area: encode(&parameters), is_segment_fixed, ..plan })
    }

    fn parameters(superblock: &Superblock, options: &Options) -> Result<Parameters> {
        check_modes(options, superblock.is_ordered)?;
        let geometry = superblock.geometry;
        let blocks = blocks_per_segment(&geometry);
        let parameters = decode(&superblock.area)
            .filter(|found| is_possible(found, u64::from(geometry.block_bytes), blocks))
            .ok_or_else(|| {
                Error::corrupted("the superblock's area of ChameleonDB is not valid", AREA_AT)
            })?;
        agree(superblock, StreamKind { key_bytes: 0, value_bytes: 0 }, options)?;
        agree_own(&parameters, &options.chameleon)?;
        Ok(parameters)
    }

    /// The log; the levels above the last one of each shard, and last tables with what is reserved for them.
    fn pool_bytes(options: &Options, demand: &Demand) -> Result<u64> {
        let plan = Self::plan(options)?;
        let (shape, block_bytes) = (Shape::of(&options.chameleon), plan.geometry.block_bytes);
        let whole = |bytes: u64| {
            let blocks = bytes.saturating_add(CACHE_LINE).div_ceil(block_bytes.into());
            blocks.saturating_mul(block_bytes.into())
        };
        let levels = 0..shape.upper_levels();
        let upper = levels.map(|level| whole(shape.level_bytes(level))).sum::<u64>();
        let shards = u64::from(shape.shards());
        // Every key, and all that a bypass index may add: old and new, until the old one is freed.
        let keys = demand.live.div_ceil(shards).saturating_add(shape.bypass_slots().into());
        let slot_bytes = u64::from(SLOT_BYTES) * 100 / u64::from(LAST_LOAD_PERCENT) + 1;
        let last = whole(keys.saturating_mul(slot_bytes).saturating_add(TABLE_ALIGN * 2));
        let of_shard = upper.saturating_add(last.saturating_mul(2));
        let index = shards.saturating_mul(of_shard).saturating_add(last.saturating_mul(16));
        let manifest = whole(shard_manifest::run_bytes(shape.shards()));
        Ok(demand::log_bytes(demand).saturating_add(index).saturating_add(2 * manifest))
    }

    fn sites() -> Vec<Site> {
        let lists = [
            storage_log::sites::ALL,
            storage_log::steps::ALL,
            probing_table::steps::ALL,
            shard_manifest::sites::ALL,
            shard_manifest::steps::ALL,
            super::sites::ALL,
            super::steps::ALL,
            runs::sites::ALL,
        ];
        lists.concat()
    }
}

/// Checks that MemTables are not to go to bypass indexes that are not there, and that a store in order knows new keys.
fn check_modes(options: &Options, is_ordered: bool) -> Result<()> {
    let own = &options.chameleon;
    let invalid = |text: &str| Err(Error::InvalidOptions(text.to_owned()));
    let has_modes = own.write_intensive || own.get_protect.is_some();
    if has_modes && own.upper_index != UpperIndex::Bypass {
        return invalid("the Write-Intensive and the Get-Protect Mode need bypass indexes");
    }
    if own.blind_puts && options.order_kept.applies(is_ordered) {
        return invalid(
            "a store that keeps keys in their order has to know new ones: leave out blind_puts",
        );
    }
    Ok(())
}

fn blocks_per_segment(geometry: &crate::pool::PoolGeometry) -> u32 {
    let blocks = BlockMap::new(0, geometry).map_or(0, |map| map.blocks_per_segment);
    blocks.min(u64::from(u32::MAX)) as u32
}

/// Whether there can be a store like this in segments of so many blocks.
fn is_possible(parameters: &Parameters, block_bytes: u64, blocks: u32) -> bool {
    let Parameters { shape, log_run_blocks } = parameters;
    let fits = |bytes: u64| bytes.div_ceil(block_bytes) <= u64::from(blocks);
    shape.is_possible()
        && (1..=blocks).contains(log_run_blocks)
        && (0..shape.upper_levels()).all(|level| fits(shape.level_bytes(level) + 64))
        && fits(shard_manifest::run_bytes(shape.shards()) + 64)
}

fn encode(parameters: &Parameters) -> Vec<u64> {
    let Parameters { shape, log_run_blocks } = parameters;
    vec![
        u64::from(shape.shard_bits) | u64::from(shape.memtable_slots) << 32,
        u64::from(shape.levels) | u64::from(shape.ratio) << 16 | u64::from(*log_run_blocks) << 32,
    ]
}

fn decode(area: &[u64]) -> Option<Parameters> {
    let [index, rest] = area[..] else { return None };
    let shape = Shape {
        shard_bits: index as u32,
        memtable_slots: (index >> 32) as u32,
        levels: rest as u32 & 0xffff,
        ratio: rest as u32 >> 16,
    };
    Some(Parameters { shape, log_run_blocks: (rest >> 32) as u32 })
}

/// Checks that a store is as the options say, where they say anything.
fn agree_own(found: &Parameters, wanted: &ChameleonOptions) -> Result<()> {
    let shape = &found.shape;
    let memtable_bytes = shape.memtable_slots * SLOT_BYTES;
    let pairs = [
        ("a number of shards of", shape.shards(), wanted.shards),
        ("bytes of a MemTable:", memtable_bytes, wanted.memtable_bytes),
        ("a number of levels of", shape.levels, wanted.levels),
        ("a ratio between levels of", shape.ratio, wanted.ratio),
    ];
    for (what, found, wanted) in pairs {
        let wanted = wanted.unwrap_or(found);
        same(what, found.to_string(), wanted.to_string())?;
    }
    Ok(())
}
