//! [`PerNode`]: every node is allocated by itself, atomically with the link to it.
//!
//! # Layout
//! One line with the redo record: what is done (0 nothing, 1 taking, 2 freeing), which node, where the link lies. A word for
//! each node: 1 when it is taken. The nodes.
//!
//! # Protocol
//! The record is durable before the word of the node and the link are stored, and is cleared once they are durable. Recovery
//! does it again.

use chimera_pmem::{CACHE_LINE, Extent, Pmem};

use super::sites;
use crate::error::{PrimitivesError, Result};

const TAKE: u64 = 1;
const FREE: u64 = 2;

/// Nodes of one size that are allocated one by one.
#[derive(Clone, Debug)]
pub struct PerNode {
    at: u64,
    node_bytes: u64,
    nodes: u64,
    /// Nodes that are free, the next one last. In DRAM: it follows from the words.
    free: Vec<u64>,
}

impl PerNode {
    /// Bytes of a region with so many nodes.
    pub fn bytes(node_bytes: u64, nodes: u64) -> u64 {
        Self::first_node(nodes) + nodes * node_bytes
    }

    fn first_node(nodes: u64) -> u64 {
        CACHE_LINE + (8 * nodes).next_multiple_of(CACHE_LINE)
    }

    /// Opens the allocator of a region, which consists of zeros or has one already. Does again what a crash has cut off.
    ///
    /// # Errors
    /// `Corrupted` when the region holds something else.
    pub fn open<P: Pmem>(pmem: &P, at: u64, node_bytes: u64, nodes: u64) -> Result<Self> {
        let is_sound = at.is_multiple_of(CACHE_LINE) && node_bytes.is_multiple_of(CACHE_LINE);
        if !is_sound || pmem.check(at, Self::bytes(node_bytes, nodes)).is_none() {
            return PrimitivesError::corrupted("an allocator lies nowhere", at);
        }
        let mut allocator = Self { at, node_bytes, nodes, free: Vec::new() };
        allocator.recover(pmem)?;
        for node in (0..nodes).rev() {
            match pmem.load_u64(allocator.word(node)) {
                0 => allocator.free.push(node),
                1 => {}
                _ => {
                    let at = allocator.word(node);
                    return PrimitivesError::corrupted("a node is neither free nor taken", at);
                }
            }
        }
        Ok(allocator)
    }

    fn recover<P: Pmem>(&mut self, pmem: &P) -> Result<()> {
        let [kind, node, link] = [0, 8, 16].map(|at| pmem.load_u64(self.at + at));
        match kind {
            0 => return Ok(()),
            TAKE | FREE if node < self.nodes && pmem.check(link, 8).is_some() => {}
            _ => {
                return PrimitivesError::corrupted(
                    "a record of an allocator leads nowhere",
                    self.at,
                );
            }
        }
        self.carry_out(pmem, kind, node, link);
        Ok(())
    }

    fn word(&self, node: u64) -> u64 {
        self.at + CACHE_LINE + 8 * node
    }

    fn node_at(&self, node: u64) -> u64 {
        self.at + Self::first_node(self.nodes) + node * self.node_bytes
    }

    /// Nodes that are free.
    pub fn free_count(&self) -> usize {
        self.free.len()
    }

    /// Says what is to be done, durably.
    fn record<P: Pmem>(&self, pmem: &P, kind: u64, node: u64, link: u64) {
        pmem.store_u64(self.at + 8, node, sites::REDO);
        pmem.store_u64(self.at + 16, link, sites::REDO);
        // In the same line after the others, and so never durable before them.
        pmem.store_u64(self.at, kind, sites::REDO);
        pmem.flush(Extent::new_checked(self.at, 24), sites::REDO);
        pmem.fence(sites::REDO);
    }

    /// Does what the record says, and clears it.
    fn carry_out<P: Pmem>(&self, pmem: &P, kind: u64, node: u64, link: u64) {
        let is_taken = kind == TAKE;
        pmem.store_u64(self.word(node), u64::from(is_taken), sites::STATE);
        let to = if is_taken { self.node_at(node) } else { 0 };
        pmem.store_u64(link, to, sites::STATE);
        pmem.flush(Extent::new_checked(self.word(node), 8), sites::STATE);
        pmem.flush(Extent::new_checked(link, 8), sites::STATE);
        pmem.fence(sites::STATE);
        pmem.store_u64(self.at, 0, sites::REDO);
        pmem.flush(Extent::new_checked(self.at, 8), sites::REDO);
        pmem.fence(sites::REDO);
    }

    /// Takes a node, makes it of zeros, and stores where it lies to the word at `link`.
    ///
    /// # Errors
    /// `Full` when none is free; `Corrupted` when `link` is no word.
    ///
    /// # Durability
    /// Node and link survive a power loss when the call returns; before that, both or none.
    ///
    /// # Cost
    /// Three fences, and as many flushes as the node has lines, and four.
    pub fn allocate<P: Pmem>(&mut self, pmem: &P, link: u64) -> Result<u64> {
        if pmem.check(link, 8).is_none() {
            return PrimitivesError::corrupted("a link is no word", link);
        }
        let node = self.free.pop().ok_or(PrimitivesError::Full)?;
        let extent = Extent::new_checked(self.node_at(node), self.node_bytes);
        pmem.zero(extent, sites::ZERO);
        pmem.flush(extent, sites::ZERO);
        self.record(pmem, TAKE, node, link);
        self.carry_out(pmem, TAKE, node, link);
        Ok(extent.offset())
    }

    /// Gives the node back that the word at `link` leads to, and stores 0 there.
    ///
    /// # Errors
    /// `Corrupted` when the word leads to no node that is taken.
    ///
    /// # Durability
    /// As [`allocate`](Self::allocate).
    ///
    /// # Cost
    /// Three fences, four flushes.
    pub fn deallocate<P: Pmem>(&mut self, pmem: &P, link: u64) -> Result<()> {
        let at = pmem.check(link, 8).map_or(0, |_| pmem.load_u64(link));
        let from = at.wrapping_sub(self.node_at(0));
        let node = from / self.node_bytes;
        let is_node = node < self.nodes && from.is_multiple_of(self.node_bytes);
        if !is_node || pmem.load_u64(self.word(node)) != 1 {
            return PrimitivesError::corrupted("a link leads to no node that is taken", link);
        }
        self.record(pmem, FREE, node, link);
        self.carry_out(pmem, FREE, node, link);
        self.free.push(node);
        Ok(())
    }
}
