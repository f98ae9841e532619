//! Checksums of records. Each depends on where the record lies, so that a copy at another offset is
//! not sound.

use chimera_pmem::sum;

/// Checksum of a record's key, by its hash, and of its version; `record_at` is the record's offset.
#[inline]
pub(crate) fn key_checksum(record_at: u64, version: u64, key_hash: u64) -> u32 {
    let mixed = u128::from(key_hash ^ seed(record_at)) * u128::from(MULTIPLIER);
    let folded = (mixed as u64 ^ (mixed >> 64) as u64).wrapping_add(version);
    let mixed = u128::from(folded ^ key_hash.rotate_left(32)) * u128::from(MULTIPLIER);
    (mixed >> 64) as u32 ^ mixed as u32
}

/// Checksum of a record's value; `record_at` is the record's offset.
#[inline]
pub(crate) fn value_checksum(record_at: u64, value: Summed<'_>) -> u32 {
    let mixed = value.sum.wrapping_add((value.bytes.len() as u64).wrapping_mul(LENGTH_FACTOR));
    let mixed = u128::from(mixed ^ seed(record_at)) * u128::from(MULTIPLIER);
    let folded = mixed as u64 ^ (mixed >> 64) as u64;
    folded as u32 ^ (folded >> 32) as u32
}

/// Bytes and their [sum]: taken while they were copied, so that they are gone through once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summed<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) sum: u64,
}

impl<'a> Summed<'a> {
    /// Of bytes that were not summed yet.
    #[inline]
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, sum: sum(bytes) }
    }
}

/// What a checksum starts from: different for any two records.
#[inline(always)]
fn seed(record_at: u64) -> u64 {
    record_at.wrapping_mul(MULTIPLIER)
}

/// Odd, with well-mixed bits.
const MULTIPLIER: u64 = 0x9fb2_1c65_1e98_df25;
const LENGTH_FACTOR: u64 = 0xd6e8_feb8_6659_fd93;
