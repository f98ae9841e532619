//! [`Shape`]: where the entries of a hash lie.

/// The sizes of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// log2 of the number of parts.
    pub(super) part_bits: u32,
    /// log2 of the slots of each.
    pub(super) slot_bits: u32,
}

impl Shape {
    /// Slots of a part.
    #[inline(always)]
    pub(super) fn slots(self) -> u64 {
        1 << self.slot_bits
    }

    /// Most entries of a part: four fifths of its slots.
    #[inline(always)]
    pub(super) fn entries_max(self) -> u64 {
        self.slots() * 4 / 5
    }

    /// Bits of a hash behind those that choose its home.
    pub(super) fn rest_bits(self) -> u32 {
        u64::BITS - self.part_bits - self.slot_bits
    }

    /// The slot where an entry lies at best.
    #[inline(always)]
    pub(super) fn home(self, hash: u64) -> u64 {
        hash >> self.rest_bits()
    }

    /// The slot behind another one of its part.
    #[inline(always)]
    pub(super) fn next(self, number: u64) -> u64 {
        let mask = self.slots() - 1;
        number & !mask | (number + 1) & mask
    }

    /// How far a slot of the part of a hash is from its home.
    #[inline(always)]
    pub(super) fn distance(self, hash: u64, number: u64) -> u64 {
        number.wrapping_sub(self.home(hash)) & (self.slots() - 1)
    }

    /// The slots of a hash's part, from its home on, with their distance from there.
    #[inline(always)]
    pub(super) fn chain(self, hash: u64) -> impl Iterator<Item = (u64, u64)> {
        let (home, mask) = (self.home(hash), self.slots() - 1);
        (0..=mask).map(move |distance| (home & !mask | (home + distance) & mask, distance))
    }
}
