//! The primitives study: node layouts of trees in persistent memory, taken apart and measured.
//!
//! Götze, Tharanatha and Sattler took published trees apart into primitives and measured each on real persistent memory
//! (*Data Structure Primitives on Persistent Memory: An Evaluation*, DaMoN 2020). This crate has the primitives, and two
//! complete small stores that are built from them, which HiKV is compared with.
//!
//! # Rooms (each uses only those below it)
//! - [`tree`]: FPTree and NV-Tree, complete small stores.
//! - [`operation`]: the experiments, E1 to E11.
//! - [`atomicity`]: what makes operations atomic: a pointer, a pointer in a transaction, all in a transaction.
//! - [`allocation`]: nodes one by one, and by groups.
//! - [`layout`]: nodes: sorted, unsorted, with slots, hashes and bitmaps.
//!
//! Everything goes through [`Pmem`](chimera_pmem::Pmem), and every value that comes from it is checked. Absent on purpose: clocks,
//! files, and any part of the store itself.
#![forbid(unsafe_code)]

pub mod allocation;
pub mod atomicity;
mod error;
pub mod layout;
pub mod operation;
pub mod tree;

pub use error::{PrimitivesError, Result};

/// Every place of this crate that changes persistent memory.
#[must_use]
pub fn sites() -> Vec<chimera_pmem::Site> {
    let rooms =
        [layout::sites::ALL, atomicity::sites::ALL, allocation::sites::ALL, tree::sites::ALL];
    rooms.concat()
}
