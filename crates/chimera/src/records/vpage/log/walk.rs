//! Going through a log, from one length to the next.

use chimera_pmem::Pmem;

use super::chunks::chunk_span;
use super::lengths::{Entry, Lengths};
use super::{FULL_PART, LOG_AT, LogPages, span, span_of, steps};
use crate::pool::Pool;
use crate::records::block_flags;
use crate::records::vpage::{
    IsSound, PageBuffers, Place, RecordHeader, Room, Scan, Scanned, Usage,
};

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

/// What a page holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Walked {
    /// Where the log ends; none when it is damaged before.
    pub(super) tail: Option<u64>,
    pub(super) live_records: u32,
    /// Bytes of records and chunks that count.
    pub(super) live_bytes: u64,
}

impl Room {
    /// Counts the rest of a page of `length` bytes: it can be filled.
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
    /// The pages of a block with these flags.
    pub(super) fn parts<P: Pmem>(
        &self,
        pool: &Pool<P>,
        block: u64,
        flags: u32,
    ) -> impl Iterator<Item = Part> + use<P> {
        let is_whole = flags & block_flags::LARGE != 0;
        let page_bytes = self.map.page_bytes;
        let length = if is_whole { pool.map.block_bytes } else { page_bytes };
        let count = if is_whole { 1 } else { self.pages_per_block };
        let start = pool.map.block_at(block);
        (0..count).map(move |number| Part { number, at: start + number * page_bytes, length })
    }

    /// As [`parts`](Self::parts), whatever the block is; none when its flags are damaged.
    pub(super) fn parts_of<P: Pmem>(
        &self,
        pool: &Pool<P>,
        block: u64,
    ) -> impl Iterator<Item = Part> + use<P> {
        let flags = block_flags::read(pool, block).ok();
        flags.map(|flags| self.parts(pool, block, flags)).into_iter().flatten()
    }

    /// Goes through a page by its lengths alone. Returns where its log ends, unless it is damaged before.
    pub(super) fn for_entries<P: Pmem>(
        &self,
        pool: &Pool<P>,
        part: Part,
        mut visit: impl FnMut(u64, Entry),
    ) -> Option<u64> {
        let mut at = LOG_AT;
        while at < part.length {
            let entry = Entry::decode(pool.pmem.load_u64(part.at + at))?;
            if entry == Entry::End {
                break;
            }
            let bytes = self.span_inside(part, at, entry)?;
            visit(at, entry);
            at += bytes;
        }
        Some(at)
    }

    /// Bytes of a record or chunk, if one of that size can lie there.
    fn span_inside(&self, part: Part, at: u64, entry: Entry) -> Option<u64> {
        let bytes = match entry {
            Entry::End => 0,
            Entry::Record { lengths, .. } if lengths.key_bytes as usize > self.key_bytes_max => {
                return None;
            }
            Entry::Record { lengths, .. } => span_of(lengths),
            Entry::Chunk { bytes } => chunk_span(u64::from(bytes)),
        };
        (at + bytes <= part.length).then_some(bytes)
    }

    /// What of a page counts, and where its log ends.
    pub(super) fn walk<P: Pmem>(&self, pool: &Pool<P>, part: Part) -> Walked {
        let mut walked = Walked::default();
        let tail = self
            .for_entries(pool, part, |at, entry| self.count(pool, part, at, entry, &mut walked));
        Walked { tail, ..walked }
    }

    /// Adds what is found at `at`, if it counts.
    fn count<P: Pmem>(
        &self,
        pool: &Pool<P>,
        part: Part,
        at: u64,
        entry: Entry,
        walked: &mut Walked,
    ) {
        match entry {
            Entry::Record { is_set: true, lengths } => {
                walked.live_records += 1;
                walked.live_bytes += span_of(lengths);
            }
            Entry::Chunk { bytes }
                if self.record_of_chunk(pool, part.at + at).is_some_and(|(_, counts)| counts) =>
            {
                walked.live_bytes += chunk_span(u64::from(bytes));
            }
            _ => {}
        }
    }

    /// Bytes of what does not count in the logs of a block.
    pub(super) fn dead_bytes<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> u64 {
        let dead = |part| {
            let walked = self.walk(pool, part);
            // Beside writers a record may have been retired after it was counted.
            walked.tail.map_or(0, |tail| (tail - LOG_AT).saturating_sub(walked.live_bytes))
        };
        self.parts_of(pool, block).map(dead).sum()
    }

    /// Bytes that a session has for records in a page.
    pub(super) fn room_of(part: Part, walked: Walked) -> u64 {
        match walked.tail {
            None => 0,
            Some(_) if walked.live_bytes == 0 => part.length - LOG_AT,
            Some(tail) => part.length - tail,
        }
    }

