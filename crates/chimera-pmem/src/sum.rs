//! [`sum`]: the sum of a range's words from which checksums are made. It can be taken while the range is
//! copied, and a word can be exchanged in it without the others.
//!
//! Each word gives a term that depends on its number, and the sum is that of all terms: so they may be added in
//! any order, several at a time. A term multiplies the halves of the word, each mixed with a part of a key, as
//! the inner loop of XXH3 does; every instruction set has that multiplication for vectors.

/// Odd, with well-mixed bits: the key of word 0, and the distance from one key to the next.
const KEY: u64 = 0x9fb2_1c65_1e98_df25;
pub(crate) const KEY_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The key of the word with this number.
#[inline(always)]
pub(crate) const fn key(number: u64) -> u64 {
    KEY.wrapping_add(KEY_STEP.wrapping_mul(number))
}

/// The keys of four words in a row, of which the first one has this number.
#[inline(always)]
pub(crate) const fn keys(first: u64) -> [u64; 4] {
    [key(first), key(first + 1), key(first + 2), key(first + 3)]
}

/// Those of a range's first words.
pub(crate) static KEYS: [u64; 4] = keys(0);

/// What the word with number `number` gives to the sum.
#[inline(always)]
pub const fn term(word: u64, number: u64) -> u64 {
    let mixed = word ^ key(number);
    (mixed & 0xffff_ffff).wrapping_mul(mixed >> 32).wrapping_add(word.rotate_left(32))
}

/// The sum of some bytes, of which the last word is filled up with zeros. Their number is not part of it.
///
/// # Cost
/// Some three instructions for each word.
#[inline]
pub fn sum(bytes: &[u8]) -> u64 {
    part_sum(bytes, 0)
}

/// What the part of a range that begins with its word `first_word` gives to the sum of the range: the sums of all parts
/// add up to it. All parts but the last have whole words.
#[inline]
pub(crate) fn part_sum(bytes: &[u8], first_word: u64) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let mut all = 0_u64;
    for (number, word) in (first_word..).zip(words) {
        all = all.wrapping_add(term(u64::from_le_bytes(*word), number));
    }
    if !tail.is_empty() {
        let mut word = [0; 8];
        word[..tail.len()].copy_from_slice(tail);
        all = all.wrapping_add(term(u64::from_le_bytes(word), first_word + words.len() as u64));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 37 + 11) as u8).collect()
    }

    #[test]
    fn every_flipped_bit_and_every_exchange_of_words_is_noticed() {
        let whole = bytes(72);
        for bit in 0..8 * whole.len() {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(sum(&flipped), sum(&whole), "bit {bit}");
        }
        let (words, _) = whole.as_chunks::<8>();
        for (first, second) in
            (0..9).flat_map(|first| (0..first).map(move |second| (first, second)))
        {
            let mut exchanged = words.to_vec();
            exchanged.swap(first, second);
            assert_ne!(sum(exchanged.as_flattened()), sum(&whole), "words {first} and {second}");
        }
    }

    #[test]
    fn a_word_is_exchanged_by_its_terms() {
        let mut whole = bytes(45);
        let before = sum(&whole);
        let word = u64::from_le_bytes(whole[16..24].try_into().unwrap());
        whole[16..24].fill(0);
        assert_eq!(sum(&whole), before.wrapping_sub(term(word, 2)).wrapping_add(term(0, 2)));
    }

    #[test]
    fn sums_of_parts_add_up_to_that_of_the_whole() {
        let whole = bytes(45);
        for words in 0..6 {
            let (first, last) = whole.split_at(8 * words);
            let both = sum(first).wrapping_add(part_sum(last, words as u64));
            assert_eq!(both, sum(&whole), "{words} words");
        }
    }

    #[test]
    fn zeros_behind_the_end_change_nothing_and_a_word_of_them_does() {
        assert_eq!(sum(&[1, 2, 3]), sum(&[1, 2, 3, 0]));
        assert_ne!(sum(&[1; 8]), sum(&[[1; 8], [0; 8]].concat()));
        assert_eq!(sum(&[]), 0);
    }
}
