//! [`Place`]: where a record is.

use super::page_map::PageMap;
use crate::pool::Location;

/// Bits of a location for the slot (plus one) and for the page.
const SLOT_BITS: u32 = 16;
const PAGE_BITS: u32 = 3;

/// A place for a record: offsets into the pool, computed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) block: u64,
    pub(crate) page: u64,
    /// Which one of the page: a slot, or a position in its log.
    pub(crate) slot: u32,
    /// Where the page begins.
    pub(crate) page_at: u64,
    /// Where the record begins.
    pub(crate) record_at: u64,
}

impl Place {
    /// The location of a place: 45 bits of block, 3 of page, 16 of slot plus one (section 3.2.1).
    #[inline(always)]
    pub(crate) fn location(&self) -> Location {
        let raw = self.block << (PAGE_BITS + SLOT_BITS)
            | self.page << SLOT_BITS
            | u64::from(self.slot + 1);
        Location::from_raw(raw).expect("the slot's part is not 0")
    }

    /// The place of a location; `slot_at` says where in its page a slot begins.
    #[inline(always)]
    pub(crate) fn of(map: &PageMap, location: Location, slot_at: impl Fn(u32) -> u64) -> Self {
        let raw = location.raw();
        let slot = (raw & ((1 << SLOT_BITS) - 1)) as u32 - 1;
        let page = raw >> SLOT_BITS & ((1 << PAGE_BITS) - 1);
        Self::new(map, raw >> (PAGE_BITS + SLOT_BITS), page, slot, slot_at)
    }

    /// Slot number `slot` of a page.
    #[inline(always)]
    pub(crate) fn new(
        map: &PageMap,
        block: u64,
        page: u64,
        slot: u32,
        slot_at: impl Fn(u32) -> u64,
    ) -> Self {
        let page_at = map.page_at(block, page);
        Self { block, page, slot, page_at, record_at: page_at + slot_at(slot) }
    }
}
