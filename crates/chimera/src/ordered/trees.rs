//! [`Trees`]: the tree of all keys, or several trees with a range of keys each (HiKV-par, section 4.5 of ATC'17).
//!
//! The ranges are fixed while the store is open. A *border* is the lowest key of a range but the first, so ranges touch and
//! do not overlap, and a key is in one tree. With several trees writers of different ranges never meet in a node. The price:
//! where the keys are not spread over the ranges, one tree has the work of all. The paper's variant moves keys between its
//! trees then, which holds up writers; here nothing moves.
//!
//! A scan reads one tree to its end and goes on at the border of the next one. Nothing else differs from one tree, which
//! has no borders.

use std::io;
use std::ops::Bound;

use chimera_pmem::Environment;

use super::options::Ranges;
use super::tree::{Page, Tree, TreeFigures, TreeShape};

/// One tree or several.
#[derive(Debug)]
pub(super) struct Trees {
    /// Never empty.
    trees: Box<[Tree]>,
    /// One less than trees, ascending.
    borders: Box<[Box<[u8]>]>,
}

impl Trees {
    /// Empty trees for ranges that were [validated](super::OrderOptions::validate).
    pub(super) fn new(shape: TreeShape, ranges: &Ranges) -> Self {
        let borders: Box<[Box<[u8]>]> = match ranges {
            Ranges::Equal(count) => (1..*count).map(|number| border(number, *count)).collect(),
            Ranges::Given(borders) => borders.iter().map(|key| key[..].into()).collect(),
        };
        Self { trees: (0..=borders.len()).map(|_| Tree::new(shape)).collect(), borders }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.trees.len()
    }

    /// The number of the tree that has a key.
    ///
    /// # Cost
    /// Nothing where there is one; otherwise a comparison for each doubling of their number.
    #[inline]
    pub(super) fn number_of(&self, key: &[u8]) -> usize {
        self.borders.partition_point(|border| **border <= *key)
    }

    fn tree_of(&self, key: &[u8]) -> &Tree {
        &self.trees[self.number_of(key)]
    }

    /// See [`Tree::insert`].
    pub(super) fn insert(&self, environment: &dyn Environment, key: &[u8]) -> io::Result<bool> {
        self.tree_of(key).insert(environment, key)
    }

    /// See [`Tree::remove`].
    pub(super) fn remove(&self, environment: &dyn Environment, key: &[u8]) -> bool {
        self.tree_of(key).remove(environment, key)
    }

    /// Builds empty trees from keys in strictly ascending order, one tree after the other. See [`Tree::build`]. No tree has
    /// any key before all are built, so that what could not be built can be built later.
    ///
    /// # Errors
    /// As of [`Tree::build`]; no tree has any key.
    pub(super) fn build<K: AsRef<[u8]>>(
        &self,
        environment: &dyn Environment,
        keys: impl IntoIterator<Item = K>,
    ) -> io::Result<()> {
        let mut keys = keys.into_iter().peekable();
        let mut built = Vec::with_capacity(self.trees.len());
        for (number, tree) in self.trees.iter().enumerate() {
            let border = self.borders.get(number);
            let is_inside = |key: &K| border.is_none_or(|border| key.as_ref() < &**border);
            let of_tree = std::iter::from_fn(|| keys.next_if(|key| is_inside(key)));
            built.push(tree.build(of_tree)?);
        }
        built.into_iter().try_for_each(|built| built.publish(environment))
    }

    /// Lets no more than this many nodes of a tree be given out.
    #[cfg(test)]
    pub(super) fn limit(&self, number: usize, nodes: u32) {
        self.trees[number].limit(nodes);
    }

    /// Reads keys of one leaf from `from` on, ascending. See [`Tree::read_ascending`].
    pub(super) fn read_ascending(
        &self,
        environment: &dyn Environment,
        from: Bound<&[u8]>,
        most: usize,
        page: &mut Page,
    ) {
        let number = match from {
            Bound::Included(key) | Bound::Excluded(key) => self.number_of(key),
            Bound::Unbounded => 0,
        };
        self.trees[number].read_ascending(environment, from, most, page);
        if let Some(border) = self.borders.get(number) {
            page.go_on_at_end(Bound::Included(border));
        }
    }

    /// Reads keys of one leaf up to `to`, descending. See [`Tree::read_descending`].
    pub(super) fn read_descending(
        &self,
        environment: &dyn Environment,
        to: Bound<&[u8]>,
        most: usize,
        page: &mut Page,
    ) {
        let number = match to {
            Bound::Included(key) => self.number_of(key),
            Bound::Excluded(key) => self.borders.partition_point(|border| **border < *key),
            Bound::Unbounded => self.borders.len(),
        };
        self.trees[number].read_descending(environment, to, most, page);
        if let Some(below) = number.checked_sub(1) {
            page.go_on_at_end(Bound::Excluded(&self.borders[below]));
        }
    }

    /// How large they are together; the height is that of the highest one.
    pub(super) fn figures(&self) -> TreeFigures {
        let all = self.trees.iter().map(Tree::figures);
        all.reduce(TreeFigures::and).expect("at least one tree")
    }
}

/// The lowest key of range `number` of `count` equal ones: of the leading 8 bytes of a key as a big-endian number, where
/// zeros stand behind a shorter key. Without zeros at its end, because a key without them has the same number.
fn border(number: usize, count: usize) -> Box<[u8]> {
    let low = ((number as u128) << u64::BITS).div_ceil(count as u128) as u64;
    let bytes = low.to_be_bytes();
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes[..length].into()
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
