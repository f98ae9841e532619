//! [`BenchError`]: why a benchmark did not come to its end.

use std::io;
use std::path::{Path, PathBuf};

use chimera_pmem::Medium;

/// Result of this crate's functions.
pub type Result<T, E = BenchError> = std::result::Result<T, E>;

/// Why a benchmark did not come to its end. Every message says what to do about it, or what is wrong
/// with the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] chimera::Error),
    /// A structure of the primitives study failed.
    #[error("a structure of the primitives study: {0}")]
    Tree(#[from] chimera_primitives::PrimitivesError),
    /// A store of another maker failed.
    #[error("{store}: {message}")]
    Peer {
        /// Which.
        store: &'static str,
        /// What it said.
        message: String,
    },
    /// The operating system refused a file operation.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no memory for the benchmark's own tables.
    #[error("no memory for {what}: {source}")]
    Memory {
        /// For what.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The path holds what a benchmark left there.
    #[error(
        "`{}` holds a store that a benchmark left there: give another --path, or --overwrite to remove \
         that store", path.display()
    )]
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// The path holds what no benchmark made.
    #[error(
        "`{}` is not empty, and no benchmark made `{}`: give a --path that is not there yet \
         (--overwrite removes only what a benchmark made)", path.display(), foreign.display()
    )]
    Foreign {
        /// Where.
        path: PathBuf,
        /// What is there.
        foreign: PathBuf,
    },
    /// Another process uses the store that was to be removed.
    #[error("the store in `{}` is in use by another process: close it there first", path.display())]
    InUse {
        /// Where.
        path: PathBuf,
    },
    /// The path is on another medium than was asked for.
    #[error(
        "`{}` is on medium `{found}`, not `{expected}`: give a --path on {expected}, or --medium path \
         to take what is there", path.display()
    )]
    WrongMedium {
        /// Where.
        path: PathBuf,
        /// As found.
        found: Medium,
        /// As asked for.
        expected: Medium,
    },
    /// The arguments cannot be carried out.
    #[error("invalid arguments: {0}")]
    Arguments(String),
    /// An operation of the store gave a wrong answer.
    #[error("the store gave a wrong answer: {operation} of record {number} {what}")]
    WrongAnswer {
        /// The operation.
        operation: &'static str,
        /// The record's number.
        number: u64,
        /// What was wrong.
        what: &'static str,
    },
    /// Records are not as they were written.
    #[error("{wrong} of {records} records are wrong after the run; the first: {first}")]
    Verification {
        /// How many are wrong.
        wrong: u64,
        /// How many there should be.
        records: u64,
        /// The first one found and what is wrong with it.
        first: String,
    },
    /// The figure could not be drawn.
    #[error("cannot draw `{}`: {reason}", path.display())]
    Plot {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The result could not be written.
    #[error("cannot write the result: {0}")]
    Output(io::Error),
}

impl BenchError {
    /// For `map_err` of file operations.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

impl<P: chimera_pmem::Pmem> From<chimera::CloseError<P>> for BenchError {
    fn from(failed: chimera::CloseError<P>) -> Self {
        chimera::Error::from(failed).into()
    }
}
