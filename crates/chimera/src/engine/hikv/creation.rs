//! What a new store is, by the options; what an existing one is, by its superblock.
//!
//! The engine's area of the superblock is three words: bits of a hash that choose a partition, and blocks of a segment of
//! the index; blocks of a run of items, and bytes of an area of the log; the layout.

use chimera_pmem::Site;

use super::steps;
use crate::engine::contract::demand::{self, Demand};
use crate::engine::shared::creation::{agree, plan_of_runs, same};
use crate::engine::{Capabilities, EngineType, Options, Plan};
#[cfg(feature = "baselines")]
use crate::engine::{Consistency, HikvOptions};
use crate::index::persistent::buckets;
use crate::index::persistent::partitioned_hash::{self, HashShape};
use crate::pool::{AREA_AT, BlockMap, Superblock, runs};
use crate::records::limits::Limits;
#[cfg(feature = "baselines")]
use crate::records::redo_log;
use crate::records::{item_heap, key_dump};
use crate::types::error::{Error, Result};
use crate::types::layout::RecordLayout;
use crate::types::stream::StreamKind;

/// What is fixed when a store is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(super) hash: HashShape,
    pub(super) heap_run_blocks: u32,
    pub(super) layout: RecordLayout,
    /// Of a store with a write-ahead log.
    pub(super) log_area_bytes: Option<u32>,
}

impl Parameters {
    /// The longest key and value, where the heap takes up to `heap`.
    #[cfg(not(feature = "baselines"))]
    #[expect(clippy::unused_self, reason = "with the feature the log has limits, too")]
    pub(super) fn limits(&self, heap: Limits) -> Limits {
        heap
    }

    /// The longest key and value, where the heap takes up to `heap`.
    #[cfg(feature = "baselines")]
    pub(super) fn limits(&self, heap: Limits) -> Limits {
        self.log_area_bytes.map_or(heap, |bytes| redo_log::limits(heap, bytes))
    }

    /// Options for a log like this one.
    #[cfg(feature = "baselines")]
    pub(super) fn log_alike(&self, options: HikvOptions) -> HikvOptions {
        let options = options.consistency(self.consistency());
        match self.log_area_bytes {
            Some(bytes) => options.log_area_bytes(bytes),
            None => options,
        }
    }

    #[cfg(feature = "baselines")]
    pub(super) fn consistency(&self) -> Consistency {
        match self.log_area_bytes {
            Some(_) => Consistency::WriteAheadLog,
            None => Consistency::OrderedWrite,
        }
    }
}

/// What is known of the engine before a store is open.
pub(crate) struct Type;

const SEGMENT_BYTES: u64 = 1 << 30;
const PARTITIONS: u32 = 16;
const INDEX_SEGMENT_BYTES: u32 = 16 << 10;
const HEAP_RUN_BYTES: u32 = 256 << 10;
#[cfg(feature = "baselines")]
const LOG_AREA_BYTES: u32 = 16 << 10;
/// 16 for an entry: of a segment that was split a third is used.
const INDEX_BYTES_PER_RECORD: u64 = 48;

impl EngineType for Type {
    type Parameters = Parameters;

    const CAPABILITIES: Capabilities =
        Capabilities { any_size: true, ordered: true, ..Capabilities::SHARED };

