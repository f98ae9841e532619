//! [`ReclaimStats`] and [`RecoveryStats`]: what work on the whole store has done.

use std::fmt;

use super::losses::Losses;

/// What space reclamation has done since the store was opened, and what there is to do.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RecoveryStats {
    /// Blocks scanned.
    pub blocks_scanned: u64,
    /// Live records found.
    pub records: u64,
    /// Second copies of a key left by an interrupted overwrite and cleared.
    pub duplicates_cleared: u64,
    /// Batches that were cut off, and made.
    pub batches_made: u64,
    /// Batches that were cut off, never acknowledged, and taken back, because there is no room for them.
    pub batches_taken_back: u64,
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

impl fmt::Display for RecoveryStats {
    /// Says it in sentences, but for losses, which speak for themselves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.clean {
            f.write_str("The store had been closed in order.")?;
        } else if self.blocks_scanned > 0 || self.records > 0 {
            f.write_str("The store had not been closed in order.")?;
        } else {
            f.write_str("The store was new.")?;
        }
        let counted = |number: u64, what: &str| match number {
            1 => format!("1 {what}"),
            _ => format!("{number} {what}s"),
        };
        write!(
            f,
            " Opening it took {:.1} ms: {} scanned {} and found {}.",
            self.duration_ns as f64 / 1e6,
            counted(self.threads as u64, "thread"),
            counted(self.blocks_scanned, "block"),
            counted(self.records, "record"),
        )?;
        if self.duplicates_cleared > 0 {
            let cleared = self.duplicates_cleared;
            write!(f, " Interrupted overwrites that were ended: {cleared}.")?;
        }
        if self.batches_made > 0 {
            write!(f, " Interrupted batches that were made: {}.", self.batches_made)?;
        }
        if self.batches_taken_back > 0 {
            let batches = self.batches_taken_back;
            write!(f, " Interrupted batches without room, taken back: {batches}.")?;
        }
        if self.records_damaged > 0 {
            write!(f, " Damaged records: {}.", self.records_damaged)?;
        }
        if let Some(at) = self.journal_lost_at {
            let (entries, bytes) = (self.journal_entries_lost, self.journal_bytes_lost);
            let entries = counted(entries, "change");
            write!(f, " The journal has lost {entries} of {bytes} bytes from byte {at} on.")?;
        }
        if self.differs_from_closing {
            f.write_str(" The store is not what it was when it was closed in order.")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_is_told_in_sentences() {
        let stats = RecoveryStats {
            blocks_scanned: 7,
            records: 100,
            threads: 2,
            clean: true,
            duration_ns: 1_250_000,
            ..RecoveryStats::default()
        };
        let said = "The store had been closed in order. Opening it took 1.2 ms: 2 threads scanned 7 blocks and \
                    found 100 records.";
        assert_eq!(stats.to_string(), said);
        let stats = RecoveryStats {
            clean: false,
            duplicates_cleared: 3,
            batches_made: 2,
            batches_taken_back: 4,
            records_damaged: 1,
            journal_lost_at: Some(4096),
            differs_from_closing: true,
            ..stats
        };
        let said = stats.to_string();
        for part in [
            "had not been closed in order",
            " Interrupted overwrites that were ended: 3.",
            " Interrupted batches that were made: 2.",
            " Interrupted batches without room, taken back: 4.",
            " Damaged records: 1.",
            "lost 0 changes of 0 bytes from byte 4096 on.",
            "not what it was when it was closed in order.",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}
