//! [`Nodes`]: where nodes come from and go to.
//!
//! A node that was freed keeps its words, and its version goes on counting when it is used again. So whoever
//! still reads it notices: not by the node, which may be as it was, but by its parent, which is read again
//! after the version of the node was taken.

use std::io;

use super::locked::LockedNode;
use super::node::{Context, Node};
use super::shape::Layout;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{Arena, Mutex, lock};

/// Nodes in memory that costs no system call.
const FIRST: usize = 2;

/// The nodes of a tree.
pub(super) struct Nodes {
    words: Arena<AtomicU64>,
    pub(super) context: Context,
    /// The number of the root, which stays the root; 0 before the first key.
    root: AtomicU32,
    supply: Mutex<FreeNodes>,
    /// How many nodes may be given out.
    limit: AtomicU32,
}

#[derive(Debug, Default)]
struct FreeNodes {
    /// Nodes with numbers up to this one were given out at least once.
    given: u32,
    free: Vec<u32>,
    /// Nodes in use that are not leaves.
    inner: u32,
}

/// How many nodes there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeCounts {
    pub(super) given: u32,
    pub(super) free: u32,
    pub(super) inner: u32,
}

impl Nodes {
    pub(super) fn new(context: Context, huge_pages: bool) -> Self {
        let first = FIRST * context.layout.words as usize;
        Self {
            words: Arena::new(first, huge_pages),
            context,
            root: AtomicU32::new(0),
            supply: Mutex::new(FreeNodes::default()),
            limit: AtomicU32::new(u32::MAX),
        }
    }

    pub(super) fn layout(&self) -> Layout {
        self.context.layout
    }

    /// The node with this number, if it was ever given out.
    #[inline(always)]
    pub(super) fn get(&self, id: u32) -> Option<Node<'_>> {
        let words = u64::from(self.layout().words);
        let words = self.words.range(u64::from(id.checked_sub(1)?) * words, words)?;
        Some(Node::new(id, words, &self.context))
    }

    /// The root, once there is one.
    #[inline(always)]
    pub(super) fn root(&self) -> Option<Node<'_>> {
        // Acquire: its words are seen.
        self.get(self.root.load(Ordering::Acquire))
    }

    /// Makes a node the root, unless there is one.
    ///
    /// # Errors
    /// `OutOfMemory`.
    #[cold]
    pub(super) fn make_root(&self, fill: impl FnOnce(&LockedNode<'_>)) -> io::Result<()> {
        let node = self.take(0)?;
        fill(&node);
        let id = node.id;
        drop(node);
        let made = self.root.compare_exchange(0, id, Ordering::Release, Ordering::Relaxed);
        if made.is_err() {
            self.give_back(id, 0);
        }
        Ok(())
    }

    /// A node that nobody uses, locked.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn take(&self, level: u32) -> io::Result<LockedNode<'_>> {
        let out_of_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        let id = {
            let mut supply = lock(&self.supply);
            let id = match supply.free.pop() {
                Some(id) => id,
                None if supply.given >= self.limit.load(Ordering::Relaxed) => {
                    return Err(out_of_memory());
                }
                None => {
                    let id = supply.given + 1;
                    self.words.ensure(u64::from(id) * u64::from(self.layout().words))?;
                    supply.given = id;
                    id
                }
            };
            supply.inner += u32::from(level > 0);
            id
        };
        let node = self.get(id).expect("a node that was ensured");
        // Whoever comes with an old version does not get the lock, and who looked the node up just now
        // finds that it is no longer where it was.
        let guard = node.lock_word().try_lock().expect("nobody holds the lock of a free node");
        Ok(LockedNode::new(node, guard))
    }

    /// Frees a node that nothing leads to any more, and whose lock has been released since.
    pub(super) fn give_back(&self, id: u32, level: u32) {
        let mut supply = lock(&self.supply);
        supply.free.push(id);
        supply.inner -= u32::from(level > 0);
    }

    /// Frees a node that nothing has led to yet, with its long keys.
    pub(super) fn discard(&self, id: u32, level: u32) {
        let node = self.get(id).expect("a node that was taken");
        node.for_each_long_key(|number| self.context.long_keys.remove(number));
        self.give_back(id, level);
    }

    /// Notes that a node has become an inner one, or a leaf, in place.
    pub(super) fn note_level(&self, was: u32, is: u32) {
        let mut supply = lock(&self.supply);
        supply.inner += u32::from(is > 0);
        supply.inner -= u32::from(was > 0);
    }

    /// How many nodes there are.
    pub(super) fn counts(&self) -> NodeCounts {
        let supply = lock(&self.supply);
        let free = supply.free.len() as u32;
        NodeCounts { given: supply.given, free, inner: supply.inner }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        self.words.bytes_resident_estimate() + self.context.long_keys.bytes()
    }

    /// The numbers of free nodes.
    #[cfg(test)]
    pub(super) fn free(&self) -> Vec<u32> {
        lock(&self.supply).free.clone()
    }

    /// Lets no more than this many nodes be given out.
    #[cfg(test)]
    pub(super) fn limit(&self, nodes: u32) {
        self.limit.store(nodes, Ordering::Relaxed);
    }
}
