//! [`ReclaimStats`] and [`RecoveryStats`]: what work on the whole store has done.

use serde::Serialize;

use super::losses::Losses;

/// What space reclamation has done since the store was opened, and what there is to do.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ReclaimStats {
    /// Bytes of used blocks without a live record, roughly; not of blocks that sessions fill.
    pub debt_bytes: u64,
    /// Passes that ended.
    pub passes: u64,
    /// Records moved.
    pub moved_records: u64,
    /// Bytes of their keys and values.
    pub moved_bytes: u64,
    /// Blocks that were emptied, to be used again.
    pub blocks_freed: u64,
    /// Blocks at the end of the pool that were given back.
    pub blocks_given_back: u64,
}

/// What happened when the store was opened.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct RecoveryStats {
    /// Blocks scanned.
    pub blocks_scanned: u64,
    /// Live records found.
    pub records: u64,
    /// Second copies of a key left by an interrupted overwrite and cleared.
    pub duplicates_cleared: u64,
    /// Records that failed their checksum (salvage only).
    pub records_damaged: u64,
    /// What damage has kept out, records and other parts of the store (salvage only).
    pub losses: Losses,
    /// Changes in the journal of a plain file that are lost, as far as they can be counted (salvage only).
    pub journal_entries_lost: u64,
    /// Bytes of them, as far as that is known.
    pub journal_bytes_lost: u64,
    /// Byte of the file `journal` from which on they are lost; none when nothing is.
    pub journal_lost_at: Option<u64>,
    /// Threads that scanned.
    pub threads: usize,
    /// Whether what was found is not what the store held when it was closed in order (salvage only). What of that the places
    /// in `losses` do not explain is one of them.
    pub differs_from_closing: bool,
    /// Whether the store had been closed in order.
    pub clean: bool,
    /// Time from the call to the open store, in nanoseconds.
    pub duration_ns: u64,
}
