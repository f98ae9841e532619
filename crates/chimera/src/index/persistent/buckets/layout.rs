//! The words on media: that of a segment, and the position of a slot. Each tells whether it was damaged.

/// Odd, without long rows of equal bits. A flipped bit of a number changes the upper bits of its product for certain.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const OTHER_FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

/// Most leading bits that the hashes of a segment have in common.
pub(crate) const DEPTH_MAX: u32 = 42;

const DEPTH_BITS: u32 = 6;
const CHECK_SHIFT: u32 = 48;
const LOW: u64 = (1 << CHECK_SHIFT) - 1;
/// Set in the position of each slot that is not empty: no flipped bit makes it empty.
const OCCUPIED: u64 = 1 << 63;
/// The upper bits of the position of an empty slot: without [`OCCUPIED`].
const EMPTY: u64 = 0x2b5d << CHECK_SHIFT;

/// Sixteen bits that change whenever one bit of either number does.
#[inline(always)]
fn check(one: u64, other: u64) -> u64 {
    let mixed = one.wrapping_mul(FACTOR).wrapping_add(other.wrapping_mul(OTHER_FACTOR));
    mixed >> CHECK_SHIFT
}

/// Which hashes a segment has: those whose leading `depth` bits are `prefix`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) prefix: u64,
    pub(crate) depth: u32,
}

impl Prefix {
    /// Whether a hash begins with it.
    #[inline(always)]
    pub(crate) fn covers(self, hash: u64) -> bool {
        self.prefix == hash.checked_shr(u64::BITS - self.depth).unwrap_or(0)
    }

    /// The lowest hash, and the highest.
    pub(crate) fn range(self) -> (u64, u64) {
        let first = self.prefix.checked_shl(u64::BITS - self.depth).unwrap_or(0);
        (first, first | u64::MAX.checked_shr(self.depth).unwrap_or(0))
    }

    /// The half of its hashes with `bit` behind the prefix.
    pub(crate) fn half(self, bit: u64) -> Self {
        Self { prefix: self.prefix << 1 | bit, depth: self.depth + 1 }
    }

    /// The word of a segment whose header lies at `at`.
    pub(crate) fn encode(self, at: u64) -> u64 {
        let low = u64::from(self.depth) | self.prefix << DEPTH_BITS;
        low | check(low, at) << CHECK_SHIFT
    }

    /// What the word of a segment at `at` says, unless it is damaged.
    pub(crate) fn decode(word: u64, at: u64) -> Option<Self> {
        let low = word & LOW;
        let found = Self { depth: low as u32 & ((1 << DEPTH_BITS) - 1), prefix: low >> DEPTH_BITS };
        let is_sound = word == found.encode(at)
            && found.depth <= DEPTH_MAX
            && found.prefix >> found.depth == 0;
        is_sound.then_some(found)
    }
}

/// The word of a slot with this signature that leads to offset `at`, which is not 0 and below 2^48.
#[inline(always)]
pub(crate) fn position(signature: u64, at: u64) -> u64 {
    debug_assert!(0 < at && at <= LOW, "an offset of 48 bits");
    // Without the lowest bit, to make room for that of the occupied slot.
    at | check(signature, at) >> 1 << CHECK_SHIFT | OCCUPIED
}

/// The offset that a position leads to, which is not 0, unless the slot is damaged.
#[inline(always)]
pub(crate) fn offset(signature: u64, position_word: u64) -> Option<u64> {
    let at = position_word & LOW;
    (at > 0 && position(signature, at) == position_word).then_some(at)
}

/// The position of an empty slot at `slot_at`: it says where it lies, and is never 0. So a slot that lost its bytes is damaged
/// and not empty, and so is one that has those of an empty slot elsewhere.
#[inline(always)]
pub(super) fn empty(slot_at: u64) -> u64 {
    slot_at | EMPTY
}

/// What stands for the signature in the check of the slot at `slot_at`: a slot is valid nowhere else.
#[inline(always)]
pub(super) fn placed(signature: u64, slot_at: u64) -> u64 {
    signature.wrapping_add(slot_at)
}

/// The offset that a position leads to, whatever its check.
pub(crate) fn unchecked_offset(position_word: u64) -> u64 {
    position_word & LOW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_slot_is_noticed() {
        for seed in 1..500_u64 {
            let (signature, at) = (seed.wrapping_mul(FACTOR), seed * 4096 + 128);
            let word = position(signature, at);
            assert_eq!(offset(signature, word), Some(at));
            for bit in 0..64 {
                assert_eq!(offset(signature ^ 1 << bit, word), None, "bit {bit} of the signature");
                assert_eq!(offset(signature, word ^ 1 << bit), None, "bit {bit} of the position");
                assert_ne!(word ^ 1 << bit, 0, "an entry that is gone");
            }
        }
    }

    #[test]
    fn every_flipped_bit_of_an_empty_slot_is_noticed_and_no_other_is_empty() {
        for slot_at in (8192..1 << 20).step_by(16).chain([1 << 47]) {
            let word = empty(slot_at);
            assert_ne!(word, 0);
            assert_ne!(word, empty(slot_at + 16), "another slot");
            assert_eq!(offset(placed(0, slot_at), word), None);
            for bit in 0..64 {
                // Which leads to the slot itself, where no record can be.
                let leads = offset(placed(0, slot_at), word ^ 1 << bit);
                assert!(leads.is_none_or(|at| at == slot_at), "bit {bit} at {slot_at}");
            }
        }
    }

    #[test]
    fn a_slot_is_valid_at_its_place_only() {
        for seed in 1..200_u64 {
            let (signature, at) = (seed.wrapping_mul(FACTOR), seed * 4096 + 128);
            let word = position(placed(signature, 8256), at);
            for slot_at in (8256..8256 + 16 * 2000).step_by(16) {
                let found = offset(placed(signature, slot_at), word);
                assert_eq!(found, (slot_at == 8256).then_some(at), "at {slot_at}");
            }
        }
    }

    #[test]
    fn every_flipped_bit_of_a_segment_is_noticed() {
        for depth in 0..=DEPTH_MAX {
            for seed in 0..40_u64 {
                let prefix = seed.wrapping_mul(FACTOR).checked_shr(64 - depth).unwrap_or(0);
                let (segment, at) = (Prefix { prefix, depth }, 8192 + 64 * seed);
                let word = segment.encode(at);
                assert_eq!(Prefix::decode(word, at), Some(segment));
                assert_eq!(Prefix::decode(word, at + 64), None, "a copy elsewhere");
                for bit in 0..64 {
                    assert_eq!(Prefix::decode(word ^ 1 << bit, at), None, "bit {bit}");
                }
            }
        }
    }

    #[test]
    fn halves_cover_what_the_whole_covered() {
        let whole = Prefix { prefix: 5, depth: 3 };
        let (low, high) = (whole.half(0), whole.half(1));
        assert_eq!((whole.range().0, whole.range().1), (low.range().0, high.range().1));
        assert_eq!(low.range().1.wrapping_add(1), high.range().0);
        for hash in [5 << 61, (5 << 61) | 1 << 60, 4 << 61, u64::MAX] {
            assert_eq!(whole.covers(hash), low.covers(hash) || high.covers(hash), "{hash:#x}");
            assert!(!(low.covers(hash) && high.covers(hash)));
        }
        assert!(Prefix { prefix: 0, depth: 0 }.covers(u64::MAX));
    }
}
