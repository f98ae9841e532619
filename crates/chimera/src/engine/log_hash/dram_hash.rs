//! `dram-hash`: the whole index is a table in DRAM. It is made of the whole log when the store is opened.

use chimera_pmem::{Pmem, Site};

use super::creation::{self, Parameters};
use super::index::{Found, LogIndex};
use super::report::Sizes;
use super::{LOG, LogHash};
use crate::engine::{Capabilities, Core, EngineType, Options, Plan};
use crate::index::persistent::buckets::Batch;
use crate::index::probing_table::Slot;
use crate::index::robin_hood_table::{NoRoom, RobinHoodTable};
use crate::index::{OutOfSpace, Probe};
use crate::pool::runs::Run;
use crate::pool::{BlockKind, Superblock, runs};
use crate::records::storage_log::{self, Appended, Replayed, StorageLog};
use crate::types::error::{Error, Result};

pub(crate) use super::report::{LogHashInspect as Inspect, LogHashStats as Stats};

/// A store.
pub(crate) type DramHash<P> = LogHash<P, VolatileIndex>;

/// What is known of the engine before a store is open.
pub(crate) struct Type;

/// The index. While the log is replayed it also has entries of tombstones.
pub(crate) struct VolatileIndex(RobinHoodTable);

/// log2 of the parts of the table, and of the slots of a part at first: 64 KiB in all.
const PART_BITS: u32 = 8;
const SLOT_BITS: u32 = 4;

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

    fn sites() -> Vec<Site> {
        [storage_log::sites::ALL, storage_log::steps::ALL, runs::sites::ALL].concat()
    }
}

/// The slot of a record.
fn slot(hash: u64, at: u64, is_tombstone: bool) -> Slot {
    // Its length is of no use here.
    Slot::new(hash, at, 8, is_tombstone)
}

fn no_room(reason: NoRoom) -> Error {
    match reason {
        NoRoom::OutOfSpace(OutOfSpace) => Error::no_memory("its index"),
        NoRoom::TooManyCollisions(_) => Error::KeyCollisions,
    }
}

impl VolatileIndex {
    /// The entry of a record's key: its slot, and the version of its record.
    fn older<P: Pmem>(
        &self,
        log: &StorageLog<P>,
        replayed: &Replayed<'_>,
    ) -> Result<Option<(Slot, u64)>> {
        let Replayed { hash, key, .. } = *replayed;
        let answer = self.0.find_once(hash, &mut |found| match log.find(found.offset, hash, key) {
            Ok(Some(record)) => {
                Probe::Found(Ok((Slot { hash, location: found.location }, record.version())))
            }
            Ok(None) => Probe::NotThis,
            Err(error) => Probe::Found(Err(error)),
        });
        match answer.expect("nobody changes the index while the log is replayed") {
            Probe::Found(found) => found.map(Some),
            Probe::NotThis | Probe::Retry => Ok(None),
        }
    }
}

impl<P: Pmem> LogIndex<P> for VolatileIndex {
    type Type = Type;

    const IS_DURABLE: bool = false;

    const KINDS: &'static [BlockKind] = &[LOG];

    fn new(core: &Core<P>, _: Parameters, options: &Options) -> Result<Self> {
        let environment = core.environment().clone();
        RobinHoodTable::new(environment, PART_BITS, SLOT_BITS, options.huge_pages)
            .map(Self)
            .map_err(|error| no_room(error.into()))
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        self.0.prefetch(hash);
    }

    #[inline]
    fn find_once<T>(
        &self,
        hash: u64,
        probe: &mut impl FnMut(u64) -> Probe<T>,
    ) -> Option<Result<Option<T>>> {
        match self.0.find_once(hash, &mut |found| probe(found.offset))? {
            Probe::Found(found) => Some(Ok(Some(found))),
            Probe::NotThis => Some(Ok(None)),
            Probe::Retry => None,
        }
    }

    fn list(&self, from: u64, batch: &mut Batch) {
        *batch = Batch::default();
        let entries = &mut batch.entries;
        let take = |slot: Slot| {
            entries.extend(slot.found().map(|found| (slot.hash, found.offset)));
        };
        batch.next = self.0.list(from, take);
        batch.entries.sort_unstable();
    }

    fn len(&self) -> u64 {
        self.0.len()
    }

    #[inline]
    fn reserve(&self, hash: u64) -> Result<()> {
        self.0.reserve(hash).map_err(no_room)
    }

    fn release(&self, hash: u64) {
        self.0.release(hash);
    }

    #[inline]
    fn insert(&self, hash: u64, record: Appended) -> Result<()> {
        self.0.insert(slot(hash, record.at, false));
        Ok(())
    }

    #[inline]
    fn swap(&self, hash: u64, old: u64, record: Appended) -> Result<bool> {
        let (old, new) = (slot(hash, old, false), slot(hash, record.at, false));
        Ok(self.0.replace(hash, old.location, new.location))
    }

    #[inline]
    fn remove(&self, hash: u64, old: u64) -> Result<bool> {
        Ok(self.0.remove(hash, slot(hash, old, false).location))
    }

    fn adopt(&mut self, run: Run) {
        unreachable!("the index has no runs: {run:?}")
    }

    fn arrange(&mut self) -> Result<Found> {
        Ok(Found::default())
    }

    fn replay(&self, log: &StorageLog<P>, replayed: &Replayed<'_>) -> Result<()> {
        let Replayed { hash, at, version, is_tombstone, .. } = *replayed;
        let new = slot(hash, at, is_tombstone);
        let Some((old, older)) = self.older(log, replayed)? else {
            self.0.reserve(hash).map_err(no_room)?;
            self.0.insert(new);
            return Ok(());
        };
        if version > older {
            self.0.replace(hash, old.location, new.location);
        }
        Ok(())
    }

    /// Removes the tombstones.
    fn complete(&mut self, _: impl FnMut(u64, Option<(u64, u64)>) -> bool) {
        let (mut next, mut tombstones) = (Some(0), Vec::new());
        while let Some(from) = next {
            next = self.0.list(from, |slot| {
                if slot.found().is_some_and(|found| found.is_tombstone) {
                    tombstones.push(slot);
                }
            });
            for slot in tombstones.drain(..) {
                self.0.remove(slot.hash, slot.location);
            }
        }
    }

    fn sizes(&self) -> Sizes {
        Sizes { segments: 1, slots: self.0.slots(), directory_depth: 0 }
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}
