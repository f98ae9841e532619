//! [`Budget`]: how much memory the private pages may take, and waiting for it.
//!
//! From half of the limit on pages are given back in the background. At the limit an operation waits at its end, outside of
//! all locks. Far above it a fence waits as well: a step that stores to many pages has no end in between.
//!
//! Nobody waits for what cannot be: after a look at all pages the next one comes when an eighth of the limit is stored to
//! again.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::{Journal, lock};
use crate::pages::Pages;

/// Bytes of lines to write back at a time, at most.
const PIECE_BYTES_MAX: u64 = 64 << 20;
/// The same at least.
const PIECE_BYTES_MIN: u64 = 256 << 10;

/// How often to let go of clean pages: whoever reads them next waits for each.
const FORGET_EVERY: Duration = Duration::from_secs(5);
/// Limits that differ by less than this part are alike.
const ALIKE_PART: u64 = 32;

/// What a store may take of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Bytes for everything. Where all files that the process has mapped take more, clean pages are let go of.
    pub budget: u64,
    /// Bytes of that without which the store cannot do: of its index and tables, and of a few pages.
    pub needed: u64,
    /// Where more than this is needed, nothing more is to be taken in.
    pub needed_max: u64,
    /// Bytes of pages that were stored to.
    pub pages: u64,
    /// Bytes of tables in memory that could as well be smaller: then something else is done more often.
    pub tables: u64,
}

/// Says now and then what a store may take.
type AskLimits = Box<dyn Fn() -> Option<MemoryLimits> + Send + Sync>;

/// Memory of pages that have stores of their own, and what became of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PageFigures {
    /// Bytes of memory that the store may take; the highest number where nothing says that.
    pub budget_bytes: u64,
    /// Bytes of memory that the store cannot do without: index, tables, and 8 MiB for pages. Looked at every second where a budget
    /// was asked for, else every few seconds.
    pub needed_bytes: u64,
    /// Bytes that pages may take before writers wait.
    pub limit_bytes: u64,
    /// Bytes of pages that memory holds because they were stored to.
    pub private_bytes: u64,
    /// Bytes of lines that checkpoints have written to the data files.
    pub written_back_bytes: u64,
    /// Bytes of pages that were given back: what they held is in the data files.
    pub given_back_bytes: u64,
    /// How often a writer has waited until pages were given back.
    pub waits: u64,
    /// Nanoseconds that writers have waited for that.
    pub wait_ns: u64,
}

/// A limit, and when to look after it.
pub(super) struct Budget {
    /// Bytes for everything.
    whole: AtomicU64,
    /// Bytes without which the store cannot do.
    needed: AtomicU64,
    /// Bytes that it must not need more than.
    needed_max: AtomicU64,
    /// Bytes of tables that could as well be smaller.
    tables: AtomicU64,
    /// It needs more.
    is_exceeded: AtomicBool,
    /// Bytes of pages that were stored to.
    limit: AtomicU64,
    /// The background begins here.
    wake_at: AtomicU64,
    /// Writers wait here.
    wait_at: AtomicU64,
    pub(super) written_back: AtomicU64,
    waits: AtomicU64,
    wait_ns: AtomicU64,
    /// How often to ask, and whom.
    ask: OnceLock<(Duration, AskLimits)>,
    /// When to ask next.
    ask_at_ns: AtomicU64,
    /// When to let go of clean pages next.
    forget_at_ns: AtomicU64,
}

impl Default for Budget {
    fn default() -> Self {
        let none = || AtomicU64::new(u64::MAX);
        let zero = || AtomicU64::new(0);
        Self {
            whole: none(),
            needed: zero(),
            needed_max: none(),
            tables: none(),
            is_exceeded: AtomicBool::new(false),
            limit: none(),
            wake_at: none(),
            wait_at: none(),
            written_back: zero(),
            waits: zero(),
            wait_ns: zero(),
            ask: OnceLock::new(),
            ask_at_ns: zero(),
            forget_at_ns: zero(),
        }
    }
}

