//! [`KeyHash`]: the hash that stands for a key, in the checksum of its record and in an index.

/// The 64-bit hash of a key.
///
/// Keys of up to 8 bytes are mixed by a bijection, so that two keys never have the same hash; longer
/// ones by XXH3. Both depend on the pool's random seed, so that keys that collide can be chosen only by
/// somebody who knows it, and only for keys of more than 16 bytes. The index takes a bounded number of
/// them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyHash {
    seed: u64,
}

impl KeyHash {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed }
    }

    #[inline(always)]
    pub(crate) fn of(self, key: &[u8]) -> u64 {
        match key.try_into() {
            Ok(word) => mix(u64::from_le_bytes(word), self.seed),
            Err(_) if key.len() < 8 => {
                let mut word = [0; 8];
                word[..key.len()].copy_from_slice(key);
                mix(u64::from_le_bytes(word), self.seed)
            }
            Err(_) => xxhash_rust::xxh3::xxh3_64_with_seed(key, self.seed),
        }
    }
}

/// A bijection of 64-bit words: two rounds of multiplication and folding.
#[inline(always)]
fn mix(word: u64, seed: u64) -> u64 {
    let mut word = word ^ seed;
    word = (word ^ word >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    word = (word ^ word >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    word ^ word >> 32
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn short_keys_never_collide_and_seeds_matter() {
        let hash = KeyHash::new(7);
        let hashes: HashSet<_> =
            (0..100_000_u32).map(|number| hash.of(&number.to_le_bytes())).collect();
        assert_eq!(hashes.len(), 100_000);
        assert_ne!(hash.of(b"key"), KeyHash::new(8).of(b"key"));
        assert_ne!(hash.of(b"a long key indeed"), KeyHash::new(8).of(b"a long key indeed"));
    }

    /// Computed from docs/FORMAT.md by other means.
    #[test]
    fn stores_of_this_format_have_these_hashes() {
        assert_eq!(KeyHash::new(7).of(b"key"), 0xf391_55a4_1524_5a07);
        assert_eq!(KeyHash::new(7).of(b""), KeyHash::new(7).of(&[0; 8]), "padded with zeros");
        assert_eq!(KeyHash::new(0x0123_4567_89ab_cdef).of(b"12345678"), 0x969a_4598_abf6_64a3);
        // A key of nine bytes has another hash than its first eight.
        assert_ne!(KeyHash::new(7).of(b"12345678"), KeyHash::new(7).of(b"123456789"));
    }
}
