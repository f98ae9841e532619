//! [`Hardware`]: mapped memory and plain instructions.
//!
//! # Thread safety
//! Everything takes `&self` and may be called from any thread.
//!
//! # Invariants
//! 1. The reserved address space is mapped from its start without gaps up to the watermark
//!    `mapped_words`, which only grows, by whole pages, and only after the pages are mapped.
//! 2. Nothing below the watermark is unmapped or moved before the value is dropped.
//! 3. Up to `writable_words` pages are writable; behind the first read-only region no page is.
//! 4. With a journal every region is mapped privately, and `flush` is [`JOURNALED`] from before the
//!    first one on: one byte tells flush, fence and `copy_nt` what to do. `writable_words` stays 0, so every store fails the
//!    one compare that there is, and goes through the states of its pages.
//! 5. Every access is checked against a watermark with one compare and happens by relaxed, acquire
//!    or release operations on aligned words, or by an instruction argued to be the same. So the
//!    public functions are sound however they are called.

mod access;
mod options;
mod platform;
mod punched;
mod read_ahead;
mod region;

#[cfg(test)]
mod tests;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub use options::{FlushChoice, HardwareOptions};

use crate::arch;
use crate::environment::File;
use crate::journal::{Fenced, Journal, Lines};
use crate::mapping::{Reservation, words};
use crate::pages::{Pages, steps};
use crate::{CACHE_LINE, Extent, FlushInstruction, Medium, Pmem, Site};
use access::{BY_FILE_BYTES_MIN, is_below, is_word_below};
use punched::Punched;
use region::Region;

/// Bytes to copy at a time from a file that cannot be mapped.
const FILL_BYTES: u64 = 256 << 10;
/// Instead of the number of a flush instruction: a journal is in use.
const JOURNALED: u8 = 0xff;

/// Persistent memory as the machine has it: mapped files, devices or anonymous memory.
///
/// # Cost
/// A word access is a compare and the access. A flush is one instruction for each line, chosen by a
/// predictable branch; a fence is one instruction and a predictable branch. With a journal a flush
/// notes the lines, and a fence copies them twice under a lock.
///
/// # Panics
/// Every access panics when it reaches outside of what is mapped, does not start at a multiple of
/// 8, or stores to a space mapped read-only.
#[derive(Debug)]
pub struct Hardware {
    /// Address of offset 0: `reservation.base()`.
    base: *mut AtomicU64,
    /// Words mapped.
    mapped_words: AtomicU64,
    /// Words mapped writable, where there is no journal: as many, or those before the first read-only region.
    writable_words: AtomicU64,
    /// The same where there is one.
    journaled_words: AtomicU64,
    /// The number of the [`FlushInstruction`] in use, always one that is available; or [`JOURNALED`].
    flush: AtomicU8,
    /// Whether the machine has the instruction [`Pmem::cas_u128`] needs.
    has_cas_u128: bool,
    /// Whether ranges are summed while they are copied by vectors.
    has_copy_sum: bool,
    options: HardwareOptions,
    reservation: Arc<Reservation>,
    regions: Mutex<Vec<Region>>,
    punched: Punched,
    journal: OnceLock<Arc<Journal>>,
    /// Those that the journal's stores go to.
    pages: Arc<Pages>,
    /// What is shown over the files' content.
    overlay: OnceLock<Lines>,
    /// Plain files are larger than memory. Set under the lock of the regions.
    expects_misses: AtomicBool,
    /// Files could not be synced.
    sync_failure: OnceLock<String>,
}

// SAFETY: `base` is the address of `reservation`, which may be sent.
unsafe impl Send for Hardware {}
// SAFETY: memory behind `base` is accessed by atomics only; everything else is `Sync` by itself.
unsafe impl Sync for Hardware {}

