//! [`LogIndex`]: what the engine needs of an index, whichever it is.

use chimera_pmem::Pmem;

use super::creation::Parameters;
use super::report::Sizes;
use crate::engine::{Core, EngineType, Options};
use crate::index::Probe;
use crate::index::persistent::buckets::Batch;
use crate::pool::BlockKind;
use crate::pool::runs::Run;
use crate::records::storage_log::{Appended, Replayed, StorageLog};
use crate::types::error::Result;

/// What came of looking at the runs of an index.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// What a crash left, to be freed.
    pub(super) orphans: Vec<Run>,
    /// Parts that are damaged or missing (salvage only).
    pub(super) damages: u64,
}

/// An index of the records of a log: positions by the hashes of keys. The caller holds the lock of a key while its entry
/// changes.
pub(crate) trait LogIndex<P: Pmem>: Sized + Send + Sync + 'static {
    /// The static face of the engine with this index.
    type Type: EngineType<Parameters = Parameters>;

    /// The index is there when a store is opened: the log need not say which records are the last ones.
    const IS_DURABLE: bool;

    /// The kinds of the store's runs.
    const KINDS: &'static [BlockKind];

    /// An empty one.
    ///
    /// # Errors
    /// When there is no memory.
    fn new(core: &Core<P>, parameters: Parameters, options: &Options) -> Result<Self>;

    // ---- lookups -------------------------------------------------------------------------------

    /// Starts loading what a lookup of this hash reads.
    fn prefetch(&self, hash: u64);

    /// Asks `probe` about the positions of a hash, one after the other, until it has found its record. `None` when somebody
    /// has changed the index meanwhile: what was asked and answered means nothing.
    ///
    /// # Errors
    /// `Corrupted` when an entry may be missing because of damage.
    fn find_once<T>(
        &self,
        hash: u64,
        probe: &mut impl FnMut(u64) -> Probe<T>,
    ) -> Option<Result<Option<T>>>;

    /// Entries from a hash on, as they are at one moment, up to some other hash.
    fn list(&self, from: u64, batch: &mut Batch);

    /// Entries.
    fn len(&self) -> u64;

    // ---- changes -------------------------------------------------------------------------------

    /// Makes sure that an entry can be [made](Self::insert), if anything would be left of a failure then.
    ///
    /// # Errors
    /// When it cannot.
    fn reserve(&self, hash: u64) -> Result<()>;

    /// The entry is not going to be made.
    fn release(&self, hash: u64);

    /// Makes the entry of a key that has none lead to its record.
    ///
    /// # Errors
    /// When there is no room for it, and nothing was [reserved](Self::reserve). Nothing has changed.
    fn insert(&self, hash: u64, record: Appended) -> Result<()>;

    /// Makes the entry that leads to `old` lead to another record. `false`, with nothing done, when there is none.
    ///
    /// # Errors
    /// When the index is damaged.
    fn swap(&self, hash: u64, old: u64, record: Appended) -> Result<bool>;

    /// Removes the entry that leads to `old`. `false`, with nothing done, when there is none.
    ///
    /// # Errors
    /// When the index is damaged.
    fn remove(&self, hash: u64, old: u64) -> Result<bool>;

    // ---- recovery ------------------------------------------------------------------------------

    /// Takes over a run of the index, while the pool walks its runs.
    fn adopt(&mut self, run: Run);

    /// Makes the index ready, of its runs. Nothing is stored.
    ///
    /// # Errors
    /// `Corrupted` for damage, unless the store salvages.
    fn arrange(&mut self) -> Result<Found>;

    /// Makes the index lead to a record of the log that may be the last one of its key.
    ///
    /// # Errors
    /// When there is no memory.
    fn replay(&self, log: &StorageLog<P>, replayed: &Replayed<'_>) -> Result<()>;

    /// The log is there and was replayed: what is left to do. `is_live` is asked about each entry that was there before, hash
    /// and position, and told of each slot that is damaged; those are counted of which it says so.
    fn complete(&mut self, is_live: impl FnMut(u64, Option<(u64, u64)>) -> bool);

    /// Stores what a crash kept from being stored. The store is open for writing, no part of the index is lost, and its
    /// entries were [looked at](Self::complete).
    fn settle(&mut self) {}

    // ---- reports -------------------------------------------------------------------------------

    fn sizes(&self) -> Sizes;

    /// Bytes of DRAM.
    fn bytes(&self) -> u64;
}
