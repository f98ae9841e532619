//! [`Error`]: what can go wrong, and what to do then.

use std::io;
use std::path::PathBuf;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory for persistent memory is not there.
    #[error("there is no directory {}; create it, or name another one with --path", .0.display())]
    NoDirectory(PathBuf),
    /// What is there is no directory.
    #[error("{} is not a directory; name a directory of a file system, on a DAX mount where there is one", .0.display())]
    NotADirectory(PathBuf),
    /// The directory may not be written to.
    #[error("no file can be made in {}: {source}; make it writable for this user, or name another directory", .path.display())]
    NotWritable {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file system has no room for the file.
    #[error("{} has no room for a file of {wanted} bytes ({free} are free); ask for less, or free some", .path.display())]
    NoRoom {
        /// The directory.
        path: PathBuf,
        /// Bytes asked for.
        wanted: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The size is smaller than what any use needs.
    #[error("{wanted} bytes of persistent memory are too few; the least is {least}")]
    TooSmall {
        /// Bytes asked for.
        wanted: u64,
        /// The least there can be.
        least: u64,
    },
    /// Another process uses the file.
    #[error("{} is in use by another process; wait for it to end, or give each process a directory of its own", .0.display())]
    InUse(PathBuf),
    /// The directory is not on a DAX file system, and has to be.
    #[error("{} is not on a DAX file system (the kernel refused MAP_SYNC); mount one with -o dax=always, or leave out --require-dax", .0.display())]
    NotDax(PathBuf),
    /// What was measured says nothing.
    #[error("the measurement is void: {0}")]
    Measurement(String),
    /// A call of the operating system failed.
    #[error("{what} {}: {source}", .path.display())]
    System {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// An option makes no sense.
    #[error("{0}")]
    Option(String),
    /// RocksDB says that something is wrong.
    #[error("RocksDB: {0}")]
    RocksDb(String),
    /// A report could not be written.
    #[error("the report could not be written: {0}")]
    Report(#[from] serde_json::Error),
    /// What was read is not what was written.
    #[error("record {record} is wrong: {what}")]
    Wrong {
        /// Which record.
        record: u64,
        /// What is wrong with it.
        what: String,
    },
}

/// What comes out, or what went wrong.
pub type Result<T> = std::result::Result<T, Error>;
