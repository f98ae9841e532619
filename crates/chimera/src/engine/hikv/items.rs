//! [`Items`]: the items of a store and the index that leads to them. Judges items, and finds those of a key under the key's
//! lock.
//!
//! # Rules
//! 1. Whoever changes or removes an entry of a key holds the key's lock.
//! 2. An item is an answer only if it is as it was written. Of a damaged one a store that salvages says that it is not
//!    there.

use chimera_pmem::Pmem;

use super::steps;
use crate::engine::Core;
use crate::engine::shared::{KeyGuard, KeyLocks};
use crate::index::Probe;
use crate::index::persistent::partitioned_hash::PartitionedHash;
use crate::pool::{Held, Pool};
use crate::records::item_heap::{Item, ItemHeap};
use crate::types::error::{Error, Result};
use crate::types::verify_reads::VerifyReads;

/// What is said of an item that is damaged.
pub(super) const DAMAGED_RECORD: &str = "a record does not match its checksum";

/// An item that is damaged.
pub(super) struct Unsound {
    pub(super) at: u64,
}

impl Unsound {
    #[cold]
    pub(super) fn into_error(self) -> Error {
        Error::corrupted(DAMAGED_RECORD, self.at)
    }
}

/// The items of a store.
pub(super) struct Items<P: Pmem> {
    core: Core<P>,
    index: PartitionedHash<P>,
    heap: ItemHeap<P>,
    keys: KeyLocks,
    /// Whether gets verify the sums of values: never where there are none.
    verify_reads: VerifyReads,
    /// What is damaged is passed over.
    salvages: bool,
}

impl<P: Pmem> Items<P> {
    /// The items in `heap` that `index` leads to.
    pub(super) fn new(
        core: Core<P>,
        index: PartitionedHash<P>,
        heap: ItemHeap<P>,
        has_sums: bool,
        salvages: bool,
    ) -> Self {
        Self {
            keys: KeyLocks::new(core.environment().clone()),
            verify_reads: if has_sums { core.verify_reads } else { VerifyReads::Never },
            core,
            index,
            heap,
            salvages,
        }
    }

    #[inline(always)]
    pub(super) fn core(&self) -> &Core<P> {
        &self.core
    }

    #[inline(always)]
    pub(super) fn pool(&self) -> &Pool<P> {
        &self.core.pool
    }

    #[inline(always)]
    pub(super) fn index(&self) -> &PartitionedHash<P> {
        &self.index
    }

    #[inline(always)]
    pub(super) fn heap(&self) -> &ItemHeap<P> {
        &self.heap
    }

    /// Whether gets verify the sums of values.
    #[inline(always)]
    pub(super) fn verify_reads(&self) -> VerifyReads {
        self.verify_reads
    }

    /// Whether what is damaged is passed over.
    #[inline(always)]
    pub(super) fn salvages(&self) -> bool {
        self.salvages
    }

    /// Bytes of DRAM beside the index.
    pub(super) fn table_bytes(&self) -> u64 {
        self.heap.bytes() + self.keys.bytes()
    }

