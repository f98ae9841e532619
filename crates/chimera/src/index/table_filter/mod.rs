//! Filters of tables: whether a table may have an entry of a hash. A filter never denies an entry that was entered.
//!
//! A filter is made for a table with 3 of 4 slots in use: `n` entries, `m` bits in whole lines of the cache. A hash is mixed
//! to two numbers of 32 bits, `a` and `b`.
//! - [`FilterKind::Bloom`]: `m = 26 n`, and each hash has `k = 18` bits, at `floor(((a + i (b | 1)) mod 2^32) m / 2^32)` for
//!   `i` from 0 to 17: double hashing. Of hashes that were not entered a part of `(1 - e^(-k n / m))^k` is not ruled out:
//!   3.7 in a million. The bits of a hash lie in up to 18 lines; one that was not entered is ruled out at the second, on
//!   average.
//! - [`FilterKind::Blocked`]: `m = 16 n`, and each hash has 8 bits in one block of 256, one in each word of 32 (a split block
//!   Bloom filter). The block is `floor(b (m / 256) / 2^32)`; the bit in word `i` is the upper 5 bits of `a s_i`, with the odd
//!   numbers `s_i` of Apache Parquet. With `j` entries in the block a hash is not ruled out with probability
//!   `(1 - (31/32)^j)^8`, and `j` is Poisson's with a mean of 16: 13 in ten thousand. One line is looked at.
//!
//! # Protocol
//! One thread at a time changes a filter; any number may ask it meanwhile. What they are told of a filter that is changed means
//! nothing: the owner makes them verify afterwards that its table was in force all the time.

mod sized;
#[cfg(test)]
mod tests;

use crate::index::OutOfSpace;
use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::sync::{Arena, Mutex, lock};
pub(crate) use sized::SizedFilters;

/// Bits of a line, and of a block.
const LINE_BITS: u64 = 512;
const BLOCK_BITS: u64 = 256;
/// A Bloom filter has at most so many lines: positions have 32 bits.
const LINES_MAX: u64 = (1 << 32) / LINE_BITS;
/// Bits that a hash has in a Bloom filter.
const BLOOM_HASHES: u32 = 18;
/// Odd, with well-mixed bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// One for each word of a block.
const SALTS: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// A kind of filter.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum FilterKind {
    /// A conventional Bloom filter, which takes as much memory as that of ChameleonDB's comparison point `Pmem-LSM-F`.
    Bloom,
    /// A split block Bloom filter: one line for each look.
    Blocked,
}

/// A line of bits.
#[derive(Debug, zerocopy::FromZeros)]
#[repr(C, align(64))]
struct Line([AtomicU64; 8]);

/// Filters of up to one size, which are handed out by their numbers.
///
/// # Cost
/// The lines of each, touched when they are first used.
#[derive(Debug)]
pub(crate) struct Filters {
    kind: FilterKind,
    lines: Arena<Line>,
    /// Lines of each.
    per_filter: u64,
    spare: Mutex<Spare>,
}

/// Which filters nobody has.
#[derive(Debug, Default)]
struct Spare {
    /// Filters that were given back.
    returned: Vec<u32>,
    /// Filters that were ever handed out: the numbers below.
    made: u32,
}

/// A filter of some [`Filters`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableFilter<'f> {
    kind: FilterKind,
    lines: &'f [Line],
}

impl FilterKind {
    fn bits_per_entry(self) -> u64 {
        match self {
            Self::Bloom => 26,
            Self::Blocked => 16,
        }
    }

    /// Lines of the filter of a table with so many slots.
    #[inline(always)]
    pub(crate) fn lines_for(self, slots: u32) -> u64 {
        let bits = u64::from(slots) * 3 / 4 * self.bits_per_entry();
        bits.div_ceil(LINE_BITS).clamp(1, LINES_MAX)
    }

    /// Bytes of the filter of a table with so many slots.
    pub(crate) fn bytes_for(self, slots: u32) -> u64 {
        self.lines_for(slots) * LINE_BITS / 8
    }
}

impl Filters {
    /// No filters yet, each of up to so many lines, 1 or more.
    pub(crate) fn new(kind: FilterKind, per_filter: u64, huge_pages: bool) -> Self {
        // All filters begin at a multiple of the first part, so each lies in one part.
        let lines = Arena::new(per_filter as usize, huge_pages);
        Self { kind, lines, per_filter, spare: Mutex::default() }
    }

    /// Hands out a filter, whatever its bits are.
    ///
    /// # Errors
    /// When there is no memory for one more.
    pub(crate) fn take(&self) -> Result<u32, OutOfSpace> {
        let mut spare = lock(&self.spare);
        if let Some(number) = spare.returned.pop() {
            return Ok(number);
        }
        let made = spare.made.checked_add(1).ok_or(OutOfSpace)?;
        self.lines.ensure(u64::from(made) * self.per_filter).map_err(|_| OutOfSpace)?;
        Ok(std::mem::replace(&mut spare.made, made))
    }

