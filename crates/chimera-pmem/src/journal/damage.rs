//! [`Damage`]: what a journal has lost.

/// Entries that should be in a journal and are not whole, or not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// What is wrong.
    pub what: String,
    /// Byte of the journal's file from which on entries are lost.
    pub at: u64,
    /// Entries that are lost, as far as they can be counted; the one at `at` among them, unless it was none.
    pub entries: u64,
    /// Bytes of the entries that are lost, as far as that is known.
    pub bytes: u64,
}
