//! Copies between private bytes and shared words.
//!
//! Every access to shared memory is a relaxed load or store of one aligned word, or as good as that. The compiler
//! neither unrolls nor merges atomics, so the loops are unrolled here: whole lines, then single words,
//! then the bytes of the last one.
//!
//! In every function `words` are exactly as many as hold the bytes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::arch;
use crate::sum::{KEYS, keys, term};

/// What [`arch::copy_sum`] takes at a time.
const GROUP_BYTES: usize = 32;
const GROUP_WORDS: usize = GROUP_BYTES / 8;
/// Bytes from which on copying by vectors is faster although it sums.
const BY_VECTORS_BYTES_MIN: usize = 512;

/// Words that hold `length` bytes.
#[inline(always)]
pub(crate) fn words_for(length: u64) -> u64 {
    length / 8 + u64::from(!length.is_multiple_of(8))
}

/// Reads the start of `words` into the whole of `into`.
#[inline(always)]
pub(crate) fn read(words: &[AtomicU64], into: &mut [u8]) {
    if into.len() >= BY_VECTORS_BYTES_MIN && arch::has_copy_sum() {
        read_sum(words, 0, into, true);
        return;
    }
    let (chunks, tail) = into.as_chunks_mut::<8>();
    let (words, last) = words.split_at(chunks.len());
    let (word_lines, words) = words.as_chunks::<8>();
    let (chunk_lines, chunks) = chunks.as_chunks_mut::<8>();
    for (words, chunks) in word_lines.iter().zip(chunk_lines) {
        for (word, chunk) in words.iter().zip(chunks) {
            *chunk = word.load(Relaxed).to_le_bytes();
        }
    }
    for (word, chunk) in words.iter().zip(chunks) {
        *chunk = word.load(Relaxed).to_le_bytes();
    }
    if let Some(word) = last.first() {
        put_tail(word.load(Relaxed), tail);
    }
}

/// As [`read`]; returns what was read gives to the [sum](crate::sum()) of a range in which its first word has the number
/// `first_word`. `has_vectors`: [`arch::has_copy_sum`].
#[inline(always)]
pub(crate) fn read_sum(
    words: &[AtomicU64],
    first_word: u64,
    into: &mut [u8],
    has_vectors: bool,
) -> u64 {
    let (mut all, mut number) = (0_u64, 0);
    if has_vectors && into.len() >= GROUP_BYTES {
        let groups = into.len() / GROUP_BYTES;
        let from = words.as_ptr().cast();
        let later_keys;
        let first_keys = if first_word == 0 {
            &KEYS
        } else {
            later_keys = keys(first_word);
            &later_keys
        };
        // SAFETY: both ranges are at least as long as the groups, the words are aligned, and the machine has
        // the instructions.
        all = unsafe { arch::copy_sum(into.as_mut_ptr(), from, groups, first_keys) };
        number = groups * GROUP_WORDS;
    }
    let (chunks, tail) = into.as_chunks_mut::<8>();
    while number < chunks.len() {
        let word = words[number].load(Relaxed);
        chunks[number] = word.to_le_bytes();
        all = all.wrapping_add(term(word, first_word + number as u64));
        number += 1;
    }
    if !tail.is_empty() {
        // The bits of the bytes that are there: 1 to 7 of them.
        let word = words[number].load(Relaxed) & ((1 << (8 * tail.len())) - 1);
        put_tail(word, tail);
        all = all.wrapping_add(term(word, first_word + number as u64));
    }
    all
}

