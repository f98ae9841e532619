//! A run of an LSM tree: a count, and entries in the order of their keys; [`RunBuffer`]: the same in DRAM.

use chimera_pmem::{CACHE_LINE, Extent, Pmem};

use super::sites;
use crate::error::{PrimitivesError, Result};

/// How large entries and runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunGeometry {
    /// Words of a key.
    pub key_words: usize,
    /// Bytes of a value; a multiple of 8.
    pub value_bytes: usize,
    /// Entries of a run of the first level.
    pub entries: usize,
}

impl RunGeometry {
    /// The paper's entries of 8 + 16 bytes, in runs of so many bytes.
    pub fn published(run_bytes: u64) -> Self {
        let entries = (run_bytes.saturating_sub(CACHE_LINE) / 24).max(1) as usize;
        Self { key_words: 1, value_bytes: 16, entries }
    }

    /// Bytes of an entry.
    pub fn entry_bytes(&self) -> usize {
        8 * self.key_words + self.value_bytes
    }

    /// Bytes of a run with room for so many entries.
    pub fn run_bytes(&self, entries: usize) -> u64 {
        CACHE_LINE + ((entries * self.entry_bytes()) as u64).next_multiple_of(CACHE_LINE)
    }
}

/// Entries in DRAM, in the order of their keys, as a run holds them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunBuffer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) count: usize,
}

impl RunBuffer {
    /// Nothing in it any more.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// Appends an entry. Keys come in their order.
    pub fn push(&mut self, key: &[u64], value: &[u8]) {
        self.bytes.extend(key.iter().flat_map(|word| word.to_le_bytes()));
        self.bytes.extend_from_slice(value);
        self.count += 1;
    }

    /// Entries in it.
    pub fn count(&self) -> usize {
        self.count
    }
}

/// Where a run lies, and for how many entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) at: u64,
    pub(super) entries: usize,
    pub(super) geometry: RunGeometry,
}

impl Run {
    /// All of it.
    pub(super) fn extent(self) -> Extent {
        Extent::new_checked(self.at, self.geometry.run_bytes(self.entries))
    }

    /// Its count and so many entries.
    pub(super) fn used(self, count: usize) -> Extent {
        let bytes = (count * self.geometry.entry_bytes()) as u64;
        Extent::new_checked(self.at, CACHE_LINE + bytes)
    }

    /// Where an entry lies.
    pub(super) fn entry(self, number: usize) -> Extent {
        let bytes = self.geometry.entry_bytes() as u64;
        Extent::new_checked(self.at + CACHE_LINE + number as u64 * bytes, bytes)
    }

    /// How many entries there are.
    pub(super) fn count<P: Pmem>(self, pmem: &P) -> Result<usize> {
        let count = pmem.load_u64(self.at);
        if count > self.entries as u64 {
            return PrimitivesError::corrupted("a run has more entries than room", self.at);
        }
        Ok(count as usize)
    }

    /// Stores entries and their count. Not durable yet.
    pub(super) fn write<P: Pmem>(self, pmem: &P, buffer: &RunBuffer) {
        let length = buffer.bytes.len() as u64;
        pmem.store_u64(self.at, buffer.count as u64, sites::RUN_DATA);
        let to = Extent::new_checked(self.at + CACHE_LINE, length);
        pmem.copy(to, &buffer.bytes, sites::RUN_DATA);
    }

    /// Stores one entry. Not durable yet.
    pub(super) fn write_entry<P: Pmem>(self, pmem: &P, number: usize, entry: &[u8]) {
        pmem.copy(self.entry(number), entry, sites::RUN_DATA);
    }

    /// Stores the count. Not durable yet.
    pub(super) fn write_count<P: Pmem>(self, pmem: &P, count: usize) {
        pmem.store_u64(self.at, count as u64, sites::RUN_DATA);
    }

    /// Makes the first `count` entries durable.
    pub(super) fn persist<P: Pmem>(self, pmem: &P, count: usize) {
        pmem.flush(self.used(count), sites::RUN_DATA);
        pmem.fence(sites::RUN_DATA);
    }

    /// Looks for a key by halves; its value.
    pub(super) fn find<P: Pmem>(self, pmem: &P, key: &[u64], value: &mut Vec<u8>) -> Result<bool> {
        let (mut low, mut high) = (0, self.count(pmem)?);
        while low < high {
            let middle = low.midpoint(high);
            let at = self.entry(middle).offset();
            let words = key.iter().enumerate();
            let order = words
                .map(|(number, word)| pmem.load_u64(at + 8 * number as u64).cmp(word))
                .find(|order| order.is_ne());
            match order {
                Some(std::cmp::Ordering::Less) => low = middle + 1,
                Some(_) => high = middle,
                None => {
                    let length = self.geometry.value_bytes;
                    value.resize(length, 0);
                    let from = at + 8 * self.geometry.key_words as u64;
                    pmem.read(Extent::new_checked(from, length as u64), value);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
