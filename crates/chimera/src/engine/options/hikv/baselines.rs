//! Options that HiKV's paper needs, and a knob of tests.

use std::fmt;
use std::str::FromStr;

use super::HikvOptions;
use crate::types::layout::RecordLayout;

/// What keeps items and index consistent when a change is cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
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

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OrderedWrite => "ordered-write",
            Self::WriteAheadLog => "write-ahead-log",
        })
    }
}

impl FromStr for Consistency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::OrderedWrite, Self::WriteAheadLog];
        let named = all.into_iter().find(|choice| choice.to_string() == text);
        named.ok_or_else(|| format!("unknown consistency `{text}`; ordered-write, write-ahead-log"))
    }
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
    pub fn consistency(mut self, consistency: Consistency) -> Self {
        self.consistency = Some(consistency);
        self
    }

    /// Bytes of the log for each partition of a store with a [write-ahead log](Consistency::WriteAheadLog), rounded up to 64:
    /// 128 to 65,536. Default 16 KiB. A record lies in one of them, so keys have at most a quarter of these bytes, and values
    /// what is left beside the longest key and 24 bytes. Fixed at creation.
    pub fn log_area_bytes(mut self, bytes: u32) -> Self {
        self.log_area_bytes = Some(bytes);
        self
    }

    /// Entries of the index that are walked, to find out what is free, before the first fresh run of items is taken. For tests.
    pub fn walked_first(mut self, entries: u64) -> Self {
        self.walked_first = Some(entries);
        self
    }
}
