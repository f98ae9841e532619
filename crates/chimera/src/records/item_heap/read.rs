//! Reading items: without a lock. Who reads validates afterwards that the item was still there.

use chimera_pmem::{CACHE_LINE, Extent, Pmem};

use super::layout::{self, key_at, span, value_at};
use super::{ItemHeap, steps};
use crate::records::checksum::Summed;
use crate::records::header::RecordHeader;
use crate::records::lengths::HEADER_AT;

/// Where an item lies, and its lengths as they were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) at: u64,
    pub(crate) key_bytes: usize,
    pub(crate) value_bytes: usize,
}

impl<P: Pmem> ItemHeap<P> {
    /// Starts loading the first 64 bytes of an item: its header, and a key of usual length.
    #[inline]
    pub(crate) fn prefetch(&self, at: u64) {
        if let Some(head) = self.pool.pmem.check(at, CACHE_LINE) {
            self.pool.pmem.prefetch(head);
        }
    }

    /// The item at `at`, unless its lengths are damaged or reach beyond the used blocks.
    #[inline]
    pub(crate) fn decode(&self, at: u64) -> Option<Item> {
        let end = self.used_end();
        // What does not begin with a unit cannot be an item: units are whole words.
        if !at.is_multiple_of(8) || at >= end || self.pool.pmem.check(at, 8).is_none() {
            return None;
        }
        let (key_bytes, value_bytes) = layout::decode(self.layout, self.pool.pmem.load_u64(at))?;
        let bytes = span(self.layout, key_bytes, value_bytes);
        (bytes <= end - at).then_some(Item { at, key_bytes, value_bytes })
    }

    /// Where the used blocks end.
    fn used_end(&self) -> u64 {
        let used = self.pool.used_blocks();
        used.checked_sub(1)
            .map_or(0, |last| self.pool.map.block_at(last) + self.pool.map.block_bytes)
    }

    /// All of an item.
    #[inline]
    pub(crate) fn extent(&self, item: &Item) -> Extent {
        self.pool.extent(item.at, span(self.layout, item.key_bytes, item.value_bytes))
    }

    /// Whether an item is one of `key`.
    #[inline]
    pub(crate) fn key_is(&self, item: &Item, key: &[u8]) -> bool {
        let at = item.at + key_at(self.layout);
        item.key_bytes == key.len()
            && self.pool.pmem.compare(self.pool.extent(at, key.len() as u64), key)
    }

    /// Reads the key of an item.
    pub(crate) fn read_key(&self, item: &Item, key: &mut Vec<u8>) {
        key.resize(item.key_bytes, 0);
        let at = item.at + key_at(self.layout);
        self.pool.pmem.read(self.pool.extent(at, key.len() as u64), key);
    }

    /// Reads the value of an item.
    #[inline]
    pub(crate) fn read_value(&self, item: &Item, value: &mut Vec<u8>) {
        value.resize(item.value_bytes, 0);
        let at = item.at + value_at(self.layout, item.key_bytes);
        self.pool.pmem.read(self.pool.extent(at, value.len() as u64), value);
    }

    /// As [`read_value`](Self::read_value), with the sum of what was read.
    #[inline]
    pub(crate) fn read_summed<'a>(&self, item: &Item, value: &'a mut Vec<u8>) -> Summed<'a> {
        value.resize(item.value_bytes, 0);
        let at = item.at + value_at(self.layout, item.key_bytes);
        let from = self.pool.extent(at, value.len() as u64);
        let sum = self.pool.pmem.read_sum(from, 0, value);
        Summed { bytes: value, sum }
    }

    /// Whether an item is as it was written, for a key of this hash: key and version always, the value where one is
    /// given. Always, in the published layout.
    #[inline]
    pub(crate) fn is_sound(&self, item: &Item, hash: u64, value: Option<Summed<'_>>) -> bool {
        if !self.layout.is_checked() {
            return true;
        }
        let header = RecordHeader::load(&self.pool.pmem, item.at + HEADER_AT);
        header.verify(item.at, hash, value).is_ok() || self.pool.pmem.skips(steps::READ_CHECK)
    }

    /// The version of an item: how often its key was written. 0 in the published layout.
    #[inline]
    pub(crate) fn version(&self, item: &Item) -> u64 {
        if !self.layout.is_checked() {
            return 0;
        }
        RecordHeader::load(&self.pool.pmem, item.at + HEADER_AT).version()
    }
}
