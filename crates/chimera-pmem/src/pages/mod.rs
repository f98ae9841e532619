//! [`Pages`]: which pages of privately mapped files have stores of their own, and giving those back that have none any
//! more.
//!
//! The kernel copies a page of a private mapping at the first store to it, and keeps the copy, which is memory that cannot
//! be written back. A page whose content is that of its file needs no copy: `MADV_DONTNEED` lets the next access map the
//! page of the file, which the kernel can write back and evict.
//!
//! # Invariants
//! 1. A page without PRIVATE in its state has had no store since it was mapped or given back: memory shows the file.
//! 2. **Readers see no change when a page is given back.** Under GIVING nobody stores to the page, and it has the bytes that
//!    its file has. Comparing all of them needs no knowledge of what was stored, flushed or written back.
//! 3. **No write to the file changes a clean page.** Only lines of journal entries are written to the file, oldest first, lines
//!    as a thread has just stored them in their place, and the mark of the journal, which nobody reads through memory; and in
//!    the middle of a store what goes to a page that is shared. A page
//!    is given back only when no entry that names it is pending: `appended` is set before the lines of an entry are read, and
//!    looked at under GIVING. So an entry whose position is not seen there reads its lines later, and what it reads is what
//!    the clean page has, or what a later store has put into a page that is private again.
//! 4. **Nothing is lost.** Entries that name the page are before `start`, so everything flushed that it held lies in a data file
//!    that was synced since. What was stored and not flushed has no promise, and stays: then the page differs. Lines that are
//!    new in their place lie in their file before their entry names the page: a sync covers them before it covers that. After a
//!    sync that failed `start` does not move, and no page of that checkpoint is given back.
//!
//! # Thread safety
//! Everything takes `&self` and may be called from any thread, [`Pages::give_back`] by one at a time. Nobody waits for
//! a writer. A writer waits for a page that is being given back, which takes a comparison and a system call.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};

use zerocopy::FromZeros;

use crate::mapping::{Reservation, words};
use crate::{Arena, Site};

#[cfg(all(test, loom))]
mod models;
mod page_state;
mod shared;
#[cfg(test)]
mod tests;

/// What `page_state` is made of; a model of it has other ones.
mod atomic {
    pub(super) use std::sync::atomic::{AtomicU32, Ordering};
}

/// What a tool can leave out.
pub mod steps {
    crate::steps! {
        /// A page is given back only if it has the bytes of its file.
        COMPARE = "journal.step.page_compare";
        /// Lines go to their place ahead of their entry only if no state that a crash can bring back has anything there.
        EMPTIED = "journal.step.emptied";
        /// Nor where an entry that is pending may write older content over them.
        UNNAMED = "journal.step.unnamed";
        /// Such lines are durable before their entry is.
        DIRECT_SYNC = "journal.step.direct_sync";
        /// Before such lines change, the journal says durably that they were there.
        PLACED = "journal.step.placed";
        /// A place is taken only if no entry is pending that says what was there.
        TAKEN_UNNAMED = "journal.step.taken_unnamed";
        /// A sync keeps in memory what is stored to places that were taken before it.
        TAKEN_ENDS = "journal.step.taken_ends";
        /// Where storage was given back, that is durable before anything is stored there again.
        HOLES_SYNC = "journal.step.holes_sync";
    }
}

/// Pages whose state lies on the heap: those of small pools.
const SMALL_PAGES: usize = 256;
/// Most bytes of entries that are pending.
pub(crate) const PENDING_BYTES_MAX: u64 = 1 << 30;
/// Clean pages to let go of together: writers wait as long as that takes.
const FORGET_PAGES: u64 = 256;
/// Positions are multiples of this.
const POSITION_UNIT: u64 = 8;
/// Beside the bits of a position: of the entries that name the page and may be pending, not all are
/// [beside](crate::Pmem::flush_beside_new) what is new in its place.
const OTHERS: u32 = 1 << 31;

/// A page of a private mapping.
#[derive(Debug, FromZeros)]
struct Page {
    state: AtomicU32,
    /// Low bits of the position behind the last entry that names the page, in words, and [`OTHERS`]. An entry of an earlier
    /// round of the bits may seem to be pending for a while. None that is pending seems not to be: they all fit in a journal.
    appended: AtomicU32,
}

impl Page {
    /// Whether an entry may be pending that names it. All that end at `reached` or before are written back.
    fn is_pending(&self, reached: u64) -> bool {
        is_behind(self.appended.load(Ordering::Relaxed), reached)
    }

    /// Whether one of those may be pending that say something else of the page than what is new in its place.
    fn is_pending_by_others(&self, reached: u64) -> bool {
        let appended = self.appended.load(Ordering::Relaxed);
        appended & OTHERS > 0 && is_behind(appended, reached)
    }
}

/// What becomes of a page that is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backing {
    /// The next access maps the page of the file.
    Mapped,
    /// There is nothing to map: the content of the file is copied.
    Copied,
}

