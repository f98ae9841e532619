//! Engines: how records and an index are joined into a store. Each fixes the order of writes,
//! flushes, fences and index changes, and argues why a crash between any two of them loses nothing.
//!
//! An engine knows the records it keeps and the index that points at them; neither knows the other.
//! docs/ENGINES.md says how to add one.
//!
//! # Floors
//! Each folder uses those before it only, and no engine uses another one.
//! - [`options`]: what a user asks for, as plain data; the names and numbers of engines.
//! - [`contract`]: the traits. [`EngineType`] is what is known before a store is open: capabilities, rules of creation,
//!   sites. [`Engine`] is an open store, over a [`Core`] that every engine is built on, with its
//!   [`Upkeep`](contract::upkeep::Upkeep) and its [`Reports`].
//! - [`shared`]: what engines share.
//! - `viper`, `hikv`, `chameleon`, `log_hash`, `teaching`: an engine each.
//! - [`table`]: a row for each engine, and what the rest of the store makes of them.
//!
//! # Invariants that every engine keeps
//! 1. A write holds the lock of its key from before it looks for the key's record until it is done.
//! 2. A write that returns `Ok` is durable as far as [`Engine::durability`] says.
//! 3. Under the key's lock it tells [`Core::changes`] of a change of the index, once: before a new key can be
//!    found, and otherwise after the change.
//! 4. What it reads from media is checked before it is used; damage is an error with a position. Where a store salvages, what
//!    is left out instead is noted: [`Pool::note_loss`](crate::pool::Pool::note_loss).

#[cfg(not(loom))]
mod chameleon;
#[cfg(loom)]
#[path = "chameleon/under_loom.rs"]
mod chameleon;
pub(crate) mod contract;
mod hikv;
#[cfg(all(feature = "baselines", not(loom)))]
mod log_hash;
mod options;
pub(crate) mod shared;
mod table;
#[cfg(feature = "teaching-engine")]
mod teaching;
mod viper;

#[cfg(not(feature = "baselines"))]
pub(crate) use crate::types::change::KeyChange;
#[cfg(feature = "baselines")]
pub use crate::types::change::{KeyChange, TellChange};
#[cfg(not(loom))]
pub use chameleon::{ChameleonInspect, ChameleonStats, IndexWritten, ProtectSwitch, TablesWritten};
pub use contract::capabilities::Capabilities;
pub(crate) use contract::core::Core;
pub use contract::demand::Demand;
pub(crate) use contract::engine::{Engine, Recovered};
pub(crate) use contract::engine_type::{EngineType, Plan};
pub(crate) use contract::reports::{EngineFigures, Reports};
pub use hikv::{HikvInspect, HikvStats};
#[cfg(all(feature = "baselines", not(loom)))]
pub use log_hash::{LogHashInspect, LogHashStats};
#[cfg(feature = "baselines")]
pub use options::Consistency;
#[cfg(all(feature = "baselines", not(loom)))]
pub use options::LogHashOptions;
pub(crate) use options::OrderKept;
#[cfg(all(feature = "baselines", not(loom)))]
pub use options::variants::{Compaction, UpperIndex};
#[cfg(not(loom))]
pub use options::{ChameleonMode, ChameleonOptions};
pub use options::{EngineKind, HikvOptions, Options, ViperOptions};
pub(crate) use table::{AnyEngine, AnySession, Bound, each_session};
pub use table::{EngineInspect, EngineStats, InspectReport, Stats, sites};
pub use viper::{
    BlockCounts, ByteCounts, FillHistogram, IndexReport, PageCounts, ViperInspect, ViperStats,
};
