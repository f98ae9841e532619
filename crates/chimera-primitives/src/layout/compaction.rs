//! What layouts share: how many entries stay, finding halves and extremes, and closing gaps.

use std::cmp::Ordering;

use chimera_pmem::Pmem;

use super::dirty::Dirty;
use super::node::Node;
use super::{Direction, Scratch};
use crate::error::{PrimitivesError, Result};

/// How the keys at two indices compare.
fn compare<P: Pmem>(node: Node<'_, P>, one: usize, other: usize) -> Ordering {
    let words = node.geometry.key_words as u64;
    let base = node.geometry.keys_at;
    let at = |index: usize, word: u64| base + index as u64 * node.geometry.key_stride + 8 * word;
    for word in 0..words {
        match node.load(at(one, word)).cmp(&node.load(at(other, word))) {
            Ordering::Equal => {}
            other => return other,
        }
    }
    Ordering::Equal
}

/// How many of so many entries stay in a node that is split.
///
/// # Errors
/// `Corrupted` when there are fewer than two.
pub(crate) fn kept<P: Pmem>(node: Node<'_, P>, count: usize) -> Result<usize> {
    if count < 2 {
        return PrimitivesError::corrupted("a node of fewer than two entries is split", node.at);
    }
    Ok(count - count / 2)
}

/// Divides the entries in `scratch.order` by quickselect: those behind the first `keep` have larger keys. The smallest of
/// them is the separator.
pub(crate) fn halve<P: Pmem>(node: Node<'_, P>, keep: usize, scratch: &mut Scratch) {
    let words = node.geometry.key_words;
    let Scratch { keys, order, separator, .. } = scratch;
    keys.clear();
    keys.resize(node.geometry.entries * words, 0);
    for index in order.iter().copied() {
        separator.clear();
        node.read_key(index, separator);
        keys[index * words..][..words].copy_from_slice(separator);
    }
    let key = |index: usize| &keys[index * words..][..words];
    let (_, least, _) = order.select_nth_unstable_by(keep, |a, b| key(*a).cmp(key(*b)));
    separator.clear();
    separator.extend_from_slice(key(*least));
}

/// The entry with the smallest or the largest key of those that `live` names and that are not marked yet, looked for in the
/// node itself (E9).
pub(crate) fn extreme<P: Pmem>(
    node: Node<'_, P>,
    live: &[usize],
    marks: &[bool],
    direction: Direction,
) -> Option<usize> {
    let wanted = match direction {
        Direction::ToSmaller => Ordering::Less,
        Direction::ToLarger => Ordering::Greater,
    };
    let is_long = node.geometry.key_words > 1;
    let mut best: Option<(usize, u64)> = None;
    for index in live.iter().copied().filter(|index| !marks[*index]) {
        let first = node.key_first(index);
        let is_better = best.is_none_or(|(than, least)| match first.cmp(&least) {
            Ordering::Equal => is_long && compare(node, index, than) == wanted,
            found => found == wanted,
        });
        if is_better {
            best = Some((index, first));
        }
    }
    best.map(|(index, _)| index)
}

/// The pairs that close the gaps of a counted node: the marked entries below `left` are gaps, the others above fill them.
pub(crate) fn gaps(
    marks: &[bool],
    count: usize,
    left: usize,
) -> impl Iterator<Item = (usize, usize)> {
    let holes = (0..left).filter(|index| marks[*index]);
    let fillers = (left..count).filter(|index| !marks[*index]);
    holes.zip(fillers)
}

/// Moves one entry to another index of the same node.
pub(crate) fn fill<P: Pmem>(node: Node<'_, P>, hole: usize, filler: usize, dirty: &mut Dirty) {
    node.copy_entries(node, filler, hole, 1, dirty);
}