/// Pages of private mappings.
pub(crate) struct Pages {
    memory: Arc<Reservation>,
    page_bytes: u64,
    table: Arena<Page>,
    /// Pages with stores of their own.
    private: AtomicU64,
    /// Pages given back so far.
    given: AtomicU64,
    /// Pages that are missing are read without those around them.
    reads_alone: AtomicBool,
    /// Some pages are or were shared of a file that is not mapped.
    writes_through: AtomicBool,
    skipped: OnceLock<Site>,
}

impl Pages {
    pub(crate) fn new(memory: Arc<Reservation>) -> Self {
        Self {
            memory,
            page_bytes: rustix::param::page_size() as u64,
            table: Arena::new(SMALL_PAGES, false),
            private: AtomicU64::new(0),
            given: AtomicU64::new(0),
            reads_alone: AtomicBool::new(false),
            writes_through: AtomicBool::new(false),
            skipped: OnceLock::new(),
        }
    }

    /// From now on pages before `end` are known. They are mapped, writable.
    pub(crate) fn add(&self, end: u64) -> std::io::Result<()> {
        self.table.ensure(end / self.page_bytes)
    }

    /// Leaves out a check, for tools that must notice it.
    pub(crate) fn skip(&self, step: Site) {
        self.skipped.get_or_init(|| step);
    }

    pub(crate) fn skips(&self, step: Site) -> bool {
        self.skipped.get() == Some(&step)
    }

    /// From now on pages that are missing are to be read without those around them.
    pub(crate) fn read_alone(&self) {
        self.reads_alone.store(true, Ordering::Relaxed);
    }

    pub(crate) fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Pages that are known.
    pub(crate) fn count(&self) -> u64 {
        self.table.count()
    }

    /// Bytes of pages with stores of their own.
    pub(crate) fn private_bytes(&self) -> u64 {
        self.private.load(Ordering::Relaxed) * self.page_bytes
    }

    /// Bytes of pages given back so far.
    pub(crate) fn given_bytes(&self) -> u64 {
        self.given.load(Ordering::Relaxed) * self.page_bytes
    }

    fn page(&self, number: u64) -> &Page {
        self.table.get(number).expect("every page that is mapped is known")
    }

    /// The pages that `length` bytes at `at` touch.
    fn touched(&self, at: u64, length: u64) -> Range<u64> {
        at / self.page_bytes..(at + length).div_ceil(self.page_bytes)
    }

    fn words(&self, number: u64) -> &[AtomicU64] {
        assert!(number < self.count(), "page {number} is not known");
        let start = self.memory.base().wrapping_byte_add((number * self.page_bytes) as usize);
        // SAFETY: a page that is known is mapped, and stays so while `memory` lives; all access to its words is atomic.
        unsafe { std::slice::from_raw_parts(start, (self.page_bytes / 8) as usize) }
    }

