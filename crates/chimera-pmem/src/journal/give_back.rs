//! Giving back pages of the private mapping: those that a checkpoint has written back, and in turn all others.
//!
//! Called with the lock of checkpoints held, so nobody else writes to the data files but lines that are new in their place.

use std::io;

use super::{Journal, Lines};

/// Most pages to look at together. Writers wait as long as it takes to compare them.
const RUN_PAGES: u64 = 16;

/// What giving back uses again and again.
#[derive(Debug, Default)]
pub(super) struct Giving {
    content: Vec<u8>,
    /// The page that the next sweep begins with.
    hand: u64,
}

impl Journal {
    /// Gives back the pages of lines that were just written back, where pages take much memory.
    pub(super) fn give_back_written(&self, lines: &Lines, giving: &mut Giving) {
        let Some(pages) =
            self.pages.get().filter(|_| self.budget.is_half_used(self.private_bytes()))
        else {
            return;
        };
        self.give_back(lines.pages(pages.page_bytes()), giving, || true);
        self.budget.has_less(self.private_bytes());
    }

    /// Gives back any pages, until no more than `target` bytes are private, or all were looked at.
    pub(super) fn sweep(&self, target: u64, giving: &mut Giving) {
        let Some(pages) = self.pages.get() else { return };
        let (count, hand) = (pages.count(), giving.hand.min(pages.count()));
        let mut next = hand;
        let numbers = (hand..count).chain(0..hand).inspect(|number| next = number + 1);
        self.give_back(numbers, giving, || self.private_bytes() > target);
        giving.hand = next;
    }

    /// Gives back those of the pages that can be, as long as `more` says so.
    fn give_back(
        &self,
        numbers: impl Iterator<Item = u64>,
        giving: &mut Giving,
        more: impl Fn() -> bool,
    ) {
        let Some(pages) = self.pages.get() else { return };
        let reached = self.start_at();
        let mut run = 0..0;
        for number in numbers.filter(|number| pages.may_give_back(*number, reached)) {
            let is_next = number == run.end && run.end - run.start < RUN_PAGES;
            if !is_next {
                let done = self.give_back_run(pages, run, reached, &mut giving.content);
                if log_error(done) || !more() {
                    return;
                }
                run = number..number;
            }
            run.end = number + 1;
        }
        log_error(self.give_back_run(pages, run, reached, &mut giving.content));
    }
}

/// A file that cannot be read is no loss: its pages stay where they are.
fn log_error(done: io::Result<()>) -> bool {
    done.inspect_err(|error| log::warn!("pages cannot be given back: {error}")).is_err()
}
