//! What docs/FORMAT.md says, written from the document.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub(super) const SUPERBLOCK_BYTES: usize = 8192;
pub(super) const COPY_STRIDE: usize = 4096;
/// Words of a superblock copy: common ones, and the engine's area with its length, its checksum and the totals.
pub(super) const SUPERBLOCK_WORDS: usize = 51;
/// Where in a copy the sequence number, the checksum, and the area's length are; then come its checksum, the totals
/// of a closed store, and its words.
pub(super) const SEQUENCE_AT: usize = 6;
pub(super) const CHECKSUM_AT: usize = 15;
pub(super) const AREA_LENGTH_AT: usize = 16;
pub(super) const TOTALS_AT: usize = 18;
pub(super) const AREA_AT: usize = 21;
/// Words of the area of Viper.
pub(super) const AREA_WORDS: usize = 3;
/// Where the two words with the number of used blocks are.
pub(super) const USED_BLOCKS_AT: [usize; 2] = [1024, COPY_STRIDE + 1024];
/// Bytes at the end of a segment that begin with its header.
pub(super) const SEGMENT_END_BYTES: usize = 4096;
/// Words of a segment's header; the last is the checksum.
pub(super) const SEGMENT_WORDS: usize = 8;
pub(super) const RECORD_HEADER_BYTES: usize = 16;
/// The flag of a block that is one page.
pub(super) const LARGE: u32 = 8;
/// From which bit on the number of a page's first word says where its log ends, in words; the flags are below.
pub(super) const END_SHIFT: u32 = 12;
/// Where the log of a page of records of any size begins.
pub(super) const LOG_AT: usize = 8;
/// Bytes of a record before its key, and of a chunk before its bytes.
pub(super) const LOG_RECORD_HEADER_BYTES: usize = 24;
pub(super) const CHUNK_HEADER_BYTES: usize = 40;
/// Longest value beside its key, and longest chunk.
pub(super) const PIECE_BYTES_MAX: usize = 65_520;
/// In place of the length of a value that lies in chunks.
pub(super) const IN_CHUNKS: u32 = 65_535;
/// Bytes that tell where the chunks are.
pub(super) const DESCRIPTOR_BYTES: usize = 24;
const MULTIPLIER: u64 = 0x9fb2_1c65_1e98_df25;

/// A number of 32 bits with its check.
pub(super) fn checked_word(number: u32) -> u64 {
    u64::from(number) | (u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) << 32
}

/// A number of 32 bits with the check of its place in the pool; never zero.
pub(super) fn checked_word_at(number: u32, place: u64) -> u64 {
    let of_place = place.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32 | 1;
    checked_word(number) ^ of_place << 32
}

/// The XXH3 of words as they lie on media.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// The checksum of these totals and the words of an engine's area, whose length is this, beside common words with this
/// checksum.
pub(super) fn area_checksum(bytes: &[u8], common: u64, length: u64) -> u64 {
    xxh3_64_with_seed(bytes, common ^ length)
}

/// The 64-bit hash of a key.
pub(super) fn key_hash(seed: u64, key: &[u8]) -> u64 {
    if key.len() > 8 {
        return xxh3_64_with_seed(key, seed);
    }
    let mut padded = [0; 8];
    padded[..key.len()].copy_from_slice(key);
    let mut word = u64::from_le_bytes(padded) ^ seed;
    for _ in 0..2 {
        word = (word ^ word >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    word ^ word >> 32
}

/// The check of a record's place, word with the version, and key.
pub(super) fn key_check(place: u64, version_word: u64, hash: u64) -> u32 {
    let fold = |word: u64| {
        let product = u128::from(word) * u128::from(MULTIPLIER);
        product as u64 ^ (product >> 64) as u64
    };
    let first = fold(hash ^ place.wrapping_mul(MULTIPLIER)).wrapping_add(version_word);
    fold(first ^ hash.rotate_left(32)) as u32
}

/// The check of a record's place and value, without the word that the word with the version says is unchecked.
pub(super) fn value_check(place: u64, version_word: u64, value: &[u8]) -> u32 {
    let unchecked = version_word >> 51;
    let mut sum = (value.len() as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    for (number, bytes) in (0..).zip(value.chunks(8)) {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let is_unchecked = number + 1 == unchecked && bytes.len() == 8;
        let word = if is_unchecked { 0 } else { u64::from_le_bytes(word) };
        let key = MULTIPLIER.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number));
        let (low, high) = ((word ^ key) & 0xffff_ffff, (word ^ key) >> 32);
        sum = sum.wrapping_add(low.wrapping_mul(high)).wrapping_add(word.rotate_left(32));
    }
    let product = u128::from(sum ^ place.wrapping_mul(MULTIPLIER)) * u128::from(MULTIPLIER);
    let folded = product as u64 ^ (product >> 64) as u64;
    folded as u32 ^ (folded >> 32) as u32
}

/// A key of 32 bytes whose XXH3 with this seed is the same for every `number`.
pub(super) fn colliding_key(seed: u64, number: u64) -> [u8; 32] {
    const SECRET: u64 = u64::from_le_bytes([0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe]);
    let mut key = [0x5a; 32];
    key[..8].copy_from_slice(&SECRET.wrapping_add(seed).to_le_bytes());
    key[8..16].copy_from_slice(&number.to_le_bytes());
    key
}

/// What a store is: the fields of a superblock that others depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) hash_seed: u64,
    pub(super) segment_bytes: usize,
    pub(super) page_bytes: usize,
    pub(super) pages_per_block: usize,
    pub(super) block_shift_bytes: usize,
    pub(super) is_checked: bool,
    pub(super) key_bytes: usize,
    pub(super) value_bytes: usize,
}

