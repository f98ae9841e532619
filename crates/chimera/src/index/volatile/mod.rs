//! Indexes in DRAM. They are lost with the process and rebuilt from the records.
//!
//! Nothing here sees a persistent-memory address: entries are opaque locations, and memory comes
//! from [`Arena`](chimera_pmem::Arena)s.

pub(crate) mod extendible_hash;
