//! What blocks of logs hold, as their lengths say.

use chimera_pmem::Pmem;

use super::part::Part;
use super::seal::Head;
use super::walk::Walked;
use super::{FULL_PART, LOG_AT, LogPages, sites, span, steps};
use crate::pool::Pool;
use crate::records::block_flags;
use crate::records::lengths::Entry;
use crate::records::vpage::{BlockView, PageBuffers, Place, Reuse, Room, Scan, Scanned, Usage};

impl Room {
    /// Adds the rest of a page of `length` bytes: it can be filled.
    pub(super) fn add_rest(&mut self, rest: u64, length: u64) {
        let units = (rest / 8) as u32;
        if rest >= length / FULL_PART {
            self.fillable += units;
        }
        if rest >= span(1, 1) {
            self.fillable_if_starved += units;
        }
    }
}

impl LogPages {
    /// Bytes in the logs of a block that are not live.
    fn dead_bytes<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> u64 {
        let dead = |part| {
            let walked = self.walk(pool, part);
            // Beside writers a record may have been retired after it was met.
            walked.tail.map_or(0, |tail| (tail - LOG_AT).saturating_sub(walked.live_bytes))
        };
        self.parts_of(pool, block).map(dead).sum()
    }

    /// Bytes that a session has for records in a page.
    fn room_of(part: Part, walked: Walked) -> u64 {
        match walked.tail {
            None => 0,
            Some(_) if walked.live_bytes == 0 => part.length - LOG_AT,
            Some(tail) => part.length - tail,
        }
    }

    /// The room in a block whose pages hold this.
    fn room_from(pages: impl Iterator<Item = (Part, Walked)>) -> Room {
        let (mut room, mut is_damaged) = (Room::default(), false);
        for (part, walked) in pages {
            room.free += ((part.length - walked.live_bytes) / 8) as u32;
            room.add_rest(Self::room_of(part, walked), part.length);
            is_damaged |= walked.tail.is_none();
        }
        // What follows damage is not known to be free, and cannot be emptied.
        Room { free: if is_damaged { 0 } else { room.free }, ..room }
    }
}

impl BlockView for LogPages {
    #[inline(always)]
    fn pages_per_block(&self) -> u64 {
        self.pages_per_block
    }

    fn units_per_block(&self) -> u32 {
        (self.map.block_bytes / 8) as u32
    }

    fn capacities(&self) -> (u32, u32) {
        (0, 0)
    }

    fn reuse(&self) -> Reuse {
        Reuse::WholeBlock
    }

    // ---- looking -------------------------------------------------------------------------------

    fn is_blank<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> bool {
        // What else there may be is cleared when a session comes to it. A block that is one page has one beginning.
        let flags = block_flags::read(pool, block).unwrap_or_default();
        self.parts(pool, block, flags)
            .all(|part| Head::of(pool, part).is_open() && pool.pmem.load_u64(part.at + LOG_AT) == 0)
    }

    fn is_empty<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> bool {
        let mut parts = self.parts_of(pool, block).map(|part| self.walk(pool, part));
        // What is in a block with damaged flags cannot be told.
        block_flags::read(pool, block).is_ok()
            && parts.all(|walked| walked.tail.is_some() && walked.live_bytes == 0)
    }

    fn has_room<P: Pmem>(&self, pool: &Pool<P>, block: u64, units: u32) -> bool {
        let need = 8 * u64::from(units);
        self.parts_of(pool, block).any(|part| Self::room_of(part, self.walk(pool, part)) >= need)
    }

    fn room_in<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> Room {
        Self::room_from(self.parts_of(pool, block).map(|part| (part, self.walk(pool, part))))
    }

    /// Retired records, not the space behind the log.
    fn gain<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> u32 {
        (self.dead_bytes(pool, block) / 8) as u32
    }

    fn places<P: Pmem>(&self, pool: &Pool<P>, block: u64, into: &mut Vec<Place>) {
        for part in self.parts_of(pool, block) {
            self.for_entries(pool, part, |at, entry| match entry {
                Entry::Record { is_live: true, .. } => into.push(part.place(block, at)),
                Entry::Chunk { .. } => {
                    let record = self.record_of_chunk(pool, part.at + at);
                    into.extend(record.filter(|(_, is_live)| *is_live).map(|(place, _)| place));
                }
                _ => {}
            });
        }
    }

    fn usage<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> Usage {
        let mut usage = Usage::default();
        for part in self.parts_of(pool, block) {
            let walked = self.walk(pool, part);
            let room = Self::room_of(part, walked);
            usage.pages += 1;
            usage.pages_filled += u64::from(walked.live_bytes > 0);
            usage.pages_damaged += u64::from(walked.tail.is_none());
            usage.live_records += u64::from(walked.live_records);
            usage.live_bytes += walked.live_bytes;
            usage.room_bytes += room;
            // Beside writers a record may have been retired after it was met.
            usage.dead_bytes += (part.length - LOG_AT).saturating_sub(walked.live_bytes + room);
        }
        usage
    }

    fn scan<P: Pmem>(
        &self,
        pool: &Pool<P>,
        scan: &Scan<'_>,
        block: u64,
        buffers: &mut PageBuffers,
        visit: &mut impl FnMut(Scanned<'_>),
    ) -> Room {
        let parts = self.parts(pool, block, scan.flags);
        Self::room_from(parts.map(|part| {
            let walked = self.scan_part(pool, scan, block, part, buffers, visit);
            (part, walked)
        }))
    }

    // ---- clearing ------------------------------------------------------------------------------

    fn format<P: Pmem>(&self, pool: &Pool<P>, block: u64, flags: u32) {
        for part in self.parts(pool, block, flags) {
            let of_block = if part.number == 0 { flags } else { 0 };
            Self::store_head(pool, part, of_block, sites::FORMAT);
        }
    }

    fn persist_empty<P: Pmem>(&self, pool: &Pool<P>, block: u64, next: u32) {
        for part in self.parts_of(pool, block) {
            self.persist_retired(pool, part);
        }
        // First that its pages are empty: that their records were retired may not be durable yet.
        Self::clear_heads(pool, self.parts_of(pool, block), sites::BLOCK_RESET);
        pool.pmem.withdrawn(pool.extent(self.map.block_at(block), self.map.block_bytes));
        if pool.pmem.skips(steps::CLEAR_HEADS) {
            return;
        }
        // In a block that is one page, other pages begin inside of records. If it stays one, nobody reads their heads.
        let has_one_page = |flags: u32| flags & block_flags::LARGE > 0;
        let keeps_heads = match block_flags::read(pool, block) {
            Ok(flags) => !has_one_page(flags) || has_one_page(next),
            Err(_) => false,
        };
        if !keeps_heads {
            let others = self.parts(pool, block, 0).filter(|part| part.number > 0);
            Self::clear_heads(pool, others, sites::BLOCK_RESET);
        }
    }
}
