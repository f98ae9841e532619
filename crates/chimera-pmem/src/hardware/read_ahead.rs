//! Reading what is larger than memory: pages that are missing.
//!
//! By default the system reads many pages around one that is missing: up to megabytes for a record of some hundred bytes. That
//! is right while a store is opened, which reads all of it, and wrong for gets of a store that is larger than memory. It is wrong,
//! too, where storage is new: there the system makes zeros for pages that are not needed for long.

use std::sync::atomic::Ordering;

use super::Hardware;
use super::region::Region;
use crate::{Extent, Medium, Pmem};

/// Least bytes that are asked for as a whole: of fewer most lie on one page.
const BYTES_MIN: u64 = 8192;

impl Hardware {
    /// See [`Pmem::expect_misses`].
    pub(super) fn advise_misses(&self) {
        // Under the lock: a region that is mapped meanwhile is advised here, or where it is mapped.
        let regions = self.regions();
        if self.expects_misses.swap(true, Ordering::Relaxed) {
            return;
        }
        self.pages.read_alone();
        regions.iter().filter(|region| region.medium() == Medium::File).for_each(|region| {
            let (at, length) = region.place();
            self.advise_random(at, length);
        });
    }

    /// See [`Pmem::expect_stores`].
    pub(super) fn advise_stores(&self, range: Extent) {
        let page = rustix::param::page_size() as u64;
        // Pages at both ends, too: else each range would be a mapping of its own.
        let (start, end) = (range.offset() / page * page, range.end().next_multiple_of(page));
        for region in self.regions().iter() {
            if let Some((at, length)) = part_of(region, start, end) {
                self.advise_random(at, length);
            }
        }
    }

    /// See [`Pmem::expect_loads`].
    pub(super) fn advise_loads(&self, range: Extent) {
        let page = rustix::param::page_size() as u64;
        // The last page may be one where stores are expected.
        let (start, end) = (range.offset() / page * page, range.end() / page * page);
        // Under the lock: misses that are expected meanwhile have the last word.
        let regions = self.regions();
        if self.expects_misses.load(Ordering::Relaxed) {
            return;
        }
        for (at, length) in regions.iter().filter_map(|region| part_of(region, start, end)) {
            if let Err(error) = self.reservation.advise_normal(at as usize, length as usize) {
                log::debug!("pages at offset {at} are read alone: {error}");
            }
        }
    }

    /// Of a region of a plain file: pages are read alone.
    pub(super) fn advise_random(&self, at: u64, length: u64) {
        if let Err(error) = self.reservation.advise_random(at as usize, length as usize) {
            log::debug!("more is read than is asked for of {length} bytes at offset {at}: {error}");
        }
    }

    /// Asks for the pages of a range that is about to be read or stored to, if some of it may be missing and it is long.
    #[inline(always)]
    pub(super) fn ask_for(&self, at: u64, length: u64) {
        if length >= BYTES_MIN {
            self.ask_for_missing(at, length);
        }
    }

    #[cold]
    #[inline(never)]
    fn ask_for_missing(&self, at: u64, length: u64) {
        if !self.expects_misses.load(Ordering::Relaxed) {
            return;
        }
        let Some(range) = self.check(at, length) else { return };
        let page = rustix::param::page_size() as u64;
        let start = range.offset() / page * page;
        // Where it fails pages come one by one.
        let _ = self.reservation.ask_for(start as usize, (range.end() - start) as usize);
    }
}

/// The part of a region of a plain file that lies in a range: where, and how long.
fn part_of(region: &Region, start: u64, end: u64) -> Option<(u64, u64)> {
    let (at, length) = region.place();
    let (start, end) = (start.max(at), end.min(at + length));
    (region.medium() == Medium::File && start < end).then(|| (start, end - start))
}
