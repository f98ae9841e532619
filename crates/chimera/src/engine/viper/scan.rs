//! Reading whole blocks: for recovery and for verification.

use chimera_pmem::Pmem;

use super::Viper;
use crate::records::block_flags;
use crate::records::checksum::Summed;
use crate::records::header::Mismatch;
use crate::records::vpage::{self, PageBuffers, Pages, Place, Record, Room, Scanned, steps};
use crate::sync::atomic::Ordering;

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

/// What to verify beside keys and versions, and what to do about damage.
#[derive(Clone, Copy)]
pub(super) struct Scan {
    pub(super) values: bool,
    /// Take records found by, or behind, a damaged word as they are.
    pub(super) salvage: bool,
}

impl<P: Pmem, V: Pages> Viper<P, V> {
    /// Reads the records of a block. The room in it, where it holds records.
    pub(super) fn scan_block(
        &self,
        scan: Scan,
        block: u64,
        buffers: &mut PageBuffers,
        visit: &mut impl FnMut(Finding<'_>),
    ) -> Option<Room> {
        let flags = block_flags::read(&self.core.pool, block).unwrap_or_else(|_| {
            let at = self.core.pool.map.block_at(block);
            let what = "the flags of a block are damaged";
            visit(Finding::Damage { at, what, record: None });
            0
        });
        let at = self.core.pool.map.block_at(block);
        if flags & block_flags::FREE != 0 {
            if !self.pages.is_blank(&self.core.pool, block) {
                let what = "a block that is marked as free holds records";
                visit(Finding::Damage { at, what, record: None });
            }
            return None;
        }
        let values = scan.values;
        let is_sound =
            |record: &Record, key: &[u8]| record.verify(self.core.hash.of(key), None).is_ok();
        let mut visit = |scanned: Scanned<'_>| match scanned {
            Scanned::Record { record, key, value } => {
                visit(self.judge(record, key, value, values));
            }
            Scanned::Damage { at, what } => {
                visit(Finding::Damage { at, what, record: None });
            }
        };
        let scan = vpage::Scan { flags, salvage: scan.salvage, values, is_sound: &is_sound };
        Some(self.pages.scan(&self.core.pool, &scan, block, buffers, &mut visit))
    }

    /// Verifies a record.
    fn judge<'a>(
        &self,
        record: Record,
        key: &'a [u8],
        value: Option<&[u8]>,
        verify_value: bool,
    ) -> Finding<'a> {
        let (at, pmem) = (record.place.record_at, &self.core.pool.pmem);
        let (hash, place) = (self.core.hash.of(key), record.place);
        let summed = value.filter(|_| verify_value).map(Summed::of);
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
            self.clock.fetch_max(record.version(), Ordering::Relaxed);
            let record = DamagedRecord { place, hash: Some(hash) };
            return Finding::Damage { at, what, record: Some(record) };
        }
        Finding::Record { record, hash, key }
    }
}
