//! [`Pmem`] for [`Instrumented`]: carries each call out, then records it, then waits.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::Instrumented;
use super::pace::Charge;
use super::recorder::{Models, Recorder};
use crate::environment::File;
use crate::journal::{Fenced, Journal, Lines};
use crate::{CACHE_LINE, Extent, Medium, Operation, PersistenceCounts, Pmem, Site};

/// The lines of `length` bytes at `offset`, whole words.
fn lines(offset: u64, length: usize) -> Range<u64> {
    Extent::new_checked(offset, words(length)).lines()
}

/// Bytes in the words that `length` bytes take up.
fn words(length: usize) -> u64 {
    (length as u64).next_multiple_of(8)
}

/// The line of a word or a pair of words, which never straddle two.
fn line(at: u64) -> Range<u64> {
    let line = at / CACHE_LINE;
    line..line + 1
}

impl<P: Pmem> Instrumented<P> {
    fn record(&self, work: impl FnOnce(&mut Recorder, &Models)) {
        if self.active {
            self.shared.record(work);
        }
    }

    /// Records a call that the device may delay.
    fn record_and_wait(&self, work: impl FnOnce(&mut Recorder, &Models) -> Charge) {
        if self.active {
            self.shared.record(work).wait();
        }
    }

    /// Records a compare-and-swap of `bytes`: a load, and a store when it succeeded.
    fn record_swap(&self, at: u64, bytes: u64, succeeded: bool) {
        self.record_and_wait(|recorder, models| {
            let charge = recorder.load(models, line(at));
            if succeeded {
                recorder.store(models, line(at), bytes);
            }
            charge
        });
    }
}

impl<P: Pmem> Pmem for Instrumented<P> {
    fn map(&self, at: u64, file: &Arc<dyn File>, file_offset: u64, length: u64) -> io::Result<()> {
        self.inner.map(at, file, file_offset, length)
    }

    fn use_journal(&self, journal: Arc<Journal>) -> io::Result<()> {
        self.inner.use_journal(journal)
    }

    fn journal(&self) -> Option<&Arc<Journal>> {
        self.inner.journal()
    }

    fn persistence_counts(&self) -> Option<PersistenceCounts> {
        let total = self.options.counters.then(|| self.snapshot().total())?;
        let lines_flushed = total.lines_flushed + total.lines_reflushed;
        Some(PersistenceCounts { lines_flushed, fences: total.fences })
    }

    fn overlay(&self, lines: Lines) -> io::Result<()> {
        self.inner.overlay(lines)
    }

    fn mapped(&self) -> u64 {
        self.inner.mapped()
    }

    fn populate(&self, at: u64, length: u64) -> io::Result<()> {
        self.inner.populate(at, length)
    }

    fn expect_misses(&self) {
        self.inner.expect_misses();
    }

    fn expect_stores(&self, range: Extent) {
        self.inner.expect_stores(range);
    }

    fn expect_loads(&self, range: Extent) {
        self.inner.expect_loads(range);
    }

    fn check(&self, offset: u64, length: u64) -> Option<Extent> {
        self.inner.check(offset, length)
    }

    fn medium(&self) -> Medium {
        self.inner.medium()
    }

    fn load_u64(&self, at: u64) -> u64 {
        let value = self.inner.load_u64(at);
        self.record_and_wait(|recorder, models| recorder.load(models, line(at)));
        value
    }

    fn store_u64(&self, at: u64, value: u64, site: Site) {
        self.inner.store_u64(at, value, site);
        self.record(|recorder, models| recorder.store(models, line(at), 8));
    }

    fn cas_u64(&self, at: u64, current: u64, new: u64, site: Site) -> Result<u64, u64> {
        let result = self.inner.cas_u64(at, current, new, site);
        self.record_swap(at, 8, result.is_ok());
        result
    }

    fn cas_u128(&self, at: u64, current: u128, new: u128, site: Site) -> Result<u128, u128> {
        let result = self.inner.cas_u128(at, current, new, site);
        self.record_swap(at, 16, result.is_ok());
        result
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        self.inner.read(from, into);
        let lines = lines(from.offset(), into.len());
        self.record_and_wait(|recorder, models| recorder.load(models, lines));
    }

