//! Node layouts: how the entries of one node are organised (DaMoN'20, section 4.2 and Figure 2).
//!
//! One trait, [`Layout`], and an implementation for each organisation:
//! - [`Sorted`]: entries in the order of their keys, and how many there are.
//! - [`Unsorted`]: entries in the order of their insertion, and how many there are.
//! - [`Indirection`]: entries anywhere, a bitmap of which are there, and slots that name them in the order of their keys.
//! - [`Hashing`]: entries anywhere, a bitmap, and a hash of each key that is probed before the key.
//! - [`BitmapOnly`]: entries anywhere, and a bitmap.
//! - [`HashingCounted`]: hashes with a count instead of a bitmap, which the paper names as untested (I1).
//!
//! `shape` says where everything lies, `node` reads and stores it, `bytes` and `bitmap` are the search structures. `counted`,
//! `bitmapped`, `sorted` and `indirection` are the organisations. [`sizes`] has what they store as formulas; [`table4`], what
//! they hold.
//!
//! # What is durable when
//! Entries and what finds them are durable before the word that says that they are there; each operation ends durable. But
//! only one word is failure-atomic, so of operations that move entries (every change of a sorted node, splits, balancing)
//! a crash can leave a part. The paper calls that *individual* care for durability; [`atomicity`](crate::atomicity) has what
//! makes any of them atomic.
//!
//! # Hostile input
//! Counts, bitmaps and slots are checked against the capacity whenever they are read, so that damage is an error and
//! no access outside of the node.

pub(crate) mod bitmap;
pub(crate) mod bitmapped;
pub(crate) mod bytes;
pub(crate) mod compaction;
pub(crate) mod counted;
mod dirty;
mod indirection;
mod kind;
mod node;
mod search;
mod shape;
pub mod sites;
pub mod sizes;
mod sorted;
pub mod table4;
mod visit;

#[cfg(test)]
mod tests;

use chimera_pmem::Pmem;

pub use bitmapped::{BitmapOnly, Hashing};
pub use counted::{HashingCounted, Unsorted};
pub use indirection::Indirection;
pub use kind::LayoutKind;
pub use node::{Node, key_bytes, key_hash, key_words};
pub use search::Search;
pub use shape::{Geometry, NODE_BYTES_MAX, NodeShape};
pub use sorted::Sorted;
pub use visit::LayoutVisitor;

use crate::error::Result;

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its number in the order of keys, where the layout keeps one; else as `index`.
    pub rank: usize,
    /// Its number in the arrays of keys and values.
    pub index: usize,
}

/// How a node is split (section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// The larger half is moved to the new node: fewer bytes.
    Move,
    /// The node is copied as a whole, and each half is cleared in one of both: one sequential write. Of layouts with a bitmap.
    Copy,
}

/// Where balancing moves entries (E9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The donor's smallest to a node with smaller keys.
    ToSmaller,
    /// The donor's largest to a node with larger keys.
    ToLarger,
}

/// By what a node is iterated (E3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// By the bitmap or the count: in no order.
    Bitmap,
    /// By the slots: in the order of keys. Of [`Indirection`] alone; elsewhere as `Bitmap`.
    Slots,
}

/// What recovery found in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Entries that are there.
    pub entries: usize,
    /// Whether the search structure had to be made anew.
    pub repaired: bool,
}

/// Memory that operations use again, so that they allocate nothing.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// The first key that went to the new node of the last split.
    pub separator: Vec<u64>,
    pub(crate) keys: Vec<u64>,
    pub(crate) order: Vec<usize>,
    pub(crate) marks: Vec<bool>,
    pub(crate) chosen: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) words: Vec<u64>,
    pub(crate) image: Vec<u8>,
}

