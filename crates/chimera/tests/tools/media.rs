//! The bytes of a store's files, as docs/FORMAT.md describes them.

use std::fs;
use std::path::Path;

use super::SMALL;

/// Bytes from the first superblock copy to the second.
pub(crate) const COPY_STRIDE: usize = 4096;
/// Words of a superblock copy of Viper: common ones, of which the last is a checksum, length and checksum of what
/// follows, three words of totals, and the engine's area.
pub(crate) const SUPERBLOCK_WORDS: usize = 24;
/// Where in a copy the checksums and the sequence number are.
const CHECKSUM_AT: usize = 15;
const AREA_CHECKSUM_AT: usize = 17;
const SEQUENCE_AT: usize = 6;
/// Bytes of the superblock's file: where the first segment begins in the pool.
pub(crate) const SUPERBLOCK_BYTES: u64 = 8192;
/// Where the words with the number of used blocks are.
pub(crate) const USED_BLOCKS_AT: [usize; 2] = [1024, COPY_STRIDE + 1024];
/// Bytes of a segment's header.
pub(crate) const SEGMENT_HEADER_BYTES: usize = 64;
/// Where it is in a segment of a small store.
pub(crate) const SEGMENT_HEADER_AT: usize = SMALL.segment_bytes as usize - 4096;

pub(crate) const SUPERBLOCK: &str = "superblock";
pub(crate) const FIRST_SEGMENT: &str = "segment-000000";

/// Changes the bytes of a file.
pub(crate) fn change(path: &Path, name: &str, how: impl FnOnce(&mut Vec<u8>)) {
    let file = path.join(name);
    let mut bytes = fs::read(&file).expect("a file of the store");
    how(&mut bytes);
    fs::write(&file, bytes).expect("a file of the store");
}

/// Flips bits of a byte of a file.
pub(crate) fn flip(path: &Path, name: &str, at: usize, bits: u8) {
    change(path, name, |bytes| bytes[at] ^= bits);
}

/// A word of a file.
pub(crate) fn word(path: &Path, name: &str, at: usize) -> u64 {
    let bytes = fs::read(path.join(name)).expect("a file of the store");
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// Sets words of both superblock copies and makes their checksums right again. A sequence number is set where it
/// belongs, and the number before it in the other copy.
pub(crate) fn forge_superblock(path: &Path, words: &[(usize, u64)]) {
    change(path, SUPERBLOCK, |bytes| {
        for copy in [0, COPY_STRIDE] {
            for (number, word) in words {
                let at = copy + 8 * number;
                let is_elsewhere =
                    *number == SEQUENCE_AT && *word as usize % 2 != copy / COPY_STRIDE;
                let word = if is_elsewhere { word.wrapping_sub(1) } else { *word };
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
            let word = |bytes: &[u8], number: usize| {
                let at = copy + 8 * number;
                u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
            };
            let end = copy + 8 * CHECKSUM_AT;
            let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[copy..end]);
            bytes[end..end + 8].copy_from_slice(&checksum.to_le_bytes());
            let length = word(bytes, AREA_CHECKSUM_AT - 1);
            let area = copy + 8 * (AREA_CHECKSUM_AT + 1);
            let area = &bytes[area..area + 8 * (3 + length.min(30)) as usize];
            let checksum = xxhash_rust::xxh3::xxh3_64_with_seed(area, checksum ^ length);
            let at = copy + 8 * AREA_CHECKSUM_AT;
            bytes[at..at + 8].copy_from_slice(&checksum.to_le_bytes());
        }
    });
}

/// The constant of a record's checks.
const MULTIPLIER: u64 = 0x9fb2_1c65_1e98_df25;

/// The check of a record's value.
pub(crate) fn value_check(place: u64, value: &[u8]) -> u32 {
    let mut sum = (value.len() as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    for (number, bytes) in (0..).zip(value.chunks(8)) {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        let key = MULTIPLIER.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number));
        let (low, high) = ((word ^ key) & 0xffff_ffff, (word ^ key) >> 32);
        sum = sum.wrapping_add(low.wrapping_mul(high)).wrapping_add(word.rotate_left(32));
    }
    let product = u128::from(sum ^ place.wrapping_mul(MULTIPLIER)) * u128::from(MULTIPLIER);
    let folded = product as u64 ^ (product >> 64) as u64;
    folded as u32 ^ (folded >> 32) as u32
}

/// The check of a record's version and key of 8 bytes.
pub(crate) fn key_check(place: u64, version: u64, hash_seed: u64, key: &[u8]) -> u32 {
    let fold = |a: u64| {
        let product = u128::from(a) * u128::from(MULTIPLIER);
        product as u64 ^ (product >> 64) as u64
    };
    let mut hash = u64::from_le_bytes(key.try_into().expect("a key of 8 bytes")) ^ hash_seed;
    for _ in 0..2 {
        hash = (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    hash ^= hash >> 32;
    let first = fold(hash ^ place.wrapping_mul(MULTIPLIER)).wrapping_add(version);
    fold(first ^ hash.rotate_left(32)) as u32
}

/// A number of 32 bits with the check of its place, as used-blocks words, first words of pages, bitsets and lengths are
/// stored.
pub(crate) fn checked_word_at(number: u32, at: u64) -> u64 {
    let of_place = at.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32 | 1;
    checked_word(number) ^ of_place << 32
}

/// A number of 32 bits with its check.
pub(crate) fn checked_word(number: u32) -> u64 {
    let check = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    u64::from(number) | check << 32
}

/// Where `bytes` are in the file, which must have them once.
pub(crate) fn find(path: &Path, name: &str, bytes: &[u8]) -> usize {
    let file = fs::read(path.join(name)).expect("a file of the store");
    let mut places = file.windows(bytes.len()).enumerate().filter(|(_, window)| *window == bytes);
    let (at, _) = places.next().expect("the bytes are in the file");
    assert!(places.next().is_none(), "the bytes are there more than once");
    at
}

/// The seed of a store's key hash.
pub(crate) fn hash_seed(path: &Path) -> u64 {
    word(path, SUPERBLOCK, 24)
}

/// A key of 32 bytes whose XXH3 with this seed does not depend on `number`: its first 8 bytes make a
/// factor zero, whose other factor is made of the next 8 bytes.
pub(crate) fn crafted(seed: u64, number: u64) -> Vec<u8> {
    const SECRET: u64 = u64::from_le_bytes([0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe]);
    let mut key = vec![0x5a; 32];
    key[..8].copy_from_slice(&SECRET.wrapping_add(seed).to_le_bytes());
    key[8..16].copy_from_slice(&number.to_le_bytes());
    key
}
