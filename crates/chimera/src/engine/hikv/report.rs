//! What HiKV says of itself.

use crate::RunCounts;
#[cfg(feature = "baselines")]
use crate::engine::Consistency;
#[cfg(feature = "baselines")]
use crate::types::layout::RecordLayout;

/// What HiKV says of its store.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct HikvStats {
    /// What precedes each item.
    #[cfg(feature = "baselines")]
    pub layout: RecordLayout,
    /// What a change is made of.
    #[cfg(feature = "baselines")]
    pub consistency: Consistency,
    /// Partitions of the index.
    pub partitions: u32,
    /// Segments of the index.
    pub index_segments: u64,
    /// Entries that they have room for.
    pub index_slots: u64,
    /// Runs of items.
    pub heap_runs: u64,
    /// Bytes of these runs.
    pub heap_bytes: u64,
    /// Bytes of items; while it is not known which space is free, of those that are known.
    pub item_bytes: u64,
    /// Whether it is known which space is free. Until then new items go to fresh space. In a store that is open for reading
    /// only nobody needs it: it is found out when [`Db::inspect`](crate::Db::inspect) or [`Db::check`](crate::Db::check)
    /// asks, or when everything is verified at open.
    pub space_is_rebuilt: bool,
    /// Segments of the index that were walked to find out.
    pub space_segments_walked: u64,
    /// Damage that was found meanwhile, since the store was opened. Nothing in a damaged record's run is used again.
    pub space_damages: u64,
}

/// What a store of HiKV is made of.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct HikvInspect {
    /// As [`Stats`](crate::Stats) has them.
    pub sizes: HikvStats,
    /// Entries of the index over slots.
    pub index_load: f64,
    /// log2 of the entries of the index's directory in DRAM.
    pub directory_depth: u32,
    /// Bytes of items over bytes of runs.
    pub heap_load: f64,
    /// Runs of blocks.
    pub runs: RunCounts,
}
