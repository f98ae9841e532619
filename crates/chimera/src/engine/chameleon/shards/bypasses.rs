//! [`Bypasses`]: the memory of bypass indexes. They begin small and grow in steps, so a small store needs little memory.
//!
//! The published index has its largest size from the beginning (ChameleonDB, section 3.1: 512 KiB a shard). Entries are spread over
//! all of its pages by their hashes, so a store of few keys would need as much memory as one of many.

use crate::engine::chameleon::shape::SLOT_BYTES;
use crate::index::probing_table::{SLOTS_UNIT, Tables, VolatileTable};
use crate::types::error::{Error, Result};

/// Sizes that there may be.
const SIZES: usize = 4;
/// A size has so many times the slots of the one before.
const GROWTH: u32 = 8;
/// Bits of a name that are the number of a table among those of its size.
const NUMBER_BITS: u32 = 30;

/// Tables of some sizes. A name says which size, and which table of it.
#[derive(Debug)]
pub(in crate::engine::chameleon) struct Bypasses {
    /// The largest size is the last one.
    sizes: [Tables; SIZES],
    smallest: usize,
}

impl Bypasses {
    /// None yet: of so many slots when they are small, at least, and when they are large.
    pub(super) fn new(slots_min: u32, slots_max: u32, huge_pages: bool) -> Self {
        let mut smallest = SIZES - 1;
        let mut slots = [SLOTS_UNIT; SIZES];
        slots[smallest] = slots_max;
        while smallest > 0 && slots[smallest] / GROWTH >= slots_min {
            slots[smallest - 1] = slots[smallest] / GROWTH;
            smallest -= 1;
        }
        let sizes = slots.map(|slots| Tables::new(slots, huge_pages));
        Self { sizes, smallest }
    }

    /// The table of this name.
    #[inline(always)]
    pub(super) fn table(&self, name: u32) -> VolatileTable<'_> {
        self.sizes[size_of_name(name)].table(number_of_name(name))
    }

    /// An empty table of the smallest size.
    pub(super) fn take_smallest(&self) -> Result<u32> {
        self.take(self.smallest)
    }

    /// An empty table as large as this one.
    pub(super) fn take_alike(&self, name: u32) -> Result<u32> {
        self.take(size_of_name(name))
    }

    /// An empty table of a larger size, in which no more than three quarters of the slots have so many entries; else of the largest
    /// one. None where this one will do, or there is no larger one.
    ///
    /// # Errors
    /// When there is no memory.
    pub(super) fn take_larger(&self, name: u32, entries: u32) -> Result<Option<u32>> {
        let (before, largest) = (size_of_name(name), SIZES - 1);
        let fits = |size: &usize| entries <= usual_entries(self.sizes[*size].slots());
        let size = (before..largest).find(fits).unwrap_or(largest);
        if size == before { Ok(None) } else { self.take(size).map(Some) }
    }

    fn take(&self, size: usize) -> Result<u32> {
        let no_memory = || Error::no_memory("a bypass index");
        let number = self.sizes[size].take().map_err(|_| no_memory())?;
        if number >> NUMBER_BITS > 0 {
            return Err(no_memory());
        }
        Ok((size as u32) << NUMBER_BITS | number)
    }

    pub(super) fn give_back(&self, name: u32) {
        self.sizes[size_of_name(name)].give_back(number_of_name(name));
    }

    /// As [`give_back`](Self::give_back), of a table of a size of which hardly any is needed again.
    pub(super) fn give_back_memory(&self, name: u32) {
        self.sizes[size_of_name(name)].give_back_memory(number_of_name(name));
    }

    /// Entries that a table may have where a larger one would make all of them take more than so many bytes. None where it may
    /// grow, or is of the largest size.
    pub(super) fn entries_without_growth(&self, name: u32, bytes_max: u64) -> Option<u32> {
        let size = size_of_name(name);
        let larger = self.sizes.get(size + 1)?;
        let grown = self.bytes().saturating_add(u64::from(larger.slots()) * u64::from(SLOT_BYTES));
        (grown > bytes_max).then(|| usual_entries(self.sizes[size].slots()))
    }

    /// Whether all tables together take more than so many bytes, and this one could be smaller.
    pub(super) fn exceed(&self, name: u32, bytes_max: u64) -> bool {
        size_of_name(name) > self.smallest && self.bytes() > bytes_max
    }

    /// Bytes of all tables that were ever handed out, but for those whose memory was given back.
    pub(super) fn bytes(&self) -> u64 {
        self.sizes.iter().map(Tables::bytes).sum()
    }
}

#[inline(always)]
fn size_of_name(name: u32) -> usize {
    (name >> NUMBER_BITS) as usize
}