impl Hardware {
    /// Reserves address space, which grows when more is mapped; nothing is mapped yet.
    ///
    /// # Errors
    /// `Unsupported` when the machine lacks the instruction asked for. When no address space is to
    /// be had.
    ///
    /// # Cost
    /// One system call; no memory.
    pub fn new(options: HardwareOptions) -> io::Result<Self> {
        let flush = match options.flush {
            FlushChoice::Auto => FlushInstruction::detect(),
            FlushChoice::Never => FlushInstruction::None,
            FlushChoice::Instruction(instruction) => instruction,
        };
        if !flush.is_available() {
            let message = format!("this machine has no {flush} instruction");
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        let reservation = Arc::new(Reservation::new(options.reserve_bytes)?);
        Ok(Self {
            base: reservation.base(),
            mapped_words: AtomicU64::new(0),
            writable_words: AtomicU64::new(0),
            journaled_words: AtomicU64::new(0),
            flush: AtomicU8::new(flush as u8),
            has_cas_u128: arch::has_cas_u128(),
            has_copy_sum: arch::has_copy_sum(),
            options,
            pages: Arc::new(Pages::new(reservation.clone())),
            reservation,
            regions: Mutex::new(Vec::new()),
            punched: Punched::default(),
            journal: OnceLock::new(),
            overlay: OnceLock::new(),
            expects_misses: AtomicBool::new(false),
            sync_failure: OnceLock::new(),
        })
    }

    /// The instruction that flushes lines; [`FlushInstruction::None`] when nothing is flushed.
    #[inline(always)]
    pub fn flush_instruction(&self) -> FlushInstruction {
        FlushInstruction::from_number(self.flush.load(Ordering::Relaxed))
    }

    /// Whether some of the mapped memory lies on huge pages now: asked for or not, what the system
    /// really did. Untouched memory lies on no pages at all.
    ///
    /// # Cost
    /// Reads `/proc/self/smaps`: milliseconds for large mappings. For reports.
    pub fn uses_huge_pages(&self) -> bool {
        let start = self.base.addr();
        platform::huge_pages_in(start..start + self.reservation.usable())
    }

    /// Address space reserved so far, in bytes.
    pub fn address_space_bytes(&self) -> u64 {
        self.reservation.usable() as u64
    }

    /// Leaves out a check of [giving pages back](crate::journal::steps), for tools that must notice it.
    #[doc(hidden)]
    pub fn skip(&self, step: Site) {
        self.pages.skip(step);
    }

    fn regions(&self) -> MutexGuard<'_, Vec<Region>> {
        // The list is changed by a single push, so it is whole even after a panic of another thread.
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a journal keeps what is flushed and fenced.
    #[inline(always)]
    fn is_journaled(&self) -> bool {
        self.flush.load(Ordering::Relaxed) == JOURNALED
    }

    /// Notes flushed lines for the next fence.
    #[inline(never)]
    fn mark(&self, range: Extent) {
        // The check; a range inside the mapped space touches only lines inside it.
        let _ = self.words(range.offset(), range.length());
        if let Some(journal) = self.journal.get() {
            journal.mark(range);
        }
    }

    /// As [`mark`](Self::mark), of lines that are new in their place.
    #[inline(never)]
    fn mark_new(&self, journal: &Journal, range: Extent, emptied: Fenced, is_shared: bool) {
        // The check; a range inside the mapped space touches only lines inside it.
        let _ = self.words(range.offset(), range.length());
        journal.mark_new(range, emptied, is_shared);
    }

    /// As [`mark`](Self::mark), of lines beside new ones.
    #[inline(never)]
    fn mark_beside_new(&self, journal: &Journal, range: Extent) {
        // As in `mark_new`.
        let _ = self.words(range.offset(), range.length());
        journal.mark_beside_new(range);
    }

    /// Appends what this thread has flushed to the journal.
    #[inline(never)]
    fn append(&self) {
        let Some(journal) = self.journal.get() else { return };
        journal.append(|at, into| {
            let words = self.words(at, CACHE_LINE);
            words::read(words, into);
            // Word stores to a line count in their order: a content that is there twice was there at
            // one moment. Others store little before they need the journal's lock, which is held.
            loop {
                fence(Ordering::Acquire);
                if words::equal(words, into) {
                    return;
                }
                words::read(words, into);
            }
        });
    }

    /// Fills a private region that is not published yet with what no mapping brings: the content of a
    /// file without a descriptor, and the overlay.
    fn fill(&self, at: u64, file: &dyn File, file_offset: u64, length: u64) -> io::Result<()> {
        if file.descriptor().is_none() {
            let mut chunk = vec![0; FILL_BYTES.min(length) as usize];
            for start in (0..length).step_by(FILL_BYTES as usize) {
                let chunk = &mut chunk[..FILL_BYTES.min(length - start) as usize];
                file.read_at(file_offset + start, chunk)?;
                self.put(at + start, chunk);
            }
        }
        let Some(lines) = self.overlay.get() else { return Ok(()) };
        lines.for_each_run(|first, bytes| {
            let end = (first + bytes.len() as u64).min(at + length);
            let start = first.max(at);
            if start < end {
                self.put(start, &bytes[(start - first) as usize..(end - first) as usize]);
            }
            Ok(())
        })
    }

    /// Copies bytes to a private region that was just mapped, behind the watermarks.
    fn put(&self, at: u64, bytes: &[u8]) {
        let start = self.base.wrapping_byte_add(at as usize);
        // SAFETY: `fill` stays inside the region, which is mapped writable at a multiple of the page
        // size and stays so while `self` lives; all access to its words is atomic.
        let words = unsafe { std::slice::from_raw_parts(start, bytes.len() / 8) };
        words::copy(words, bytes);
    }

    /// Calls `each` with the address of every line that `range` touches.
    #[inline(always)]
    fn for_lines(&self, range: Extent, mut each: impl FnMut(*const u8)) {
        // The check; a range inside the mapped space touches only lines inside it.
        let _ = self.words(range.offset(), range.length());
        for line in range.lines() {
            each(self.base.wrapping_byte_add((line * CACHE_LINE) as usize).cast());
        }
    }
}

impl Pmem for Hardware {
    fn map(&self, at: u64, file: &Arc<dyn File>, file_offset: u64, length: u64) -> io::Result<()> {
        let mut regions = self.regions();
        let mapped = self.mapped();
        assert_eq!(at, mapped, "a region must be mapped where the mapped space ends");
        let is_journaled = self.is_journaled();
        let watermark = if is_journaled { &self.journaled_words } else { &self.writable_words };
        let writable = watermark.load(Ordering::Relaxed) * 8;
        if writable < mapped && !file.is_read_only() {
            let message = "a writable region cannot follow a read-only one";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        // What is only read need not be shared: a file that cannot be mapped is read into memory.
        let is_copy =
            file.descriptor().is_none() && file.is_read_only() && file.medium()? == Medium::File;
        let is_private = is_journaled || self.overlay.get().is_some() || is_copy;
        let region = Region::map(&self.reservation, at, file, file_offset, length, is_private)?;
        if is_private {
            self.fill(at, &**file, file_offset, length)?;
        }
        if let Some(journal) = self.journal.get() {
            self.pages.add(at + length)?;
            journal.add_data_file(at, file, file_offset, length);
        }
        // On an ordinary file a huge page would allocate 2 MiB of disk at its first touch.
        let wants_huge_pages = self.options.huge_pages && region.medium() != Medium::File;
        if wants_huge_pages && !self.reservation.advise_huge(at as usize, length as usize) {
            log::debug!("huge pages refused for {length} bytes at offset {at}");
        }
        if region.medium() == Medium::File && self.expects_misses.load(Ordering::Relaxed) {
            self.advise_random(at, length);
        }
        let writable = if region.is_read_only() { writable } else { at + length };
        regions.push(region);
        let weakest = region::weakest_medium(&regions);
        if self.options.flush == FlushChoice::Auto && !is_journaled {
            let persistent = weakest.is_persistent_memory() && platform::caches_are_persistent();
            let flush =
                if persistent { FlushInstruction::None } else { FlushInstruction::detect() };
            self.flush.store(flush as u8, Ordering::Relaxed);
        }
        watermark.store(writable / 8, Ordering::Release);
        self.mapped_words.store((at + length) / 8, Ordering::Release);
        Ok(())
    }

    #[inline(always)]
    fn mapped(&self) -> u64 {
        self.mapped_words.load(Ordering::Acquire) * 8
    }

    fn populate(&self, at: u64, length: u64) -> io::Result<()> {
        let end = at.checked_add(length).filter(|&end| end <= self.mapped());
        assert!(end.is_some(), "cannot populate {length} bytes at offset {at}: not mapped");
        let touch = |page| self.touch(page);
        region::populate(&self.regions(), &self.reservation, at..at + length, touch)
    }

    fn expect_misses(&self) {
        self.advise_misses();
    }

    fn expect_stores(&self, range: Extent) {
        self.advise_stores(range);
    }

    fn expect_loads(&self, range: Extent) {
        self.advise_loads(range);
    }

    fn use_journal(&self, journal: Arc<Journal>) -> io::Result<()> {
        assert_eq!(self.mapped(), 0, "a journal must be in use before anything is mapped");
        journal.use_pages(self.pages.clone());
        if self.journal.set(journal).is_err() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.flush.store(JOURNALED, Ordering::Release);
        Ok(())
    }

    #[inline(always)]
    fn journal(&self) -> Option<&Arc<Journal>> {
        if self.is_journaled() { self.journal.get() } else { None }
    }

    fn overlay(&self, lines: Lines) -> io::Result<()> {
        assert_eq!(self.mapped(), 0, "an overlay must be there before anything is mapped");
        self.overlay.set(lines).map_err(|_| io::ErrorKind::AlreadyExists.into())
    }

    /// The weakest medium mapped so far; [`Medium::Anonymous`] while nothing is.
    fn medium(&self) -> Medium {
        region::weakest_medium(&self.regions())
    }

    #[inline(always)]
    fn load_u64(&self, at: u64) -> u64 {
        // A relaxed load and a fence, because only relaxed loads are allowed on read-only pages.
        if !is_word_below(&self.mapped_words, at) {
            self.refuse(at, 8);
        }
        // SAFETY: it lies below that watermark.
        let value = unsafe { self.words_at(at, 8) }[0].load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        value
    }

    #[inline(always)]
    fn store_u64(&self, at: u64, value: u64, _site: Site) {
        let is_direct = is_word_below(&self.writable_words, at);
        // Twice, so that the one without a journal is a compare and a store.
        if is_direct {
            // SAFETY: it lies below that watermark.
            let words = unsafe { self.words_at(at, 8) };
            return words[0].store(value, Ordering::Release);
        }
        self.begin_store(at, 8);
        // SAFETY: it lies below `journaled_words`, as `begin_store` has seen.
        let words = unsafe { self.words_at(at, 8) };
        words[0].store(value, Ordering::Release);
        self.end_store(at, 8);
    }

    #[inline(always)]
    fn cas_u64(&self, at: u64, current: u64, new: u64, _site: Site) -> Result<u64, u64> {
        self.store_words(at, 8, |words| {
            words[0].compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
        })
    }

    #[inline(always)]
    fn cas_u128(&self, at: u64, current: u128, new: u128, _site: Site) -> Result<u128, u128> {
        assert!(at.is_multiple_of(16), "16-byte compare and swap at offset {at}");
        assert!(self.has_cas_u128, "this machine has no 16-byte compare and swap");
        let found = self.store_words(at, 16, |words| {
            let place = words.as_ptr().cast_mut().cast();
            // SAFETY: 16 mapped, writable bytes at a multiple of 16 (the base is one of 2 MiB), and the
            // machine has the instruction.
            unsafe { arch::cas_u128(place, current, new) }
        });
        if found == current { Ok(found) } else { Err(found) }
    }

    #[inline]
    fn read(&self, from: Extent, into: &mut [u8]) {
        let length = into.len() as u64;
        assert!(length <= from.length(), "read of {length} bytes from {from:?}");
        self.ask_for(from.offset(), length);
        words::read(self.words(from.offset(), length), into);
    }

    #[inline(always)]
    fn read_sum(&self, from: Extent, first_word: u64, into: &mut [u8]) -> u64 {
        let length = into.len() as u64;
        assert!(length <= from.length(), "read of {length} bytes from {from:?}");
        self.ask_for(from.offset(), length);
        words::read_sum(self.words(from.offset(), length), first_word, into, self.has_copy_sum)
    }

    #[inline(always)]
    fn compare(&self, with: Extent, bytes: &[u8]) -> bool {
        let length = bytes.len() as u64;
        assert!(length <= with.length(), "compare of {length} bytes with {with:?}");
        words::equal(self.words(with.offset(), length), bytes)
    }

    #[inline]
    fn prefetch(&self, range: Extent) {
        self.ask_for(range.offset(), range.length());
        self.for_lines(range, arch::prefetch_line);
    }

    #[inline]
    fn prefetch_write(&self, range: Extent) {
        self.for_lines(range, arch::prefetch_line_write);
    }

    #[inline]
    fn copy(&self, to: Extent, bytes: &[u8], _site: Site) {
        let length = bytes.len() as u64;
        assert!(length <= to.length(), "copy of {length} bytes to {to:?}");
        if length >= BY_FILE_BYTES_MIN {
            return self.copy_long(to.offset(), bytes);
        }
        self.store_words(to.offset(), length, |words| words::copy(words, bytes));
    }

    #[inline(always)]
    fn copy_sum(&self, to: Extent, bytes: &[u8], _site: Site) -> u64 {
        let length = bytes.len() as u64;
        assert!(length <= to.length(), "copy of {length} bytes to {to:?}");
        self.copy_words_sum(to.offset(), bytes)
    }

    #[inline]
    fn copy_nt(&self, to: Extent, bytes: &[u8], _site: Site) {
        let length = bytes.len() as u64;
        assert!(length <= to.length(), "copy of {length} bytes to {to:?}");
        let whole = to.offset().is_multiple_of(CACHE_LINE) && length.is_multiple_of(CACHE_LINE);
        assert!(whole, "copy past the cache of {length} bytes to {to:?}: not whole lines");
        if !is_below(&self.writable_words, to.offset(), length) {
            self.store_words(to.offset(), length, |words| words::copy(words, bytes));
            return self.mark(Extent::new_checked(to.offset(), length));
        }
        // SAFETY: they lie below that watermark.
        let words = unsafe { self.words_at(to.offset(), length) };
        let (lines, _) = words.as_chunks::<8>();
        let (sources, _) = bytes.as_chunks::<64>();
        for (line, source) in lines.iter().zip(sources) {
            let line = line.as_ptr().cast_mut().cast();
            // SAFETY: 64 mapped, writable bytes at a multiple of 64, and 64 bytes to read.
            unsafe { arch::copy_nt_line(line, source.as_ptr()) };
        }
    }

    #[inline]
    fn zero(&self, range: Extent, _site: Site) {
        assert!(range.length().is_multiple_of(8), "zero of {range:?}: not whole words");
        self.store_words(range.offset(), range.length(), words::zero);
    }

    /// # Durability
    /// None until the same thread's next [`fence`](Pmem::fence).
    #[inline]
    fn flush(&self, range: Extent, _site: Site) {
        let number = self.flush.load(Ordering::Relaxed);
        if number == JOURNALED {
            return self.mark(range);
        }
        let instruction = FlushInstruction::from_number(number);
        self.for_lines(range, |line| {
            // SAFETY: the line is mapped, and only available instructions are ever chosen.
            unsafe { arch::flush_line(instruction, line) };
        });
    }

    #[inline]
    fn flush_new(&self, range: Extent, emptied: Fenced, site: Site) {
        match self.journal() {
            Some(journal) => self.mark_new(journal, range, emptied, false),
            None => self.flush(range, site),
        }
    }

    #[inline]
    fn flush_new_shared(&self, range: Extent, emptied: Fenced, site: Site) {
        match self.journal() {
            Some(journal) => self.mark_new(journal, range, emptied, true),
            None => self.flush(range, site),
        }
    }

    #[inline]
    fn flush_beside_new(&self, range: Extent, site: Site) {
        match self.journal() {
            Some(journal) => self.mark_beside_new(journal, range),
            None => self.flush(range, site),
        }
    }

    fn take_new(&self, range: Extent, ahead: Extent, emptied: Fenced) {
        if let Some(journal) = self.journal() {
            // The check.
            let _ = self.words(range.offset(), range.length());
            let _ = self.words(ahead.offset(), ahead.length());
            journal.take_new(range, ahead, emptied);
        }
    }

    #[inline]
    fn fenced(&self) -> Fenced {
        self.journal().map_or_else(Fenced::default, |journal| journal.fenced())
    }

    /// # Durability
    /// On persistent memory, everything this thread flushed or copied past the cache. With a journal
    /// that survives the end of the process, and a power loss once the journal is synced.
    #[inline(always)]
    fn fence(&self, _site: Site) {
        arch::fence();
        if self.is_journaled() {
            self.append();
        }
    }

    fn punch(&self, range: Extent, _site: Site) -> io::Result<bool> {
        let writable =
            if self.is_journaled() { &self.journaled_words } else { &self.writable_words };
        if !is_below(writable, range.offset(), range.length()) {
            self.refuse(range.offset(), range.length());
        }
        if let Some(journal) = self.journal() {
            // An entry that names the range would bring its content back.
            journal.checkpoint()?;
        }
        let is_punched = region::punch(&self.regions(), &self.reservation, &self.punched, range)?;
        if is_punched && self.is_journaled() {
            self.pages.discarded(range.offset()..range.end());
        }
        Ok(is_punched)
    }

    fn sync_punched(&self, _site: Site) -> io::Result<()> {
        match self.journal() {
            _ if self.pages.skips(steps::HOLES_SYNC) => Ok(()),
            Some(journal) => {
                // Whoever flushed late has brought back what was there: the file and memory are to agree on that.
                journal.checkpoint_appended()?;
                self.punched.sync(|file| journal.sync_data_file(file))
            }
            None => self.punched.sync(|file| file.sync()),
        }
    }

    /// # Durability
    /// On persistent memory nothing beyond what was flushed and fenced. On an ordinary file
    /// everything stored before the call; with a journal, everything fenced. In memory nothing.
    fn sync(&self, _site: Site) -> io::Result<()> {
        arch::fence();
        if let Some(journal) = self.journal() {
            return journal.sync();
        }
        if let Some(failure) = self.sync_failure.get() {
            return Err(io::Error::other(failure.clone()));
        }
        let files = region::files_to_sync(&self.regions());
        files.iter().try_for_each(|file| file.sync()).inspect_err(|error| {
            // The kernel does not try again to write what it could not: a later sync would only seem to.
            self.sync_failure.get_or_init(|| format!("cannot sync, since earlier: {error}"));
        })
    }
}
