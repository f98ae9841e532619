//! `pmem-hash`: the index is an extendible hash in persistent memory, as CCEH's. It persists each write.

use chimera_pmem::{Extent, Pmem, Site};

use super::creation::{self, Parameters};
use super::index::{Found, LogIndex};
use super::report::Sizes;
use super::{DIRECTORY, LOG, LogHash, SEGMENT};
use crate::engine::contract::demand::{self, Demand};
use crate::engine::{Capabilities, Core, EngineType, Options, Plan};
use crate::index::Probe;
use crate::index::persistent::buckets::{self, Batch};
use crate::index::persistent::extendible_hash::{self, ExtendibleHash, InForce, Kinds};
use crate::pool::runs::Run;
use crate::pool::{BlockKind, Superblock, runs};
use crate::records::storage_log::{self, Appended, Replayed, StorageLog};
use crate::types::error::Result;

pub(crate) use super::report::{LogHashInspect as Inspect, LogHashStats as Stats};

/// A store.
pub(crate) type PmemHash<P> = LogHash<P, PersistentIndex<P>>;

/// What is known of the engine before a store is open.
pub(crate) struct Type;

/// The index.
pub(crate) struct PersistentIndex<P: Pmem> {
    hash: ExtendibleHash<P>,
    /// What was found, until entries are counted.
    segments: Vec<InForce>,
}

/// 16 for an entry: of a segment that was split a third is used.
const INDEX_BYTES_PER_RECORD: u64 = 48;

impl EngineType for Type {
    type Parameters = Parameters;

    const CAPABILITIES: Capabilities = creation::CAPABILITIES;

    const IS_HIDDEN: bool = true;

    fn plan(options: &Options) -> Result<Plan> {
        creation::plan(options)
    }

    fn parameters(superblock: &Superblock, options: &Options) -> Result<Parameters> {
        creation::parameters(superblock, options)
    }

    /// The log, and segments of the index that were split.
    fn pool_bytes(options: &Options, demand: &Demand) -> Result<u64> {
        Self::plan(options)?;
        let index_bytes = demand.live.saturating_mul(INDEX_BYTES_PER_RECORD);
        Ok(demand::log_bytes(demand).saturating_add(index_bytes))
    }

    fn sites() -> Vec<Site> {
        let lists = [
            storage_log::sites::ALL,
            storage_log::steps::ALL,
            extendible_hash::sites::ALL,
            extendible_hash::steps::ALL,
            buckets::sites::ALL,
            buckets::steps::ALL,
            runs::sites::ALL,
        ];
        lists.concat()
    }
}

fn extent(record: Appended) -> Extent {
    Extent::new_checked(record.at, record.bytes)
}

impl<P: Pmem> LogIndex<P> for PersistentIndex<P> {
    type Type = Type;

    const IS_DURABLE: bool = true;

    const KINDS: &'static [BlockKind] = &[LOG, SEGMENT, DIRECTORY];

    fn new(core: &Core<P>, parameters: Parameters, options: &Options) -> Result<Self> {
        let kinds = Kinds { segment: SEGMENT, directory: DIRECTORY };
        let (pool, blocks) = (core.pool.clone(), parameters.index_segment_blocks);
        let hash = ExtendibleHash::new(pool, kinds, blocks, options.pool.salvage);
        Ok(Self { hash, segments: Vec::new() })
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        self.hash.prefetch(hash);
    }

    #[inline]
    fn find_once<T>(
        &self,
        hash: u64,
        probe: &mut impl FnMut(u64) -> Probe<T>,
    ) -> Option<Result<Option<T>>> {
        self.hash.find_once(hash, probe)
    }

    fn list(&self, from: u64, batch: &mut Batch) {
        self.hash.list(from, batch);
    }

    fn len(&self) -> u64 {
        self.hash.len()
    }

    fn reserve(&self, _hash: u64) -> Result<()> {
        // A record that no entry leads to is nothing.
        Ok(())
    }

    fn release(&self, _hash: u64) {}

    #[inline]
    fn insert(&self, hash: u64, record: Appended) -> Result<()> {
        while !self.hash.insert(hash, extent(record))? {
            self.hash.make_room(hash)?;
        }
        Ok(())
    }

    #[inline]
    fn swap(&self, hash: u64, old: u64, record: Appended) -> Result<bool> {
        self.hash.swap(hash, old, extent(record))
    }

    #[inline]
    fn remove(&self, hash: u64, old: u64) -> Result<bool> {
        self.hash.remove(hash, old)
    }

    fn adopt(&mut self, run: Run) {
        self.hash.adopt(run);
    }

    fn arrange(&mut self) -> Result<Found> {
        let extendible_hash::Arranged { segments, orphans, damages } = self.hash.arrange()?;
        self.segments = segments;
        Ok(Found { orphans, damages })
    }

    /// What the index does not lead to does not count.
    fn replay(&self, _: &StorageLog<P>, _: &Replayed<'_>) -> Result<()> {
        Ok(())
    }

    fn complete(&mut self, mut is_live: impl FnMut(u64, Option<(u64, u64)>) -> bool) {
        for segment in std::mem::take(&mut self.segments) {
            self.hash.recover_segment(&segment, &mut is_live);
        }
    }

    fn settle(&mut self) {
        self.hash.complete();
    }

    fn sizes(&self) -> Sizes {
        let segments = self.hash.segments();
        Sizes {
            segments,
            slots: segments * u64::from(self.hash.slots_per_segment()),
            directory_depth: self.hash.directory_depth(),
        }
    }

    fn bytes(&self) -> u64 {
        self.hash.bytes()
    }
}
