//! Engines: how records and an index are joined into a store. Each fixes the order of writes,
//! flushes, fences and index changes, and argues why a crash between any two of them loses nothing.
//!
//! An engine is a folder here and a row of the table. It has two faces:
//! - [`EngineType`]: what is known before a store is open: capabilities, rules of creation, sites.
//! - [`Engine`]: an open store, over a [`Core`] that every engine is built on.
//!
//! An engine knows the records it keeps and the index that points at them; neither knows the other.
//! What engines share is in [`shared`]. docs/ENGINES.md says how to add one.
//!
//! # Invariants that every engine keeps
//! 1. A write holds the lock of its key from before it looks for the key's record until it is done.
//! 2. A write that returns `Ok` is durable as far as [`Engine::durability`] says.
//! 3. Under the key's lock it tells [`Core::changes`] of a change of the index, once: before a new key can be
//!    found, and otherwise after the change.
//! 4. What it reads from media is checked before it is used; damage is an error with a position. Where a store salvages, what
//!    is left out instead is noted: [`Pool::note_loss`](crate::pool::Pool::note_loss).

mod capabilities;
#[cfg(not(loom))]
mod chameleon;
#[cfg(loom)]
#[path = "chameleon/under_loom.rs"]
mod chameleon;
mod changes;
mod core;
mod demand;
mod dispatch;
mod hikv;
#[cfg(all(feature = "baselines", not(loom)))]
mod log_hash;
mod options;
mod report;
pub(crate) mod shared;
mod table;
#[cfg(feature = "teaching-engine")]
mod teaching;
mod viper;

use std::ops::RangeInclusive;

use chimera_pmem::{Pmem, Site};

use crate::metrics::Exposition;
use crate::ordered::Order;
use crate::pool::{CLOSED_WORDS, Compared, PoolGeometry, Superblock};
use crate::types::check::CheckReport;
use crate::types::durability::Durability;
use crate::types::error::Result;
use crate::types::progress::Progress;
use crate::types::stats::{ReclaimStats, RecoveryStats};
use crate::types::stream::StreamKind;
use crate::types::swap::Swap;
use crate::types::totals::Totals;

pub(crate) use self::core::{Background, Core};
pub use capabilities::Capabilities;
#[cfg(not(loom))]
pub use chameleon::{
    ChameleonInspect, ChameleonMode, ChameleonOptions, ChameleonStats, IndexWritten, ProtectSwitch,
    TablesWritten,
};
#[cfg(all(feature = "baselines", not(loom)))]
pub use chameleon::{Compaction, UpperIndex};
pub use changes::{KeyChange, TellChange};
pub use demand::Demand;
pub(crate) use dispatch::Bound;
#[cfg(feature = "baselines")]
pub use hikv::Consistency;
pub use hikv::{HikvInspect, HikvOptions, HikvStats};
#[cfg(all(feature = "baselines", not(loom)))]
pub use log_hash::{LogHashInspect, LogHashOptions, LogHashStats};
pub use options::Options;
pub use report::{InspectReport, Stats};
pub use viper::{
    BlockCounts, ByteCounts, FillHistogram, IndexReport, PageCounts, ViperInspect, ViperOptions,
    ViperStats,
};

#[cfg(all(feature = "baselines", not(loom)))]
use log_hash::{dram_hash, pmem_hash};
use shared::client::Client;
use shared::listing::Listed;
use shared::maintenance::Step;
use shared::scrub::{Point, Scrubbed};

table::engines! { ($)
    /// Viper (PVLDB'21): pages of records in persistent memory, an extendible hash table in DRAM
    #[cfg(all())]
    Viper = 1, "viper", viper { ViperFixedSize: FixedSize, ViperAnySize: AnySize }

    /// HiKV (ATC'17): items and a partitioned hash table in persistent memory
    #[cfg(all())]
    Hikv = 2, "hikv", hikv { Hikv: Hikv }

    /// ChameleonDB (EuroSys'21): a log and levels of hash tables in persistent memory, a bypass in DRAM
    #[cfg(not(loom))]
    Chameleon = 3, "chameleon", chameleon { Chameleon: Chameleon }

    /// ChameleonDB's comparison point `Pmem-Hash`: a log and an extendible hash in persistent memory
    #[cfg(all(feature = "baselines", not(loom)))]
    PmemHash = 4, "pmem-hash", pmem_hash { PmemHash: PmemHash }

    /// ChameleonDB's comparison point `Dram-Hash`: a log in persistent memory, a hash table in DRAM
    #[cfg(all(feature = "baselines", not(loom)))]
    DramHash = 5, "dram-hash", dram_hash { DramHash: DramHash }

    /// The engine of docs/ENGINES.md, to learn from: a log in persistent memory, a map in DRAM, one lock
    #[cfg(feature = "teaching-engine")]
    Teaching = 255, "teaching", teaching { Teaching: Teaching }
}

