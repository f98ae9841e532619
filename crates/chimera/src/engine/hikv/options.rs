//! [`HikvOptions`]: what of a store's options is HiKV's.

use crate::types::layout::RecordLayout;

/// What of a store's options is HiKV's. See [`Options::hikv`](crate::Options::hikv).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct HikvOptions {
    pub(super) layout: Option<RecordLayout>,
    pub(super) partitions: Option<u32>,
    pub(super) index_segment_bytes: Option<u32>,
    pub(super) heap_run_bytes: Option<u32>,
}

impl HikvOptions {
    /// What precedes each item. Default [`RecordLayout::Checked`]: lengths, checksums and a version, 24 bytes.
    /// [`RecordLayout::Published`]: lengths alone, 8 bytes, as in the paper; damage of keys and values goes unnoticed, keys
    /// have at most 1023 bytes and values less than 4 MiB. Fixed at creation.
    pub fn layout(mut self, layout: RecordLayout) -> Self {
        self.layout = Some(layout);
        self
    }

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
