//! [`Floor`]: what no store can do without, and nothing else.
//!
//! A region of persistent memory with the same records as the engine's store, and a table in DRAM of
//! the size of the engine's index. The operations on them ([`worker`]) do what any store with these
//! guarantees must do: one miss in the index, the comparison of the stored key, the copying of the
//! record, and the protocol's flushes and fences. They check nothing that a store would have to check,
//! take no locks, and know beforehand where the next record goes. They go through the same seam, on
//! the same medium, in the same loop, as the engine does.

mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chimera_pmem::environment::File;
use chimera_pmem::{Arena, CACHE_LINE, Extent, Pmem, Site, prefetch_read};

use crate::driver::worker::Data;
use crate::error::{BenchError, Result};
use crate::workload::random::{mix, reduce};
pub(crate) use worker::{FloorAction, run};

/// Everything that a floor stores.
pub(super) const FLOOR: Site = Site::new("bench.floor");

/// Pages of records, as wide as the engine's.
const PAGE_BYTES: u64 = 4096;
/// Entries of loaded records per line of the table; the other words take what inserts write.
const ENTRIES_PER_LINE: u64 = 4;
/// The region is a multiple of this.
const REGION_STEP_BYTES: u64 = 2 << 20;

/// A line of the table.
type Line = [AtomicU64; 8];

/// Where things are inside a page: a word for the page, words of bits, slots of key and value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    page_bytes: u64,
    slots: u64,
    first_slot: u64,
    pub(super) slot_bytes: u64,
    pub(super) key_bytes: u64,
    value_at: u64,
    value_bytes: u64,
}

impl Layout {
    fn new(key_bytes: u64, value_bytes: u64) -> Self {
        let value_at = key_bytes.next_multiple_of(8);
        let slot_bytes = value_at + value_bytes.next_multiple_of(8);
        let page_bytes = (slot_bytes + 16).next_multiple_of(PAGE_BYTES);
        let header = |slots: u64| 8 + 8 * slots.div_ceil(64);
        let mut slots = page_bytes / slot_bytes;
        while header(slots) + slots * slot_bytes > page_bytes {
            slots -= 1;
        }
        let first_slot = header(slots);
        Self { page_bytes, slots, first_slot, slot_bytes, key_bytes, value_at, value_bytes }
    }
}

/// A slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    page: u64,
    slot: u64,
}

impl Place {
    fn entry(self) -> u64 {
        self.page << 16 | self.slot
    }

    fn of_entry(entry: u64) -> Self {
        Self { page: entry >> 16, slot: entry & 0xffff }
    }
}

/// Records and the table that leads to them.
pub(crate) struct Floor<P: Pmem> {
    pub(crate) pmem: P,
    pub(super) layout: Layout,
    table: Arena<Line>,
    lines: u64,
    /// Entries per record, times 2^32.
    scale: u64,
    pub(super) loaded: u64,
    /// Pages that inserts go to.
    pub(super) insert_pages: std::ops::Range<u64>,
}

/// Bytes of the region's file for `loaded` records and room for `inserts` at a time.
pub(crate) fn region_bytes(data: &Data, loaded: u64, inserts: u64, threads: usize) -> u64 {
    let layout = layout_of(data);
    let pages = loaded.div_ceil(layout.slots) + insert_pages(layout, inserts, threads);
    (pages * layout.page_bytes).next_multiple_of(REGION_STEP_BYTES)
}

fn layout_of(data: &Data) -> Layout {
    Layout::new(data.keys.sizes().max() as u64, data.values.sizes().max() as u64)
}

fn insert_pages(layout: Layout, inserts: u64, threads: usize) -> u64 {
    inserts.div_ceil(layout.slots) + threads as u64
}

impl<P: Pmem> Floor<P> {
    /// Maps and fills a region in `file` of [`region_bytes`], with a table of `index_bytes`.
    ///
    /// # Errors
    /// When there is no memory.
    pub(crate) fn new(
        pmem: P,
        file: &Arc<dyn File>,
        data: &Data,
        (loaded, inserts): (u64, u64),
        threads: usize,
        index_bytes: u64,
    ) -> Result<Self> {
        let memory = |source| BenchError::Memory { what: "the floors' region", source };
        let layout = layout_of(data);
        let bytes = region_bytes(data, loaded, inserts, threads);
        pmem.map(0, file, 0, bytes).map_err(memory)?;
        pmem.populate(0, bytes).map_err(memory)?;
        let lines = (index_bytes / CACHE_LINE).max(loaded.div_ceil(ENTRIES_PER_LINE)).max(1);
        // On huge pages as the engine's index.
        let table = Arena::new(64, true);
        table.ensure(lines).map_err(memory)?;
        let first = loaded.div_ceil(layout.slots);
        let floor = Self {
            pmem,
            layout,
            table,
            lines,
            scale: ((lines * ENTRIES_PER_LINE) << 32) / loaded.max(1),
            loaded,
            insert_pages: first..first + insert_pages(layout, inserts, threads),
        };
        floor.fill(data);
        Ok(floor)
    }

