//! Reading the records of a page.

use chimera_pmem::Pmem;

use super::part::Part;
use super::seal::Head;
use super::walk::Walked;
use super::{KEY_AT, LOG_AT, LogPages, steps};
use crate::pool::Pool;
use crate::records::block_flags;
use crate::records::header::RecordHeader;
use crate::records::lengths::{Entry, HEADER_AT, Lengths};
use crate::records::vpage::{DAMAGED_PAGE, IsSound, PageBuffers, Record, Scan, Scanned};

/// What is wrong with a log, and what that means.
const DAMAGED_LENGTHS: &str =
    "the lengths of a record are damaged: what follows in its page is lost";
const LOST: &str = "the log of a page ends before its end: records are lost";
const BEYOND: &str = "the log of a page goes on behind its end";

impl LogPages {
    /// Hands the records of a page to `visit`. Returns what of it is live; no end where it is damaged.
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
        let head = Head::of(pool, part);
        pool.pmem.read(pool.extent(part.at, part.length), page);
        let (mut at, mut walked, mut is_damaged) = (LOG_AT, Walked::default(), head.is_damaged());
        // That of the first page was told of with the flags of the block, if these are damaged.
        if is_damaged && (part.number > 0 || block_flags::read(pool, block).is_ok()) {
            visit(Scanned::Damage { at: part.at, what: DAMAGED_PAGE });
        }
        let sealed = Part { length: head.limit(part), ..part };
        loop {
            let (entry, bytes) = match self.step(pool, page, part, head, at) {
                Step::Entry(entry, bytes) => (entry, bytes),
                Step::End => break,
                Step::Damage(what) => {
                    visit(Scanned::Damage { at: part.at + at.min(sealed.length), what });
                    is_damaged = true;
                    let next = scan.salvage.then(|| resume(scan.is_sound, page, block, sealed, at));
                    let Some(Some(next)) = next else { break };
                    at = next;
                    continue;
                }
            };
            self.add_live(pool, part, at, entry, &mut walked);
            if let Entry::Record { is_live: true, lengths } = entry {
                let record = record(page, block, part, at, lengths);
                let (key, beside) = contents(page, at, lengths);
                if lengths.is_spilled {
                    self.scan_spilled(pool, scan, record, key, value, visit);
                } else {
                    visit(Scanned::Record { record, key, value: Some(beside) });
                }
            }
            at += bytes;
        }
        Walked { tail: (!is_damaged).then_some(at), ..walked }
    }

    /// What comes next in a copy of a page whose log was followed to `at`.
    fn step<P: Pmem>(&self, pool: &Pool<P>, page: &[u8], part: Part, head: Head, at: u64) -> Step {
        let end = |at| match head.allows_end(pool, part, at) {
            true => Step::End,
            false if at < head.limit(part) => Step::Damage(LOST),
            false => Step::Damage(BEYOND),
        };
        if at >= part.length {
            return end(at);
        }
        let skips = pool.pmem.skips(steps::LENGTHS_CHECK);
        let entry = Entry::decode(word(page, at), part.at + at)
            .or_else(|| skips.then(|| Entry::decode_unchecked(word(page, at)))?);
        let sized = entry.and_then(|entry| Some((entry, self.span_inside(part, at, entry)?)));
        match sized {
            None => Step::Damage(DAMAGED_LENGTHS),
            Some((Entry::End, _)) => end(at),
            Some((entry, bytes)) => Step::Entry(entry, bytes),
        }
    }

    /// Hands a record with a spilled value to `visit`, with the value where it was asked for.
    fn scan_spilled<P: Pmem>(
        &self,
        pool: &Pool<P>,
        scan: &Scan<'_>,
        record: Record,
        key: &[u8],
        value: &mut Vec<u8>,
        visit: &mut impl FnMut(Scanned<'_>),
    ) {
        value.clear();
        let is_whole = self.for_chunks(pool, &record, |chunk| {
            if scan.values {
                let before = value.len();
                value.resize(before + chunk.length, 0);
                pool.pmem.read(chunk.bytes, &mut value[before..]);
            }
            true
        });
        // Chunks may go once the record is retired.
        if Self::is_still_live(pool, &record) {
            let value = is_whole.then_some(&value[..]);
            visit(Scanned::Record { record, key, value });
        }
    }
}

/// What comes next in a log.
enum Step {
    Entry(Entry, u64),
    End,
    Damage(&'static str),
}

/// Where the next record begins that is beyond doubt one, behind the place of damage.
fn resume(is_sound: &IsSound<'_>, page: &[u8], block: u64, part: Part, after: u64) -> Option<u64> {
    (after + 8..part.length).step_by(8).find(|at| {
        let entry = Entry::decode(word(page, *at), part.at + at);
        let Some(Entry::Record { lengths, .. }) = entry else { return false };
        at + lengths.span() <= part.length
            && is_sound(&record(page, block, part, *at, lengths), contents(page, *at, lengths).0)
    })
}

/// The record at `at` in a copy of its page.
fn record(page: &[u8], block: u64, part: Part, at: u64, lengths: Lengths) -> Record {
    let header_at = at + HEADER_AT;
    let header = RecordHeader::from_words(word(page, header_at), word(page, header_at + 8));
    Record { place: part.place(block, at), lengths, header: Some(header) }
}

/// The key of a record at `at` in a copy of its page, and what lies beside it.
fn contents(page: &[u8], at: u64, lengths: Lengths) -> (&[u8], &[u8]) {
    let key_at = (at + KEY_AT) as usize;
    let beside_at = (at + lengths.beside_at()) as usize;
    let (key_bytes, beside_bytes) = (lengths.key_bytes as usize, lengths.beside_bytes as usize);
    (&page[key_at..key_at + key_bytes], &page[beside_at..beside_at + beside_bytes])
}

fn word(page: &[u8], at: u64) -> u64 {
    let at = at as usize;
    u64::from_le_bytes(page[at..at + 8].try_into().expect("8 bytes"))
}
