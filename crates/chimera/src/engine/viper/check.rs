//! Verification of an open store: every checksum, and that index and records agree.

use std::collections::BTreeMap;

use chimera_pmem::Pmem;

use super::Viper;
use super::scan::{Finding, Scan};
use crate::pool::Location;
use crate::records::block_flags;
use crate::records::unchecked_word::UncheckedWord;
use crate::records::vpage::{PageBuffers, Pages, Place};
use crate::types::check::CheckReport;
use crate::types::progress::Progress;

/// Verifies the values, too; damaged words of bits are reported once and not followed.
const EVERYTHING: Scan = Scan { values: true, salvage: false };

impl<P: Pmem, V: Pages> Viper<P, V> {
    /// Verifies the whole store. Other sessions may go on.
    pub(crate) fn check(&self, progress: Option<&Progress>) -> CheckReport {
        let mut report = CheckReport::default();
        let mut buffers = PageBuffers::default();
        let blocks = self.core.pool.used_blocks();
        for block in 0..blocks {
            if block >= self.core.pool.used_blocks() {
                // Given back since.
                break;
            }
            self.check_block(block, &mut buffers, &mut report);
            report.blocks += 1;
            if let (Some(progress), 0) = (progress, block % 64) {
                progress(block, blocks);
            }
        }
        self.check_index(&mut report);
        if let Some(progress) = progress {
            progress(blocks, blocks);
        }
        report
    }

    fn check_block(&self, block: u64, buffers: &mut PageBuffers, report: &mut CheckReport) {
        let shape = || {
            let flags = block_flags::read(&self.core.pool, block).ok();
            flags.map(|flags| flags & (block_flags::LARGE | block_flags::FREE))
        };
        let shape_before = shape();
        let mut damages = BTreeMap::new();
        let mut strangers = Vec::new();
        self.scan_block(EVERYTHING, block, buffers, &mut |finding| match finding {
            Finding::Record { record, hash, key } => {
                report.records += 1;
                report.words_unchecked += u64::from(record.unchecked() != UncheckedWord::NONE);
                if !self.is_indexed(&record.place, hash, key) {
                    strangers.push(record.place.record_at);
                }
            }
            Finding::Damage { at, what } => {
                damages.insert(at, what);
            }
        });
        // A block that was used again in another shape meanwhile has records at locations that were none: they
        // are met in no pass, or in another block.
        let is_same = shape() == shape_before;
        for at in strangers.into_iter().filter(|_| is_same) {
            report.damage(at, "a record is not in the index".to_owned());
        }
        if damages.is_empty() {
            return;
        }
        // A record may have been changing while its page was read. With all page locks of the block
        // held nothing changes, so what is found again is really damaged.
        let pages = if self.blocks.has(block) { self.pages.pages_per_block() } else { 0 };
        let _locks: Vec<_> = (0..pages)
            .map(|page| self.blocks.page_lock(self.pages.page_number(block, page)))
            .map(|lock| lock.lock(&*self.core.pool.environment))
            .collect();
        self.scan_block(EVERYTHING, block, buffers, &mut |finding| {
            if let Finding::Damage { at, what } = finding
                && damages.contains_key(&at)
            {
                report.damage(at, what.to_owned());
            }
        });
    }

    /// Whether the index leads to a record that was found, or the record has changed since.
    fn is_indexed(&self, place: &Place, hash: u64, key: &[u8]) -> bool {
        let location = place.location();
        if self.index.contains_exact(hash, location) {
            return true;
        }
        let _key = self.keys.lock_to_look(hash, &self.core.poison);
        let record = self.pages.decode(&self.core.pool, place);
        let is_there = self.pages.is_live(&self.core.pool, place).unwrap_or(false)
            && record.is_some_and(|record| self.pages.key_is(&self.core.pool, &record, key));
        if !is_there || self.index.contains_exact(hash, location) {
            return true;
        }
        // An interrupted overwrite leaves two records of a key. A store open for reading only serves
        // the newer one and may not clear the other.
        self.core.pool.read_only && matches!(self.find_locked(hash, key, |_| {}), Ok(Some(_)))
    }

    /// Whether each entry of the index leads to a record with its hash.
    fn check_index(&self, report: &mut CheckReport) {
        let mut key = Vec::new();
        self.index.for_each(|hash, location| {
            report.index_entries += 1;
            let place = self.pages.place_of(location);
            if !self.entry_is_right(hash, location, &place, &mut key) {
                let what = "an entry of the index leads to no record of its key".to_owned();
                report.damage(place.record_at, what);
            }
        });
    }

    fn entry_is_right(
        &self,
        hash: u64,
        location: Location,
        place: &Place,
        key: &mut Vec<u8>,
    ) -> bool {
        let _key = self.keys.lock_to_look(hash, &self.core.poison);
        if !self.index.contains_exact(hash, location) {
            return true;
        }
        self.pages.is_live(&self.core.pool, place).unwrap_or(true)
            && self.decode_with_key(place, key).is_some()
            && self.core.hash.of(key) == hash
    }
}
