//! Chimera: an embedded key-value store for machines with fast volatile memory and large
//! byte-addressable persistent memory.
//!
//! ```
//! use chimera::{Db, Options};
//!
//! # fn main() -> Result<(), chimera::Error> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("data");
//! // Creates the store or recovers it. Keys and values may have any size.
//! let db = Db::open(&path, &Options::new())?;
//! let mut session = db.session();
//! session.put(b"greeting", b"hello")?;
//! session.update(b"greeting", |value| value.extend_from_slice(b" world"))?;
//! assert_eq!(session.get(b"greeting")?.as_deref(), Some(&b"hello world"[..]));
//! drop(session);
//! for record in db.iter() {
//!     let (key, value) = record?;
//!     assert_eq!((key.len(), value.len()), (8, 11));
//! }
//! db.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # What to read
//! 1. [`Db`]: opening, closing, copies, figures. [`Session`]: reading and writing, one for each thread.
//! 2. [`Options`]: what is fixed when a store is created, and what may change at every open.
//!    [`Options::fixed_size`] creates a store for records of one size.
//! 3. [`Durability`]: what an acknowledged write survives. [`EngineKind`]: which engines there are.
//! 4. [`Session::write`], [`Session::transaction`]: several writes as one. [`Db::scan`]: keys in their order. [`TypedDb`]:
//!    plain data instead of bytes.
//! 5. [`Error`]: each says what to do. [`Error::kind`] groups them for programs.
//! 6. [`transfer`]: streams and backups. [`metrics`], [`Db::metrics_text`]: figures for others.
//!
//! Every method says what it costs (`# Cost`: cache lines flushed, fences waited for) and what survives (`# Durability`).
//!
//! # Cost
//! Fences and flushed cache lines of an operation, with keys of 16 and values of 200 bytes, by engine. Tests assert these counts.
//!
//! | operation | `viper`, the default | `hikv` | `chameleon` |
//! | --- | --- | --- | --- |
//! | [`get`](Session::get) | 0 fences, 0 lines | 0, 0 | 0, 0 |
//! | [`put`](Session::put) of a new key | 2 fences, 4.71 lines | 2, 5 to 6 | 1, 4.5, and its share of tables |
//! | [`put`](Session::put) over another value | 3, 5.71 | 2, 5 to 6 | 1, 4.5, and its share of tables |
//! | [`fetch_add_u64`](Session::fetch_add_u64) | 1, 1; of a record's first one, as a put over another value | as a put | as a put |
//! | [`delete`](Session::delete) | 1, 1 | 1, 1 | 1, the lines of a tombstone |
//!
//! On persistent memory a fence waits until the flushed lines are durable, and that is all that a durable write waits for. On
//! plain files a fence orders and does not wait: with [`Durability::Immediate`] an operation waits once, for a sync.
//! Opening, DRAM and space are compared in docs/ENGINES.md.
//!
//! # Threads, processes, async code
//! [`Db`] is `Send`, `Sync` and cheap to clone. [`Session`] is `Send`. Readers take no lock; writers of one key wait for each
//! other. One process writes a store, or several read it ([`Options::read_only`]). A handle is of no use in a child that was
//! [forked](Db#fork).
//!
//! Calls may block: for a sync, for memory, for a lock. Async code calls a store on a thread where that is allowed, as by
//! `spawn_blocking` of its runtime, or sends jobs to threads that own a session each. This crate needs no runtime:
//!
//! ```
//! use std::sync::mpsc;
//! use std::thread;
//!
//! use chimera::{Db, Options};
//!
//! # fn main() -> Result<(), chimera::Error> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let db = Db::open(directory.path().join("data"), &Options::new())?;
//! let (jobs, queue) = mpsc::channel::<(Vec<u8>, mpsc::Sender<chimera::Result<bool>>)>();
//! let mut session = db.session();
//! let worker = thread::spawn(move || {
//!     for (key, answer) in queue {
//!         // Fails where nobody waits for the answer any more.
//!         let _ = answer.send(session.put(&key, b"seen"));
//!     }
//! });
//!
//! // A task of a runtime sends, which never waits, and awaits the answer of a channel of that runtime.
//! let (answer, answered) = mpsc::channel();
//! jobs.send((b"a key".to_vec(), answer)).unwrap();
//! assert!(answered.recv().unwrap()?);
//! drop(jobs);
//! worker.join().unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! # Cargo features
//! - `serde`: [`Stats`], reports and options implement `Serialize`, to be shown as JSON.
//! - `postcard`: values of any type that serde knows (`Encoded`). With `serde`.
//! - `baselines`, `teaching-engine`: what engines are compared with, and one to learn from. For tests and benchmarks.
//!
//! # Rooms (each uses only those below it)
//! - [`transfer`]: records out of a store and into one: streams, backups.
//! - [`db`]: what a user sees: [`Db`], [`Session`], [`TypedDb`].
//! - `engine`: how records and an index are joined: the order of writes, flushes and index changes;
//!   [`Options`], [`Stats`].
//! - `ordered`: an order of all keys, for engines whose index has none; knows no engine.
//! - `index`: where a key's record is; never touches a record.
//! - `records`: where record bytes live; never knows which index points at them.
//! - `pool`: superblock, segments, blocks, runs of blocks, [`Location`].
//! - `types`: plain data that every room speaks of: [`Error`], [`Durability`], reports.
//! - [`metrics`]: what sessions count and time; metrics as text.
//! - `sync`: the facade of locks and atomics that tests can replace.
#![forbid(unsafe_code)]
#![cfg_attr(loom, allow(dead_code, unused_imports, reason = "models need a part of the store"))]

