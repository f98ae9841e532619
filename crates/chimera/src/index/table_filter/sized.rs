//! [`SizedFilters`]: filters of tables of any size.
//!
//! There are classes of sizes, four between one power of two and the next. A filter has the lines that its table needs, in a
//! place of the lowest class that has room for them: what is left of the place, a fifth at most, is never touched.

use super::{FilterKind, Filters, TableFilter};
use crate::index::OutOfSpace;

/// The highest class: 2^23 lines.
const CLASS_MAX: u32 = 88;
/// In the number of a filter: its class above these bits, its place below.
const PLACE_BITS: u32 = 24;

/// Filters of any size, which are handed out by their numbers, never 0.
#[derive(Debug)]
pub(crate) struct SizedFilters {
    kind: FilterKind,
    /// By class, from 1 on.
    classes: Box<[Filters]>,
}

impl SizedFilters {
    /// No filters yet.
    pub(crate) fn new(kind: FilterKind) -> Self {
        let class = |class| Filters::new(kind, lines_of(class), false);
        Self { kind, classes: (1..=CLASS_MAX).map(class).collect() }
    }

    /// Hands out a filter for a table with so many slots, whatever its bits are.
    ///
    /// # Errors
    /// When there is no memory for one more.
    pub(crate) fn take(&self, slots: u32) -> Result<u32, OutOfSpace> {
        let class = class_of(self.kind.lines_for(slots));
        let filters = self.class(class).ok_or(OutOfSpace)?;
        let place = filters.take()?;
        if place >> PLACE_BITS != 0 {
            filters.give_back(place);
            return Err(OutOfSpace);
        }
        Ok(class << PLACE_BITS | place)
    }

    /// Takes a filter back. Nobody changes it any more.
    pub(crate) fn give_back(&self, number: u32) {
        if let Some(filters) = self.class(number >> PLACE_BITS) {
            filters.give_back(place_of(number));
        }
    }

    /// The filter with this number, for a table with so many slots. None where there is none that long.
    #[inline(always)]
    pub(crate) fn filter(&self, number: u32, slots: u32) -> Option<TableFilter<'_>> {
        self.class(number >> PLACE_BITS)?.filter(place_of(number), slots)
    }

    pub(crate) fn kind(&self) -> FilterKind {
        self.kind
    }

    /// Bytes of memory of all filters that were ever handed out.
    pub(crate) fn bytes(&self) -> u64 {
        self.classes.iter().map(Filters::bytes).sum()
    }

    #[inline(always)]
    fn class(&self, class: u32) -> Option<&Filters> {
        self.classes.get(class.checked_sub(1)? as usize)
    }
}

#[inline(always)]
fn place_of(number: u32) -> u32 {
    number & ((1 << PLACE_BITS) - 1)
}

/// The lowest class with room for so many lines, 1 or more.
fn class_of(lines: u64) -> u32 {
    // Three bits are left above these.
    let shift = lines.ilog2().saturating_sub(2);
    4 * shift + lines.div_ceil(1 << shift) as u32
}

/// Lines of a place of this class.
fn lines_of(class: u32) -> u64 {
    let shift = (class / 4).saturating_sub(1);
    u64::from(class - 4 * shift) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_room_for_its_lines_and_little_more() {
        let all = (1..1000).chain((10..=23).flat_map(|bits| [(1 << bits) - 1, 1 << bits]));
        for lines in all.chain([(1 << 22) + 1]) {
            let room = lines_of(class_of(lines));
            assert!(lines <= room && room * 4 <= lines * 5, "{lines} lines in {room}");
        }
        assert_eq!(class_of(1 << 23), CLASS_MAX);
        assert!((1..CLASS_MAX).all(|class| lines_of(class) < lines_of(class + 1)));
        assert!((1..=CLASS_MAX).all(|class| class_of(lines_of(class)) == class));
    }
}
