//! A session on its way through the pages of a block, and what of a record it flushes first.

use chimera_pmem::{CACHE_LINE, Pmem};

use super::walk::Part;
use super::{LOG_AT, LogPages, sites};
use crate::pool::Pool;
use crate::records::vpage::{InsertPoint, Place};

impl LogPages {
    /// Makes the page where the point is ready for records, behind those that are there.
    pub(super) fn enter<P: Pmem>(&self, pool: &Pool<P>, which: usize, point: &mut InsertPoint) {
        let length = if which == 0 { self.map.page_bytes } else { self.map.block_bytes };
        (point.tail, point.end) = (LOG_AT, length);
        let part = Part { number: point.page, at: point.page_at, length };
        let walked = self.walk(pool, part);
        match walked.tail {
            // What is damaged is left alone.
            None => point.tail = point.end,
            Some(tail) if tail > LOG_AT && walked.live_bytes == 0 => self.clear_page(pool, part),
            Some(tail) => point.tail = tail,
        }
        let rest = part.length - point.tail;
        if which == 0 {
            pool.pmem.prefetch_write(pool.extent(part.at + point.tail, rest));
        } else if rest > 0 {
            Self::clear_rest(pool, part, point.tail);
        }
        match &mut point.left {
            Some(left) if walked.tail.is_some() => {
                left.free += ((point.tail - walked.live_bytes) / 8) as u32;
            }
            // What follows damage is not known to be free.
            _ => point.left = None,
        }
    }

    /// Counts the rest of the page.
    pub(super) fn leave_page(point: &mut InsertPoint) {
        let rest = point.end - point.tail;
        if let Some(left) = &mut point.left {
            left.free += (rest / 8) as u32;
            left.add_rest(rest, point.end);
        }
    }

    /// Flushes what of the first `length` bytes of a record is not in the line of its first word; whether
    /// there is any. What is in that line reaches media no later than the word (invariant 1).
    #[inline(always)]
    pub(super) fn flush_behind_first_line<P: Pmem>(
        pool: &Pool<P>,
        place: &Place,
        length: u64,
    ) -> bool {
        let next_line = (place.record_at + 1).next_multiple_of(CACHE_LINE);
        let end = place.record_at + length;
        if next_line < end {
            pool.pmem.flush(pool.extent(next_line, end - next_line), sites::RECORD);
        }
        next_line < end
    }

    /// Bytes of a record of `bytes`, and of the zero that ends the log behind it, if one is written there.
    #[inline(always)]
    pub(super) fn with_end(&self, place: &Place, bytes: u64) -> u64 {
        let page_bytes = self.map.page_bytes;
        let is_in_page = LOG_AT + bytes <= page_bytes;
        let is_ended = is_in_page && place.record_at + bytes < place.page_at + page_bytes;
        bytes + if is_ended { 8 } else { 0 }
    }
}
