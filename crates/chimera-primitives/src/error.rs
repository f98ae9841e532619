//! [`PrimitivesError`]: why an operation on a node, a run or a tree was refused.

use std::io;

/// Result of this crate's functions.
pub type Result<T, E = PrimitivesError> = std::result::Result<T, E>;

/// Why an operation was refused. Nothing has changed where it is `Full` or `Shape`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrimitivesError {
    /// What persistent memory holds cannot be: the structure is damaged and must not be used.
    #[error("damaged: {what} at offset {at}")]
    Corrupted {
        /// What is wrong.
        what: &'static str,
        /// Where, as an offset into the pool.
        at: u64,
    },
    /// There is no room: make the node, the run or the pool larger, or delete something first.
    #[error("there is no room for another entry")]
    Full,
    /// Sizes that do not go together: give others.
    #[error("{0}")]
    Shape(String),
    /// The operating system refused to map or to make a file.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl PrimitivesError {
    /// Damage at an offset.
    pub(crate) fn corrupted<T>(what: &'static str, at: u64) -> Result<T> {
        Err(Self::Corrupted { what, at })
    }
}