#[inline(always)]
fn number_of_name(name: u32) -> u32 {
    name & ((1 << NUMBER_BITS) - 1)
}

/// Entries of a table of so many slots before it grows.
fn usual_entries(slots: u32) -> u32 {
    slots / 4 * 3
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::index::probing_table::Slot;

    fn slots_of(bypasses: &Bypasses, name: u32) -> u32 {
        bypasses.table(name).slots()
    }

    #[test]
    fn a_table_grows_in_steps_of_eight_to_the_largest_size() {
        let bypasses = Bypasses::new(1024, 32_768, false);
        let small = bypasses.take_smallest().unwrap();
        assert_eq!(slots_of(&bypasses, small), 4096);
        assert_eq!(bypasses.take_larger(small, 3072).unwrap(), None, "three quarters");
        let large = bypasses.take_larger(small, 3073).unwrap().unwrap();
        assert_eq!(slots_of(&bypasses, large), 32_768);
        assert_eq!(bypasses.take_larger(large, u32::MAX).unwrap(), None, "there is no larger one");
        let other = bypasses.take_alike(large).unwrap();
        assert_eq!((slots_of(&bypasses, other), other == large), (32_768, false));
    }

    #[test]
    fn one_size_is_enough_where_all_tables_are_small() {
        for (least, most) in [(16, 16), (64, 64), (64, 256), (64, 511)] {
            let bypasses = Bypasses::new(least, most / 16 * 16, false);
            let only = bypasses.take_smallest().unwrap();
            assert_eq!(slots_of(&bypasses, only), most / 16 * 16);
            assert_eq!(bypasses.take_larger(only, u32::MAX).unwrap(), None);
            assert_eq!(bypasses.entries_without_growth(only, 0), None);
        }
        let bypasses = Bypasses::new(16, 1 << 20, false);
        let smallest = bypasses.take_smallest().unwrap();
        assert_eq!(slots_of(&bypasses, smallest), 1 << 11, "no more sizes than four");
    }

    #[test]
    fn growth_ends_where_memory_does() {
        let bypasses = Bypasses::new(16, 128, false);
        let small = bypasses.take_smallest().unwrap();
        let grown = bypasses.bytes() + 128 * 16;
        assert_eq!(bypasses.entries_without_growth(small, grown), None);
        assert_eq!(bypasses.entries_without_growth(small, grown - 1), Some(12));
    }

    #[test]
    fn tables_are_too_large_where_all_take_more_than_they_may_and_one_could_be_smaller() {
        let bypasses = Bypasses::new(16, 128, false);
        let small = bypasses.take_smallest().unwrap();
        let large = bypasses.take_larger(small, 13).unwrap().unwrap();
        let bytes = bypasses.bytes();
        assert!(bypasses.exceed(large, bytes - 1) && !bypasses.exceed(large, bytes));
        assert!(!bypasses.exceed(small, 0));
    }

    #[test]
    fn what_is_given_back_is_handed_out_empty_again() {
        let bypasses = Bypasses::new(16, 128, false);
        let small = bypasses.take_smallest().unwrap();
        bypasses.table(small).insert(Slot::new(1, 64, 24, false), 4).unwrap();
        let large = bypasses.take_larger(small, 13).unwrap().unwrap();
        bypasses.give_back(small);
        let bytes = bypasses.bytes();
        assert_eq!(bypasses.take_smallest().unwrap(), small);
        assert!(bypasses.table(small).is_empty() && bypasses.table(large).is_empty());
        assert_eq!(bypasses.bytes(), bytes);
    }

    #[test]
    fn outgrown_tables_take_no_memory_and_are_handed_out_empty_again() {
        let bypasses = Bypasses::new(1024, 32_768, false);
        // The first one lies on the heap.
        let small = [(); 3].map(|()| bypasses.take_smallest().unwrap());
        let bytes = bypasses.bytes();
        for (number, name) in (1..).zip(small) {
            bypasses.table(name).insert(Slot::new(number, 64, 24, false), 4).unwrap();
        }
        bypasses.give_back_memory(small[2]);
        bypasses.give_back_memory(small[0]);
        assert_eq!(bypasses.bytes(), bytes - 4096 * 16, "that of the first one stays");
        assert_eq!(bypasses.table(small[1]).len(), 1);
        let again = [(); 2].map(|()| bypasses.take_smallest().unwrap());
        assert_eq!((again, bypasses.bytes()), ([small[0], small[2]], bytes));
        for name in again {
            assert!(bypasses.table(name).is_empty() && bypasses.table(name).iter().count() == 0);
        }
    }
}
