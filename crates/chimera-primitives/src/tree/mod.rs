//! The trees that HiKV is measured against, as complete small stores: put, get, update, delete, scan, recovery.
//!
//! - [`FpTree`] (Oukid et al., SIGMOD 2016): leaves with a bitmap and fingerprints in persistent memory, inner nodes in DRAM.
//!   [`CachedFpTree`] has a cache of records in DRAM beside.
//! - [`NvTree`] (Yang et al., FAST 2015): leaves that are appended to, contiguous inner nodes in DRAM, made anew as a whole.
//!
//! They are written from the descriptions in HiKV (ATC 2017, section 4.1 and 4.2) and in the primitives study, from the layouts
//! [`Hashing`](crate::layout::Hashing) and [`Unsorted`](crate::layout::Unsorted). Records lie in the leaves. All keys have one
//! length and all values another.
//!
//! `base` is what both have: the header, the leaves, the chain. `inner` and `plane` are the inner nodes, `cache` the cache.
//!
//! # Thread safety
//! One writer at a time, or any number of readers: that is for the owner to see to.

mod base;
mod cache;
mod cached;
mod fptree;
mod inner;
mod nvtree;
mod plane;
pub mod sites;

#[cfg(test)]
mod tests;

use chimera_pmem::Pmem;

pub use cached::CachedFpTree;
pub use fptree::FpTree;
pub use nvtree::NvTree;

use crate::error::{PrimitivesError, Result};
use crate::layout::NODE_BYTES_MAX;

/// Words of the longest key.
pub(crate) const KEY_WORDS_MAX: usize = 32;
/// Most entries of a leaf: bits of the word that says which are there.
pub const LEAF_ENTRIES_MAX: usize = 64;
/// Fewest entries of a leaf.
const LEAF_ENTRIES_MIN: usize = 4;

/// Sizes of a tree. They are fixed when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeShape {
    /// Bytes of each key, 1 to 256.
    pub key_bytes: u32,
    /// Bytes of each value.
    pub value_bytes: u32,
    /// Entries of a leaf, 4 to 64.
    pub leaf_entries: usize,
}

impl TreeShape {
    /// The leaves with the most entries, 64 unless they would be larger than 16 KiB.
    ///
    /// # Errors
    /// `Shape` when not even four entries fit.
    pub fn new(key_bytes: u32, value_bytes: u32) -> Result<Self> {
        // A line of metadata more than any leaf has, and the flag of NV-Tree's entries.
        let entry = u64::from(key_bytes).next_multiple_of(8)
            + u64::from(value_bytes).next_multiple_of(8)
            + 8;
        let fitting = ((NODE_BYTES_MAX - 256) / entry) as usize;
        let shape = Self { key_bytes, value_bytes, leaf_entries: fitting.min(LEAF_ENTRIES_MAX) };
        shape.check()?;
        Ok(shape)
    }

    fn check(self) -> Result<()> {
        let refuse = |what: &str| Err(PrimitivesError::Shape(what.to_owned()));
        if self.key_bytes == 0 || self.key_bytes as usize > 8 * KEY_WORDS_MAX {
            return refuse("keys of trees have 1 to 256 bytes");
        }
        if !(LEAF_ENTRIES_MIN..=LEAF_ENTRIES_MAX).contains(&self.leaf_entries) {
            return refuse(
                "leaves have room for 4 to 64 records, in 16 KiB: shorter values are needed",
            );
        }
        Ok(())
    }
}

/// What a tree needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeFootprint {
    /// Records in it.
    pub records: u64,
    /// DRAM of inner nodes, caches and lists, by their own account.
    pub dram_bytes: u64,
    /// Persistent memory of leaves in use, and of what finds them.
    pub pmem_bytes: u64,
}

/// A tree in persistent memory from offset 0 on.
///
/// # Errors
/// All functions return `Corrupted` for what cannot be; those that write, `Full` when there is no leaf left, and nothing has
/// changed then.
pub trait Tree<P: Pmem>: Sized {
    /// Its name in reports.
    const NAME: &'static str;

    /// Persistent memory for so many records in leaves that are half full.
    ///
    /// # Errors
    /// `Shape`.
    fn bytes_for(shape: TreeShape, records: u64) -> Result<u64>;

    /// Makes a tree in what is mapped, which consists of zeros, or opens the one that is there: finishes what a crash has
    /// cut off, and makes the inner nodes.
    ///
    /// # Errors
    /// `Shape` when there is no room for it, or a tree of other sizes; `Corrupted`.
    ///
    /// # Cost
    /// All keys are read once.
    fn open(pmem: P, shape: TreeShape) -> Result<Self>;

    /// The memory that it lies in.
    fn pmem(&self) -> &P;

    /// Reads the value of a key; whether there is one.
    ///
    /// # Errors
    /// `Corrupted`.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Stores a record; whether the key is new.
    ///
    /// # Errors
    /// `Full`, `Corrupted`.
    ///
    /// # Durability
    /// It survives a power loss when the call returns; before that, either all of it or nothing.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool>;

    /// Replaces the value of a key that is there; whether it was.
    ///
    /// # Errors
    /// `Full`, `Corrupted`.
    ///
    /// # Durability
    /// As [`put`](Self::put).
    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<bool>;

    /// Removes a record; whether it was there.
    ///
    /// # Errors
    /// `Full` in a tree whose removals are entries, `Corrupted`.
    ///
    /// # Durability
    /// It stays gone after a power loss when the call returns.
    fn delete(&mut self, key: &[u8]) -> Result<bool>;

    /// Hands the first `count` records from a key on to `take`, in the order of keys; how many there were.
    ///
    /// # Errors
    /// `Corrupted`.
    fn scan(&self, from: &[u8], count: usize, take: impl FnMut(&[u8], &[u8])) -> Result<usize>;

    /// What it needs.
    fn footprint(&self) -> TreeFootprint;

    /// Verifies that the chain, the inner nodes and the allocated leaves agree, and that keys are where they are looked for.
    ///
    /// # Errors
    /// `Corrupted` when they do not.
    fn check(&self) -> Result<()>;
}
