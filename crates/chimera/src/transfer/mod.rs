//! Carrying records out of a store and into one: streams, and backups of an open store.
//!
//! A **stream** is a header, frames of whole records, and an end that tells how many there were. Each
//! frame's head carries a checksum that is chained to the one before, so the last one is a digest of all.
//! docs/STREAM.md has every byte.
//!
//! # Order
//! Records come in the order of positions, which follows from the hashes of their keys alone and stays the
//! same for as long as the store lives. Each frame says below which position everything is contained: so an
//! export that was interrupted goes on where its file ends.
//!
//! # Beside writers
//! An export or backup is not of one moment. A key that is there from beginning to end is contained exactly
//! once (after an export was resumed: at least once), with a value that it had meanwhile, whole. A key that
//! comes or goes meanwhile is contained or not. Changes of two keys may be seen in another order than they
//! were made.
//!
//! # Rules
//! - Nothing that is read is used before its checksum was verified. No length is trusted: memory grows only
//!   with content that has arrived.
//! - Records that an import says it has stored are durable.
//! - A backup is marked as incomplete, in its superblock, until all of it is durable.

mod backup;
mod export;
mod format;
mod import;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use backup::BackupOptions;
pub use export::ExportOptions;
pub use import::ImportOptions;
pub use reader::{StreamReader, Verified};

use crate::engine::Options;
use crate::types::stream::StreamKind;

impl StreamKind {
    /// Options for a store of this kind, with defaults for all else.
    pub fn options(&self) -> Options {
        let options = Options::new();
        if self.is_fixed() { options.fixed_size(self.key_bytes, self.value_bytes) } else { options }
    }
}
