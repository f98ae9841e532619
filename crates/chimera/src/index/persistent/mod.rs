//! Indexes in persistent memory. Each owns its layout there and its crash protocol, growth included.
//!
//! What stays in DRAM is rebuilt from a few words when a store is opened; no record is read for it.

pub(crate) mod buckets;
#[cfg(all(feature = "baselines", not(loom)))]
pub(crate) mod extendible_hash;
pub(crate) mod partitioned_hash;
pub(crate) mod shard_manifest;