    /// Locks the keys of this hash for a write, of a batch or of none.
    ///
    /// # Errors
    /// When writes are refused.
    #[inline(always)]
    pub(super) fn lock_key_to_write(&self, hash: u64, batch: u64) -> Result<KeyGuard<'_>> {
        self.keys.lock_to_write(hash, &self.core.poison, batch)
    }

    /// Waits until whoever holds the lock of the keys of this hash has let go of it.
    pub(super) fn pass_key(&self, hash: u64) {
        self.keys.pass(hash, &self.core.poison);
    }

    /// Locks the keys of this hash, to move a record.
    ///
    /// # Errors
    /// When writes are refused.
    #[inline(always)]
    pub(super) fn lock_key(&self, hash: u64) -> Result<KeyGuard<'_>> {
        self.keys.lock(hash, &self.core.poison)
    }

    /// Locks the keys of this hash, also when writes are refused.
    #[inline(always)]
    pub(super) fn lock_key_to_look(&self, hash: u64) -> KeyGuard<'_> {
        self.keys.lock_to_look(hash, &self.core.poison)
    }

    /// Reads the value of an item of this hash, and verifies the item, the value only if `sum`.
    #[inline(always)]
    pub(super) fn read_item(
        &self,
        item: &Item,
        hash: u64,
        value: &mut Vec<u8>,
        sum: bool,
    ) -> Result<(), Unsound> {
        let summed = if sum {
            Some(self.heap.read_summed(item, value))
        } else {
            self.heap.read_value(item, value);
            None
        };
        if self.heap.is_sound(item, hash, summed) { Ok(()) } else { Err(Unsound { at: item.at }) }
    }

    /// What a lookup makes of an item that was found, or is damaged.
    #[inline(always)]
    pub(super) fn judge<T>(&self, outcome: Result<T, Unsound>) -> Probe<Result<T, Unsound>> {
        if outcome.is_err() && self.salvages { Probe::NotThis } else { Probe::Found(outcome) }
    }

    /// What to make of an entry under `hash` whose item has another key: 64 bits of two keys' hashes agree, or the item is
    /// damaged, or has gone.
    #[cold]
    pub(super) fn other_key<T>(
        &self,
        at: u64,
        hash: u64,
        item: Option<Item>,
    ) -> Probe<Result<T, Unsound>> {
        let is_other = item.is_some_and(|item| self.is_of(&item, hash));
        if is_other { Probe::NotThis } else { self.judge(Err(Unsound { at })) }
    }

    /// Whether an item has a key of this hash, as it was written.
    pub(super) fn is_of(&self, item: &Item, hash: u64) -> bool {
        self.read_key(item, hash, &mut Vec::new())
    }

    /// Reads the key of an item. Whether it has this hash, as it was written.
    pub(super) fn read_key(&self, item: &Item, hash: u64, key: &mut Vec<u8>) -> bool {
        self.heap.read_key(item, key);
        self.core.hash.of(key) == hash && self.heap.is_sound(item, hash, None)
    }

    /// Finds the item of `key`, whose lock the caller holds.
    #[inline]
    pub(super) fn find_locked(&self, hash: u64, key: &[u8]) -> Result<Option<Item>> {
        let found = self.index.find(hash, |at| match self.heap.decode(at) {
            Some(item) if self.heap.key_is(&item, key) => {
                let is_sound = self.heap.is_sound(&item, hash, None);
                self.judge(if is_sound { Ok(item) } else { Err(Unsound { at }) })
            }
            other => self.other_key(at, hash, other),
        })?;
        found.transpose().map_err(Unsound::into_error)
    }

    /// The items of all keys of this hash, whose lock the caller holds.
    pub(super) fn find_same_hash(&self, hash: u64) -> Result<Vec<Item>> {
        let mut items: Vec<Item> = Vec::new();
        let found = self.index.find(hash, |at| {
            let Some(item) = self.heap.decode(at).filter(|item| self.is_of(item, hash)) else {
                return self.judge::<()>(Err(Unsound { at }));
            };
            if !items.contains(&item) {
                items.push(item);
            }
            Probe::NotThis
        })?;
        found.transpose().map_err(Unsound::into_error).map(|_| items)
    }

    /// Notes damage at byte `at` that a salvaged store leaves out.
    #[cold]
    pub(super) fn note_loss(&self, at: u64, what: &str) {
        if self.salvages {
            // Opening has counted each entry.
            self.core.pool.note_loss_of(Held::Nothing, at, what);
        }
    }

    /// Verifies the item that an entry under `hash` leads to, its value only if `verify_value`, and marks its room as taken.
    pub(super) fn mark(
        &self,
        hash: u64,
        at: u64,
        verify_value: bool,
        value: &mut Vec<u8>,
    ) -> Result<(), Unsound> {
        let unsound = || Unsound { at };
        let item = self.heap.decode(at).filter(|item| self.is_of(item, hash));
        let item = item.ok_or_else(unsound)?;
        // First: of forged items that overlap no byte is read twice.
        if !self.core.pool.pmem.skips(steps::MARK_ITEMS) {
            self.heap.mark(self.heap.extent(&item)).map_err(|_| unsound())?;
        }
        if verify_value {
            self.read_item(&item, hash, value, true)?;
        }
        Ok(())
    }
}
