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
//! Every method says what it costs (`# Cost`: cache lines flushed, fences waited for) and what survives
//! (`# Durability`). [`Options`] says how a store is created and opened, [`Durability`] what an acknowledged
//! write survives, [`EngineKind`] which engines there are. [`Options::fixed_size`] creates a store for records
//! of one size.
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
    Scan, Session, TypedDb, TypedKey, TypedKeyspace, TypedRecords, TypedSession, TypedValue,
    prefix_range,
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
/// - [`Options`]: `tell_changes`, `page_limit`, `direct_bytes_min`, and the engines `pmem-hash` and `dram-hash` with `log_hash`.
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
