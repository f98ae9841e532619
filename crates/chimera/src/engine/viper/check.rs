//! Verification of an open store: every checksum, and that index and records agree.

use std::collections::{BTreeMap, BTreeSet};

use chimera_pmem::Pmem;

use super::records::Records;
use super::scan::{Finding, Scan};
use crate::engine::contract::upkeep::{Point, Scrubbed};
use crate::pool::Location;
use crate::records::block_flags;
use crate::records::unchecked_word::UncheckedWord;
use crate::records::vpage::{PageBuffers, Pages, Place};
use crate::sync::atomic::{Ordering, fence};
use crate::types::check::CheckReport;

/// The parts of a pass: blocks by their number, then the index by position.
const BLOCKS: u8 = 0;
const INDEX: u8 = 1;
/// Verifying the index takes so much of the time that blocks take.
const INDEX_PART: u64 = 8;

/// Times that a block in which something looks damaged is read again before its pages are locked.
const REREADS: u32 = 3;

/// Verification of a store.
pub(super) struct Check<'r, P: Pmem, V: Pages> {
    records: &'r Records<P, V>,
    /// Verifies the values, too; damaged words of bits are reported once and not followed.
    scan: Scan<'r, P, V>,
}

impl<'r, P: Pmem, V: Pages> Check<'r, P, V> {
    pub(super) fn new(records: &'r Records<P, V>) -> Self {
        Self { records, scan: Scan { records, values: true, salvage: false } }
    }

    /// One step of a pass that verifies everything: a block, or after all blocks a segment of the index. Other sessions
    /// may go on.
    ///
    /// # Cost
    /// Reading a block takes no lock, but that of a key where the index seems not to lead to its record. Reading the
    /// index takes the lock of a segment while its entries are copied, as a listing does, and that of a key while
    /// its record is looked at. Only where a block looks damaged each time it is read are all its pages locked, to
    /// read it once more.
    pub(super) fn step(&self, from: Point, report: &mut CheckReport) -> Scrubbed {
        let blocks = self.records.pool().used_blocks();
        let index = blocks / INDEX_PART + 1;
        let more = |part, next, done| {
            let whole = blocks + index;
            Scrubbed::More { next: Point { part, next }, done, whole }
        };
        match from {
            Point { part: BLOCKS, next: block } if block < blocks => {
                self.check_block(block, &mut PageBuffers::default(), report);
                report.blocks += 1;
                more(BLOCKS, block + 1, block + 1)
            }
            Point { part: BLOCKS, .. } => more(INDEX, 0, blocks),
            Point { next: position, .. } => match self.check_entries(position, report) {
                Some(next) => {
                    let share = (u128::from(next) * u128::from(index)) >> u64::BITS;
                    more(INDEX, next, blocks + share as u64)
                }
                None => Scrubbed::Done,
            },
        }
    }

    fn check_block(&self, block: u64, buffers: &mut PageBuffers, report: &mut CheckReport) {
        let pool = self.records.pool();
        pool.pmem.prefetch(pool.extent(pool.map.block_at(block), pool.map.block_bytes));
        let shape = || {
            let flags = block_flags::read(pool, block).ok();
            flags.map(|flags| flags & (block_flags::LARGE | block_flags::FREE | block_flags::BATCH))
        };
        let shape_before = shape();
        let mut damages = BTreeSet::new();
        let mut strangers = Vec::new();
        self.scan.read_block(block, buffers, &mut |finding| match finding {
            Finding::Record { record, hash, key } => {
                report.records += 1;
                let value_bytes = self
                    .records
                    .pages()
                    .value_bytes(self.records.pool(), &record)
                    .unwrap_or_default();
                report.bytes += (key.len() + value_bytes) as u64;
                report.words_unchecked += u64::from(record.unchecked() != UncheckedWord::NONE);
                if !self.is_indexed(&record.place, hash, key) {
                    strangers.push(record.place.record_at);
                }
            }
            Finding::Damage { at, .. } => {
                damages.insert(at);
            }
        });
        // A block that was used again in another shape meanwhile has records at locations that were none: they
        // are met in no pass, or in another block.
        let is_same = shape() == shape_before;
        for at in strangers.into_iter().filter(|_| is_same) {
            report.damage(at, "a record is not in the index".to_owned());
        }
        // A record may have been changing while its page was read.
        for _ in 0..REREADS {
            damages = self.damages_again(block, buffers, &damages).into_keys().collect();
        }
        if damages.is_empty() {
            return;
        }
        // With all page locks of the block held nothing changes, so what is found again is really damaged: unless the
        // block was given back before, and its storage returned.
        let _pages = self
            .records
            .space()
            .blocks()
            .has(block)
            .then(|| self.records.space().supply().lock_pages(block));
        if block >= self.records.pool().used_blocks() {
            return;
        }
        for (at, what) in self.damages_again(block, buffers, &damages) {
            report.damage(at, what.to_owned());
        }
    }