impl Budget {
    fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    pub(super) fn half(&self) -> u64 {
        self.limit() / 2
    }

    pub(super) fn is_half_used(&self, private_bytes: u64) -> bool {
        private_bytes > self.half()
    }

    /// Bytes of lines to write back at a time.
    pub(super) fn piece_bytes(&self) -> usize {
        (self.limit() / 8).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX) as usize
    }

    fn wake_at(&self) -> u64 {
        self.wake_at.load(Ordering::Relaxed)
    }

    fn wait_at(&self) -> u64 {
        self.wait_at.load(Ordering::Relaxed)
    }

    /// Pages were given back without a look at all; so much is left.
    pub(super) fn has_less(&self, private_bytes: u64) {
        let limit = self.limit();
        let next = private_bytes.saturating_add(limit / 8);
        self.wake_at.fetch_min(next.max(limit / 2), Ordering::Relaxed);
        self.wait_at.fetch_min(next.max(limit), Ordering::Relaxed);
    }

    /// What can be given back is given back; so much is left.
    pub(super) fn looked_at(&self, private_bytes: u64) {
        let limit = self.limit();
        let next = private_bytes.saturating_add(limit / 8);
        self.wake_at.store(next.max(limit / 2), Ordering::Relaxed);
        self.wait_at.store(next.max(limit), Ordering::Relaxed);
    }
}

impl Journal {
    /// Lets the pages of `pages` be given back.
    pub(crate) fn use_pages(&self, pages: Arc<Pages>) {
        self.pages.get_or_init(|| pages);
    }

    /// Lets others run while a page is being given back.
    pub(crate) fn relax(&self, attempt: u32) {
        self.environment.relax(attempt);
    }

    /// From now on pages that were stored to are to take no more than `bytes` of memory. There is no limit before.
    ///
    /// A limit that is much like the one before changes nothing: a look at all pages follows a new one.
    pub fn limit_pages(&self, bytes: u64) {
        let before = self.budget.limit();
        if bytes.abs_diff(before) > before / ALIKE_PART {
            self.budget.limit.store(bytes, Ordering::Relaxed);
            self.budget.looked_at(0);
        }
    }

    /// From now on a store may take so much. Where it needs more it says so, once until it needs less again.
    pub fn limit_memory(&self, limits: MemoryLimits) {
        let MemoryLimits { budget, needed, needed_max, pages, tables } = limits;
        let budget_before = self.budget.whole.swap(budget, Ordering::Relaxed);
        let needed_before = self.budget.needed.swap(needed, Ordering::Relaxed);
        self.budget.needed_max.store(needed_max, Ordering::Relaxed);
        self.limit_tables(tables);
        self.budget.is_exceeded.store(needed > needed_max, Ordering::Relaxed);
        if needed > budget && needed_before <= budget_before {
            log::warn!(
                "the store needs {needed} bytes of memory for its index, its tables and a few pages, which is more than its \
                 budget of {budget} bytes"
            );
        }
        self.limit_pages(pages);
    }

    /// From now on tables in memory which could as well be smaller may take so many bytes. Also while a store is being opened, when
    /// nothing gives pages back yet.
    pub fn limit_tables(&self, bytes: u64) {
        self.budget.tables.store(bytes, Ordering::Relaxed);
    }

    /// Bytes that tables in memory may take which could as well be smaller; `u64::MAX` where there is no limit.
    pub fn table_bytes_max(&self) -> u64 {
        self.budget.tables.load(Ordering::Relaxed)
    }

    /// Whether the store needs more memory than it must, as of the last look.
    #[inline(always)]
    pub fn needs_too_much(&self) -> bool {
        self.budget.is_exceeded.load(Ordering::Relaxed)
    }

    /// Bytes of memory that the store needs, and what it must not need more than, as of the last look.
    pub fn needs(&self) -> (u64, u64) {
        let Budget { needed, needed_max, .. } = &self.budget;
        (needed.load(Ordering::Relaxed), needed_max.load(Ordering::Relaxed))
    }

