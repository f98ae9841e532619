//! [`Grouped`]: nodes of groups, by one bit each.
//!
//! # Layout
//! A word for each group of 64 nodes, with a bit for each; then the nodes. The last group may be smaller.
//!
//! # Protocol
//! Which nodes are free is known in DRAM. Taking one sets its bit, durably, before anything leads to it; freeing clears it,
//! after nothing does. A crash in between leaves a node that nothing leads to: [`retain`](Grouped::retain) frees it.

use chimera_pmem::{CACHE_LINE, Extent, Pmem};

use super::sites;
use crate::error::{PrimitivesError, Result};

/// Nodes of one size that are allocated by groups.
#[derive(Clone, Debug)]
pub struct Grouped {
    at: u64,
    node_bytes: u64,
    nodes: u64,
    /// What the words in persistent memory are.
    words: Vec<u64>,
    /// Groups before this one are full.
    first_free: usize,
}

impl Grouped {
    /// Bytes of a region with so many nodes.
    pub fn bytes(node_bytes: u64, nodes: u64) -> u64 {
        Self::first_node(nodes) + nodes * node_bytes
    }

    fn first_node(nodes: u64) -> u64 {
        (8 * nodes.div_ceil(64)).next_multiple_of(CACHE_LINE)
    }

    /// Most nodes that a region of so many bytes has room for.
    pub fn nodes_in(bytes: u64, node_bytes: u64) -> u64 {
        let mut nodes = bytes / node_bytes;
        while nodes > 0 && Self::bytes(node_bytes, nodes) > bytes {
            nodes -= 1;
        }
        nodes
    }

    /// Opens the allocator of a region, which consists of zeros or has one already.
    ///
    /// # Errors
    /// `Corrupted` when the region holds something else.
    pub fn open<P: Pmem>(pmem: &P, at: u64, node_bytes: u64, nodes: u64) -> Result<Self> {
        let is_sound = at.is_multiple_of(CACHE_LINE) && node_bytes.is_multiple_of(CACHE_LINE);
        if !is_sound || pmem.check(at, Self::bytes(node_bytes, nodes)).is_none() {
            return PrimitivesError::corrupted("an allocator lies nowhere", at);
        }
        let mut allocator = Self { at, node_bytes, nodes, words: Vec::new(), first_free: 0 };
        for group in 0..nodes.div_ceil(64) {
            let word = pmem.load_u64(at + 8 * group);
            if word & !allocator.mask(group as usize) != 0 {
                return PrimitivesError::corrupted(
                    "a group has nodes beyond the end",
                    at + 8 * group,
                );
            }
            allocator.words.push(word);
        }
        Ok(allocator)
    }

    /// Which bits of a group stand for nodes.
    fn mask(&self, group: usize) -> u64 {
        match self.nodes - 64 * group as u64 {
            left @ 1..64 => (1 << left) - 1,
            _ => u64::MAX,
        }
    }

    /// Nodes that are taken.
    pub fn taken_count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Nodes in all.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Where a node lies.
    pub fn node_at(&self, node: u64) -> u64 {
        self.at + Self::first_node(self.nodes) + node * self.node_bytes
    }

    /// The number of the node that lies at an offset.
    ///
    /// # Errors
    /// `Corrupted` when none does.
    #[inline]
    pub fn node_of(&self, at: u64) -> Result<u64> {
        let from = at.wrapping_sub(self.node_at(0));
        if from / self.node_bytes >= self.nodes || !from.is_multiple_of(self.node_bytes) {
            return PrimitivesError::corrupted("a link leads to no node", at);
        }
        Ok(from / self.node_bytes)
    }

    /// Stores the word of a group. Durable.
    fn set_word<P: Pmem>(&mut self, pmem: &P, group: usize, word: u64) {
        let at = self.at + 8 * group as u64;
        self.words[group] = word;
        pmem.store_u64(at, word, sites::BIT);
        pmem.flush(Extent::new_checked(at, 8), sites::BIT);
        pmem.fence(sites::BIT);
    }

    /// Takes a node, whose contents are whatever they were; its number.
    ///
    /// # Errors
    /// `Full` when none is free.
    ///
    /// # Durability
    /// It stays taken after a power loss when the call returns, whether or not anything leads to it.
    ///
    /// # Cost
    /// One flush, one fence.
    pub fn allocate<P: Pmem>(&mut self, pmem: &P) -> Result<u64> {
        while self.first_free < self.words.len() {
            let group = self.first_free;
            let free = !self.words[group] & self.mask(group);
            if free != 0 {
                let bit = free.trailing_zeros();
                self.set_word(pmem, group, self.words[group] | 1 << bit);
                return Ok(64 * group as u64 + u64::from(bit));
            }
            self.first_free += 1;
        }
        Err(PrimitivesError::Full)
    }

    /// Gives a node back, to which nothing leads any more.
    ///
    /// # Panics
    /// When it is not taken.
    ///
    /// # Cost
    /// As [`allocate`](Self::allocate).
    pub fn deallocate<P: Pmem>(&mut self, pmem: &P, node: u64) {
        let (group, bit) = ((node / 64) as usize, 1 << (node % 64));
        assert!(self.words[group] & bit != 0, "node {node} is not taken");
        self.set_word(pmem, group, self.words[group] & !bit);
        self.first_free = self.first_free.min(group);
    }

    /// Makes the nodes taken that `is_reachable` says are, and no others: after a crash. How many were not as they should be.
    ///
    /// # Durability
    /// All of it is durable when the call returns.
    pub fn retain<P: Pmem>(&mut self, pmem: &P, is_reachable: impl Fn(u64) -> bool) -> u64 {
        let mut wrong = 0;
        for group in 0..self.words.len() {
            let nodes = (0..64).filter(|bit| self.mask(group) >> bit & 1 != 0);
            let word = nodes
                .filter(|bit| is_reachable(64 * group as u64 + bit))
                .fold(0_u64, |word, bit| word | 1 << bit);
            wrong += u64::from((word ^ self.words[group]).count_ones());
            if word != self.words[group] {
                self.set_word(pmem, group, word);
            }
        }
        self.first_free = 0;
        wrong
    }
}
