//! [`Error`]: what went wrong and what to do about it.

use std::io;
use std::path::PathBuf;

use super::position::StreamPosition;

/// Result of this crate's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. Every message says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
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
    /// There is no store at the path, and creating one was not asked for.
    #[error("there is no store at `{}`; create one first, for example by a put", path.display())]
    NotFound {
        /// Where.
        path: PathBuf,
    },
    /// The path holds something else than a store.
    #[error("`{}` is not a Chimera store: {reason}", path.display())]
    NotAStore {
        /// Where.
        path: PathBuf,
        /// What was found instead.
        reason: String,
    },
    /// The store was written by a newer version of this software.
    #[error(
        "the store has format version {found}, this program reads up to {supported}: use a newer \
         program"
    )]
    NewerFormat {
        /// Version on media.
        found: u32,
        /// Newest version this program reads.
        supported: u32,
    },
    /// The store was written by an older version of this software.
    #[error(
        "the store has format version {found}, this program reads version {supported} alone: export it with \
         a program that reads version {found}, and import that into a new store"
    )]
    OlderFormat {
        /// Version on media.
        found: u32,
        /// The version that this program reads.
        supported: u32,
    },
    /// The store has something that this program was built without.
    #[error(
        "the store has {what}, which this program was built without: use one that was built with the feature \
         `{feature}` of chimera"
    )]
    NeedsFeature {
        /// What the store has.
        what: &'static str,
        /// The feature of this crate.
        feature: &'static str,
    },
    /// Another process holds the store.
    #[error(
        "the store is in use by {holder}: close it there first, or open read-only on both sides"
    )]
    Locked {
        /// Who holds it, with the process id where known.
        holder: String,
    },
    /// The store is not as the options say.
    #[error("the store has {what} {found}, the options say {wanted}: open it without that option")]
    Mismatch {
        /// Which property.
        what: &'static str,
        /// As on media.
        found: String,
        /// As in the options.
        wanted: String,
    },
    /// The process was forked from the one that opened the store, after that. Nothing was done.
    #[error(
        "this handle belongs to process {process}, from which this one was forked: open the store after the fork, and \
         in one process at a time"
    )]
    Forked {
        /// The process that opened the store.
        process: u32,
    },
    /// The options cannot be carried out.
    #[error("invalid options: {0}")]
    InvalidOptions(String),
    /// A key of a wrong length.
    #[error("the key has {found} bytes, this store's keys have {expected}: pad or shorten it")]
    KeySize {
        /// Bytes given.
        found: usize,
        /// Bytes of this store's keys.
        expected: usize,
    },
    /// A value of a wrong length.
    #[error("the value has {found} bytes, this store's values have {expected}: pad or shorten it")]
    ValueSize {
        /// Bytes given.
        found: usize,
        /// Bytes of this store's values.
        expected: usize,
    },
    /// A key of a length that the store does not take.
    #[error(
        "the key has {found} bytes, this store takes keys of 1 to {most}: shorten it, or give it one"
    )]
    KeyLength {
        /// Bytes given.
        found: usize,
        /// Longest key.
        most: usize,
    },
    /// A value longer than the store takes.
    #[error("the value has {found} bytes, this store takes values of up to {most}: divide it")]
    ValueLength {
        /// Bytes given.
        found: usize,
        /// Longest value.
        most: usize,
    },
    /// A new key with the same 64-bit hash as dozens of other keys of the store. Nothing was changed.
    #[error(
        "dozens of other keys of this store have the same 64-bit hash as this key, which chance does \
         not bring about: somebody chose them so; use another key, or delete the others"
    )]
    KeyCollisions,
    /// A scan of a store that was opened without order.
    #[error(
        "the keys of this store are not kept in order: open it with `Options::ordered(true)` to scan it"
    )]
    NotOrdered,
    /// A scan of a store whose ordered index lacks keys, because there was no memory for them.
    #[error(
        "memory ran out for the order of this store's keys, so it cannot be scanned: give it more memory, and open \
         it again"
    )]
    OrderIncomplete,
    /// A scan of a store whose ordered index was not made, because a thread that made it has panicked.
    #[error(
        "a thread that made the order of this store's keys has panicked, so it cannot be scanned: open it again, and \
         report what the panic said"
    )]
    OrderFailed,
    /// A scan of a store that was opened a moment ago, with [`OrderOptions::wait`](crate::OrderOptions::wait) switched
    /// off.
    #[error(
        "the order of this store's keys is still being made, of {done} of {total} keys: scan it again later, or leave \
         `OrderOptions::wait` on"
    )]
    NotYetOrdered {
        /// Keys that were gathered so far.
        done: u64,
        /// Keys that the store had when it was opened.
        total: u64,
    },
    /// A position inside a value that is not inside.
    #[error(
        "8 bytes at {at} do not lie in a value of {value_bytes} bytes: give a position that leaves \
         room for them"
    )]
    FieldOutOfRange {
        /// Position given.
        at: usize,
        /// Length of the value.
        value_bytes: usize,
    },
    /// A keyspace that cannot be had.
    #[error("keyspace `{name}`: {reason}")]
    Keyspace {
        /// Its name.
        name: String,
        /// Why not, and what to do.
        reason: &'static str,
    },
    /// A condition of a batch did not hold. Nothing was changed.
    #[error(
        "condition {condition} of the batch does not hold: nothing was written; read again, and decide anew"
    )]
    ConditionFailed {
        /// Its number, from 0, in the order in which conditions were added.
        condition: usize,
    },
    /// A transaction met changes by others each time it was tried. Nothing was changed.
    #[error(
        "others were faster {attempts} times in a row: nothing was written; try the transaction again later"
    )]
    Conflict {
        /// How often it was tried.
        attempts: u32,
    },
    /// A batch that changes too much. Nothing was changed.
    #[error("the batch changes {found} bytes, and one can change {most}: divide it")]
    BatchSize {
        /// 16 bytes for each key, those of the keys and of the longer of their values before and after, as far as they were read.
        found: u64,
        /// Most bytes.
        most: u64,
    },
    /// A store that is opened for reading has a batch that a crash has cut off.
    #[error(
        "a batch was under way when this store was last in use: open it for writing once, which ends the batch; or \
         read-only with salvage, to read a part of the batch"
    )]
    BatchUnfinished,
    /// No room for another block: the capacity or the disk is used up, or a limit of the process or the system does not let
    /// the store grow. Nothing was changed.
    #[error("{}", why_full(reason))]
    PoolFull {
        /// What ran out. Of a limit it says which, and behind a semicolon what to do about it.
        reason: String,
    },
    /// The index and the tables of a store on a plain file need more memory than it may take. Nothing was changed.
    #[error(
        "the store needs {needed} bytes of memory for its index, its tables and a few pages, and may take {budget}: open it \
         with a larger memory budget"
    )]
    MemoryBudget {
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that it may take.
        budget: u64,
    },
    /// A file of the store, or its directory, was removed or replaced while the store was open. Nobody will find what
    /// is written to it from now on.
    #[error(
        "`{}` was removed or replaced while the store was open, so what is written now is lost when it is closed: \
         make a backup or an export of it at once, then close it",
        path.display()
    )]
    Removed {
        /// Where it was when the store was opened.
        path: PathBuf,
    },
    /// The store is closed in order, and everything in it is durable. A step after that failed, and nothing depends on it.
    #[error("the store is closed in order and all of it is durable, but then: {source}; {left}")]
    AfterClosing {
        /// What is left to do, and who does it.
        left: &'static str,
        /// What went wrong.
        source: Box<Error>,
    },
    /// Something that is not the store's has the name of a file that the store has to make. Nothing was changed.
    #[error(
        "`{}` is in the way: the store has to make a file of this name, and what is there is not its own; move it \
         elsewhere",
        path.display()
    )]
    InTheWay {
        /// What is in the way.
        path: PathBuf,
    },
    /// Something on media is not what it must be.
    #[error(
        "damaged at byte {at} of the pool: {what}; run `chimera check`, restore a copy, or open with \
         salvage to read what is left"
    )]
    Corrupted {
        /// What is wrong.
        what: String,
        /// Offset in the pool, in bytes.
        at: u64,
    },
    /// The machine went down while the store was open with `Process` durability.
    #[error(
        "the machine went down while this store was open, and on medium `{medium}` its durability \
         (`process`) does not cover that: restore a copy, or open with salvage to read what is left"
    )]
    PowerLost {
        /// What the store lies on.
        medium: String,
    },
    /// A write was tried on a store opened for reading only.
    #[error("the store is open for reading only: open it without `read_only` to write")]
    ReadOnly,
    /// An earlier failure left the store in doubt. Reads go on.
    #[error(
        "the store refuses writes since an earlier failure: {reason}; close it and open it again"
    )]
    Poisoned {
        /// The failure.
        reason: String,
    },
    /// There is something where a new store is to be made.
    #[error("`{}` is there already: give a path where nothing is", path.display())]
    AlreadyExists {
        /// Where.
        path: PathBuf,
    },
    /// The store is a backup that was not finished.
    #[error(
        "`{}` is a backup that was interrupted, and holds a part of the records: remove it, and make \
         it again; or open it read-only with salvage to read that part",
        path.display()
    )]
    Incomplete {
        /// Where.
        path: PathBuf,
    },
    /// A stream cannot be read or written.
    #[error("cannot {action} the stream: {source}")]
    StreamIo {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The stream was written by a newer version of this software.
    #[error(
        "the stream has format version {found}, this program reads up to {supported}: use a newer \
         program"
    )]
    NewerStream {
        /// Version of the stream.
        found: u32,
        /// Newest version this program reads.
        supported: u32,
    },
    /// A stream ends before its last frame does.
    #[error("the stream ends at byte {at}, before it is complete: get the rest of it")]
    StreamTruncated {
        /// Its length, in bytes.
        at: u64,
    },
    /// Something in a stream is not what it must be.
    #[error("the stream is damaged at byte {at}: {what}; get another copy")]
    StreamDamaged {
        /// What is wrong.
        what: String,
        /// Offset in the stream, in bytes.
        at: u64,
    },
    /// A stream does not belong to what it is used with.
    #[error("{0}")]
    StreamMismatch(String),
    /// An import ended before the stream did. What it stored before is there, durably.
    #[error(
        "the import stopped at byte {at} of the stream, before frame {frame} was stored whole: {why}; \
         {records} records were stored and are kept; to go on from there, resume at {position}"
    )]
    ImportStopped {
        /// Where the frame begins, in bytes.
        at: u64,
        /// Number of the frame, from 0.
        frame: u64,
        /// Records that this import stored.
        records: u64,
        /// Where to go on.
        position: StreamPosition,
        /// What was wrong.
        #[source]
        why: Box<Error>,
    },
    /// Sessions or other handles are still there.
    #[error(
        "{others} other handles or sessions of this store are alive: drop them first (the last one \
         dropped closes the store)"
    )]
    StillInUse {
        /// How many.
        others: usize,
    },
}

