//! Closing a pool in order.
//!
//! Everything is durable before one copy of the superblock says that the pool is closed. From then on it is, whatever becomes
//! of the steps after that: the other copy, the journal, and segments without blocks in use, whose files are removed.

use chimera_pmem::Pmem;

use super::{CLOSED_WORDS, Closing, Pool};
use crate::sync::atomic::Ordering;
use crate::types::error::{Error, Result};
use crate::types::totals::Totals;

/// What is left to do where a step behind the first copy of the superblock failed.
const LEFT_TO_OPENING: &str = "whoever opens it for writing next makes up for it";
const LEFT_TO_GROWTH: &str = "nothing in that file is needed: remove it, or leave it to the store, which replaces it when it \
                              grows";

impl<P: Pmem> Pool<P> {
    /// The pool has all its records: it may be closed in order.
    pub(crate) fn complete(&self) {
        self.is_incomplete.store(false, Ordering::Release);
    }

    /// Marks the pool as closed in order, after everything else is durable, with words that are in force until the pool
    /// is opened again, and with what the store holds. One that lacks records stays marked as such.
    ///
    /// # Errors
    /// When the medium fails, or files were removed or replaced; the pool then stays marked as open, and the next opening
    /// recovers it. `AfterClosing` when it is closed in order, and a step after that failed.
    pub(crate) fn close_with(
        &self,
        closed_words: [u64; CLOSED_WORDS],
        totals: Totals,
    ) -> Result<()> {
        if self.read_only {
            return Ok(());
        }
        self.stop_background();
        self.check_in_place()?;
        if self.is_incomplete.load(Ordering::Acquire) {
            return Ok(());
        }
        self.sync()?;
        let segments = self.superblock().segments;
        let needed = self.segments_needed(segments);
        if let Some(journal) = self.pmem.journal().filter(|_| needed < segments) {
            // From here on no entry names a byte of a segment that is about to go.
            let failed = Error::io("write back the journal of", &self.files.path);
            journal.checkpoint().map_err(failed)?;
        }
        self.mark_closed(needed, closed_words, totals)?;
        self.close_journal().map_err(after_closing(LEFT_TO_OPENING))?;
        // All that can be removed, whatever cannot.
        let removed = (needed..segments).map(|segment| self.files.remove_segment(segment));
        removed.fold(Ok(()), Result::and).map_err(after_closing(LEFT_TO_GROWTH))
    }

    /// Opening has found something else than the pool held when it was closed in order, and has changed nothing that
    /// matters: marks it as it was, so that all of it is compared again. One that was not closed in order is left with the
    /// totals that it has.
    ///
    /// # Errors
    /// As [`close_with`](Self::close_with).
    pub(crate) fn close_as_it_was(&self) -> Result<()> {
        match self.closed_totals {
            Some(totals) if !self.read_only && self.was_clean => {
                self.sync()?;
                self.mark_closed(self.superblock().segments, self.closed_words, totals)?;
                // As long as it is not closed the next opening knows what is yet to be removed.
                let closed = if self.has_leftovers { Ok(()) } else { self.close_journal() };
                closed.map_err(after_closing(LEFT_TO_OPENING))
            }
            _ => Ok(()),
        }
    }

    /// As [`close_with`](Self::close_with), with nothing to say.
    #[cfg(test)]
    pub(crate) fn close(&self) -> Result<()> {
        self.close_with([0; CLOSED_WORDS], Totals::default())
    }

    /// Says that the pool is closed in order, in both copies: either one alone must be enough. The journal is yet to be closed.
    fn mark_closed(
        &self,
        segments: u64,
        closed_words: [u64; CLOSED_WORDS],
        totals: Totals,
    ) -> Result<()> {
        self.change_superblock(|superblock| {
            superblock.segments = segments;
            superblock.closing = Closing::Clean;
            superblock.closed_words = closed_words;
            superblock.totals = totals;
        });
        self.sync()?;
        let rest = || {
            self.change_superblock(|_| {});
            self.sync()
        };
        rest().map_err(after_closing(LEFT_TO_OPENING))
    }

    /// Of `segments` segments those that blocks in use lie in; all where they are not files.
    fn segments_needed(&self, segments: u64) -> u64 {
        if self.files.device.is_some() || self.files.is_without_files() {
            return segments;
        }
        self.used_blocks().div_ceil(self.map.blocks_per_segment).max(1).min(segments)
    }
}

/// A step failed behind the one that has closed the pool.
fn after_closing(left: &'static str) -> impl FnOnce(Error) -> Error {
    move |source| Error::AfterClosing { left, source: Box::new(source) }
}
