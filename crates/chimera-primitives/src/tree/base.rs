//! [`Base`]: the header of a tree, its leaves, and the chain that they form.
//!
//! # Layout
//! | offset | what |
//! | --- | --- |
//! | 0 | magic; stored last, so that a tree whose making was cut off is made anew |
//! | 8 | kind of tree, bytes of a key, bytes of a value, entries of a leaf, leaves, a check of them |
//! | 64 | where the first leaf lies |
//! | 128 | micro-log of a split: the leaf that is split (0: none), the new one |
//! | 192 | the leaves, allocated by groups |
//!
//! A leaf is in use when the chain leads to it. What the allocator says beyond that is mended when the tree is opened.

use chimera_pmem::{Extent, Operation, Pmem, sum};

use super::{KEY_WORDS_MAX, TreeFootprint, TreeShape, sites};
use crate::allocation::Grouped;
use crate::error::{PrimitivesError, Result};
use crate::layout::{Geometry, Node, key_words};

const MAGIC: u64 = 0x3165_6572_5450_4843; // "CHPTree1"
pub(super) const HEAD_AT: u64 = 64;
pub(super) const LOG_AT: u64 = 128;
const LEAVES_AT: u64 = 192;
/// No leaf.
pub(super) const NONE: u32 = u32::MAX;

/// What both trees have.
pub(super) struct Base<P: Pmem> {
    pub(super) pmem: P,
    pub(super) shape: TreeShape,
    pub(super) geometry: Geometry,
    pub(super) leaves: Grouped,
    /// The leaf before each leaf, by numbers.
    pub(super) before: Vec<u32>,
    pub(super) records: u64,
}

/// The words of a key.
pub(super) struct KeyWords {
    words: [u64; KEY_WORDS_MAX],
    count: usize,
}

impl KeyWords {
    pub(super) fn get(&self) -> &[u64] {
        &self.words[..self.count]
    }
}

impl<P: Pmem> Base<P> {
    /// Persistent memory for so many leaves.
    pub(super) fn bytes_for(geometry: &Geometry, leaves: u64) -> u64 {
        LEAVES_AT + Grouped::bytes(geometry.node_bytes(), leaves)
    }

    /// Opens what is there, or makes the header of an empty tree. Leaves are not looked at yet; whether the tree is new.
    pub(super) fn open(
        pmem: P,
        shape: TreeShape,
        geometry: Geometry,
        kind: u64,
    ) -> Result<(Self, bool)> {
        shape.check()?;
        let room = pmem.mapped().saturating_sub(LEAVES_AT);
        let fitting = Grouped::nodes_in(room, geometry.node_bytes()).min(u64::from(NONE) - 1);
        if fitting < 2 {
            return Err(PrimitivesError::Shape("there is no room for two leaves".to_owned()));
        }
        let is_new = pmem.load_u64(0) == 0;
        let leaves = if is_new { fitting } else { Self::read_header(&pmem, shape, kind)? };
        if leaves > fitting || leaves < 2 {
            return PrimitivesError::corrupted("a tree has more leaves than room", 40);
        }
        let leaves = Grouped::open(&pmem, LEAVES_AT, geometry.node_bytes(), leaves)?;
        let before = vec![NONE; leaves.nodes() as usize];
        let mut base = Self { pmem, shape, geometry, leaves, before, records: 0 };
        if is_new {
            base.leaves.retain(&base.pmem, |_| false);
        }
        Ok((base, is_new))
    }

    fn header(shape: TreeShape, kind: u64, leaves: u64) -> [u64; 6] {
        let words = [
            kind,
            u64::from(shape.key_bytes),
            u64::from(shape.value_bytes),
            shape.leaf_entries as u64,
            leaves,
        ];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let [kind, key, value, entries, leaves] = words;
        [kind, key, value, entries, leaves, sum(&bytes) ^ MAGIC]
    }

    fn read_header(pmem: &P, shape: TreeShape, kind: u64) -> Result<u64> {
        if pmem.load_u64(0) != MAGIC {
            return PrimitivesError::corrupted("there is something that is no tree", 0);
        }
        let words: [u64; 6] = std::array::from_fn(|number| pmem.load_u64(8 + 8 * number as u64));
        let leaves = words[4];
        let found = TreeShape {
            key_bytes: words[1] as u32,
            value_bytes: words[2] as u32,
            leaf_entries: words[3] as usize,
        };
        if words != Self::header(found, words[0], leaves) {
            return PrimitivesError::corrupted("the header of a tree is damaged", 8);
        }
        if words[0] != kind || found != shape {
            return Err(PrimitivesError::Shape(format!("the tree that is there has {found:?}")));
        }
        Ok(leaves)
    }

    /// Makes the tree valid that consists of this leaf, which is durable.
    pub(super) fn finish_creation(&mut self, kind: u64, first: u32) {
        let pmem = &self.pmem;
        pmem.store_u64(HEAD_AT, self.leaves.node_at(u64::from(first)), sites::HEAD);
        pmem.store_u64(LOG_AT, 0, sites::SPLIT_LOG);
        pmem.flush(Extent::new_checked(HEAD_AT, 8), sites::HEAD);
        pmem.flush(Extent::new_checked(LOG_AT, 8), sites::SPLIT_LOG);
        pmem.fence(sites::HEADER);
        let words = Self::header(self.shape, kind, self.leaves.nodes());
        for (number, word) in (1..).zip(words) {
            pmem.store_u64(8 * number, word, sites::HEADER);
        }
        // In the same line after the others.
        pmem.store_u64(0, MAGIC, sites::HEADER);
        pmem.flush(Extent::new_checked(0, 64), sites::HEADER);
        pmem.fence(sites::HEADER);
    }

