//! The two copies of the superblock as they are found on media: which one is in force, and whether there is
//! one at all. Nothing is trusted, and nothing is stored.

use chimera_pmem::Site;
use chimera_pmem::environment::File;
use zerocopy::IntoBytes;

use super::superblock::{COPY_STRIDE, FILE_BYTES, MAGIC, SEQUENCE_AT, WORDS, is_part_of_new, seal};
use super::{Closing, Superblock, USED_BLOCKS_AT, checked_word, steps};
use crate::types::check::Damage;
use crate::types::error::{Error, Result};

#[cfg(test)]
mod tests;

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
    if may_be_half_made && is_half_made(&copies) && is_blank(word) {
        return Ok(None);
    }
    newest(copies).map(Some)
}

/// Whether these can be the copies of a pool that was being made: the second one is stored when the first one is
/// durable, and no call has reported the pool before the second one was, too. Lines of two interrupted creations may make a
/// valid first copy. No call has reported that pool either.
fn is_half_made([first, second]: &[Result<Superblock>; 2]) -> bool {
    let is_first_change = match first {
        Ok(first) => first.sequence == 0 && first.segments == 0,
        Err(error) => matches!(error, Error::Corrupted { .. }),
    };
    is_first_change && matches!(second, Err(Error::Corrupted { .. }))
}

/// What is wrong with the copies of a superblock of which none is being changed.
pub(super) fn damages_of_copies(word: &dyn Fn(u64) -> u64) -> impl Iterator<Item = Damage> {
    [0, COPY_STRIDE].into_iter().filter_map(|at| match read_copy(&|_| false, word, at).err()? {
        Error::Corrupted { what, at } => Some(Damage { at, what }),
        other => Some(Damage { at, what: other.to_string() }),
    })
}

/// What is wrong with the used-blocks words.
pub(super) fn damages_of_numbers(word: &dyn Fn(u64) -> u64) -> Vec<Damage> {
    let is_damaged = |at: &u64| checked_word::decode_at(word(*at), *at).is_none();
    let damage = |at| Damage { at, what: "the number of used blocks is not valid".to_owned() };
    USED_BLOCKS_AT.into_iter().filter(is_damaged).map(damage).collect()
}

/// Where a copy begins that has the magic number, whatever else is in it.
pub(super) fn magic_at(word: &dyn Fn(u64) -> u64) -> Option<u64> {
    [0, COPY_STRIDE].into_iter().find(|&at| word(at) == MAGIC)
}

/// Whether there is nothing but zeros, or what creations leave that were interrupted, whatever the engine: parts
/// of copies, and the used-blocks words of no block.
pub(super) fn is_blank(word: &dyn Fn(u64) -> u64) -> bool {
    let is_rest_blank = |at: u64| match word(at) {
        0 => true,
        number => USED_BLOCKS_AT.contains(&at) && number == checked_word::encode_at(0, at),
    };
    // The numbers of a creation and of the first change.
    [(0, 0), (COPY_STRIDE, 1)].into_iter().all(|(start, sequence_max)| {
        let mut rest = (WORDS as u64..COPY_STRIDE / 8).map(|number| start + 8 * number);
        word(start + 8 * SEQUENCE_AT as u64) <= sequence_max
            && is_part_of_new(&words_at(word, start))
            && rest.all(is_rest_blank)
    })
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
fn newest(copies: [Result<Superblock>; 2]) -> Result<Superblock> {
    match copies {
        [Ok(first), Ok(second)] if first.is_newer_than(&second) => Ok(first),
        [Ok(_), Ok(second)] => Ok(second),
        [Err(newer @ Error::NewerFormat { .. }), _]
        | [_, Err(newer @ Error::NewerFormat { .. })] => Err(newer),
        [Ok(only), Err(damage)] | [Err(damage), Ok(only)] => {
            // Else an update may have been interrupted.
            let is_damage = only.closing == Closing::Clean;
            let level = if is_damage { log::Level::Warn } else { log::Level::Info };
            log::log!(level, "one copy of the superblock is in force alone: {damage}");
            Ok(only)
        }
        [Err(older @ Error::OlderFormat { .. }), _]
        | [_, Err(older @ Error::OlderFormat { .. })] => Err(older),
        [Err(error), Err(_)] => Err(error),
    }
}
