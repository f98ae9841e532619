//! [`Heap`]: memory of one component of RocksDB, of which a share lies in persistent memory.
//!
//! # Rules
//! - The share is kept by each allocation: it goes to persistent memory if the live bytes there are not more than the share
//!   afterwards.
//! - Where the arena is full, memory comes from DRAM instead, because RocksDB cannot go on without. Such memory is *overflow*: it
//!   is counted, and a block cache does not keep what lies there.
//!
//! # Thread safety
//! All of it may be used from any number of threads. Shares are exact when one thread allocates, and off by what is under way when
//! more do.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use chimera_pmem::instrumented::ReadModel;

use crate::arena::Arena;
use crate::error::{Error, Result};

/// Bytes in front of an object in DRAM: its length, and what it is.
const HEADER: usize = 16;

/// The share of a component that lies in persistent memory, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u8);

impl Share {
    /// All of it in DRAM.
    pub const NOTHING: Self = Self(0);
    /// All of it in persistent memory.
    pub const ALL: Self = Self(100);

    /// A share of 0 to 100 percent.
    ///
    /// # Errors
    /// When it is more than 100.
    pub fn percent(percent: u8) -> Result<Self> {
        let wrong = || Error::Option(format!("a share is 0 to 100 percent, not {percent}"));
        (percent <= 100).then_some(Self(percent)).ok_or_else(wrong)
    }

    /// The share in percent.
    pub fn as_percent(self) -> u8 {
        self.0
    }

    /// Whether another `size` bytes belong into persistent memory, where `pmem` of `total` live bytes are.
    pub(crate) fn takes(self, pmem: u64, total: u64, size: u64) -> bool {
        // An object without bytes takes some.
        let [pmem, total, size] = [pmem, total, size.max(1)].map(u128::from);
        (pmem + size) * 100 <= u128::from(self.0) * (total + size)
    }
}

/// Where an object lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Place {
    /// In DRAM, as the share says.
    Dram = 0,
    /// In persistent memory.
    Pmem = 1,
    /// In DRAM because persistent memory is full.
    Overflow = 2,
}

/// Live bytes of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct HeapReport {
    /// In DRAM, as the share says.
    pub dram_bytes: u64,
    /// In persistent memory.
    pub pmem_bytes: u64,
    /// In DRAM because persistent memory is full.
    pub overflow_bytes: u64,
    /// Allocations so far.
    pub allocations: u64,
    /// Allocations so far for which persistent memory had no room.
    pub overflows: u64,
    /// Most bytes in persistent memory at once.
    pub pmem_peak_bytes: u64,
    /// Most bytes in DRAM at once, overflow included.
    pub dram_peak_bytes: u64,
}

/// Live bytes of one place, and the most there were.
#[derive(Debug, Default)]
struct Bytes {
    live: AtomicI64,
    peak: AtomicI64,
}

impl Bytes {
    fn add(&self, bytes: usize) {
        let live = self.live.fetch_add(bytes as i64, Ordering::Relaxed) + bytes as i64;
        if live > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(live, Ordering::Relaxed);
        }
    }

    fn remove(&self, bytes: usize) {
        self.live.fetch_sub(bytes as i64, Ordering::Relaxed);
    }

    /// A thread may have freed what another one is only just counting.
    fn live(&self) -> u64 {
        self.live.load(Ordering::Relaxed).max(0) as u64
    }

    fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed).max(0) as u64
    }
}

/// Memory of one component.
#[derive(Debug)]
pub struct Heap {
    arena: Arc<Arena>,
    share: Share,
    model: Option<Arc<ReadModel>>,
    pmem: Bytes,
    dram: Bytes,
    overflow: Bytes,
    allocations: AtomicU64,
    overflows: AtomicU64,
}

impl Heap {
    /// A heap that takes `share` of its memory from `arena`. With a `model`, reads are charged that are reported to it.
    pub fn new(arena: Arc<Arena>, share: Share, model: Option<Arc<ReadModel>>) -> Self {
        Self {
            arena,
            share,
            model,
            pmem: Bytes::default(),
            dram: Bytes::default(),
            overflow: Bytes::default(),
            allocations: AtomicU64::new(0),
            overflows: AtomicU64::new(0),
        }
    }

    /// Where its persistent memory comes from.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// The share that it keeps.
    pub fn share(&self) -> Share {
        self.share
    }

    /// What charges reads.
    pub fn model(&self) -> Option<&Arc<ReadModel>> {
        self.model.as_ref()
    }

    /// Allocates at least `size` bytes, aligned to 16, where the share says. `None` when DRAM is used up, too.
    pub fn allocate(&self, size: usize) -> Option<NonNull<u8>> {
        let pmem = self.pmem.live();
        let total = pmem + self.dram.live();
        self.allocate_in(size, self.share.takes(pmem, total, size as u64))
    }

