//! The words of a node as numbers: [`Header`], [`Place`], [`Slot`]; and keys as units.

/// The second word of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// Slots in use.
    pub(super) count: u32,
    /// The first unit of the heap.
    pub(super) heap: u32,
    /// Units of the heap that nothing refers to.
    pub(super) garbage: u32,
    /// Bytes of the prefix, which ends with the node.
    pub(super) prefix: u32,
    /// 0 for leaves.
    pub(super) level: u32,
}

impl Header {
    #[inline(always)]
    pub(super) fn of(word: u64) -> Self {
        Self {
            count: word as u32 & 0xffff,
            heap: (word >> 16) as u32 & 0xffff,
            garbage: (word >> 32) as u32 & 0xffff,
            prefix: (word >> 48) as u32 & 0xff,
            level: (word >> 56) as u32,
        }
    }

    #[inline(always)]
    pub(super) fn word(self) -> u64 {
        let high =
            u64::from(self.garbage) | u64::from(self.prefix) << 16 | u64::from(self.level) << 24;
        u64::from(self.count) | u64::from(self.heap) << 16 | high << 32
    }
}

/// Where something lies in the heap of a node, and how many bytes of a key behind the prefix it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: u32,
    length: u32,
}

impl Place {
    /// The length that says: there is the number of a long key, which is kept whole.
    const LONG: u32 = 0xffff;
    /// No fence: nothing lies in the header.
    pub(super) const ABSENT: Self = Self { offset: 0, length: 0 };

    #[inline(always)]
    pub(super) fn new(offset: u32, length: u32) -> Self {
        Self { offset, length }
    }

    #[inline(always)]
    pub(super) fn long(offset: u32) -> Self {
        Self { offset, length: Self::LONG }
    }

    #[inline(always)]
    pub(super) fn of(half: u32) -> Self {
        Self { offset: half >> 16, length: half & 0xffff }
    }

    #[inline(always)]
    pub(super) fn half(self) -> u32 {
        self.offset << 16 | self.length
    }

    /// Bytes, or none if the key is a long one.
    #[inline(always)]
    pub(super) fn length(self) -> Option<u32> {
        (self.length != Self::LONG).then_some(self.length)
    }

    #[inline(always)]
    pub(super) fn is_absent(self) -> bool {
        self.offset == 0
    }
}

/// An entry: the head of its key, and where the rest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) head: u32,
    pub(super) place: Place,
}

impl Slot {
    #[inline(always)]
    pub(super) fn of(word: u64) -> Self {
        Self { head: (word >> 32) as u32, place: Place::of(word as u32) }
    }

    #[inline(always)]
    pub(super) fn word(self) -> u64 {
        u64::from(self.head) << 32 | u64::from(self.place.half())
    }
}

/// Four bytes of a key from `at` on as a number that is ordered as they are; zeros stand for missing ones.
#[inline(always)]
pub(super) fn unit_of(key: &[u8], at: u32) -> u32 {
    let rest = key.get(at as usize..).unwrap_or_default();
    match rest.first_chunk::<4>() {
        Some(four) => u32::from_be_bytes(*four),
        None => rest
            .iter()
            .zip([24, 16, 8, 0])
            .fold(0, |unit, (byte, by)| unit | u32::from(*byte) << by),
    }
}

/// The shortest key that is above `before` and not above `after`, which is above `before`.
pub(super) fn separator<'a>(before: &[u8], after: &'a [u8]) -> &'a [u8] {
    &after[..after.len().min(common(before, after) + 1)]
}

/// Bytes that two keys have in common.
pub(super) fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}