    /// The caller may store to bytes `at .. at + length`, and nowhere else, until it calls [`end_store`](Self::end_store).
    /// `wait` lets others run; it is given the number of the attempt.
    ///
    /// # Cost
    /// An atomic addition for each page; the first store to a page that is clean another one.
    pub(crate) fn begin_store(&self, at: u64, length: u64, wait: impl Fn(u32)) {
        for number in self.touched(at, length) {
            let mut attempt = 0;
            let wait = || {
                wait(attempt);
                attempt += 1;
            };
            if page_state::begin(&self.page(number).state, wait) {
                self.private.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Ends what [`begin_store`](Self::begin_store) began.
    ///
    /// # Cost
    /// An atomic subtraction for each page.
    pub(crate) fn end_store(&self, at: u64, length: u64) {
        for number in self.touched(at, length) {
            page_state::end(&self.page(number).state);
        }
    }

    /// Notes that an entry that ends at `position` names `length` bytes at `at`. Called under the lock that orders entries,
    /// before [`fence_entry`](Self::fence_entry).
    pub(crate) fn name(&self, at: u64, length: u64, position: u64) {
        for number in self.touched(at, length) {
            self.page(number).appended.store(low_bits(position) | OTHERS, Ordering::Relaxed);
        }
    }

    /// As [`name`](Self::name), of lines beside new ones. All entries up to `reached` are written back.
    pub(crate) fn name_beside_new(&self, at: u64, length: u64, position: u64, reached: u64) {
        for number in self.touched(at, length) {
            let page = self.page(number);
            let others = if page.is_pending_by_others(reached) { OTHERS } else { 0 };
            // Nobody else changes it: the caller has the lock.
            page.appended.store(low_bits(position) | others, Ordering::Relaxed);
        }
    }

    /// Comes between naming the pages of an entry and reading its lines.
    pub(crate) fn fence_entry() {
        // Either `is_pending` sees the position, or the lines are read after the page was held.
        fence(Ordering::SeqCst);
    }

    /// Whether an entry that ends behind `since` may name lines of a page that are not beside new ones.
    pub(crate) fn is_named_by_others(&self, number: u64, since: u64) -> bool {
        self.page(number).is_pending_by_others(since)
    }

    /// Whether [`give_back`](Self::give_back) may succeed.
    pub(crate) fn may_give_back(&self, number: u64, reached: u64) -> bool {
        let page = self.page(number);
        page_state::is_idle(&page.state) && !page.is_pending(reached)
    }

    /// Gives pages back, from page `first` on, where they have the content of their file, which is `content` and does not
    /// change meanwhile. All entries up to `reached` are written back, and the file is synced.
    pub(crate) fn give_back(&self, first: u64, content: &[u8], reached: u64, backing: Backing) {
        let mut held = first..first;
        for (number, content) in (first..).zip(content.chunks_exact(self.page_bytes as usize)) {
            if self.hold(number, content, reached) {
                if backing == Backing::Copied {
                    words::copy(self.words(number), content);
                }
                held.end = number + 1;
            } else {
                self.let_go(held, backing);
                held = number + 1..number + 1;
            }
        }
        self.let_go(held, backing);
    }

    /// Keeps writers out of a page that may be given back.
    fn hold(&self, number: u64, content: &[u8], reached: u64) -> bool {
        let page = self.page(number);
        if !page_state::try_hold(&page.state) {
            return false;
        }
        fence(Ordering::SeqCst);
        let is_same = || words::equal(self.words(number), content) || self.skips(steps::COMPARE);
        let may_go = !page.is_pending(reached) && is_same();
        if !may_go {
            page_state::keep(&page.state);
        }
        may_go
    }

    /// Gives back pages that are held.
    fn let_go(&self, held: Range<u64>, backing: Backing) {
        let count = held.end - held.start;
        if count == 0 {
            return;
        }
        let (at, length) = (held.start * self.page_bytes, count * self.page_bytes);
        let discarded = match backing {
            Backing::Mapped => self.memory.discard(at as usize, length as usize),
            Backing::Copied => Ok(()),
        };
        let is_done = discarded.inspect_err(|error| log::debug!("no page given back: {error}"));
        let end = if is_done.is_ok() { page_state::give } else { page_state::keep };
        held.for_each(|number| end(&self.page(number).state));
        if is_done.is_ok() {
            self.private.fetch_sub(count, Ordering::Relaxed);
            self.given.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Lets go of clean pages of mapped files, which the next access maps again. Of a process that reads much they are most
    /// of its memory, and the kernel takes them only when the whole machine needs memory.
    pub(crate) fn forget_clean(&self, range: Range<u64>) {
        let pages = range.start / self.page_bytes..range.end / self.page_bytes;
        let mut held = pages.start..pages.start;
        for number in pages {
            if !page_state::try_hold_clean(&self.page(number).state) {
                self.forget(held);
                held = number + 1..number + 1;
                continue;
            }
            held.end = number + 1;
            if held.end - held.start == FORGET_PAGES {
                self.forget(held);
                held = number + 1..number + 1;
            }
        }
        self.forget(held);
    }

    /// Lets go of clean pages that are held.
    fn forget(&self, held: Range<u64>) {
        let (at, length) =
            (held.start * self.page_bytes, (held.end - held.start) * self.page_bytes);
        if length > 0
            && let Err(error) = self.memory.discard(at as usize, length as usize)
        {
            log::debug!("pages stay in memory: {error}");
        }
        held.for_each(|number| page_state::keep(&self.page(number).state));
    }

    /// The pages of a range were discarded, to which nobody stores: they are clean.
    pub(crate) fn discarded(&self, range: Range<u64>) {
        for number in range.start.div_ceil(self.page_bytes)..range.end / self.page_bytes {
            let state = &self.page(number).state;
            if page_state::try_hold(state) {
                page_state::give(state);
                self.private.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Whole lines were written to a file that is not mapped: clean pages show it, as they would if it was.
    pub(crate) fn show(&self, at: u64, bytes: &[u8]) {
        for number in self.touched(at, bytes.len() as u64) {
            let state = &self.page(number).state;
            if !page_state::try_hold_clean(state) {
                continue;
            }
            let page = number * self.page_bytes;
            let (start, end) =
                (at.max(page), (at + bytes.len() as u64).min(page + self.page_bytes));
            let words =
                &self.words(number)[((start - page) / 8) as usize..((end - page) / 8) as usize];
            words::copy(words, &bytes[(start - at) as usize..(end - at) as usize]);
            page_state::keep(state);
        }
    }
}

fn low_bits(position: u64) -> u32 {
    (position / POSITION_UNIT) as u32 & !OTHERS
}

/// Whether the position that a page was named at may be behind another one.
fn is_behind(appended: u32, reached: u64) -> bool {
    let ahead = appended.wrapping_sub(low_bits(reached)) & !OTHERS;
    (1..=low_bits(PENDING_BYTES_MAX)).contains(&ahead)
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("pages", &self.count())
            .field("private", &self.private)
            .field("given", &self.given)
            .finish_non_exhaustive()
    }
}
