//! [`Slot`]: what a table says of one key: its hash, and the place of its record.
//!
//! ```text
//! slot       [hash: 8] [location: 8]; zeros if it is empty
//! location   [offset / 8: 42 bits | tombstone: 1 | size class: 7 | check: 14]
//! ```
//! The check binds the hash and the rest of the location. A flipped bit of either is noticed for certain, other damage
//! with probability 1 - 2^-14. An entry has an offset and a size class that are not 0, so no flipped bit makes it an
//! empty slot, nor an empty slot an entry.
//!
//! In persistent memory the location is inverted, so memory that was zeroed is damage, and not an empty slot. And the hash is
//! combined with the place of the slot by an exclusive or, so that no slot, empty or not, is valid at another place.
//!
//! The size class is the number of bytes of the record, rounded up to three significant bits: by a quarter at most. So
//! the bytes of a record that is superseded are known without reading it.

/// Odd, without long rows of equal bits. A flipped bit of a number changes the upper bits of its product for certain.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const OTHER_FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

const OFFSET_BITS: u32 = 42;
const TOMBSTONE: u64 = 1 << OFFSET_BITS;
const CLASS_SHIFT: u32 = OFFSET_BITS + 1;
const CLASS_BITS: u32 = 7;
const CHECK_SHIFT: u32 = CLASS_SHIFT + CLASS_BITS;
const LOW: u64 = (1 << CHECK_SHIFT) - 1;

/// The unit of offsets and sizes, in bytes.
const UNIT_BYTES: u64 = 8;
/// The highest size class. One more would be the one that memory full of ones has.
const CLASS_MAX: u64 = (1 << CLASS_BITS) - 2;
/// Offsets of records are below it.
pub(crate) const OFFSET_END: u64 = UNIT_BYTES << OFFSET_BITS;

/// A slot of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The hash of the key.
    pub(crate) hash: u64,
    /// The word of the [location](encode); 0 if the slot is empty.
    pub(crate) location: u64,
}

/// What a location says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its word.
    pub(crate) location: u64,
    /// Offset of the record.
    pub(crate) offset: u64,
    /// Bytes of the record, rounded up by a quarter at most.
    pub(crate) bytes: u64,
    /// The record says that the key was deleted.
    pub(crate) is_tombstone: bool,
}

impl Slot {
    /// A slot without an entry.
    pub(crate) const EMPTY: Self = Self { hash: 0, location: 0 };

    /// The slot of a record at `offset`: see [`encode`].
    pub(crate) fn new(hash: u64, offset: u64, bytes: u64, is_tombstone: bool) -> Self {
        Self { hash, location: encode(hash, offset, bytes, is_tombstone) }
    }

    /// Its words, as they lie on media at byte `at` of the pool.
    #[inline(always)]
    pub(super) fn to_media(self, at: u64) -> [u64; 2] {
        [self.hash ^ at, !self.location]
    }

    /// The slot of two words on media at byte `at` of the pool.
    #[inline(always)]
    pub(super) fn from_media([word, location]: [u64; 2], at: u64) -> Self {
        Self { hash: word ^ at, location: !location }
    }

    /// The slot of its bytes on media at byte `at` of the pool.
    #[inline(always)]
    pub(super) fn from_bytes(bytes: &[u8; 16], at: u64) -> Self {
        let (words, _) = bytes.as_chunks();
        Self::from_media([u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])], at)
    }

    /// Whether it has no entry.
    #[inline(always)]
    pub(crate) fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// What it says, unless it is empty or damaged.
    #[inline(always)]
    pub(crate) fn found(self) -> Option<Found> {
        decode(self.hash, self.location)
    }
}

/// The location of a record of so many bytes at `offset`, whose key has this hash. It is not 0.
///
/// # Panics
/// When the offset is 0, no multiple of 8, or not below [`OFFSET_END`].
#[inline]
pub(crate) fn encode(hash: u64, offset: u64, bytes: u64, is_tombstone: bool) -> u64 {
    let is_valid = 0 < offset && offset < OFFSET_END && offset.is_multiple_of(UNIT_BYTES);
    assert!(is_valid, "no record can lie at {offset}");
    let tombstone = if is_tombstone { TOMBSTONE } else { 0 };
    let low = (offset / UNIT_BYTES) | tombstone | class_of(bytes) << CLASS_SHIFT;
    low | check(hash, low) << CHECK_SHIFT
}

/// What a location says, if it belongs to this hash; none if it is 0 or damaged.
#[inline(always)]
pub(crate) fn decode(hash: u64, location: u64) -> Option<Found> {
    let found = decode_unchecked(location);
    let class = location >> CLASS_SHIFT & ((1 << CLASS_BITS) - 1);
    let is_sound = check(hash, location & LOW) == location >> CHECK_SHIFT
        && found.offset > 0
        && 0 < class
        && class <= CLASS_MAX;
    is_sound.then_some(found)
}

/// What a location says, whatever its check.
#[inline(always)]
pub(super) fn decode_unchecked(location: u64) -> Found {
    Found {
        location,
        offset: (location & (TOMBSTONE - 1)) * UNIT_BYTES,
        bytes: class_bytes(location >> CLASS_SHIFT & ((1 << CLASS_BITS) - 1)),
        is_tombstone: location & TOMBSTONE != 0,
    }
}

/// Fourteen bits that change whenever one bit of either number does.
#[inline(always)]
fn check(hash: u64, low: u64) -> u64 {
    let mixed = hash.wrapping_mul(FACTOR).wrapping_add(low.wrapping_mul(OTHER_FACTOR));
    mixed >> CHECK_SHIFT
}

/// The lowest size class of at least so many bytes, or the highest one.
#[inline]
fn class_of(bytes: u64) -> u64 {
    let units = bytes.div_ceil(UNIT_BYTES).max(1);
    // Three bits are left above these.
    let shift = u64::from(units.ilog2().saturating_sub(2));
    let mantissa = units.div_ceil(1 << shift);
    (4 * shift + mantissa).min(CLASS_MAX)
}

/// Bytes of a size class.
#[inline(always)]
fn class_bytes(class: u64) -> u64 {
    let shift = (class / 4).saturating_sub(1);
    let mantissa = class - 4 * shift;
    (mantissa << shift) * UNIT_BYTES
}
