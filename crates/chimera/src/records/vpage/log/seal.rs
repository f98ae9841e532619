//! Seals: where the log of a page ends, in the page's first word, while no session appends to it.
//!
//! A zero word ends a log, and so does a record whose lengths were lost. The seal tells the two apart. A session opens
//! a page before it appends, and seals it when it leaves; recovery seals what the last process left open.

use chimera_pmem::{Pmem, Site};

use super::part::Part;
use super::{LOG_AT, LogPages, sites, steps};
use crate::pool::Pool;
use crate::records::block_flags;
use crate::records::page_word::PageWord;
use crate::records::vpage::InsertPoint;
use crate::sync::atomic::{Ordering, fence};

/// The first word of a page as it was found, and what it says of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    word: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A session may append to the log.
    Open,
    /// The log ends so many bytes behind the start of the page.
    Sealed(u64),
    Damaged,
}

impl Head {
    pub(super) fn of<P: Pmem>(pool: &Pool<P>, part: Part) -> Self {
        let word = pool.pmem.load_u64(part.at);
        let known = if part.number == 0 { block_flags::KNOWN } else { 0 };
        let state = match PageWord::check(pool, word, part.at) {
            Some(PageWord { flags, end: 0 }) if flags & !known == 0 => State::Open,
            Some(PageWord { flags, end })
                if flags & !known == 0 && end > LOG_AT && end <= part.length =>
            {
                State::Sealed(end)
            }
            _ => State::Damaged,
        };
        Self { word, state }
    }

    pub(super) fn is_damaged(self) -> bool {
        self.state == State::Damaged
    }

    pub(super) fn is_open(self) -> bool {
        self.state == State::Open
    }

    /// Up to where the log may go on.
    pub(super) fn limit(self, part: Part) -> u64 {
        if let State::Sealed(end) = self.state { end } else { part.length }
    }

    /// Whether the log may end at `at`, where it was followed to. Beside a session that opens or seals the page
    /// meanwhile this cannot be told, and it may.
    pub(super) fn allows_end<P: Pmem>(self, pool: &Pool<P>, part: Part, at: u64) -> bool {
        let State::Sealed(end) = self.state else { return true };
        if at == end || pool.pmem.skips(steps::SEAL_CHECK) {
            return true;
        }
        fence(Ordering::Acquire);
        pool.pmem.load_u64(part.at) != self.word
    }
}

impl LogPages {
    /// Seals the page that a session leaves, if it holds anything. What it holds is durable.
    ///
    /// # Durability
    /// After the caller's next fence. A crash before leaves the page open.
    ///
    /// # Cost
    /// 1 line.
    pub(super) fn seal<P: Pmem>(pool: &Pool<P>, point: &InsertPoint) {
        if point.log.is_open && point.log.tail > LOG_AT {
            PageWord::set_end(pool, point.page_at, point.log.tail, sites::SEAL);
        }
    }

    /// Says that the log of a page goes on, durably, where it was sealed: 1 line, 1 fence.
    pub(super) fn unseal<P: Pmem>(pool: &Pool<P>, part: Part) {
        if PageWord::set_end(pool, part.at, 0, sites::UNSEAL) {
            pool.pmem.fence(sites::UNSEAL);
        }
    }

    /// Seals the pages of a block that the last process left open, as far as they are not damaged. What they hold is
    /// durable. Whether there were any.
    ///
    /// # Durability
    /// After the caller's next fence.
    ///
    /// # Cost
    /// The first word of each page is loaded; the lengths of those that are open. 1 line for each that is sealed.
    pub(crate) fn seal_open<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> bool {
        let mut is_any = false;
        for part in self.parts_of(pool, block).filter(|part| Head::of(pool, *part).is_open()) {
            let tail = self.for_entries(pool, part, |_, _| {});
            if let Some(tail) = tail.filter(|tail| *tail > LOG_AT) {
                is_any |= PageWord::set_end(pool, part.at, tail, sites::SEAL);
            }
        }
        is_any
    }

    /// Makes a page open and empty, whatever it held, and starts writing that back. In the first page of a block the
    /// flags stay as they are. First that it is open: a page that is sealed and empty is damage.
    ///
    /// # Durability
    /// After the caller's next fence. A crash before leaves the page as it was, open and as it was, or open and empty:
    /// all of it lies in one line.
    ///
    /// # Cost
    /// 1 line.
    pub(super) fn empty_head<P: Pmem>(pool: &Pool<P>, part: Part, site: Site) {
        let flags = match part.number {
            0 => PageWord::load(pool, part.at).map_or(0, |word| word.flags),
            _ => 0,
        };
        Self::store_head(pool, part, flags, site);
    }

    /// Makes a page open and empty, with these flags of its block.
    pub(super) fn store_head<P: Pmem>(pool: &Pool<P>, part: Part, flags: u32, site: Site) {
        PageWord::open(flags).store(pool, part.at, site);
        let log = pool.extent(part.at + LOG_AT, 8);
        pool.pmem.zero(log, site);
        let head = pool.extent(part.at, LOG_AT + 8);
        if part.number == 0 {
            // The bytes of a chunk begin in the next line, at the earliest.
            pool.pmem.flush_beside_new(head, site);
        } else {
            pool.pmem.flush(head, site);
        }
    }
}
