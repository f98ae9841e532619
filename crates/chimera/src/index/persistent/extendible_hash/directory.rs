//! [`Directory`]: from the first bits of a hash to a segment, in persistent memory.

use chimera_pmem::{CACHE_LINE, Extent, Pmem, Site};

use crate::index::persistent::buckets::{self, DEPTH_MAX, Prefix};
use crate::pool::{Pool, checked_word};

/// Bits of a packed directory that have its depth.
const DEPTH_BITS: u32 = 8;

/// A directory: where its header lies, and the bits of a hash that choose a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) at: u64,
    pub(super) depth: u32,
}

impl Directory {
    /// As one word, which is never 0. No two directories of a store have the same while it is open: depths only grow.
    pub(super) fn pack(self) -> u64 {
        self.at << DEPTH_BITS | u64::from(self.depth)
    }

    #[inline(always)]
    pub(super) fn unpack(word: u64) -> Option<Self> {
        let depth = word as u32 & ((1 << DEPTH_BITS) - 1);
        (word != 0).then_some(Self { at: word >> DEPTH_BITS, depth })
    }

    /// Bytes of the engine's part of a run with a directory of this depth.
    pub(super) fn bytes(depth: u32) -> u64 {
        CACHE_LINE + (8 << depth)
    }

    /// The word that puts it in force.
    pub(super) fn header(self) -> u64 {
        // Another one than that of a segment at this place.
        Prefix { prefix: 0, depth: self.depth }.encode(self.at | 1)
    }

    /// The word of a directory at `at` that was never in force. It is not 0: a directory that lost its word is damaged.
    pub(super) fn begun(at: u64) -> u64 {
        checked_word::encode_at(0, at)
    }

    /// The directory whose header at `at` is this word, unless it is damaged.
    pub(super) fn decode(word: u64, at: u64) -> Option<Self> {
        let Prefix { prefix, depth } = Prefix::decode(word, at | 1)?;
        (prefix == 0 && depth <= DEPTH_MAX).then_some(Self { at, depth })
    }

    /// Where the word of a hash lies.
    #[inline(always)]
    pub(super) fn word_at(self, hash: u64) -> u64 {
        self.number_at(hash.checked_shr(u64::BITS - self.depth).unwrap_or(0))
    }

    /// Where word number `number` lies.
    #[inline(always)]
    pub(super) fn number_at(self, number: u64) -> u64 {
        self.at + CACHE_LINE + 8 * number
    }

    /// Where the words of the hashes with a prefix lie, which is not longer than the depth.
    pub(super) fn words_of(self, prefix: Prefix) -> Extent {
        let first = self.word_at(prefix.range().0);
        Extent::new_checked(first, 8 << (self.depth - prefix.depth))
    }

    /// Makes the words of a prefix lead to the segment at `to`, the last one first, and starts writing them back.
    pub(super) fn lead<P: Pmem>(self, pool: &Pool<P>, prefix: Prefix, to: Extent, site: Site) {
        let words = self.words_of(prefix);
        for number in (0..words.length() / 8).rev() {
            let at = words.offset() + 8 * number;
            pool.pmem.publish(at, buckets::position(at, to.offset()), &[to], site);
        }
        pool.pmem.flush(words, site);
    }
}