    /// Which of the `damages` of a block are found when it is read once more. Not those of a record that is not live
    /// any more when it has been read: chunks of its value, which no lock of the block protects, may be used again.
    fn damages_again(
        &self,
        block: u64,
        buffers: &mut PageBuffers,
        damages: &BTreeSet<u64>,
    ) -> BTreeMap<u64, &'static str> {
        let mut again = BTreeMap::new();
        if damages.is_empty() {
            return again;
        }
        self.scan.read_block(block, buffers, &mut |finding| {
            if let Finding::Damage { at, what, record } = finding
                && damages.contains(&at)
                && record.is_none_or(|record| self.is_still_live(&record.place))
            {
                again.insert(at, what);
            }
        });
        again
    }

    /// Whether a record is live after all of it was read, or nobody can tell.
    fn is_still_live(&self, place: &Place) -> bool {
        fence(Ordering::Acquire);
        self.records.pages().is_live(self.records.pool(), place).unwrap_or(true)
    }

    /// Whether the index leads to a record that was found, or the record has changed since.
    fn is_indexed(&self, place: &Place, hash: u64, key: &[u8]) -> bool {
        let location = place.location();
        if self.records.index().contains_exact(hash, location) {
            return true;
        }
        let _key = self.records.lock_key_to_look(hash);
        let record = self.records.pages().decode(self.records.pool(), place);
        let is_there = self.records.pages().is_live(self.records.pool(), place).unwrap_or(false)
            && record.is_some_and(|record| {
                self.records.pages().key_is(self.records.pool(), &record, key)
            });
        if !is_there || self.records.index().contains_exact(hash, location) {
            return true;
        }
        // An interrupted overwrite leaves two records of a key. A store open for reading only serves
        // the newer one and may not clear the other.
        self.records.pool().read_only
            && matches!(self.records.find_locked(hash, key, |_| {}), Ok(Some(_)))
    }

    /// Whether each entry of the next segment of the index, from a position on, leads to a record with its hash.
    /// The position after that.
    fn check_entries(&self, from: u64, report: &mut CheckReport) -> Option<u64> {
        let (mut key, mut entries) = (Vec::new(), Vec::new());
        let next = self.records.index().list(from, &mut entries);
        for (hash, location) in entries {
            report.index_entries += 1;
            let place = self.records.pages().place_of(location);
            if !self.entry_is_right(hash, location, &place, &mut key) {
                let what = "an entry of the index leads to no record of its key".to_owned();
                report.damage(place.record_at, what);
            }
        }
        next
    }

    fn entry_is_right(
        &self,
        hash: u64,
        location: Location,
        place: &Place,
        key: &mut Vec<u8>,
    ) -> bool {
        let _key = self.records.lock_key_to_look(hash);
        if !self.records.index().contains_exact(hash, location) {
            return true;
        }
        self.records.pages().is_live(self.records.pool(), place).unwrap_or(true)
            && self.records.decode_with_key(place, key).is_some()
            && self.records.core().hash.of(key) == hash
    }
}