/// Where an engine stores to, flushes or fences persistent memory; and the checks, comparisons and
/// steps of recovery that a tool can leave out ([`Pmem::skips`](chimera_pmem::Pmem::skips)). For the
/// crash lab, which breaks each in turn.
pub fn sites(engine: EngineKind) -> Vec<Site> {
    let pool = [crate::pool::sites::ALL, crate::pool::steps::ALL].concat();
    [pool, engine.own_sites()].concat()
}

/// What an engine decides about a store that is to be made.
pub(crate) struct Plan {
    pub(crate) geometry: PoolGeometry,
    /// The length of segments was asked for, and is not to be fitted to a device.
    pub(crate) is_segment_fixed: bool,
    /// What the engine keeps in the superblock.
    pub(crate) area: Vec<u64>,
}

/// What came of opening a store.
pub(crate) struct Recovered {
    pub(crate) stats: RecoveryStats,
    /// That nothing was changed before it was compared with its closing.
    pub(crate) compared: Compared,
}

/// What is known of an engine before a store is open.
pub(crate) trait EngineType {
    /// What its area of the superblock says.
    type Parameters;

    /// What its stores can do.
    const CAPABILITIES: Capabilities;

    /// It is there to be compared with, not to be used: left out of lists of engines for users.
    const IS_HIDDEN: bool = false;

    /// The store that the options ask for.
    ///
    /// # Errors
    /// `InvalidOptions` when there can be none.
    fn plan(options: &Options) -> Result<Plan>;

    /// What an existing store is.
    ///
    /// # Errors
    /// `Corrupted` when its superblock cannot be right; `Mismatch` when the options say otherwise.
    fn parameters(superblock: &Superblock, options: &Options) -> Result<Self::Parameters>;

    /// Bytes of a pool with room for `demand`: of a log that is written once, unless said otherwise.
    ///
    /// # Errors
    /// `InvalidOptions` when there can be none.
    fn pool_bytes(options: &Options, demand: &Demand) -> Result<u64> {
        Self::plan(options).map(|_| demand::log_bytes(demand))
    }

    /// Its steps on persistent memory, without those of the pool.
    fn sites() -> Vec<Site>;
}

