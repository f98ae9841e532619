//! [`HikvOptions`]: what of a store's options is HiKV's.

#[cfg(feature = "baselines")]
mod baselines;

#[cfg(feature = "baselines")]
pub use baselines::Consistency;

use crate::types::layout::RecordLayout;

/// What of a store's options is HiKV's. See [`Options::hikv`](crate::Options::hikv).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct HikvOptions {
    pub(in crate::engine) layout: Option<RecordLayout>,
    #[cfg(feature = "baselines")]
    pub(in crate::engine) consistency: Option<Consistency>,
    #[cfg(feature = "baselines")]
    pub(in crate::engine) log_area_bytes: Option<u32>,
    pub(in crate::engine) partitions: Option<u32>,
    pub(in crate::engine) index_segment_bytes: Option<u32>,
    pub(in crate::engine) heap_run_bytes: Option<u32>,
    pub(in crate::engine) walked_first: Option<u64>,
}

impl HikvOptions {
    /// Partitions of the index: a power of two from 1 to 1024. Default 16. More of them take more space in a small
    /// store: each has at least one segment once it has a key. Fixed at creation.
    pub fn partitions(mut self, partitions: u32) -> Self {
        self.partitions = Some(partitions);
        self
    }

    /// Bytes of a segment of the index, rounded up to whole blocks: 256 to 1 MiB. Default 16 KiB, some thousand entries.
    /// Larger ones take longer to split, and writers of the same segment wait meanwhile. Fixed at creation.
    pub fn index_segment_bytes(mut self, bytes: u32) -> Self {
        self.index_segment_bytes = Some(bytes);
        self
    }

    /// Bytes of a run of items, rounded up to whole blocks. Default 256 KiB, at most a quarter of a segment of the pool.
    /// Fixed at creation.
    pub fn heap_run_bytes(mut self, bytes: u32) -> Self {
        self.heap_run_bytes = Some(bytes);
        self
    }
}
