//! [`HikvOptions`]: what of a store's options is HiKV's.

#[cfg(feature = "baselines")]
use {serde::Serialize, std::fmt, std::str::FromStr};

use crate::types::layout::RecordLayout;

/// What keeps items and index consistent when a change is cut off. Only with the feature `baselines`.
#[cfg(feature = "baselines")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Consistency {
    /// The order of writes: the item, then the entry that leads to it (HiKV, section 3.4). Two fences for a put or an
    /// update, one for a delete.
    #[default]
    OrderedWrite,
    /// A log to which each change is written before it is made, the variant that the paper compares with (section 4.5):
    /// three fences for a put or an update, two for a delete, and keys and values are written twice. Loses nothing that
    /// ordered writes keep, and keeps nothing that they lose: for comparison.
    WriteAheadLog,
}

#[cfg(feature = "baselines")]
impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OrderedWrite => "ordered-write",
            Self::WriteAheadLog => "write-ahead-log",
        })
    }
}

#[cfg(feature = "baselines")]
impl FromStr for Consistency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::OrderedWrite, Self::WriteAheadLog];
        let named = all.into_iter().find(|choice| choice.to_string() == text);
        named.ok_or_else(|| format!("unknown consistency `{text}`; ordered-write, write-ahead-log"))
    }
}

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
    /// What precedes each item. Default [`RecordLayout::Checked`]: lengths, checksums and a version, 24 bytes.
    /// [`RecordLayout::Published`]: lengths alone, 8 bytes, as in the paper; damage of keys and values goes unnoticed, keys
    /// have at most 1023 bytes and values less than 4 MiB. Fixed at creation.
    pub fn layout(mut self, layout: RecordLayout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// What keeps items and index consistent when a change is cut off. Default [`Consistency::OrderedWrite`]. Fixed at
    /// creation, because a log takes room, and limits keys and values.
    #[cfg(feature = "baselines")]
    pub fn consistency(mut self, consistency: Consistency) -> Self {
        self.consistency = Some(consistency);
        self
    }

    /// Bytes of the log for each partition of a store with a [write-ahead log](Consistency::WriteAheadLog), rounded up to 64:
    /// 128 to 65,536. Default 16 KiB. A record lies in one of them, so keys have at most a quarter of these bytes, and values
    /// what is left beside the longest key and 24 bytes. Fixed at creation.
    #[cfg(feature = "baselines")]
    pub fn log_area_bytes(mut self, bytes: u32) -> Self {
        self.log_area_bytes = Some(bytes);
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

    /// Entries of the index that are walked, to find out what is free, before the first fresh run of items is taken.
    #[doc(hidden)]
    pub fn walked_first(mut self, entries: u64) -> Self {
        self.walked_first = Some(entries);
        self
    }
}
