//! Checksums of records.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Checksum of a record's key, by its hash, and version at its place.
#[inline]
pub(crate) fn key_checksum(place: u64, version: u64, key_hash: u64) -> u32 {
    let mixed = u128::from(key_hash ^ seed(place)) * u128::from(MULTIPLIER);
    let folded = (mixed as u64 ^ (mixed >> 64) as u64).wrapping_add(version);
    let mixed = u128::from(folded ^ key_hash.rotate_left(32)) * u128::from(MULTIPLIER);
    (mixed >> 64) as u32 ^ mixed as u32
}

/// Checksum of a record's value at its place.
#[inline]
pub(crate) fn value_checksum(place: u64, value: &[u8]) -> u32 {
    xxh3_64_with_seed(value, seed(place)) as u32
}

/// What a checksum starts from: different for any two places.
#[inline(always)]
fn seed(place: u64) -> u64 {
    place.wrapping_mul(MULTIPLIER)
}

/// Odd, with well-mixed bits.
const MULTIPLIER: u64 = 0x9fb2_1c65_1e98_df25;