/// An open store.
///
/// A method without a body is what only the engine knows. The others are made of these, once for all engines.
pub(crate) trait Engine<P: Pmem>: Sized + Send + Sync + 'static {
    /// Its static face.
    type Type: EngineType;

    /// What a session keeps between operations.
    type Client: Client;

    /// Whether this form of the engine is the one for a store with these parameters.
    fn takes(parameters: &<Self::Type as EngineType>::Parameters) -> bool;

    /// Makes an open pool ready for sessions. What was found is [compared](crate::pool::Pool::compare_with_closing) with what
    /// the store held when it was closed, before anything on media is changed.
    ///
    /// # Errors
    /// `Corrupted` for damage and where the store is not what it was, unless the options say to salvage; when memory runs
    /// out.
    fn open(
        core: Core<P>,
        parameters: <Self::Type as EngineType>::Parameters,
        options: &Options,
    ) -> Result<(Self, Recovered)>;

    /// What every engine is built on.
    fn core(&self) -> &Core<P>;

    /// The durability of an acknowledged write, where the medium and the options give `given`. Weaker only as
    /// a choice that has a name.
    fn durability(&self, given: Durability) -> Durability {
        given
    }

    /// Makes acknowledged writes that wait for a batch as durable as others: there are none, unless said otherwise.
    fn sync(&self) {}

    /// A client for a new session.
    fn client(&self, number: u32) -> Self::Client;

    /// Gives back what a session holds: nothing, unless said otherwise.
    fn end(&self, client: &mut Self::Client) {
        let _ = client;
    }

    // ---- records -------------------------------------------------------------------------------

    /// # Errors
    /// When the store takes no such key.
    fn check_key(&self, key: &[u8]) -> Result<()>;

    /// # Errors
    /// When the store takes no such value.
    fn check_value(&self, value: &[u8]) -> Result<()>;

    /// Starts loading what of the index a put of a key with this hash needs, if that can be told.
    fn prefetch_to_put(&self, hash: u64) {
        let _ = hash;
    }

    /// Starts loading what of the index a get of a key with this hash needs, if that can be told.
    fn prefetch_to_get(&self, hash: u64) {
        let _ = hash;
    }

    /// Starts loading the records of keys with these hashes, if that can be told: what of the index leads to them was
    /// [loaded](Self::prefetch_to_get).
    fn prefetch_records(&self, hashes: &[u64]) {
        let _ = hashes;
    }

    /// Stores `value` under `key`, both of which are checked; tells whether the key is new.
    fn put(&self, client: &mut Self::Client, key: &[u8], value: &[u8]) -> Result<bool>;

    /// As [`read`](Self::read), for a get: [`Core::verify_reads`] says whether it verifies the sum of the value.
    /// Everything else is verified, and a mixture of two values is never read. Verifies it, unless the engine can
    /// leave it out.
    #[inline]
    fn get(&self, client: &mut Self::Client, hash: u64, key: &[u8]) -> Result<bool> {
        self.read(client, hash, key)
    }

    /// Reads the value of `key`, which has this hash, into the client's buffer, and verifies it whatever the options
    /// say. `false` when there is none.
    fn read(&self, client: &mut Self::Client, hash: u64, key: &[u8]) -> Result<bool>;

    /// Replaces the value of `key` by `new` if it is `expected`. `verify` where the caller has not read the
    /// value as `expected`: a damaged value that happens to be alike must not be confirmed.
    fn replace(
        &self,
        client: &mut Self::Client,
        hash: u64,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
        verify: bool,
    ) -> Result<Swap>;

    /// Applies `change` to the 8 bytes at `at`, a multiple of 8, of the value of `key`, little-endian;
    /// returns the number before. `change` answers `None` to leave it. By writing the record anew, unless
    /// the engine has `in_place`.
    fn update_word(
        &self,
        client: &mut Self::Client,
        key: &[u8],
        at: usize,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>> {
        shared::update::update_bytes(self, client, key, at, change)
    }

    /// Removes `key`, which is checked; tells whether it was there.
    fn delete(&self, client: &mut Self::Client, key: &[u8]) -> Result<bool>;

    /// Hands every record from position `from` on to `take`, in the order of positions: keys that are
    /// there all the time exactly once, with a value that they have at that moment. Ends early when
    /// `take` says `false`. Nothing is locked while `take` runs.
    fn list(
        &self,
        client: &mut Self::Client,
        from: u64,
        take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()>;

    /// Hands every key at these positions to `take`, in any order. Others may write: a key that is there all the time
    /// comes, and what comes was there at some moment meanwhile. By a listing, unless the engine can do without values.
    fn list_keys(
        &self,
        client: &mut Self::Client,
        positions: RangeInclusive<u64>,
        mut take: impl FnMut(&[u8]),
    ) -> Result<()> {
        self.list(client, *positions.start(), |listed| {
            let is_inside = positions.contains(&listed.position);
            if is_inside {
                take(listed.key);
            }
            is_inside
        })
    }

    // ---- the whole store -----------------------------------------------------------------------

    /// Live records, roughly while others write.
    fn records(&self) -> u64;

    /// The sizes of its records: any, unless said otherwise.
    fn kind(&self) -> StreamKind {
        StreamKind { key_bytes: 0, value_bytes: 0 }
    }

    /// Whether a task in the background reclaims space, where the options say so: in stores with `reclaim`, unless said
    /// otherwise.
    fn reclaims(&self) -> bool {
        Self::Type::CAPABILITIES.reclaim
    }

    /// One step of a pass of space reclamation over what is free to at least `free_percent`: there is nothing
    /// to do, unless the engine has `reclaim`.
    fn reclaim_step(&self, free_percent: u32) -> Result<Step> {
        let _ = free_percent;
        Ok(Step::Done)
    }

    /// The store is closed: gives back the blocks that reclamation holds, and says what work in the background has found.
    fn end_reclaim(&self) {}

    /// Makes the order of keys, which nobody uses yet, of what [`save_order`](Self::save_order) wrote. `false` where it
    /// cannot: then keys are gathered. Called at each open, also without an order, to free what was written.
    ///
    /// # Errors
    /// When what was written cannot be freed.
    fn load_order(&self, order: Option<&Order>) -> Result<bool> {
        let _ = order;
        Ok(false)
    }

    /// Writes the order of keys for the next open, if it is worth while. What the superblock is to say of it.
    fn save_order(&self) -> [u64; CLOSED_WORDS] {
        [0; CLOSED_WORDS]
    }

    /// What the store holds, when it is closed and nobody uses it any more.
    ///
    /// # Cost
    /// Reads the index once.
    fn totals(&self) -> Totals;

    /// The work that reclamation has done, and the work that is left.
    fn reclaim_stats(&self) -> ReclaimStats {
        ReclaimStats::default()
    }

    /// Whether opening left work that is done beside sessions, in [steps](Self::rebuild_step): none, unless said otherwise.
    fn is_rebuilding(&self) -> bool {
        false
    }

    /// One short step of that work.
    fn rebuild_step(&self) -> Step {
        Step::Done
    }

    /// One step of a pass that verifies everything: a block, or some records, from `from` on. Adds what it found to
    /// `report`. Other sessions may go on, and no damage is reported that is none. By a listing, unless the engine
    /// knows better.
    fn scrub_step(&self, from: Point, report: &mut CheckReport) -> Scrubbed {
        shared::scrub::by_listing(self, from, report)
    }

    /// Says what the store is made of. Other sessions may go on.
    fn inspect(&self, progress: Option<&Progress>) -> EngineInspect;

    /// What of [`Stats`] the engine knows.
    fn stats(&self) -> report::EngineFigures;

    /// Writes metrics that this engine alone has, if there are any.
    fn write_metrics(&self, text: &mut Exposition) {
        let _ = text;
    }

    /// Options for an empty store like this one.
    fn options_for_copy(&self) -> Options {
        Options::new().segment_bytes(self.core().pool.map.segment_bytes)
    }

    // ---- made of the above ---------------------------------------------------------------------

    /// Hands the value of `key` to `take`.
    #[inline]
    fn get_with<T>(
        &self,
        client: &mut Self::Client,
        key: &[u8],
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.check_key(key)?;
        let found = self.get(client, self.core().hash.of(key), key)?;
        Ok(if found { Some(take(&client.shared().value)) } else { None })
    }

    /// Hands the values of `keys` to `take`, with the key's number.
    fn multi_get_with<K: AsRef<[u8]>>(
        &self,
        client: &mut Self::Client,
        keys: &[K],
        take: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        for key in keys {
            self.check_key(key.as_ref())?;
        }
        shared::gets::get_many(self, client, keys, take)
    }

    /// Replaces the value of `key` by what `change` makes of it; `false` when there is no such key.
    /// `change` runs again when another session was faster.
    fn update(
        &self,
        client: &mut Self::Client,
        key: &[u8],
        change: impl FnMut(&mut Vec<u8>),
    ) -> Result<bool> {
        shared::update::update(self, client, key, change)
    }

    /// Replaces the value of `key` by `new` if it is `expected`.
    fn compare_and_swap(
        &self,
        client: &mut Self::Client,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
    ) -> Result<Swap> {
        self.check_key(key)?;
        self.check_value(expected)?;
        self.check_value(new)?;
        self.replace(client, self.core().hash.of(key), key, expected, new, true)
    }

    /// As [`update_word`](Self::update_word), at any position.
    #[inline]
    fn update_u64(
        &self,
        client: &mut Self::Client,
        key: &[u8],
        at: usize,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>> {
        self.check_key(key)?;
        if at.is_multiple_of(8) {
            self.update_word(client, key, at, change)
        } else {
            shared::update::update_bytes(self, client, key, at, change)
        }
    }
}