    fn plan(options: &Options) -> Result<Plan> {
        let segment_bytes = options.segment_bytes.unwrap_or(SEGMENT_BYTES);
        let plan = plan_of_runs(&options.clone().segment_bytes(segment_bytes))?;
        let block_bytes = plan.geometry.block_bytes;
        let map = BlockMap::new(0, &plan.geometry);
        let blocks = map.map_or(0, |map| map.blocks_per_segment).min(u64::from(u32::MAX)) as u32;
        let hikv = &options.hikv;
        let partitions = hikv.partitions.unwrap_or(PARTITIONS);
        let in_blocks = |bytes: u32| bytes.div_ceil(block_bytes);
        let heap_blocks = in_blocks(hikv.heap_run_bytes.unwrap_or(HEAP_RUN_BYTES));
        let index_bytes = hikv.index_segment_bytes.unwrap_or(INDEX_SEGMENT_BYTES);
        let parameters = Parameters {
            hash: HashShape {
                partition_bits: partitions.trailing_zeros(),
                segment_blocks: in_blocks(index_bytes),
            },
            heap_run_blocks: heap_blocks.min(blocks / 4).max(1),
            layout: hikv.layout.unwrap_or_default(),
            #[cfg(feature = "baselines")]
            log_area_bytes: log_area_bytes(hikv),
            #[cfg(not(feature = "baselines"))]
            log_area_bytes: None,
        };
        let is_power = partitions.is_power_of_two();
        if !is_power || !is_possible(&parameters, u64::from(block_bytes), blocks) {
            let text = "there is no such index: partitions are a power of two up to 1024, a segment of the index has \
                        256 bytes to 1 MiB and lies in a segment of the pool";
            let log = if cfg!(feature = "baselines") {
                ", and so does a log with 128 to 65536 bytes for each partition"
            } else {
                ""
            };
            return Err(Error::InvalidOptions(format!("{text}{log}")));
        }
        let is_segment_fixed = options.segment_bytes.is_some();
        Ok(Plan { area: encode(&parameters), is_segment_fixed, ..plan })
    }

    fn parameters(superblock: &Superblock, options: &Options) -> Result<Parameters> {
        let geometry = superblock.geometry;
        let blocks = BlockMap::new(0, &geometry).map_or(0, |map| map.blocks_per_segment);
        let blocks = blocks.min(u64::from(u32::MAX)) as u32;
        let parameters = decode(superblock)?
            .filter(|found| is_possible(found, u64::from(geometry.block_bytes), blocks))
            .ok_or_else(|| {
                Error::corrupted("the superblock's area of HiKV is not valid", AREA_AT)
            })?;
        #[cfg(not(feature = "baselines"))]
        if parameters.log_area_bytes.is_some() {
            return Err(Error::NeedsFeature { what: "a write-ahead log", feature: "baselines" });
        }
        agree(superblock, StreamKind { key_bytes: 0, value_bytes: 0 }, options)?;
        agree_own(&parameters, options, geometry.block_bytes)?;
        Ok(parameters)
    }

    /// Items, in whole units; half-full segments of the index; and what is half used.
    fn pool_bytes(options: &Options, demand: &Demand) -> Result<u64> {
        let plan = Self::plan(options)?;
        let layout = options.hikv.layout.unwrap_or_default();
        let item_bytes = item_heap::item_bytes(layout, demand.key_bytes, demand.value_bytes);
        let record_bytes = item_bytes + item_bytes / 4 + INDEX_BYTES_PER_RECORD;
        let partitions = u64::from(options.hikv.partitions.unwrap_or(PARTITIONS));
        let index_bytes = options.hikv.index_segment_bytes.unwrap_or(INDEX_SEGMENT_BYTES);
        let segment_bytes = u64::from(index_bytes.max(plan.geometry.block_bytes));
        let live = demand.live.saturating_mul(record_bytes);
        let least = live.saturating_add(2 * partitions * segment_bytes);
        Ok(least.max(demand::log_bytes(demand)))
    }

    fn sites() -> Vec<Site> {
        let lists = [
            partitioned_hash::sites::ALL,
            buckets::sites::ALL,
            buckets::steps::ALL,
            item_heap::sites::ALL,
            item_heap::steps::ALL,
            #[cfg(feature = "baselines")]
            redo_log::sites::ALL,
            #[cfg(feature = "baselines")]
            redo_log::steps::ALL,
            #[cfg(feature = "baselines")]
            steps::of_log::ALL,
            steps::ALL,
            key_dump::sites::ALL,
            runs::sites::ALL,
        ];
        lists.concat()
    }
}

/// Bytes of an area of the log, if there is to be one.
#[cfg(feature = "baselines")]
fn log_area_bytes(options: &HikvOptions) -> Option<u32> {
    let bytes = options.log_area_bytes.unwrap_or(LOG_AREA_BYTES);
    let has_log = options.consistency == Some(Consistency::WriteAheadLog);
    has_log.then(|| whole_lines(bytes))
}

/// Bytes of whole cache lines. Too many to be rounded up are too many.
#[cfg(feature = "baselines")]
fn whole_lines(bytes: u32) -> u32 {
    bytes.checked_next_multiple_of(chimera_pmem::CACHE_LINE as u32).unwrap_or(u32::MAX)
}