/// Where things are in a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) slots: usize,
    pub(super) slots_per_word: usize,
    pub(super) first_slot: usize,
    pub(super) slot_bytes: usize,
    pub(super) key_at: usize,
    pub(super) value_at: usize,
}

impl Shape {
    /// From the words of a superblock; `None` where these sizes cannot be worked with.
    pub(super) fn from_superblock(words: &[u64]) -> Option<Self> {
        let low = |word: usize| (words[word] & u64::from(u32::MAX)) as usize;
        let high = |word: usize| (words[word] >> 32) as usize;
        let shape = Self {
            hash_seed: words[3],
            segment_bytes: usize::try_from(words[4]).ok()?,
            page_bytes: low(AREA_AT),
            pages_per_block: high(AREA_AT),
            block_shift_bytes: high(5),
            is_checked: words[AREA_AT + 2] == 1,
            key_bytes: low(AREA_AT + 1),
            value_bytes: high(AREA_AT + 1),
        };
        // Larger pages do not fit the files that are made.
        let is_possible = (256..=16 << 10).contains(&shape.page_bytes)
            && shape.page_bytes.is_multiple_of(64)
            && (1..=8).contains(&shape.pages_per_block)
            && shape.block_shift_bytes < shape.page_bytes
            && (8192..=1 << 24).contains(&shape.segment_bytes)
            && shape.key_bytes <= 4096
            && shape.value_bytes <= 1 << 20;
        // Only then: the slots of larger pages take long to count.
        let has_room = || shape.is_variable() || shape.key_bytes > 0 && shape.page().slots > 0;
        (is_possible && has_room()).then_some(shape)
    }

    /// Records have any size.
    pub(super) fn is_variable(&self) -> bool {
        self.key_bytes == 0 && self.value_bytes == 0
    }

    /// Longest value beside a key that a block has room for, whatever the key.
    pub(super) fn beside_bytes_max(&self) -> usize {
        let key_bytes = (self.page_bytes - 64).min(4096).next_multiple_of(8);
        let room = self.block_bytes() - LOG_AT - LOG_RECORD_HEADER_BYTES - key_bytes;
        room.min(PIECE_BYTES_MAX) & !7
    }

    pub(super) fn block_bytes(&self) -> usize {
        self.page_bytes * self.pages_per_block
    }

    pub(super) fn blocks_per_segment(&self) -> usize {
        let room = (self.segment_bytes - SEGMENT_END_BYTES).checked_sub(self.block_shift_bytes);
        room.unwrap_or(0) / self.block_bytes()
    }

    /// Where in the pool a byte of a segment is.
    pub(super) fn place(&self, segment: usize, at: usize) -> u64 {
        (SUPERBLOCK_BYTES + segment * self.segment_bytes + at) as u64
    }

    /// The segment of a block, and where in it the block begins.
    pub(super) fn block(&self, number: usize) -> (usize, usize) {
        let per = self.blocks_per_segment().max(1);
        (number / per, self.block_shift_bytes + number % per * self.block_bytes())
    }

    /// As many slots as fit, and the smallest padding with which records touch the fewest lines.
    pub(super) fn page(&self) -> Page {
        let header = if self.is_checked { RECORD_HEADER_BYTES } else { 0 };
        let slots_per_word = if self.is_checked { 32 } else { 64 };
        let value_at = header + self.key_bytes.next_multiple_of(8);
        let slot_bytes = value_at + self.value_bytes.next_multiple_of(8);
        let bits_end = |slots: usize| 8 + 8 * slots.div_ceil(slots_per_word);
        let fits = |slots: &usize| bits_end(*slots) + slots * slot_bytes <= self.page_bytes;
        let most = self.page_bytes / slot_bytes.max(1);
        let slots = (0..=most).rev().find(fits).unwrap_or(0);
        let lines = |first: usize| -> usize {
            let line_of = |byte: usize| byte / 64;
            (0..slots)
                .map(|slot| first + slot * slot_bytes)
                .map(|start| line_of(start + slot_bytes - 1) - line_of(start) + 1)
                .sum()
        };
        let slack = self.page_bytes.saturating_sub(bits_end(slots) + slots * slot_bytes);
        let paddings = (0..=slack.min(56) / 8).map(|words| bits_end(slots) + 8 * words);
        let first_slot = paddings.min_by_key(|first| lines(*first)).unwrap_or(0);
        Page { slots, slots_per_word, first_slot, slot_bytes, key_at: header, value_at }
    }
}
