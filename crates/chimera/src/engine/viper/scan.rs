//! Reading whole blocks: for recovery and for verification.

use chimera_pmem::Pmem;

use super::Viper;
use crate::records::block_flags;
use crate::records::vpage::{self, PageBuffers, Pages, Place, RecordHeader, Room, Scanned, steps};
use crate::sync::atomic::Ordering;

/// What reading a block found.
pub(super) enum Finding<'a> {
    /// A record that counts and whose checksums, as far as they apply, are right.
    Record { place: Place, header: RecordHeader, hash: u64, key: &'a [u8], value_unchecked: bool },
    /// Something that is not as it must be.
    Damage { at: u64, what: &'static str },
}

/// What to verify beside keys and versions, and what to do about damage.
#[derive(Clone, Copy)]
pub(super) struct Scan {
    pub(super) values: bool,
    /// Take what is found by, or behind, a damaged word as it is.
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
            visit(Finding::Damage { at, what: "the flags of a block are damaged" });
            // Whether values were updated in place is unknown: their checksums decide.
            0
        });
        let at = self.core.pool.map.block_at(block);
        if flags & block_flags::FREE != 0 {
            if !self.pages.is_blank(&self.core.pool, block) {
                visit(Finding::Damage { at, what: "a block that is marked as free holds records" });
            }
            return None;
        }
        let values = scan.values && flags & block_flags::IN_PLACE == 0;
        let is_sound = |place: &Place, header: &RecordHeader, key: &[u8]| {
            header.key_is_sound(place, self.core.hash.of(key))
        };
        let mut visit = |scanned: Scanned<'_>| match scanned {
            Scanned::Record { place, header, key, value } => {
                visit(self.judge(place, header, key, value, values));
            }
            Scanned::Damage { at, what } => visit(Finding::Damage { at, what }),
        };
        let scan = vpage::Scan { flags, salvage: scan.salvage, values, is_sound: &is_sound };
        Some(self.pages.scan(&self.core.pool, &scan, block, buffers, &mut visit))
    }

    /// Verifies a record.
    fn judge<'a>(
        &self,
        place: Place,
        header: RecordHeader,
        key: &'a [u8],
        value: Option<&[u8]>,
        verify_value: bool,
    ) -> Finding<'a> {
        let at = place.record_at;
        let hash = self.core.hash.of(key);
        let pmem = &self.core.pool.pmem;
        let checked = self.pages.is_checked();
        if checked && !header.key_is_sound(&place, hash) && !pmem.skips(steps::KEY_CHECK) {
            return Finding::Damage { at, what: "the key of a record does not match its checksum" };
        }
        let damage = match value {
            None => Some("a part of a large value is missing or damaged"),
            Some(value)
                if checked
                    && verify_value
                    && !header.value_is_sound(&place, value)
                    && !pmem.skips(steps::VALUE_CHECK) =>
            {
                Some("a value does not match its checksum")
            }
            Some(_) => None,
        };
        if let Some(what) = damage {
            // Whatever is written next must win against it, should it ever count again.
            self.clock.fetch_max(header.version, Ordering::Relaxed);
            return Finding::Damage { at, what };
        }
        Finding::Record { place, header, hash, key, value_unchecked: checked && !verify_value }
    }
}
