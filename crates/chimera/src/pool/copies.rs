//! The two copies of the superblock as they are found on media: which one is in force, and whether there is
//! one at all. Nothing is trusted, and nothing is stored.

use chimera_pmem::Site;
use chimera_pmem::environment::File;
use zerocopy::IntoBytes;

use super::superblock::{COPY_STRIDE, FILE_BYTES, MAGIC, WORDS, is_part_of_new, seal};
use super::{Superblock, steps};
use crate::types::error::{Error, Result};

/// Which checks a tool leaves out.
type Skips<'a> = &'a dyn Fn(Site) -> bool;

/// The words of the superblock's file.
pub(super) fn read_words(file: &dyn File) -> std::io::Result<Vec<u64>> {
    let mut words = vec![0; (FILE_BYTES / 8) as usize];
    file.read_at(0, words.as_mut_bytes())?;
    Ok(words)
}

/// The superblock in force, given the words of its file by their offset. `None` when it was being made,
/// where that is possible.
pub(super) fn find_superblock(
    skips: Skips<'_>,
    word: &dyn Fn(u64) -> u64,
    may_be_half_made: bool,
) -> Result<Option<Superblock>> {
    let copies = [read_copy(skips, word, 0), read_copy(skips, word, COPY_STRIDE)];
    if may_be_half_made && matches!(copies[0], Err(Error::Corrupted { .. })) && is_blank(word) {
        return Ok(None);
    }
    newest(skips, copies).map(Some)
}

/// Where a copy begins that has the magic number, whatever else is in it.
pub(super) fn magic_at(word: &dyn Fn(u64) -> u64) -> Option<u64> {
    [0, COPY_STRIDE].into_iter().find(|&at| word(at) == MAGIC)
}

/// Whether there is nothing but zeros, or what an interrupted creation leaves: a part of the first copy. A
/// store that was ever open has a second one.
pub(super) fn is_blank(word: &dyn Fn(u64) -> u64) -> bool {
    is_part_of_new(&words_at(word, 0))
        && (WORDS as u64..FILE_BYTES / 8).all(|number| word(8 * number) == 0)
}

fn words_at(word: &dyn Fn(u64) -> u64, at: u64) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (index, into) in words.iter_mut().enumerate() {
        *into = word(at + 8 * index as u64);
    }
    words
}

fn read_copy(skips: Skips<'_>, word: &dyn Fn(u64) -> u64, at: u64) -> Result<Superblock> {
    let mut words = words_at(word, at);
    if skips(steps::SUPERBLOCK_CHECK) {
        seal(&mut words);
    }
    Superblock::decode(&words, at)
}

/// The valid copy with the higher sequence number.
fn newest(skips: Skips<'_>, copies: [Result<Superblock>; 2]) -> Result<Superblock> {
    match copies {
        [Ok(first), Ok(_)] if skips(steps::SUPERBLOCK_NEWER) => Ok(first),
        [Ok(first), Ok(second)] if first.is_newer_than(&second) => Ok(first),
        [Ok(_), Ok(second)] => Ok(second),
        [Err(newer @ Error::NewerFormat { .. }), _]
        | [_, Err(newer @ Error::NewerFormat { .. })] => Err(newer),
        // The first update of a new pool writes the second copy: one alone is in order.
        [Ok(only), Err(_)] | [Err(_), Ok(only)] => Ok(only),
        [Err(error), Err(_)] => Err(error),
    }
}