/// Whether there can be a log like this in segments of so many blocks.
#[cfg(feature = "baselines")]
fn is_log_possible(parameters: &Parameters, block_bytes: u64, blocks: u32) -> bool {
    let Parameters { hash, log_area_bytes, .. } = *parameters;
    log_area_bytes.is_none_or(|area| {
        let run_blocks = || redo_log::run_blocks(1 << hash.partition_bits, area, block_bytes);
        (redo_log::AREA_BYTES_MIN..=redo_log::AREA_BYTES_MAX).contains(&area)
            && whole_lines(area) == area
            && hash.partition_bits <= partitioned_hash::PARTITION_BITS_MAX
            && run_blocks() <= blocks.into()
    })
}

/// Whether there can be a store like this in segments of so many blocks.
fn is_possible(parameters: &Parameters, block_bytes: u64, blocks: u32) -> bool {
    let Parameters { hash, heap_run_blocks, .. } = *parameters;
    #[cfg(feature = "baselines")]
    let is_log_possible = is_log_possible(parameters, block_bytes, blocks);
    // That there is one is said before anything else of it.
    #[cfg(not(feature = "baselines"))]
    let is_log_possible = true;
    let bytes = u64::from(hash.segment_blocks) * block_bytes;
    let index = partitioned_hash::SEGMENT_BYTES_MIN..=partitioned_hash::SEGMENT_BYTES_MAX;
    hash.partition_bits <= partitioned_hash::PARTITION_BITS_MAX
        && index.contains(&bytes)
        && hash.segment_blocks <= blocks
        // A run of one block has room for an item.
        && block_bytes >= 128
        && (1..=blocks).contains(&heap_run_blocks)
        && is_log_possible
}

fn encode(parameters: &Parameters) -> Vec<u64> {
    let Parameters { hash, heap_run_blocks, layout, log_area_bytes } = parameters;
    vec![
        u64::from(hash.partition_bits) | u64::from(hash.segment_blocks) << 32,
        u64::from(*heap_run_blocks) | u64::from(log_area_bytes.unwrap_or(0)) << 32,
        u64::from(layout.code()),
    ]
}

fn decode(superblock: &Superblock) -> Result<Option<Parameters>> {
    let [hash, heap, layout] = superblock.area[..] else { return Ok(None) };
    let hash = HashShape { partition_bits: hash as u32, segment_blocks: (hash >> 32) as u32 };
    let log_area_bytes = Some((heap >> 32) as u32).filter(|bytes| *bytes > 0);
    let layout = RecordLayout::from_code(layout, AREA_AT)?;
    Ok(Some(Parameters { hash, heap_run_blocks: heap as u32, layout, log_area_bytes }))
}

/// Checks that a store is as the options say, where they say anything.
fn agree_own(parameters: &Parameters, options: &Options, block_bytes: u32) -> Result<()> {
    let (hikv, found) = (&options.hikv, parameters);
    if let Some(wanted) = hikv.layout {
        same("the record layout", format!("{:?}", found.layout), format!("{wanted:?}"))?;
    }
    #[cfg(feature = "baselines")]
    agree_log(found, hikv)?;
    if let Some(wanted) = hikv.partitions {
        let partitions = 1_u32 << found.hash.partition_bits;
        same("a number of partitions of", partitions.to_string(), wanted.to_string())?;
    }
    if let Some(wanted) = hikv.index_segment_bytes {
        let (found, wanted) = (found.hash.segment_blocks, wanted.div_ceil(block_bytes));
        same("blocks in an index segment:", found.to_string(), wanted.to_string())?;
    }
    Ok(())
}

/// Checks that a store's log is as the options say, where they say anything.
#[cfg(feature = "baselines")]
fn agree_log(found: &Parameters, hikv: &HikvOptions) -> Result<()> {
    if let Some(wanted) = hikv.consistency {
        same("a consistency of", found.consistency().to_string(), wanted.to_string())?;
    }
    if let (Some(found), Some(wanted)) = (found.log_area_bytes, hikv.log_area_bytes) {
        let wanted = whole_lines(wanted);
        same("bytes of a log for each partition:", found.to_string(), wanted.to_string())?;
    }
    Ok(())
}