/// What kind of an [`Error`] it is, for programs that decide what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no store.
    NotFound,
    /// Something is in the place of a new store, or of a new file of one.
    AlreadyExists,
    /// Somebody else holds the store, or a part of this program does.
    InUse,
    /// The store is still being made ready for it: to be tried again later.
    NotReady,
    /// A key, value, position or option that cannot be; the caller's mistake. Nothing was changed.
    InvalidArgument,
    /// A condition does not hold, or others were faster. Nothing was changed.
    Conflict,
    /// The store, or a stream, is another one than was expected.
    Mismatch,
    /// No room. Nothing was changed.
    Full,
    /// Something on media, or in a stream, is not what it must be, or is missing.
    Damaged,
    /// A newer or an older program wrote it, or one with other features.
    Unsupported,
    /// The store takes no writes, by choice or since an earlier failure.
    WritesRefused,
    /// The operating system failed.
    Io,
    /// This program failed.
    Defect,
}

impl Error {
    /// Its kind.
    ///
    /// ```
    /// # use chimera::{Db, ErrorKind, Options};
    /// let error = Db::open("/nowhere/data", &Options::new().create(false)).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::NotFound);
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::AlreadyExists { .. } | Self::InTheWay { .. } => ErrorKind::AlreadyExists,
            Self::Locked { .. } | Self::StillInUse { .. } => ErrorKind::InUse,
            Self::NotYetOrdered { .. } | Self::BatchUnfinished => ErrorKind::NotReady,
            Self::ConditionFailed { .. } | Self::Conflict { .. } => ErrorKind::Conflict,
            Self::InvalidOptions(_)
            | Self::KeySize { .. }
            | Self::ValueSize { .. }
            | Self::KeyLength { .. }
            | Self::ValueLength { .. }
            | Self::KeyCollisions
            | Self::NotOrdered
            | Self::Keyspace { .. }
            | Self::BatchSize { .. }
            | Self::Forked { .. }
            | Self::FieldOutOfRange { .. } => ErrorKind::InvalidArgument,
            Self::Mismatch { .. } | Self::StreamMismatch(_) | Self::NotAStore { .. } => {
                ErrorKind::Mismatch
            }
            Self::PoolFull { .. } | Self::MemoryBudget { .. } | Self::OrderIncomplete => {
                ErrorKind::Full
            }
            Self::Corrupted { .. }
            | Self::Removed { .. }
            | Self::PowerLost { .. }
            | Self::Incomplete { .. }
            | Self::StreamTruncated { .. }
            | Self::StreamDamaged { .. } => ErrorKind::Damaged,
            Self::NewerFormat { .. }
            | Self::OlderFormat { .. }
            | Self::NeedsFeature { .. }
            | Self::NewerStream { .. } => ErrorKind::Unsupported,
            Self::ReadOnly | Self::Poisoned { .. } => ErrorKind::WritesRefused,
            Self::Io { .. } | Self::StreamIo { .. } => ErrorKind::Io,
            Self::OrderFailed => ErrorKind::Defect,
            Self::ImportStopped { why: source, .. } | Self::AfterClosing { source, .. } => {
                source.kind()
            }
        }
    }

    pub(crate) fn io(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    /// There is no memory for `what` of a store.
    pub(crate) fn no_memory(what: &str) -> Self {
        let limit = chimera_pmem::limit_of_memory();
        Self::PoolFull { reason: format!("there is no memory for {what}: {limit}") }
    }

    pub(crate) fn keyspace(name: &str, reason: &'static str) -> Self {
        Self::Keyspace { name: name.to_owned(), reason }
    }

    pub(crate) fn corrupted(what: impl Into<String>, at: u64) -> Self {
        Self::Corrupted { what: what.into(), at }
    }
}

/// Why a store cannot grow, and what to do about it.
fn why_full(reason: &str) -> String {
    if reason.contains("; ") {
        return format!("the store cannot grow: {reason}");
    }
    format!("the pool is full: {reason}; delete records, or give it more room")
}