    /// Booked as a load of every line of the range, wherever the first difference is.
    fn compare(&self, with: Extent, bytes: &[u8]) -> bool {
        let equal = self.inner.compare(with, bytes);
        let lines = lines(with.offset(), bytes.len());
        self.record_and_wait(|recorder, models| recorder.load(models, lines));
        equal
    }

    fn prefetch(&self, range: Extent) {
        self.inner.prefetch(range);
        self.record(|recorder, models| recorder.prefetch(models, range.lines()));
    }

    fn prefetch_write(&self, range: Extent) {
        self.inner.prefetch_write(range);
        self.record(|recorder, models| recorder.prefetch(models, range.lines()));
    }

    fn copy(&self, to: Extent, bytes: &[u8], site: Site) {
        self.inner.copy(to, bytes, site);
        let lines = lines(to.offset(), bytes.len());
        self.record(|recorder, models| recorder.store(models, lines, words(bytes.len())));
    }

    fn copy_nt(&self, to: Extent, bytes: &[u8], site: Site) {
        self.inner.copy_nt(to, bytes, site);
        let lines = lines(to.offset(), bytes.len());
        self.record(|recorder, models| {
            recorder.store_past_cache(models, lines, words(bytes.len()));
        });
    }

    fn zero(&self, range: Extent, site: Site) {
        self.inner.zero(range, site);
        self.record(|recorder, models| recorder.store(models, range.lines(), range.length()));
    }

    fn flush(&self, range: Extent, site: Site) {
        self.inner.flush(range, site);
        self.record(|recorder, models| recorder.flush(models, range.lines()));
    }

    fn flush_new(&self, range: Extent, emptied: Fenced, site: Site) {
        self.inner.flush_new(range, emptied, site);
        self.record(|recorder, models| recorder.flush(models, range.lines()));
    }

    fn flush_new_shared(&self, range: Extent, emptied: Fenced, site: Site) {
        self.inner.flush_new_shared(range, emptied, site);
        self.record(|recorder, models| recorder.flush(models, range.lines()));
    }

    fn flush_beside_new(&self, range: Extent, site: Site) {
        self.inner.flush_beside_new(range, site);
        self.record(|recorder, models| recorder.flush(models, range.lines()));
    }

    fn take_new(&self, range: Extent, ahead: Extent, emptied: Fenced) {
        self.inner.take_new(range, ahead, emptied);
    }

    fn fenced(&self) -> Fenced {
        self.inner.fenced()
    }

    fn fence(&self, site: Site) {
        self.inner.fence(site);
        self.record_and_wait(Recorder::fence);
    }

    fn publish(&self, at: u64, value: u64, depends_on: &[Extent], site: Site) {
        self.inner.publish(at, value, depends_on, site);
        self.record(|recorder, models| recorder.store(models, line(at), 8));
    }

    fn publish_cas(
        &self,
        at: u64,
        current: u64,
        new: u64,
        depends_on: &[Extent],
        site: Site,
    ) -> Result<u64, u64> {
        let result = self.inner.publish_cas(at, current, new, depends_on, site);
        self.record_swap(at, 8, result.is_ok());
        result
    }

    /// Not counted; the cache model drops the lines, as they are never written back.
    fn punch(&self, range: Extent, site: Site) -> io::Result<bool> {
        let result = self.inner.punch(range, site);
        self.record(|_, models| {
            if let Some(cache) = &models.cache {
                cache.forget_all(range.lines());
            }
        });
        result
    }

    fn sync_punched(&self, site: Site) -> io::Result<()> {
        self.inner.sync_punched(site)
    }

    /// Not counted: what it takes is the file system's affair.
    fn sync(&self, site: Site) -> io::Result<()> {
        self.inner.sync(site)
    }

    fn operation_begin(&self, operation: Operation, session: u32) {
        self.inner.operation_begin(operation, session);
        self.record(|recorder, models| recorder.begin(models, operation, session));
    }

    fn operation_is(&self, operation: Operation) {
        self.inner.operation_is(operation);
        self.record(|recorder, _| recorder.relabel(operation));
    }

    fn operation_acknowledge(&self) {
        self.inner.operation_acknowledge();
        self.record(|recorder, _| recorder.acknowledge());
    }
}
