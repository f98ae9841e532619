//! [`Tree`]: a B+-tree in DRAM of whole keys, used by many threads; the global ordered index of HiKV
//! (ATC'17, section 3.3).
//!
//! Keys have from 1 byte to 64 KiB and are compared as bytes. The tree must
//! take little memory for a key, let writers of different leaves go on beside each other, and stay out of the
//! way of readers. Readers compare versions (optimistic lock coupling), which every machine can do. Where the machine has
//! transactions, as in the paper, writers of leaves [use them](elision) beside.
//!
//! # Structure
//! ```text
//!  root, the same node for ever           [ -    g    q ]
//!                                          |    |    |
//!                       ,------------------'    |    '-------.
//!  inner nodes     [ -   c   e ]           [ g   k ]      [ q  ... ]
//!                    |   |   |               |   |
//!  leaves          [ab][cab][ef fa]      [g gh][ka m]
//! ```
//! - All **nodes** have the same size and [one format](node). A slot has the first bytes of its key, so that a
//!   search hardly ever reads anything else.
//! - A **child** of an inner node has the keys from the one in front of it (the *separator*) to the next one. The
//!   first child has those from the low fence of its parent on, and needs no key.
//! - Each node has its **fences**: the lowest key that belongs there, and the lowest one above it that does not. The
//!   outermost nodes of a level have none on that side. What both fences have in common is the **prefix** of all keys
//!   of the node, and stored once. Separators are as short as they can be.
//! - A key that is too long for a node is kept whole in a [table](long_keys), and costs an access there. So do long
//!   separators and fences.
//! - Nodes lie in an arena. Their memory is never given back, but used again; nothing is allocated before the first
//!   key.
//!
//! # Invariants
//! 1. A node changes only while its lock is held. Its level never changes, unless it is the root.
//! 2. Whenever no node is locked: the children of a node divide the range between its fences among them without a
//!    gap, each has the part between its own fences, and all keys of a leaf lie between its fences.
//! 3. A node is freed only by who holds its lock and that of its parent, which does not lead there any more when both
//!    are released. Its version goes on counting when it is used again.
//! 4. Locks are taken downwards, and none is waited for while another one is held.
//! 5. A node that was full of entries of any size has at least four. So it can be split, and each half fits a node.
//!
//! # Protocol
//! **The way down** reads, of each node, the version `v`, the child, the version of the child, and then finds `v`
//! unchanged. See [`descent`].
//!
//! **Readers** read what they want of a leaf and find its version unchanged, or begin anew. *Proof* that they are right:
//! when the version of the leaf was read, its parent led there, and the leaf had this version. Since the leaf's words
//! were of this version, too, the reader saw the leaf as it was at that moment; and by invariant 2 it was the only
//! one that could have had the key. ∎ Until the version is compared anything may have been read: see [`node`].
//!
//! **Writers of one key** go down as readers do and turn the version of the leaf into its lock with one
//! compare-and-exchange, which fails if the leaf has changed. Then they search, and change the leaf alone.
//!
//! **A full leaf** is [split](split), with its parent locked before it. If that has no room for another child, it is split
//! first, with nothing else locked than its own parent; and so on. So a tree is right, if not balanced in the
//! textbook's way, at every step. The root is split by moving both halves to new nodes.
//!
//! **A sparse leaf**, less than a third full, is [merged](merge) with a neighbour of the same parent, or takes entries
//! from it. A root with one child takes over the child's words.
//!
//! **Scans** read one leaf after the other, each at one moment: see [`scan`].
//!
//! # Cost
//! | | |
//! | --- | --- |
//! | lookup, insert, removal | the lines of one leaf that a binary search reads, about six; inner nodes stay in the caches |
//! | memory | (8 for the slot + key without prefix and head, rounded to 4) over the fill, 0.69 on average |

mod build;
mod change;
mod descent;
mod elision;
mod figures;
mod format;
mod image;
mod key_count;
mod keys;
mod locked;
mod long_keys;
mod merge;
#[cfg(all(test, loom))]
mod models;
mod neighbours;
mod node;
mod nodes;
mod page;
mod scan;
mod search;
mod shape;
mod share;
mod split;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
#[cfg(test)]
mod verify;

use std::fmt;

use self::elision::Elision;
pub(super) use self::figures::TreeFigures;
use self::key_count::KeyCount;
use self::long_keys::LongKeys;
use self::node::Context;
use self::nodes::Nodes;
pub(crate) use self::page::Page;
use self::shape::Layout;
pub(crate) use self::shape::TreeShape;

/// A B+-tree. Any number of threads may call anything at any time.
pub(crate) struct Tree {
    nodes: Nodes,
    keys: KeyCount,
    elision: Elision,
}

impl Tree {
    /// An empty tree.
    ///
    /// # Panics
    /// When nodes cannot have the size of `shape`.
    ///
    /// # Cost
    /// 1 KiB; nodes are allocated with the first key.
    pub(crate) fn new(shape: TreeShape) -> Self {
        let context = Context { layout: Layout::new(shape), long_keys: LongKeys::default() };
        Self {
            nodes: Nodes::new(context, shape.huge_pages),
            keys: KeyCount::default(),
            elision: Elision::new(shape.transactions),
        }
    }

    /// Lets no more than this many nodes be given out.
    #[cfg(test)]
    pub(super) fn limit(&self, nodes: u32) {
        self.nodes.limit(nodes);
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("figures", &self.figures()).finish_non_exhaustive()
    }
}