/// An organisation of a node. Functions without a value: a layout is chosen when the code is compiled.
///
/// Nodes of one operation have the geometry of this layout, one and the same.
///
/// Every function returns `Corrupted` for a node that cannot be, and has not left the node then.
///
/// # Cost
/// Bytes stored by insert, split, erase, balance and merge are those of [`sizes`]; two fences for each, but one
/// for an erase that only clears a bit.
pub trait Layout: Copy + Default + std::fmt::Debug + Send + Sync + 'static {
    /// Its name.
    const KIND: LayoutKind;

    /// Makes a node empty, with links to none, durably.
    fn format<P: Pmem>(node: Node<'_, P>) {
        let mut dirty = node.dirty();
        node.clear(&mut dirty);
        dirty.persist(node.pmem, sites::FORMAT);
    }

    /// Entries that are there.
    ///
    /// # Errors
    /// `Corrupted`.
    fn count<P: Pmem>(node: Node<'_, P>) -> Result<usize>;

    /// The entry of a key (E1). A search that the layout cannot do is the one that it does by itself.
    ///
    /// # Errors
    /// `Corrupted`.
    fn search<P: Pmem>(node: Node<'_, P>, key: &[u64], how: Search) -> Result<Option<Place>>;

    /// Where a key that is not there would be inserted, in the order of keys; 0 where the layout keeps none.
    ///
    /// # Errors
    /// `Corrupted`.
    fn rank_of<P: Pmem>(_node: Node<'_, P>, _key: &[u64]) -> Result<usize> {
        Ok(0)
    }

    /// Inserts a key that is not there (E4); `rank` is what [`rank_of`](Self::rank_of) says. `Full` where there is no room.
    ///
    /// # Durability
    /// The entry is durable when the call returns.
    ///
    /// # Errors
    /// `Full` and `Corrupted`.
    fn insert<P: Pmem>(
        node: Node<'_, P>,
        rank: usize,
        key: &[u64],
        value: &[u8],
        scratch: &mut Scratch,
    ) -> Result<()>;

    /// Removes an entry (E8).
    ///
    /// # Durability
    /// It is gone for good when the call returns.
    ///
    /// # Errors
    /// `Corrupted`.
    fn erase<P: Pmem>(node: Node<'_, P>, place: Place, scratch: &mut Scratch) -> Result<()>;

    /// Hands the index of every entry to `take` (E3).
    ///
    /// # Errors
    /// `Corrupted`.
    fn iterate<P: Pmem>(node: Node<'_, P>, walk: Walk, take: impl FnMut(usize)) -> Result<()>;

    /// Moves the larger half of a node to `new`, whose contents do not matter, and links it behind the node (E5). The first
    /// key that moved is in `scratch.separator` afterwards. The node after is not told.
    ///
    /// # Durability
    /// The new node is durable before the node leads to it.
    ///
    /// # Errors
    /// `Corrupted`.
    fn split<P: Pmem>(
        node: Node<'_, P>,
        new: Node<'_, P>,
        how: Split,
        scratch: &mut Scratch,
    ) -> Result<()>;

    /// Moves `count` entries from `donor` to `receiver` (E9). `Full` where there is no room for them.
    ///
    /// # Errors
    /// `Full` and `Corrupted`.
    fn balance<P: Pmem>(
        donor: Node<'_, P>,
        receiver: Node<'_, P>,
        count: usize,
        direction: Direction,
        scratch: &mut Scratch,
    ) -> Result<()>;

    /// Copies all entries of `donor`, whose keys are larger, to `receiver`, and leads past the donor (E10). `Full` where
    /// there is no room for them.
    ///
    /// # Errors
    /// `Full` and `Corrupted`.
    fn merge<P: Pmem>(
        receiver: Node<'_, P>,
        donor: Node<'_, P>,
        scratch: &mut Scratch,
    ) -> Result<()>;

    /// Verifies what finds the entries, and makes it anew where a crash has left it behind (E11).
    ///
    /// # Errors
    /// `Corrupted`.
    fn recover<P: Pmem>(node: Node<'_, P>, scratch: &mut Scratch) -> Result<Recovered>;
}