    /// Allocates where the caller says.
    pub fn allocate_in(&self, size: usize, in_pmem: bool) -> Option<NonNull<u8>> {
        if !in_pmem {
            self.allocations.fetch_add(1, Ordering::Relaxed);
            return self.allocate_dram(size, Place::Dram);
        }
        if let Some(object) = self.allocate_pmem(size) {
            return Some(object);
        }
        self.overflows.fetch_add(1, Ordering::Relaxed);
        self.allocate_dram(size, Place::Overflow)
    }

    /// Allocates in persistent memory or, where that is full, not at all.
    pub fn allocate_pmem(&self, size: usize) -> Option<NonNull<u8>> {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        let object = self.arena.allocate(size)?;
        self.pmem.add(self.arena.usable_bytes(object));
        Some(object)
    }

    fn allocate_dram(&self, size: usize, place: Place) -> Option<NonNull<u8>> {
        let layout = dram_layout(size)?;
        // SAFETY: the layout has a length of at least `HEADER`, which is not zero.
        let start = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
        let header = start.cast::<[usize; 2]>();
        // SAFETY: the first `HEADER` bytes are two words, aligned to 16.
        unsafe { header.write([size, place as usize]) };
        self.bytes_of(place).add(size);
        // SAFETY: `HEADER` bytes are inside of the object.
        Some(unsafe { start.add(HEADER) })
    }

    /// Frees an object.
    ///
    /// # Safety
    /// The object came from this heap and was not freed since.
    pub unsafe fn free(&self, object: NonNull<u8>) {
        if self.is_pmem(object) {
            let bytes = self.arena.usable_bytes(object);
            let freed = self.arena.free(object);
            debug_assert!(freed, "an object that was freed already");
            self.pmem.remove(bytes);
            return;
        }
        // SAFETY: an object of this heap outside of the arena has a header, by the contract.
        let (size, place) = unsafe { Self::header(object) };
        self.bytes_of(place).remove(size);
        let Some(layout) = dram_layout(size) else { return };
        // SAFETY: the object begins `HEADER` bytes behind the start of its allocation.
        let start = unsafe { object.sub(HEADER) };
        // SAFETY: the allocation was made with the same layout, and by the contract it is freed once.
        unsafe { std::alloc::dealloc(start.as_ptr(), layout) };
    }

    /// Bytes that an object may use.
    ///
    /// # Safety
    /// The object came from this heap and was not freed since.
    pub unsafe fn usable_bytes(&self, object: NonNull<u8>) -> usize {
        if self.is_pmem(object) {
            return self.arena.usable_bytes(object);
        }
        // SAFETY: an object of this heap outside of the arena has a header, by the contract.
        unsafe { Self::header(object) }.0
    }

    /// Where an object lies.
    ///
    /// # Safety
    /// The object came from this heap and was not freed since.
    pub unsafe fn place(&self, object: NonNull<u8>) -> Place {
        if self.is_pmem(object) {
            return Place::Pmem;
        }
        // SAFETY: an object of this heap outside of the arena has a header, by the contract.
        unsafe { Self::header(object) }.1
    }

    /// Charges a read of `length` bytes, if there is a model and they lie in persistent memory.
    pub fn read(&self, address: *const u8, length: usize) {
        let Some(model) = &self.model else { return };
        if let Some(offset) = self.arena.region().offset_of(address) {
            model.read(offset as u64, length as u64);
        }
    }

    /// Says that `length` bytes were stored.
    pub fn stored(&self, address: *const u8, length: usize) {
        let Some(model) = &self.model else { return };
        if let Some(offset) = self.arena.region().offset_of(address) {
            model.stored(offset as u64, length as u64);
        }
    }

    /// What is live.
    pub fn report(&self) -> HeapReport {
        HeapReport {
            dram_bytes: self.dram.live(),
            pmem_bytes: self.pmem.live(),
            overflow_bytes: self.overflow.live(),
            allocations: self.allocations.load(Ordering::Relaxed),
            overflows: self.overflows.load(Ordering::Relaxed),
            pmem_peak_bytes: self.pmem.peak(),
            dram_peak_bytes: self.dram.peak() + self.overflow.peak(),
        }
    }

    fn is_pmem(&self, object: NonNull<u8>) -> bool {
        self.arena.region().offset_of(object.as_ptr()).is_some()
    }

    fn bytes_of(&self, place: Place) -> &Bytes {
        match place {
            Place::Pmem => &self.pmem,
            Place::Dram => &self.dram,
            Place::Overflow => &self.overflow,
        }
    }

