//! What layouts share: how many entries stay, finding halves and the largest or smallest keys, and closing gaps.

use chimera_pmem::Pmem;

use super::dirty::Dirty;
use super::node::Node;
use super::{Direction, Scratch};
use crate::error::{PrimitivesError, Result};

/// Reads the keys of all places at once, so that comparing them reads no persistent memory.
fn read_keys<P: Pmem>(node: Node<'_, P>, scratch: &mut Scratch) {
    let Scratch { keys, image, .. } = scratch;
    image.clear();
    image.resize(node.geometry.entries * node.geometry.key_stride as usize, 0);
    node.pmem.read(node.part(node.geometry.keys_at, image.len() as u64), image);
    keys.clear();
    keys.extend(image.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)));
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
    read_keys(node, scratch);
    let words = node.geometry.key_words;
    let Scratch { keys, order, separator, .. } = scratch;
    let key = |index: usize| &keys[index * words..][..words];
    let (_, least, _) = order.select_nth_unstable_by(keep, |a, b| key(*a).cmp(key(*b)));
    separator.clear();
    separator.extend_from_slice(key(*least));
}

/// Marks the `count` entries of `scratch.order` with the smallest or the largest keys, and lists them in `scratch.chosen`. Each
/// is looked for among all that are left, as the paper has it (E9).
pub(crate) fn choose<P: Pmem>(
    node: Node<'_, P>,
    count: usize,
    direction: Direction,
    scratch: &mut Scratch,
) {
    read_keys(node, scratch);
    let words = node.geometry.key_words;
    let Scratch { keys, order, marks, chosen, .. } = scratch;
    marks.clear();
    marks.resize(node.geometry.entries, false);
    chosen.clear();
    let key = |index: usize| &keys[index * words..][..words];
    for _ in 0..count {
        let left = order.iter().copied().filter(|index| !marks[*index]);
        let found = match direction {
            Direction::ToSmaller => left.min_by(|a, b| key(*a).cmp(key(*b))),
            Direction::ToLarger => left.max_by(|a, b| key(*a).cmp(key(*b))),
        };
        let Some(index) = found else { break };
        marks[index] = true;
        chosen.push(index);
    }
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