    /// Writes all records and entries.
    fn fill(&self, data: &Data) {
        for line in 0..self.lines {
            // A line that was never written lies on a page that does not exist.
            self.line(line)[0].store(0, Ordering::Relaxed);
        }
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for number in 0..self.loaded {
            let place =
                Place { page: number / self.layout.slots, slot: number % self.layout.slots };
            data.keys.write(number, &mut key);
            data.values.write(number, 0, &mut value);
            self.pmem.copy(self.key(place), &key, FLOOR);
            self.pmem.copy(self.value(place), &value, FLOOR);
            self.pmem.flush(self.record(place), FLOOR);
            let (line, word) = self.entry_at(number);
            self.line(line)[word].store(place.entry(), Ordering::Relaxed);
        }
        self.pmem.fence(FLOOR);
    }

    #[inline(always)]
    pub(super) fn line(&self, line: u64) -> &Line {
        self.table.get(line).expect("all lines are there")
    }

    /// Line and word of a loaded record's entry.
    #[inline(always)]
    fn entry_at(&self, number: u64) -> (u64, usize) {
        let entry = ((u128::from(number) * u128::from(self.scale)) >> 32) as u64;
        (entry / ENTRIES_PER_LINE, (entry % ENTRIES_PER_LINE) as usize)
    }

    /// Where a loaded record is, by the table.
    #[inline(always)]
    pub(super) fn find(&self, number: u64) -> Place {
        let (line, word) = self.entry_at(number);
        Place::of_entry(self.line(line)[word].load(Ordering::Relaxed))
    }

    /// Starts loading what [`find`](Self::find) reads.
    #[inline(always)]
    pub(super) fn prefetch_entry(&self, number: u64) {
        prefetch_read(self.line(self.entry_at(number).0));
    }

    /// The line of the table that a new record's entry goes to.
    #[inline(always)]
    pub(super) fn line_of_new(&self, number: u64) -> &Line {
        self.line(reduce(mix(number), self.lines))
    }

    #[inline(always)]
    fn page_at(&self, place: Place) -> u64 {
        place.page * self.layout.page_bytes
    }

    /// A range that is inside of the region by construction.
    #[inline(always)]
    fn extent(&self, at: u64, length: u64) -> Extent {
        self.pmem.check(at, length).expect("inside of the region")
    }

    #[inline(always)]
    fn slot_at(&self, place: Place) -> u64 {
        self.page_at(place) + self.layout.first_slot + place.slot * self.layout.slot_bytes
    }

    #[inline(always)]
    pub(super) fn record(&self, place: Place) -> Extent {
        self.extent(self.slot_at(place), self.layout.slot_bytes)
    }

    #[inline(always)]
    pub(super) fn key(&self, place: Place) -> Extent {
        self.extent(self.slot_at(place), self.layout.key_bytes)
    }

    #[inline(always)]
    pub(super) fn value(&self, place: Place) -> Extent {
        self.extent(self.slot_at(place) + self.layout.value_at, self.layout.value_bytes)
    }

    /// The word of bits with a slot's bit, and the bit.
    #[inline(always)]
    pub(super) fn bit(&self, place: Place) -> (Extent, u64) {
        let word = self.page_at(place) + 8 + 8 * (place.slot / 64);
        (self.extent(word, 8), 1 << (place.slot % 64))
    }

    /// The slot after `place`; the first one of `pages` after the last one.
    #[inline(always)]
    pub(super) fn after(&self, place: Place, pages: &std::ops::Range<u64>) -> Place {
        if place.slot + 1 < self.layout.slots {
            return Place { slot: place.slot + 1, ..place };
        }
        let page = if place.page + 1 < pages.end { place.page + 1 } else { pages.start };
        Place { page, slot: 0 }
    }
}

#[cfg(test)]
mod tests;
