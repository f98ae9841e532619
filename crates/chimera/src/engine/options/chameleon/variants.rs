//! What stores that ChameleonDB is compared with do otherwise.

#[cfg(feature = "baselines")]
use crate::index::table_filter::FilterKind;

/// How tables of the levels above the last one are put together (ChameleonDB, section 2.1).
#[cfg_attr(not(feature = "baselines"), expect(unreachable_pub, reason = "it is for measurements"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Compaction {
    /// One compaction goes through all levels that it would fill.
    #[default]
    Direct,
    /// A compaction goes from one level to the next.
    #[cfg(feature = "baselines")]
    LevelByLevel,
}

/// How gets find entries of the levels above the last one. All but the first are what ChameleonDB is compared with (section
/// 3): they are for measurements, and have no bypass index.
#[cfg_attr(not(feature = "baselines"), expect(unreachable_pub, reason = "it is for measurements"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum UpperIndex {
    /// Bypass indexes.
    #[default]
    Bypass,
    /// Nothing: `Pmem-LSM-NF`. A get looks at one table after the other.
    #[cfg(feature = "baselines")]
    Tables,
    /// A filter of each table: `Pmem-LSM-F`, where it is a Bloom filter.
    #[cfg(feature = "baselines")]
    Filters(FilterKind),
    /// Copies of the tables in DRAM: `Pmem-LSM-PinK`.
    #[cfg(feature = "baselines")]
    Pinned,
}