    /// Asks in the background, so often from now on, what a store may take. Nothing changes where the answer is
    /// `None`.
    pub fn ask_for_limits(
        &self,
        every: Duration,
        ask: impl Fn() -> Option<MemoryLimits> + Send + Sync + 'static,
    ) {
        self.budget.ask.get_or_init(|| (every, Box::new(ask)));
        self.wake_checkpointer();
    }

    /// Asks, if there is somebody to ask and it is time; how often.
    pub(super) fn ask(&self) -> Option<Duration> {
        let (every, ask) = self.budget.ask.get()?;
        let now_ns = self.environment.now_ns();
        if is_due(&self.budget.ask_at_ns, now_ns, *every)
            && let Some(limits) = ask()
        {
            self.limit_memory(limits);
            if is_due(&self.budget.forget_at_ns, now_ns, FORGET_EVERY)
                && self.environment.mapped_file_bytes().is_some_and(|mapped| mapped > limits.budget)
            {
                self.forget_clean_pages();
            }
        }
        Some(*every)
    }

    /// What memory the pages take, and what became of others.
    pub fn page_figures(&self) -> PageFigures {
        let Budget { written_back, waits, wait_ns, .. } = &self.budget;
        PageFigures {
            budget_bytes: self.budget.whole.load(Ordering::Relaxed),
            needed_bytes: self.budget.needed.load(Ordering::Relaxed),
            limit_bytes: self.budget.limit(),
            private_bytes: self.private_bytes(),
            written_back_bytes: written_back.load(Ordering::Relaxed),
            given_back_bytes: self.pages.get().map_or(0, |pages| pages.given_bytes()),
            waits: waits.load(Ordering::Relaxed),
            wait_ns: wait_ns.load(Ordering::Relaxed),
        }
    }

    pub(super) fn private_bytes(&self) -> u64 {
        self.pages.get().map_or(0, |pages| pages.private_bytes())
    }

    /// Whether the background should give pages back.
    pub(super) fn wants_pages_back(&self) -> bool {
        self.private_bytes() > self.budget.wake_at()
    }

    /// At the end of an operation: waits while pages take more memory than they may.
    pub(super) fn keep_budget(&self) -> io::Result<()> {
        let private = self.private_bytes();
        if private > self.budget.wait_at() {
            return self.shrink();
        }
        if private > self.budget.wake_at() {
            self.wake_checkpointer();
        }
        Ok(())
    }

    /// In the middle of an operation: the same, where they take far more.
    pub(super) fn bound_pages(&self) -> io::Result<()> {
        let wait_at = self.budget.wait_at();
        if self.private_bytes() > wait_at.saturating_add(wait_at / 8) {
            return self.shrink();
        }
        Ok(())
    }

    /// Gives pages back until an eighth of the limit is free, or there is nothing more to give back.
    #[cold]
    fn shrink(&self) -> io::Result<()> {
        let begun_ns = self.environment.now_ns();
        let mut scratch = lock(&self.checkpoint);
        // Whoever had the lock before may have given enough back, or has found that nothing can be.
        if self.private_bytes() <= self.budget.wait_at() {
            return Ok(());
        }
        self.give_pages_back(&mut scratch, self.budget.limit() / 8 * 7)?;
        self.budget.waits.fetch_add(1, Ordering::Relaxed);
        let ns = self.environment.now_ns().saturating_sub(begun_ns);
        self.budget.wait_ns.fetch_add(ns, Ordering::Relaxed);
        Ok(())
    }
}

/// Whether the time `at_ns` has come; then the next one is `every` from now.
fn is_due(at_ns: &AtomicU64, now_ns: u64, every: Duration) -> bool {
    let is_due = now_ns >= at_ns.load(Ordering::Relaxed);
    if is_due {
        at_ns.store(now_ns.saturating_add(every.as_nanos() as u64), Ordering::Relaxed);
    }
    is_due
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("limit", &self.limit).finish_non_exhaustive()
    }
}