    /// The room in a block whose pages hold this.
    pub(super) fn room_from(pages: impl Iterator<Item = (Part, Walked)>) -> Room {
        let (mut room, mut is_damaged) = (Room::default(), false);
        for (part, walked) in pages {
            room.free += ((part.length - walked.live_bytes) / 8) as u32;
            room.add_rest(Self::room_of(part, walked), part.length);
            is_damaged |= walked.tail.is_none();
        }
        // What follows damage is not known to be free, and cannot be emptied.
        Room { free: if is_damaged { 0 } else { room.free }, ..room }
    }

    /// What the pages of a block hold.
    pub(super) fn usage_of<P: Pmem>(&self, pool: &Pool<P>, block: u64) -> Usage {
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
            // Beside writers a record may have been retired after it was counted.
            usage.dead_bytes += (part.length - LOG_AT).saturating_sub(walked.live_bytes + room);
        }
        usage
    }

    /// Hands the records of a page to `visit`. Returns what counts of it; no end where it is damaged.
    pub(super) fn scan_part<P: Pmem>(
        &self,
        pool: &Pool<P>,
        scan: &Scan<'_>,
        block: u64,
        part: Part,
        buffers: &mut PageBuffers,
        visit: &mut impl FnMut(Scanned<'_>),
    ) -> Walked {
        let PageBuffers { page, value } = buffers;
        page.resize(part.length as usize, 0);
        pool.pmem.read(pool.extent(part.at, part.length), page);
        let (mut at, mut walked, mut is_damaged) = (LOG_AT, Walked::default(), false);
        while at < part.length {
            let skips = pool.pmem.skips(steps::LENGTHS_CHECK);
            let entry = Entry::decode(word(page, at))
                .or_else(|| skips.then(|| Entry::decode_unchecked(word(page, at)))?);
            let sized = entry.and_then(|entry| Some((entry, self.span_inside(part, at, entry)?)));
            let Some((entry, bytes)) = sized else {
                let what = "the lengths of a record are damaged: what follows in its page is lost";
                visit(Scanned::Damage { at: part.at + at, what });
                is_damaged = true;
                let next = scan.salvage.then(|| resume(scan.is_sound, page, block, part, at));
                let Some(Some(next)) = next else { break };
                at = next;
                continue;
            };
            self.count(pool, part, at, entry, &mut walked);
            match entry {
                Entry::End => break,
                Entry::Record { is_set: true, lengths } => {
                    let found = record(page, block, part, at, lengths);
                    if lengths.is_elsewhere {
                        self.scan_elsewhere(pool, scan, &found, lengths, value, visit);
                    } else {
                        visit(found);
                    }
                }
                Entry::Record { .. } | Entry::Chunk { .. } => {}
            }
            at += bytes;
        }
        Walked { tail: (!is_damaged).then_some(at), ..walked }
    }

    /// Hands a record with a value elsewhere to `visit`, with the value where it was asked for.
    fn scan_elsewhere<P: Pmem>(
        &self,
        pool: &Pool<P>,
        scan: &Scan<'_>,
        found: &Scanned<'_>,
        lengths: Lengths,
        value: &mut Vec<u8>,
        visit: &mut impl FnMut(Scanned<'_>),
    ) {
        let Scanned::Record { place, header, key, .. } = *found else { return };
        value.clear();
        let is_whole = self.for_pieces(pool, &place, lengths, |piece| {
            if scan.values {
                let before = value.len();
                value.resize(before + piece.length, 0);
                pool.pmem.read(piece.bytes, &mut value[before..]);
            }
            true
        });
        // Chunks may go once the record does not count any more.
        if !Self::still_counts(pool, &place, lengths) {
            return;
        }
        let value = is_whole.then_some(&value[..]);
        visit(Scanned::Record { place, header, key, value });
    }
}

/// Where the next record begins that is beyond doubt one, behind a damaged length.
fn resume(is_sound: &IsSound<'_>, page: &[u8], block: u64, part: Part, after: u64) -> Option<u64> {
    (after + 8..part.length).step_by(8).find(|at| {
        let Some(Entry::Record { lengths, .. }) = Entry::decode(word(page, *at)) else {
            return false;
        };
        if at + span_of(lengths) > part.length {
            return false;
        }
        match record(page, block, part, *at, lengths) {
            Scanned::Record { place, header, key, .. } => is_sound(&place, &header, key),
            Scanned::Damage { .. } => false,
        }
    })
}

/// The record at `at` in a copy of its page.
fn record(page: &[u8], block: u64, part: Part, at: u64, lengths: Lengths) -> Scanned<'_> {
    let place = part.place(block, at);
    let header = RecordHeader::from_words(word(page, at + 8), word(page, at + 16));
    let (key_bytes, beside_bytes) = (lengths.key_bytes as usize, lengths.beside_bytes as usize);
    let key_at = (at + super::KEY_AT) as usize;
    let value_at = key_at + key_bytes.next_multiple_of(8);
    let key = &page[key_at..key_at + key_bytes];
    let value = Some(&page[value_at..value_at + beside_bytes]);
    Scanned::Record { place, header, key, value }
}

fn word(page: &[u8], at: u64) -> u64 {
    let at = at as usize;
    u64::from_le_bytes(page[at..at + 8].try_into().expect("8 bytes"))
}
