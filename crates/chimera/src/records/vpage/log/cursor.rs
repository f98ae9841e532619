//! A session on its way through the pages of a block.

use chimera_pmem::Pmem;

use super::part::Part;
use super::seal::Head;
use super::{LOG_AT, LogPages, span};
use crate::pool::Pool;
use crate::records::block_flags;
use crate::records::vpage::cursor::LogEnd;
use crate::records::vpage::{Abandoned, Cursor, InsertPoint, PAGE_KINDS, Place, Room};
use crate::sync::VersionGuard;

impl Cursor for LogPages {
    const KIND_FLAGS: [u32; PAGE_KINDS] = [0, block_flags::LARGE];
    const KIND_MASK: u32 = block_flags::LARGE;

    #[inline(always)]
    fn kind_of(&self, key_bytes: usize, beside_bytes: usize) -> usize {
        usize::from(LOG_AT + span(key_bytes, beside_bytes) > self.map.page_bytes)
    }

    fn begin(&self, block: u64, is_reused: bool, kind: usize, chance: u64) -> InsertPoint {
        let (page, pages_left) = match kind {
            0 => (chance % self.pages_per_block, self.pages_per_block - 1),
            _ => (0, 0),
        };
        InsertPoint {
            block: Some(block),
            is_reused,
            pages_left,
            page,
            page_at: self.map.page_at(block, page),
            left: Some(Room::default()),
            ..InsertPoint::default()
        }
    }

    /// Goes on behind the log of the page. A page in which nothing is live is made empty first.
    fn enter<'a, P: Pmem>(
        &self,
        pool: &Pool<P>,
        kind: usize,
        point: &mut InsertPoint,
        lock: impl FnOnce() -> VersionGuard<'a>,
    ) {
        let _locked = lock();
        let length = if kind == 0 { self.map.page_bytes } else { self.map.block_bytes };
        let part = Part { number: point.page, at: point.page_at, length };
        let walked = self.walk(pool, part);
        let (tail, is_open) = match walked.tail {
            // What is damaged is left alone.
            None => (length, false),
            Some(tail) if tail > LOG_AT && walked.live_bytes == 0 => {
                self.clear_page(pool, part);
                (LOG_AT, true)
            }
            Some(tail) if length - tail >= span(1, 0) => {
                Self::unseal(pool, part);
                (tail, true)
            }
            // Nothing fits.
            Some(tail) => (tail, Head::of(pool, part).is_open()),
        };
        point.log = LogEnd { tail, end: length, is_open };
        if kind == 0 {
            pool.pmem.prefetch_write(pool.extent(part.at + tail, length - tail));
        } else {
            Self::clear_rest(pool, part, tail);
        }
        match &mut point.left {
            Some(left) if walked.tail.is_some() => {
                left.free += ((tail - walked.live_bytes) / 8) as u32;
            }
            // What follows damage is not known to be free.
            _ => point.left = None,
        }
    }

    #[inline(always)]
    fn room(&self, point: &InsertPoint, key_bytes: usize, beside_bytes: usize) -> Option<Place> {
        let is_inside = point.log.tail + span(key_bytes, beside_bytes) <= point.log.end;
        is_inside.then(|| Self::next_place(point))
    }

    #[inline(always)]
    fn consume(&self, point: &mut InsertPoint, key_bytes: usize, beside_bytes: usize) {
        point.log.tail += span(key_bytes, beside_bytes);
    }

    /// The begun record lies behind the log, where zeros may be needed: the session leaves the page.
    fn abandon(&self, point: &mut InsertPoint, _cause: Abandoned) {
        point.log.end = point.log.tail;
    }

    fn advance<P: Pmem>(&self, pool: &Pool<P>, point: &mut InsertPoint) -> bool {
        let last = *point;
        let goes_on = point.next_page(&self.map, self.pages_per_block);
        if goes_on {
            Self::seal(pool, &last);
            point.left = Self::left_behind(&last);
        }
        goes_on
    }

    fn leave<P: Pmem>(&self, pool: &Pool<P>, point: InsertPoint) -> Option<Room> {
        Self::seal(pool, &point);
        Self::left_behind(&point).filter(|_| point.pages_left == 0)
    }

    #[inline(always)]
    fn prefetch_next<P: Pmem>(
        &self,
        pool: &Pool<P>,
        point: &InsertPoint,
        key_bytes: usize,
        beside_bytes: usize,
    ) {
        // The lines of this page were loaded when the session came to it. Before it comes to the next one,
        // it has gone past each of them.
        if point.pages_left > 0 {
            let last = self.pages_per_block - 1;
            let bytes = self.map.page_bytes;
            let next = if point.page < last {
                point.page_at + bytes
            } else {
                point.page_at - last * bytes
            };
            let length = span(key_bytes, beside_bytes);
            pool.pmem.prefetch_write(pool.extent(next + point.log.tail, length));
        }
    }

    #[inline(always)]
    fn prefetch_shared<P: Pmem>(&self, pool: &Pool<P>, point: &InsertPoint) {
        if point.log.tail < point.log.end {
            pool.pmem.prefetch_write(pool.extent(point.page_at + point.log.tail, 8));
        }
    }
}

impl LogPages {
    /// The place of the next record or chunk.
    #[inline(always)]
    pub(crate) fn next_place(point: &InsertPoint) -> Place {
        Place {
            block: point.block.unwrap_or_default(),
            page: point.page,
            slot: (point.log.tail / 8) as u32,
            page_at: point.page_at,
            record_at: point.page_at + point.log.tail,
        }
    }

    /// The room in the pages that a session has gone through, the one where it is included.
    fn left_behind(point: &InsertPoint) -> Option<Room> {
        let rest = point.log.end - point.log.tail;
        point.left.map(|mut left| {
            left.free += (rest / 8) as u32;
            left.add_rest(rest, point.log.end);
            left
        })
    }
}
