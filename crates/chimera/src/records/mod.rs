//! Where record bytes live, and the steps that protocols are made of. Never knows which index points at a
//! record, and never decides the order of the steps of a record and of an index.
//!
//! # Rooms
//! - What any kind of record can be made of: [`header`] (checksums and version, and the judgement whether a record
//!   is sound), [`checksum`], [`key_hash`] (what stands for a key in a checksum), [`unchecked_word`] (what of a value
//!   has no checksum), [`lengths`] (the word in front, and where the parts of a record lie), [`limits`] (the longest
//!   key and value), [`chunks`] (values that are too large to lie beside their keys).
//! - [`vpage`]: Viper's pages of records.
//! - [`page_word`]: the first word of each page; [`block_flags`]: what that of the first one says of a whole block.
//! - [`key_dump`]: keys in their order, from one life of a store to the next.
//! - [`batch_record`]: what a batch changes, to be made again.
//! - [`item_heap`]: records that are written once, with what is free known in DRAM alone.
//! - `redo_log`: a write-ahead log of changes that can be made again. Only with the feature `baselines`.
//! - `storage_log`: an append-only log of records, in a run of blocks for each session. Only in builds with an engine
//!   that keeps one.
//! - `locked_log`: a log whose records are retired in place, under one lock. Only in builds with an engine that keeps one.

pub(crate) mod batch_record;
pub(crate) mod block_flags;
pub(crate) mod checksum;
pub(crate) mod chunks;
pub(crate) mod header;
pub(crate) mod item_heap;
pub(crate) mod key_dump;
pub(crate) mod key_hash;
pub(crate) mod lengths;
pub(crate) mod limits;
#[cfg(feature = "teaching-engine")]
pub(crate) mod locked_log;
pub(crate) mod page_word;
#[cfg(feature = "baselines")]
pub(crate) mod redo_log;
pub(crate) mod storage_log;
pub(crate) mod unchecked_word;
pub(crate) mod vpage;
