//! The bitmap of a node: which entries are there.

use chimera_pmem::Pmem;

use super::dirty::Dirty;
use super::node::Node;
use super::sites;
use crate::error::{PrimitivesError, Result};

/// A word of the bitmap.
///
/// # Errors
/// `Corrupted` when it has bits of entries that the node has no room for.
#[inline]
pub(crate) fn word<P: Pmem>(node: Node<'_, P>, number: usize) -> Result<u64> {
    let at = node.geometry.bitmap_at + 8 * number as u64;
    let word = node.load(at);
    if word & !node.geometry.bitmap_mask(number) != 0 {
        return PrimitivesError::corrupted("a bitmap has entries beyond the end", node.at + at);
    }
    Ok(word)
}

/// Stores a word of the bitmap. Not durable yet.
#[inline]
pub(crate) fn set_word<P: Pmem>(node: Node<'_, P>, number: usize, word: u64, dirty: &mut Dirty) {
    let at = node.geometry.bitmap_at + 8 * number as u64;
    node.store(at, word, dirty, sites::COMMIT);
}

/// Stores all words of a bitmap.
pub(crate) fn set_all<P: Pmem>(node: Node<'_, P>, words: &[u64], dirty: &mut Dirty) {
    for (number, word) in words.iter().enumerate() {
        set_word(node, number, *word, dirty);
    }
}

/// Reads all words.
///
/// # Errors
/// As [`word`].
pub(crate) fn read<P: Pmem>(node: Node<'_, P>, into: &mut Vec<u64>) -> Result<()> {
    into.clear();
    for number in 0..node.geometry.bitmap_words {
        into.push(word(node, number)?);
    }
    Ok(())
}

/// Hands the index of every entry to `take`.
///
/// # Errors
/// As [`word`].
#[inline]
pub(crate) fn iterate<P: Pmem>(node: Node<'_, P>, mut take: impl FnMut(usize)) -> Result<()> {
    for number in 0..node.geometry.bitmap_words {
        let word = word(node, number)?;
        bits(&[word]).for_each(|bit| take(64 * number + bit));
    }
    Ok(())
}

/// Entries that are there.
///
/// # Errors
/// As [`word`].
pub(crate) fn count<P: Pmem>(node: Node<'_, P>) -> Result<usize> {
    let mut count = 0;
    for number in 0..node.geometry.bitmap_words {
        count += word(node, number)?.count_ones() as usize;
    }
    Ok(count)
}

/// The lowest index that is free.
///
/// # Errors
/// `Full` when there is none, and as [`word`].
#[inline]
pub(crate) fn free_index<P: Pmem>(node: Node<'_, P>) -> Result<usize> {
    for number in 0..node.geometry.bitmap_words {
        let free = !word(node, number)? & node.geometry.bitmap_mask(number);
        if free != 0 {
            return Ok(64 * number + free.trailing_zeros() as usize);
        }
    }
    Err(PrimitivesError::Full)
}

/// Sets or clears the bit of an entry. Not durable yet.
///
/// # Errors
/// As [`word`].
#[inline]
pub(crate) fn set<P: Pmem>(
    node: Node<'_, P>,
    index: usize,
    is_there: bool,
    dirty: &mut Dirty,
) -> Result<()> {
    let old = word(node, index / 64)?;
    let bit = 1 << (index % 64);
    set_word(node, index / 64, if is_there { old | bit } else { old & !bit }, dirty);
    Ok(())
}

/// The bits of a copy of the bitmap, lowest first.
pub(crate) fn bits(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(number, word)| {
        let mut left = *word;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(64 * number + bit)
        })
    })
}
