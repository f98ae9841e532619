//! Going through a log, from one length to the next.

use chimera_pmem::Pmem;

use super::lengths::Entry;
use super::{LOG_AT, LogPages, span};
use crate::pool::Pool;
use crate::records::block_flags;
use crate::records::vpage::{IsSound, Place, RecordHeader, Scan, Scanned};

/// A page, or a block that is one page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) number: u64,
    pub(super) at: u64,
    pub(super) length: u64,
}

/// What a page holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Walked {
    /// Where the log ends; none when it is damaged before.
    pub(super) tail: Option<u64>,
    pub(super) live_records: u32,
    /// Bytes of records that count.
    pub(super) live_bytes: u64,
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
        let page_bytes = pool.map.page_bytes;
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

    /// Goes through a page by its lengths alone.
    pub(super) fn walk<P: Pmem>(&self, pool: &Pool<P>, part: Part) -> Walked {
        let mut walked = Walked::default();
        let mut at = LOG_AT;
        while at < part.length {
            match Entry::decode(pool.pmem.load_u64(part.at + at)) {
                Some(Entry::End) => break,
                Some(Entry::Record { is_set, key_bytes, value_bytes }) => {
                    let bytes = span(key_bytes as usize, value_bytes as usize);
                    if at + bytes > part.length || key_bytes as usize > self.key_bytes_max {
                        return walked;
                    }
                    if is_set {
                        walked.live_records += 1;
                        walked.live_bytes += bytes;
                    }
                    at += bytes;
                }
                None => return walked,
            }
        }
        walked.tail = Some(at);
        walked
    }

    /// Hands the records of a page to `visit`.
    pub(super) fn scan_part<P: Pmem>(
        &self,
        pool: &Pool<P>,
        scan: &Scan<'_>,
        block: u64,
        part: Part,
        page: &mut Vec<u8>,
        visit: &mut impl FnMut(Scanned<'_>),
    ) {
        page.resize(part.length as usize, 0);
        pool.pmem.read(pool.extent(part.at, part.length), page);
        let mut at = LOG_AT;
        while at < part.length {
            match Entry::decode(word(page, at)) {
                Some(Entry::End) => return,
                Some(Entry::Record { is_set, key_bytes, value_bytes })
                    if at + span(key_bytes as usize, value_bytes as usize) <= part.length
                        && key_bytes as usize <= self.key_bytes_max =>
                {
                    if is_set {
                        let found = record(page, block, part, at, key_bytes, value_bytes);
                        visit(found);
                    }
                    at += span(key_bytes as usize, value_bytes as usize);
                }
                _ => {
                    let what =
                        "the lengths of a record are damaged: what follows in its page is lost";
                    visit(Scanned::Damage { at: part.at + at, what });
                    let next = scan.salvage.then(|| resume(scan.is_sound, page, block, part, at));
                    let Some(Some(next)) = next else { return };
                    at = next;
                }
            }
        }
    }
}

/// Where the next record begins that is beyond doubt one, behind a damaged length.
fn resume(is_sound: &IsSound<'_>, page: &[u8], block: u64, part: Part, after: u64) -> Option<u64> {
    (after + 8..part.length).step_by(8).find(|at| {
        let Some(Entry::Record { key_bytes, value_bytes, .. }) = Entry::decode(word(page, *at))
        else {
            return false;
        };
        if at + span(key_bytes as usize, value_bytes as usize) > part.length {
            return false;
        }
        match record(page, block, part, *at, key_bytes, value_bytes) {
            Scanned::Record { place, header, key, .. } => is_sound(&place, &header, key),
            Scanned::Damage { .. } => false,
        }
    })
}

/// The record at `at` in a copy of its page.
fn record(
    page: &[u8],
    block: u64,
    part: Part,
    at: u64,
    key_bytes: u32,
    value_bytes: u32,
) -> Scanned<'_> {
    let place = Place {
        block,
        page: part.number,
        slot: (at / 8) as u32,
        page_at: part.at,
        record_at: part.at + at,
    };
    let header = RecordHeader::from_words(word(page, at + 8), word(page, at + 16));
    let (key_at, key_bytes) = ((at + super::KEY_AT) as usize, key_bytes as usize);
    let value_at = key_at + key_bytes.next_multiple_of(8);
    let key = &page[key_at..key_at + key_bytes];
    let value = &page[value_at..value_at + value_bytes as usize];
    Scanned::Record { place, header, key, value }
}

fn word(page: &[u8], at: u64) -> u64 {
    let at = at as usize;
    u64::from_le_bytes(page[at..at + 8].try_into().expect("8 bytes"))
}