    /// Length and place of an object in DRAM.
    ///
    /// # Safety
    /// The object came from `allocate_dram` and was not freed since.
    unsafe fn header(object: NonNull<u8>) -> (usize, Place) {
        // SAFETY: an object in DRAM begins `HEADER` bytes behind the start of its allocation.
        let start = unsafe { object.sub(HEADER) }.cast::<[usize; 2]>();
        // SAFETY: `allocate_dram` wrote two words there, and nobody else writes there.
        let [size, place] = unsafe { start.read() };
        let place = if place == Place::Overflow as usize { Place::Overflow } else { Place::Dram };
        (size, place)
    }
}

fn dram_layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(HEADER)?, HEADER).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::RegionOptions;

    fn heap(share: u8, bytes: u64) -> (tempfile::TempDir, Heap) {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().to_owned();
        let arena = Arena::open(&RegionOptions { directory, bytes, require_dax: false }).unwrap();
        (scratch, Heap::new(Arc::new(arena), Share::percent(share).unwrap(), None))
    }

    fn free(heap: &Heap, object: NonNull<u8>) {
        // SAFETY: the tests free each object of the heap once.
        unsafe { heap.free(object) };
    }

    fn place(heap: &Heap, object: NonNull<u8>) -> Place {
        // SAFETY: the tests ask for live objects of the heap.
        unsafe { heap.place(object) }
    }

    #[test]
    fn shares_are_percent() {
        assert_eq!(Share::percent(0).unwrap(), Share::NOTHING);
        assert_eq!(Share::percent(100).unwrap(), Share::ALL);
        assert!(Share::percent(101).unwrap_err().to_string().contains("101"));
    }

    #[test]
    fn sizes_that_no_memory_has_are_refused() {
        for share in [0, 60, 100] {
            let (_scratch, heap) = heap(share, 4 << 20);
            for size in [isize::MAX as usize - 64, usize::MAX / 64, usize::MAX - 1, usize::MAX] {
                assert_eq!(heap.allocate(size), None, "{share} {size}");
            }
            let report = heap.report();
            assert_eq!((report.pmem_bytes, report.dram_bytes, report.overflow_bytes), (0, 0, 0));
        }
    }

    #[test]
    fn the_share_is_kept_by_each_allocation() {
        for share in [0, 1, 40, 60, 99, 100] {
            let (_scratch, heap) = heap(share, 64 << 20);
            let mut objects = Vec::new();
            for number in 0..4000_usize {
                objects.push(heap.allocate(4096).unwrap());
                if number % 3 == 0 {
                    free(&heap, objects.swap_remove(number * 7 % objects.len()));
                }
                let report = heap.report();
                let total = report.pmem_bytes + report.dram_bytes;
                let wanted = total * u64::from(share) / 100;
                // Freed objects may have been of either kind, so the share comes back with the next allocations.
                assert!(
                    number < 100 || wanted.abs_diff(report.pmem_bytes) * 50 <= total,
                    "{share}: {report:?}"
                );
            }
            for object in objects {
                free(&heap, object);
            }
            let report = heap.report();
            assert_eq!((report.pmem_bytes, report.dram_bytes, report.overflow_bytes), (0, 0, 0));
            assert_eq!(report.allocations, 4000);
        }
    }

    #[test]
    fn where_the_arena_is_full_memory_overflows_to_dram() {
        let (_scratch, heap) = heap(100, 4 << 20);
        let objects: Vec<_> = (0..1030).map(|_| heap.allocate(4096).unwrap()).collect();
        let places: Vec<_> = objects.iter().map(|object| place(&heap, *object)).collect();
        assert!(places[..1024].iter().all(|place| *place == Place::Pmem));
        assert!(places[1024..].iter().all(|place| *place == Place::Overflow));
        let report = heap.report();
        assert_eq!((report.overflows, report.overflow_bytes), (6, 6 * 4096));
        for object in objects {
            free(&heap, object);
        }
        assert_eq!(heap.report().overflow_bytes, 0);
        assert_eq!(place(&heap, heap.allocate(10).unwrap()), Place::Pmem);
    }

    #[test]
    fn objects_in_dram_have_the_length_asked_for() {
        let (_scratch, heap) = heap(0, 4 << 20);
        for size in [0, 1, 17, 4096, 1 << 20] {
            let object = heap.allocate(size).unwrap();
            // SAFETY: the object is live.
            let usable = unsafe { heap.usable_bytes(object) };
            assert_eq!((usable, place(&heap, object)), (size, Place::Dram));
            assert!((object.as_ptr() as usize).is_multiple_of(16));
            free(&heap, object);
        }
    }
}