    /// Takes a filter back. Nobody changes it any more.
    pub(crate) fn give_back(&self, number: u32) {
        lock(&self.spare).returned.push(number);
    }

    /// The filter with this number, for a table with so many slots. None where there is none that long.
    #[inline(always)]
    pub(crate) fn filter(&self, number: u32, slots: u32) -> Option<TableFilter<'_>> {
        let count = self.kind.lines_for(slots);
        let lines = self.lines.range(u64::from(number) * self.per_filter, count)?;
        (count <= self.per_filter).then_some(TableFilter { kind: self.kind, lines })
    }

    /// Bytes of memory of all filters that were ever handed out.
    pub(crate) fn bytes(&self) -> u64 {
        self.lines.count() * size_of::<Line>() as u64
    }
}

impl TableFilter<'_> {
    /// Whether the hash may have been entered.
    ///
    /// # Cost
    /// 1 line of a blocked filter; of a Bloom filter up to 18, and 2 on average where the hash was not entered.
    #[inline(always)]
    pub(crate) fn may_have(self, hash: u64) -> bool {
        match self.kind {
            FilterKind::Bloom => self.positions(hash).all(|position| {
                let (word, bit) = self.word_at(position);
                word.load(Ordering::Relaxed) & bit != 0
            }),
            FilterKind::Blocked => {
                let mut words = self.block(hash).iter().zip(masks(hash));
                words.all(|(word, mask)| word.load(Ordering::Relaxed) & mask == mask)
            }
        }
    }

    /// Forgets all hashes.
    ///
    /// # Cost
    /// All lines.
    pub(crate) fn clear(self) {
        // Whoever sees a bit from now on sees as well that the filter was not in force any more.
        fence(Ordering::Release);
        self.lines
            .iter()
            .flat_map(|line| &line.0)
            .for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Enters a hash.
    ///
    /// # Cost
    /// 1 line of a blocked filter, up to 18 of a Bloom filter.
    #[inline]
    pub(crate) fn enter(self, hash: u64) {
        match self.kind {
            FilterKind::Bloom => self.positions(hash).for_each(|position| {
                let (word, bit) = self.word_at(position);
                set(word, bit);
            }),
            FilterKind::Blocked => {
                self.block(hash).iter().zip(masks(hash)).for_each(|(word, mask)| set(word, mask));
            }
        }
    }

    /// The bits of a hash in a Bloom filter.
    #[inline(always)]
    fn positions(self, hash: u64) -> impl Iterator<Item = u64> {
        let [first, step] = mixed(hash);
        let bits = self.lines.len() as u64 * LINE_BITS;
        (0..BLOOM_HASHES).map(move |number| {
            let at = first.wrapping_add(number.wrapping_mul(step | 1));
            (u64::from(at) * bits) >> 32
        })
    }

    #[inline(always)]
    fn word_at(&self, position: u64) -> (&AtomicU64, u64) {
        let line = &self.lines[(position / LINE_BITS) as usize];
        (&line.0[(position % LINE_BITS / 64) as usize], 1 << (position % 64))
    }

    /// The block of a hash.
    #[inline(always)]
    fn block(&self, hash: u64) -> &[AtomicU64] {
        let [_, chosen] = mixed(hash);
        let blocks = self.lines.len() as u64 * (LINE_BITS / BLOCK_BITS);
        let number = (u64::from(chosen) * blocks) >> 32;
        let (first, second) = self.lines[(number / 2) as usize].0.split_at(4);
        if number.is_multiple_of(2) { first } else { second }
    }
}

/// Two numbers of 32 bits. All of a shard's hashes have the same highest bits, which these do not show.
#[inline(always)]
fn mixed(hash: u64) -> [u32; 2] {
    let product = u128::from(hash) * u128::from(FACTOR);
    let folded = product as u64 ^ (product >> 64) as u64;
    [folded as u32, (folded >> 32) as u32]
}

/// The bits of a hash in each pair of words of its block.
#[inline(always)]
fn masks(hash: u64) -> [u64; 4] {
    let [chosen, _] = mixed(hash);
    let bit = |number: usize| u64::from(chosen.wrapping_mul(SALTS[number]) >> 27);
    std::array::from_fn(|pair| 1 << bit(2 * pair) | 1 << (32 + bit(2 * pair + 1)))
}

/// One thread at a time.
#[inline(always)]
fn set(word: &AtomicU64, bits: u64) {
    word.store(word.load(Ordering::Relaxed) | bits, Ordering::Relaxed);
}
