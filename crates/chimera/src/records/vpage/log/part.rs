//! [`Part`]: a page as a walk sees it.

use crate::records::vpage::Place;

/// A page, or a block that is one page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) number: u64,
    pub(super) at: u64,
    pub(super) length: u64,
}

impl Part {
    /// The place of what begins at `at`.
    pub(super) fn place(self, block: u64, at: u64) -> Place {
        Place {
            block,
            page: self.number,
            slot: (at / 8) as u32,
            page_at: self.at,
            record_at: self.at + at,
        }
    }
}
