//! What Viper says of itself.

#[cfg(feature = "baselines")]
use crate::types::layout::RecordLayout;

/// What Viper says of its store.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ViperStats {
    /// What precedes each record.
    #[cfg(feature = "baselines")]
    pub layout: RecordLayout,
    /// Bytes of a VPage.
    pub page_bytes: u32,
    /// VPages of a VBlock.
    pub pages_per_block: u32,
    /// Records one VPage holds; 0 where they have any size.
    pub records_per_page: u32,
    /// Records one VBlock holds; 0 where they have any size.
    pub records_per_block: u32,
    /// Segments of the index: tells a counting program which inserts split one.
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub index_segments: u64,
}

/// What a store of Viper is made of.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ViperInspect {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Blocks by kind.
    pub blocks: BlockCounts,
    /// Blocks that hold records, or did, by how much of them live records take.
    pub fill: FillHistogram,
    /// Pages of blocks that hold records, or did.
    pub pages: PageCounts,
    /// Where the bytes of blocks are.
    pub bytes: ByteCounts,
    /// The index.
    pub index: IndexReport,
    /// Live records.
    pub records: u64,
}

/// Numbers of blocks. Every used block is of one kind, and those of records are in one state.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct BlockCounts {
    /// Handed out so far: the sum of the kinds.
    pub used: u64,
    /// Kind: pages of records.
    pub paged: u64,
    /// Kind: the block is one page, for records larger than a page and parts of values.
    pub large: u64,
    /// Kind: unknown, because the block's flags are damaged.
    pub damaged: u64,
    /// State: a session writes new records into it.
    pub owned: u64,
    /// State: waits to be filled by the next session that needs a block.
    pub queued: u64,
    /// State: neither.
    pub resting: u64,
    /// Of all states: without a live record.
    pub empty: u64,
}

/// Numbers of pages.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PageCounts {
    /// All.
    pub pages: u64,
    /// With at least one record, or part of a value, that is live.
    pub filled: u64,
    /// With a damaged word, whose further content is not known.
    pub damaged: u64,
}

/// Where the bytes of blocks of records are: the sum is their number times the bytes of a block.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ByteCounts {
    /// Live records and parts of values, with their headers.
    pub live: u64,
    /// Deleted or replaced, and not to be used again before the rest of the page is; or damaged.
    pub dead: u64,
    /// For new records.
    pub room: u64,
    /// Of pages: headers, and what is too small for a record.
    pub overhead: u64,
}

/// Numbers of blocks by the part of them that live records take.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct FillHistogram {
    /// Nothing.
    pub empty: u64,
    /// More than n * 10 % and up to (n + 1) * 10 %.
    pub tenths: [u64; 10],
}

/// How an index has grown.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct IndexReport {
    /// Entries.
    pub entries: u64,
    /// Of these, those without a place in their segment.
    pub overflow: u64,
    /// Segments.
    pub segments: u64,
    /// Slots of all segments.
    pub slots: u64,
    /// Entries over slots.
    pub load: f64,
    /// log2 of the entries of the directory.
    pub directory_depth: u32,
    /// Bytes of memory.
    pub bytes: u64,
}

impl FillHistogram {
    pub(crate) fn add(&mut self, live: u64, whole: u64) {
        match (live * 10).div_ceil(whole.max(1)) {
            0 => self.empty += 1,
            tenth => self.tenths[tenth.min(10) as usize - 1] += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_counted_by_their_tenths() {
        let mut fill = FillHistogram::default();
        for live in [0, 1, 100, 101, 999, 1000] {
            fill.add(live, 1000);
        }
        assert_eq!(fill.empty, 1);
        assert_eq!(fill.tenths, [2, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
    }
}
