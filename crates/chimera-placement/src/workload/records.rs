//! Keys and values as db_bench makes them.

use super::Random;

/// Bytes of a number in a key.
const NUMBER: usize = 8;

/// Writes the key of a record: the number with its most significant byte first, then zeros as text up to the length.
pub fn key(number: u64, length: usize, key: &mut Vec<u8>) {
    key.clear();
    let bytes = number.to_be_bytes();
    key.extend_from_slice(&bytes[NUMBER - length.min(NUMBER)..]);
    key.resize(length, b'0');
}

/// Bytes that values are taken from.
const POOL: usize = 1 << 20;
/// Length of a piece that repeats itself.
const PIECE: usize = 100;

/// Values of which a compressor saves about half: pieces of 100 bytes whose second half repeats the first.
#[derive(Clone, Debug)]
pub struct Values {
    pool: Vec<u8>,
    at: usize,
}

impl Values {
    /// Values of one thread.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut random = Random::new(seed, stream ^ 0x76_61_6c);
        let mut pool = Vec::with_capacity(POOL + PIECE);
        while pool.len() < POOL {
            let start = pool.len();
            // Printable, as db_bench's are.
            pool.extend((0..PIECE / 2).map(|_| b' ' + random.byte() % 95));
            pool.extend_from_within(start..);
        }
        Self { pool, at: 0 }
    }

    /// The next value of a length that is at most 1 MiB.
    pub fn next(&mut self, length: usize) -> &[u8] {
        if self.at + length > self.pool.len() {
            self.at = 0;
        }
        self.at += length;
        &self.pool[self.at - length..self.at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_their_numbers() {
        for length in [8, 16, 20] {
            let of = |number| {
                let mut bytes = Vec::new();
                key(number, length, &mut bytes);
                assert_eq!(bytes.len(), length);
                bytes
            };
            let keys: Vec<_> = [0, 1, 255, 256, 1 << 20, u64::MAX].map(of).into();
            assert!(keys.is_sorted_by(|a, b| a < b));
        }
        let mut bytes = Vec::new();
        key(0x0102, 10, &mut bytes);
        assert_eq!(bytes, b"\0\0\0\0\0\0\x01\x0200");
    }

    #[test]
    fn values_shrink_to_about_half() {
        let mut values = Values::new(1, 2);
        let all: Vec<u8> = (0..500).flat_map(|_| values.next(1024).to_vec()).collect();
        let shrunk = lz4_flex::block::compress(&all).len() * 100 / all.len();
        assert!((45..75).contains(&shrunk), "{shrunk} %");
        // The pool is used over and over.
        assert!((0..5000).all(|_| values.next(1024).len() == 1024));
    }
}
