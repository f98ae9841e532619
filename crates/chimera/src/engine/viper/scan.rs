//! Reading whole blocks: for recovery and for verification.

use chimera_pmem::Pmem;

use super::records::Records;
use crate::records::block_flags;
use crate::records::checksum::Summed;
use crate::records::header::Mismatch;
use crate::records::vpage::{self, PageBuffers, Pages, Place, Record, Room, Scanned, steps};

/// What reading a block found.
pub(super) enum Finding<'a> {
    /// A live record that is sound, as far as it was asked for.
    Record { record: Record, hash: u64, key: &'a [u8] },
    /// Something that is not as it must be: of this record, if of any.
    Damage { at: u64, what: &'static str, record: Option<DamagedRecord> },
}

/// A live record that is damaged.
#[derive(Clone, Copy)]
pub(super) struct DamagedRecord {
    pub(super) place: Place,
    /// The hash of its key, unless that is damaged as well.
    pub(super) hash: Option<u64>,
}

/// Reads blocks, one at a time.
pub(super) struct Scan<'r, P: Pmem, V: Pages> {
    pub(super) records: &'r Records<P, V>,
    /// Verify values, beside keys and versions.
    pub(super) values: bool,
    /// Take records found by, or behind, a damaged word as they are.
    pub(super) salvage: bool,
}

impl<P: Pmem, V: Pages> Scan<'_, P, V> {
    /// Reads the records of a block. The room in it, where it holds records.
    pub(super) fn read_block(
        &self,
        block: u64,
        buffers: &mut PageBuffers,
        visit: &mut impl FnMut(Finding<'_>),
    ) -> Option<Room> {
        let (pool, pages) = (self.records.pool(), self.records.pages());
        let flags = block_flags::read(pool, block).unwrap_or_else(|_| {
            let at = pool.map.block_at(block);
            let what = "the flags of a block are damaged";
            visit(Finding::Damage { at, what, record: None });
            0
        });
        let at = pool.map.block_at(block);
        if flags & block_flags::BATCH != 0 {
            return None;
        }
        if flags & block_flags::FREE != 0 {
            if !pages.is_blank(pool, block) {
                let what = "a block that is marked as free holds records";
                visit(Finding::Damage { at, what, record: None });
            }
            return None;
        }
        let hash = self.records.core().hash;
        let is_sound = |record: &Record, key: &[u8]| record.verify(hash.of(key), None).is_ok();
        let mut visit = |scanned: Scanned<'_>| match scanned {
            Scanned::Record { record, key, value } => {
                visit(self.judge(record, key, value));
            }
            Scanned::Damage { at, what } => {
                visit(Finding::Damage { at, what, record: None });
            }
        };
        let Self { values, salvage, .. } = *self;
        let scan = vpage::Scan { flags, salvage, values, is_sound: &is_sound };
        Some(pages.scan(pool, &scan, block, buffers, &mut visit))
    }

    /// Verifies a record.
    fn judge<'a>(&self, record: Record, key: &'a [u8], value: Option<&[u8]>) -> Finding<'a> {
        let (at, pmem) = (record.place.record_at, &self.records.pool().pmem);
        let (hash, place) = (self.records.core().hash.of(key), record.place);
        let summed = value.filter(|_| self.values).map(Summed::of);
        let mismatch = record.verify(hash, summed).err();
        if mismatch == Some(Mismatch::Key) && !pmem.skips(steps::KEY_CHECK) {
            let what = "the key of a record does not match its checksum";
            return Finding::Damage { at, what, record: Some(DamagedRecord { place, hash: None }) };
        }
        let damage = if value.is_none() {
            Some("a part of a large value is missing or damaged")
        } else if mismatch == Some(Mismatch::Value) && !pmem.skips(steps::VALUE_CHECK) {
            Some("a value does not match its checksum")
        } else {
            None
        };
        if let Some(what) = damage {
            // Whatever is written next must win against it, should it ever be live again.
            self.records.space().note_version(record.version());
            let record = DamagedRecord { place, hash: Some(hash) };
            return Finding::Damage { at, what, record: Some(record) };
        }
        Finding::Record { record, hash, key }
    }
}