/// As [`copy`]; returns the [sum](crate::sum()) of what was copied.
#[inline(always)]
pub(crate) fn copy_sum(words: &[AtomicU64], bytes: &[u8], has_vectors: bool) -> u64 {
    let (mut all, mut number) = (0_u64, 0);
    if has_vectors && bytes.len() >= GROUP_BYTES {
        let groups = bytes.len() / GROUP_BYTES;
        let to = words.as_ptr().cast_mut().cast();
        // SAFETY: both ranges are at least as long as the groups, the words are aligned, and the machine has
        // the instructions.
        all = unsafe { arch::copy_sum(to, bytes.as_ptr(), groups, &KEYS) };
        number = groups * GROUP_WORDS;
    }
    let (chunks, tail) = bytes.as_chunks::<8>();
    while number < chunks.len() {
        let word = u64::from_le_bytes(chunks[number]);
        words[number].store(word, Relaxed);
        all = all.wrapping_add(term(word, number as u64));
        number += 1;
    }
    if !tail.is_empty() {
        let word = get_tail(tail);
        words[number].store(word, Relaxed);
        all = all.wrapping_add(term(word, number as u64));
    }
    all
}

/// Whether the start of `words` equals `bytes`.
#[inline(always)]
pub(crate) fn equal(words: &[AtomicU64], bytes: &[u8]) -> bool {
    let (chunks, tail) = bytes.as_chunks::<8>();
    for (word, chunk) in words.iter().zip(chunks) {
        if word.load(Relaxed) != u64::from_le_bytes(*chunk) {
            return false;
        }
    }
    // The bits of the bytes that are compared: 1 to 7 of them.
    let mask = (1 << (8 * tail.len())) - 1;
    tail.is_empty() || words[chunks.len()].load(Relaxed) & mask == get_tail(tail)
}

/// Copies `bytes` over `words` and zeros what is left of the last one.
#[inline(always)]
pub(crate) fn copy(words: &[AtomicU64], bytes: &[u8]) {
    if bytes.len() >= BY_VECTORS_BYTES_MIN && arch::has_copy_sum() {
        copy_sum(words, bytes, true);
        return;
    }
    let (chunks, tail) = bytes.as_chunks::<8>();
    let (words, last) = words.split_at(chunks.len());
    let (word_lines, words) = words.as_chunks::<8>();
    let (chunk_lines, chunks) = chunks.as_chunks::<8>();
    for (words, chunks) in word_lines.iter().zip(chunk_lines) {
        for (word, chunk) in words.iter().zip(chunks) {
            word.store(u64::from_le_bytes(*chunk), Relaxed);
        }
    }
    for (word, chunk) in words.iter().zip(chunks) {
        word.store(u64::from_le_bytes(*chunk), Relaxed);
    }
    if let Some(word) = last.first() {
        word.store(get_tail(tail), Relaxed);
    }
}

/// Stores zeros.
#[inline(always)]
pub(crate) fn zero(words: &[AtomicU64]) {
    let (lines, rest) = words.as_chunks::<8>();
    for word in lines.iter().flatten().chain(rest) {
        word.store(0, Relaxed);
    }
}

/// The word whose first bytes are `tail`, fewer than eight, and whose others are zero. In pieces of
/// fixed size, because a copy of unknown length is a call.
#[inline(always)]
fn get_tail(mut tail: &[u8]) -> u64 {
    let mut value = 0;
    let mut shift = 0;
    if let Some((four, rest)) = tail.split_first_chunk() {
        value = u64::from(u32::from_le_bytes(*four));
        (shift, tail) = (32, rest);
    }
    if let Some((two, rest)) = tail.split_first_chunk() {
        value |= u64::from(u16::from_le_bytes(*two)) << shift;
        (shift, tail) = (shift + 16, rest);
    }
    if let Some(one) = tail.first() {
        value |= u64::from(*one) << shift;
    }
    value
}

/// Writes the first bytes of `value` over `tail`, fewer than eight.
#[inline(always)]
fn put_tail(mut value: u64, mut tail: &mut [u8]) {
    if tail.len() >= 4 {
        let (four, rest) = tail.split_at_mut(4);
        four.copy_from_slice(&(value as u32).to_le_bytes());
        (value, tail) = (value >> 32, rest);
    }
    if tail.len() >= 2 {
        let (two, rest) = tail.split_at_mut(2);
        two.copy_from_slice(&(value as u16).to_le_bytes());
        (value, tail) = (value >> 16, rest);
    }
    if let Some(one) = tail.first_mut() {
        *one = value as u8;
    }
}
