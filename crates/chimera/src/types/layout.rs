//! [`RecordLayout`] and [`Geometry`]: how records and pages lie on media.

#[cfg(feature = "baselines")]
use std::str::FromStr;

use super::error::{Error, Result};

/// What precedes each record on media. An ordinary build has one layout, and nothing asks for it at run time.
#[cfg_attr(not(feature = "baselines"), expect(unreachable_pub, reason = "there is one layout"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum RecordLayout {
    /// 16 bytes per record: checksum of key and version, checksum of the value, version. Damage is
    /// found, and after a crash the newer of two copies wins. 17 records of 16 + 200 bytes per page.
    #[default]
    Checked,
    /// Nothing, as in the paper: 18 records of 16 + 200 bytes per page; damage goes unnoticed, and
    /// after a crash during an overwrite the copy at the higher address wins. Only with the feature `baselines`.
    #[cfg(feature = "baselines")]
    Published,
}

impl RecordLayout {
    /// Whether records have checksums and versions.
    #[inline(always)]
    pub(crate) fn is_checked(self) -> bool {
        self == Self::Checked
    }

    pub(crate) fn code(self) -> u32 {
        if self.is_checked() { 1 } else { 2 }
    }

    /// The layout with this number, which a superblock has at `at`.
    ///
    /// # Errors
    /// `NeedsFeature` when this program was built without it; `Corrupted` when there is none.
    pub(crate) fn from_code(code: u64, at: u64) -> Result<Self> {
        match code {
            1 => Ok(Self::Checked),
            #[cfg(feature = "baselines")]
            2 => Ok(Self::Published),
            #[cfg(not(feature = "baselines"))]
            2 => Err(Error::NeedsFeature { what: "records as published", feature: "baselines" }),
            _ => Err(Error::corrupted("the superblock's record layout is not valid", at)),
        }
    }
}

#[cfg(feature = "baselines")]
impl FromStr for RecordLayout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "checked" => Ok(Self::Checked),
            "published" => Ok(Self::Published),
            other => Err(format!("unknown layout `{other}`; layouts: checked, published")),
        }
    }
}

/// Sizes of a pool, fixed at creation and kept in its superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Geometry {
    /// Bytes per VPage: a multiple of 64 from 256 to 1 MiB. Default 4096, the interleaving of Optane
    /// DIMMs. Records larger than a page raise it by whole multiples.
    pub page_bytes: u32,
    /// VPages per VBlock, one per DIMM: 1 to 8. Default 6.
    pub pages_per_block: u32,
    /// Bytes that the first block of a segment is shifted from the page boundary: a multiple of 64
    /// below `page_bytes`. Default 0; 2048 is the paper's unaligned variant. Only with the feature `baselines`.
    #[cfg(feature = "baselines")]
    pub block_shift_bytes: u32,
    /// Bytes per segment, the unit of files and of address space: a multiple of 4096 (of 2 MiB on
    /// devdax). Default 1 GiB, which is 43,690 blocks of 24 KiB.
    pub segment_bytes: u64,
}

impl Default for Geometry {
    fn default() -> Self {
        Self {
            page_bytes: 4096,
            pages_per_block: 6,
            #[cfg(feature = "baselines")]
            block_shift_bytes: 0,
            segment_bytes: 1 << 30,
        }
    }
}

impl Geometry {
    /// Smallest page, in bytes.
    pub const PAGE_BYTES_MIN: u32 = 256;
    /// Largest page, in bytes.
    pub const PAGE_BYTES_MAX: u32 = 1 << 20;
    /// Most pages in a block.
    pub const PAGES_PER_BLOCK_MAX: u32 = 8;

    /// Bytes that the first block of a segment is shifted from the page boundary.
    #[cfg_attr(not(feature = "baselines"), expect(clippy::unused_self, reason = "there is none"))]
    pub(crate) fn shift_bytes(&self) -> u32 {
        #[cfg(feature = "baselines")]
        return self.block_shift_bytes;
        #[cfg(not(feature = "baselines"))]
        0
    }

    /// Checks the limits stated with the fields.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let page = Self::PAGE_BYTES_MIN..=Self::PAGE_BYTES_MAX;
        if !page.contains(&self.page_bytes) || !self.page_bytes.is_multiple_of(64) {
            let text = "a page must have a multiple of 64 bytes, from 256 to 1 MiB";
            return Err(format!("{text}, not {}", self.page_bytes));
        }
        if !(1..=Self::PAGES_PER_BLOCK_MAX).contains(&self.pages_per_block) {
            return Err(format!("a block must have 1 to 8 pages, not {}", self.pages_per_block));
        }
        let shift = self.shift_bytes();
        if shift >= self.page_bytes || !shift.is_multiple_of(64) {
            let text = "the shift of blocks must be a multiple of 64 below the page size";
            return Err(format!("{text}, not {shift}"));
        }
        if self.segment_bytes > 1 << 44 || !self.segment_bytes.is_multiple_of(4096) {
            let text = "a segment must have a multiple of 4096 bytes, up to 16 TiB";
            return Err(format!("{text}, not {}", self.segment_bytes));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_superblocks_are_those_of_layouts() {
        for layout in [RecordLayout::Checked, RecordLayout::Published] {
            assert_eq!(RecordLayout::from_code(layout.code().into(), 8).unwrap(), layout);
        }
        for code in [0, 3, 1 << 32 | 1] {
            let error = RecordLayout::from_code(code, 8).unwrap_err();
            assert!(matches!(error, Error::Corrupted { at: 8, .. }), "{error}");
        }
    }
}