pub mod db;
mod engine;
mod index;
pub mod metrics;
mod ordered;
mod pool;
mod records;
mod sync;
pub mod transfer;
mod types;

#[cfg(feature = "postcard")]
pub use db::Encoded;
pub use db::{
    CloseError, Db, Iter, KeyRange, Keys, Keyspace, KeyspaceScan, KeyspaceSession, Plain, Record,
    Scan, Session, Transaction, TypedDb, TypedKey, TypedKeyspace, TypedRecords, TypedSession,
    TypedValue, Writes, prefix_range,
};
#[doc(hidden)]
pub use engine::sites;
pub use engine::{
    BlockCounts, ByteCounts, Capabilities, Demand, EngineInspect, EngineKind, EngineStats,
    FillHistogram, HikvInspect, HikvOptions, HikvStats, IndexReport, InspectReport, Options,
    PageCounts, Stats, ViperInspect, ViperOptions, ViperStats,
};
#[cfg(not(loom))]
pub use engine::{
    ChameleonInspect, ChameleonMode, ChameleonOptions, ChameleonStats, IndexWritten, ProtectSwitch,
    TablesWritten,
};
pub use ordered::{OrderOptions, TreeUpdates};
pub use pool::{Location, StoreOutline};
pub use transfer::{BackupOptions, ExportOptions, ImportOptions, StreamReader, Verified};
pub use types::batch::{Batch, Version};
pub use types::check::{CheckReport, Damage};
pub use types::durability::Durability;
pub use types::error::{Error, ErrorKind, Result};
pub use types::layout::Geometry;
pub use types::losses::Losses;
pub use types::operations::{Latencies, LatencyStats, OperationStats, SessionStats};
pub use types::order::{OrderStats, OrderWindow};
pub use types::position::StreamPosition;
pub use types::progress::Progress;
pub use types::runs::{RunCounts, RunsOfKind};
pub use types::scrub::{ScrubPass, ScrubStats};
pub use types::stats::{ReclaimStats, RecoveryStats};
pub use types::stream::{BackupReport, ExportReport, ImportReport, StreamKind};
pub use types::swap::{Absent, Content, Swap};
pub use types::verify_reads::VerifyReads;

#[doc(inline)]
pub use chimera_pmem::journal::{JournalFigures, PageFigures};
#[doc(inline)]
pub use chimera_pmem::{Medium, PersistenceCounts, bus_error, file_size_signal};

/// What the engines are compared with, what their papers do otherwise, and what only tests ask for. For benchmarks and the
/// crash lab, behind the feature `baselines`: an ordinary build has none of it. A store that was made with it is refused
/// by [`Error::NeedsFeature`] there, unless its media are the same.
///
/// Everything is off by default. It is asked for by these methods:
/// - [`ViperOptions`]: `layout`, `block_shift_bytes`, `index_segment_slots`.
/// - [`HikvOptions`]: `layout`, `consistency`, `log_area_bytes`, `walked_first`.
/// - [`ChameleonOptions`]: `published`, `compaction`, `upper_index`.
/// - [`OrderOptions`]: `sampling_window`, `trees`, `tree_ranges`, `barrier`, `hardware_transactions`, `part_keys`,
///   `dump_bytes`, `node_bytes`.
/// - [`Options`]: `tell_changes`, `page_limit`, `written_once`, and the engines `pmem-hash` and `dram-hash` with `log_hash`.
#[cfg(feature = "baselines")]
pub mod baselines {
    #[cfg(not(loom))]
    pub use crate::engine::{Compaction, LogHashInspect, LogHashOptions, LogHashStats, UpperIndex};
    pub use crate::engine::{Consistency, KeyChange, TellChange};
    #[cfg(not(loom))]
    pub use crate::index::table_filter::FilterKind;
    pub use crate::ordered::{SampledOperations, ThreadSplit};
    pub use crate::types::layout::RecordLayout;
}