    /// The words of a key.
    ///
    /// # Errors
    /// `Shape` when it has another length than those of the tree.
    #[inline]
    pub(super) fn key(&self, key: &[u8]) -> Result<KeyWords> {
        if key.len() != self.shape.key_bytes as usize {
            return Err(PrimitivesError::Shape(format!(
                "keys have {} bytes",
                self.shape.key_bytes
            )));
        }
        let mut words = KeyWords { words: [0; KEY_WORDS_MAX], count: self.geometry.key_words };
        key_words(key, &mut words.words[..words.count]);
        Ok(words)
    }

    /// Fails for a value of another length than those of the tree.
    pub(super) fn check_value(&self, value: &[u8]) -> Result<()> {
        if value.len() == self.shape.value_bytes as usize {
            return Ok(());
        }
        Err(PrimitivesError::Shape(format!("values have {} bytes", self.shape.value_bytes)))
    }

    /// A leaf by its number.
    #[inline]
    pub(super) fn leaf(&self, number: u32) -> Result<Node<'_, P>> {
        Node::at(&self.pmem, &self.geometry, self.leaves.node_at(u64::from(number)))
    }

    /// The number of the leaf that a link leads to; `NONE` for 0.
    #[inline]
    pub(super) fn number(&self, link: u64) -> Result<u32> {
        if link == 0 { Ok(NONE) } else { Ok(self.leaves.node_of(link)? as u32) }
    }

    /// The first leaf.
    pub(super) fn head(&self) -> Result<u32> {
        self.number(self.pmem.load_u64(HEAD_AT))
    }

    /// The leaf after one.
    pub(super) fn after(&self, leaf: u32) -> Result<u32> {
        self.number(self.leaf(leaf)?.next())
    }

    /// The only leaf has neither one before nor one after.
    pub(super) fn is_only(&self, leaf: u32) -> Result<bool> {
        Ok(self.before[leaf as usize] == NONE && self.after(leaf)? == NONE)
    }

    /// Makes whatever leads to `leaf` lead to the leaf `to` instead, durably, in one word: to nothing for `NONE`.
    pub(super) fn relink(&mut self, leaf: u32, to: u32, depends_on: &[Extent]) -> Result<()> {
        let link = if to == NONE { 0 } else { self.leaves.node_at(u64::from(to)) };
        let (at, site) = match self.before[leaf as usize] {
            NONE => (HEAD_AT, sites::HEAD),
            before => (self.leaf(before)?.at + self.geometry.next_at, sites::LINK),
        };
        self.pmem.publish(at, link, depends_on, site);
        self.pmem.flush(Extent::new_checked(at, 8), site);
        self.pmem.fence(site);
        Ok(())
    }

    /// Takes a leaf out of the chain and gives it back.
    pub(super) fn unlink(&mut self, leaf: u32) -> Result<()> {
        let (before, after) = (self.before[leaf as usize], self.after(leaf)?);
        self.relink(leaf, after, &[])?;
        if after != NONE {
            self.before[after as usize] = before;
        }
        self.before[leaf as usize] = NONE;
        self.free(leaf)
    }

    /// Gives a leaf back that nothing leads to any more.
    pub(super) fn free(&mut self, leaf: u32) -> Result<()> {
        let extent = self.leaf(leaf)?.extent();
        self.pmem.withdrawn(extent);
        self.leaves.deallocate(&self.pmem, u64::from(leaf));
        Ok(())
    }

    /// The leaves in the order of the chain, which `before` says backwards then. Frees leaves that nothing leads to.
    pub(super) fn walk(&mut self) -> Result<Vec<u32>> {
        let mut all = Vec::new();
        let mut seen = vec![false; self.leaves.nodes() as usize];
        let (mut leaf, mut before) = (self.head()?, NONE);
        self.before.fill(NONE);
        while leaf != NONE {
            if std::mem::replace(&mut seen[leaf as usize], true) {
                return PrimitivesError::corrupted(
                    "the chain of leaves is a circle",
                    self.leaf(leaf)?.at,
                );
            }
            all.push(leaf);
            self.before[leaf as usize] = before;
            before = leaf;
            leaf = self.after(leaf)?;
        }
        if all.is_empty() {
            return PrimitivesError::corrupted("a tree has no leaves", HEAD_AT);
        }
        let Self { pmem, leaves, .. } = self;
        leaves.retain(pmem, |node| seen[node as usize]);
        Ok(all)
    }

    /// What it needs, beside inner nodes.
    pub(super) fn footprint(&self, inner_bytes: u64) -> TreeFootprint {
        let lists = self.before.len() as u64 * 4 + self.leaves.nodes().div_ceil(64) * 8;
        TreeFootprint {
            records: self.records,
            dram_bytes: inner_bytes + lists,
            pmem_bytes: Self::bytes_for(&self.geometry, 0)
                + self.leaves.taken_count() * self.geometry.node_bytes(),
        }
    }

    /// Does an operation, so that tools can tell where it begins and ends.
    #[inline]
    pub(super) fn operation<T>(
        &mut self,
        class: Operation,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.pmem.operation_begin(class, 0);
        let done = work(self);
        self.pmem.operation_acknowledge();
        done
    }
}
