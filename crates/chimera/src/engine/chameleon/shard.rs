//! [`Shard`]: a part of the index, by the highest bits of hashes: what of it is in DRAM, and where its tables are.
//!
//! # Who changes what
//! - Under `writing`: the MemTable, and numbers that go with it. Puts hold it alone.
//! - Under `work`: tables in persistent memory, and the bypass index, which another one replaces only under both locks. Its
//!   holder may take `writing` as well, never the other way round.
//! - Readers hold nothing. The places of tables change, and entries vanish from where a reader may look, only while `version`
//!   is odd, and under both locks. So what a reader has found is right if the version is even and the same afterwards.

use std::ops::{Deref, DerefMut};

use chimera_pmem::Environment;

use crate::engine::contract::poison::{Poison, PoisonOnPanic};
use crate::index::persistent::shard_manifest::{
    Current, DUMPS_MAX, LEVELS_MAX, ShardTables, TableAt,
};
use crate::index::probing_table::Slot;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, VersionLock, lock_relaxing};
use crate::types::error::Result;

/// A part of the index.
#[repr(align(64))]
pub(super) struct Shard {
    /// Odd while the places below change.
    version: VersionLock,
    last: Place,
    /// The number of its bypass index; without one, of the helper of its last table.
    helper: AtomicU32,
    /// Whether the bypass index has all that is in the levels above the last one; without one, whether all tables have their
    /// helpers.
    is_bypassed: AtomicU32,
    dumps: [Place; DUMPS_MAX],
    /// Where the levels above the last one begin, and how many tables each has.
    levels: [Place; LEVELS_MAX],
    writing: Mutex<Writing>,
    work: Mutex<Work>,
}

/// Where something is: two words, which readers validate afterwards.
#[derive(Debug, Default)]
struct Place {
    at: AtomicU64,
    size: AtomicU64,
}

/// What goes with the MemTable of a shard.
#[derive(Debug)]
pub(super) struct Writing {
    /// The version of the last write.
    pub(super) version: u64,
    /// Keys of the shard.
    pub(super) records: u64,
    /// Entries of a full MemTable.
    pub(super) entries_max: u32,
    /// The pool has little room, and the last table none to grow: the shard takes tombstones and copies, and no puts.
    pub(super) refuses_puts: bool,
}

/// What goes with the tables of a shard.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// What of the manifest is in force.
    pub(super) current: Current,
    /// What the bypass index has that no table has.
    pub(super) ahead: Option<Ahead>,
    /// Slots of tables for whose keys the bypass index has newer ones. The log learns of them when a table has those.
    pub(super) superseded: Vec<Slot>,
}

/// The bypass index has entries that are in no table: a MemTable went there alone. Then nothing but a new last table, or a
/// dump, may say that more is in tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// It has every write up to this version.
    pub(super) version: u64,
    /// Keys of the shard, as of that version.
    pub(super) records: u64,
}

impl Place {
    fn set(&self, at: u64, size: u64) {
        self.at.store(at, Ordering::Relaxed);
        self.size.store(size, Ordering::Relaxed);
    }

    #[inline(always)]
    fn get(&self) -> Option<TableAt> {
        let at = self.at.load(Ordering::Relaxed);
        (at > 0).then(|| TableAt { at, bytes: self.size.load(Ordering::Relaxed) })
    }
}

impl Shard {
    /// A shard without tables, with a bypass index of this number, whose MemTable takes so many entries.
    pub(super) fn new(helper: u32, entries_max: u32) -> Self {
        let writing = Writing { version: 0, records: 0, entries_max, refuses_puts: false };
        Self {
            version: VersionLock::default(),
            last: Place::default(),
            helper: AtomicU32::new(helper),
            is_bypassed: AtomicU32::new(1),
            dumps: Default::default(),
            levels: Default::default(),
            writing: Mutex::new(writing),
            work: Mutex::default(),
        }
    }

    // ---- readers -------------------------------------------------------------------------------

    /// The version of the places: a reader begins with it, and asks afterwards whether it is valid.
    #[inline(always)]
    pub(super) fn version(&self) -> &VersionLock {
        &self.version
    }

    #[inline(always)]
    pub(super) fn helper(&self) -> u32 {
        // Acquire: with a number comes the memory of its table.
        self.helper.load(Ordering::Acquire)
    }

    /// Whether the bypass index has all that is in the levels above the last one; without one, whether all tables have their
    /// helpers.
    #[inline(always)]
    pub(super) fn is_bypassed(&self) -> bool {
        self.is_bypassed.load(Ordering::Acquire) != 0
    }

    /// The last table.
    #[inline(always)]
    pub(super) fn last(&self) -> Option<TableAt> {
        self.last.get()
    }

    /// Dumped bypass indexes, the newest one first.
    #[inline(always)]
    pub(super) fn dumps(&self) -> impl Iterator<Item = TableAt> + '_ {
        self.dumps.iter().rev().filter_map(Place::get)
    }

    /// Where a level begins, and how many tables it has.
    pub(super) fn level(&self, level: usize) -> (u64, u32) {
        self.levels[level].get().map_or((0, 0), |found| (found.at, found.bytes as u32))
    }

    // ---- writers -------------------------------------------------------------------------------

    /// Locks the MemTable for a write.
    ///
    /// # Errors
    /// When writes are refused.
    #[inline]
    pub(super) fn lock<'a>(
        &'a self,
        poison: &'a Poison,
        environment: &dyn Environment,
    ) -> Result<Locked<'a, Writing>> {
        let locked = self.lock_to_look(poison, environment);
        // After locking: the holder before may have failed.
        poison.check().map(|()| locked)
    }

    /// Locks the MemTable, also when writes are refused.
    #[inline]
    pub(super) fn lock_to_look<'a>(
        &'a self,
        poison: &'a Poison,
        environment: &dyn Environment,
    ) -> Locked<'a, Writing> {
        let guard = lock_relaxing(&self.writing, environment);
        Locked { _poison: poison.on_panic(), guard }
    }

    /// Locks the tables.
    pub(super) fn lock_work<'a>(
        &'a self,
        poison: &'a Poison,
        environment: &dyn Environment,
    ) -> Locked<'a, Work> {
        let guard = lock_relaxing(&self.work, environment);
        Locked { _poison: poison.on_panic(), guard }
    }

    /// Does `change`, while readers wait. Under both locks.
    pub(super) fn change<T>(
        &self,
        _: &Locked<'_, Work>,
        _: &Locked<'_, Writing>,
        change: impl FnOnce(&Self) -> T,
    ) -> T {
        let _changing = self.version.try_lock().expect("nobody else has both locks");
        change(self)
    }

    /// Says where tables are. In a [change](Self::change), or before there are readers.
    pub(super) fn set_tables(&self, tables: &ShardTables) {
        let set = |place: &Place, table: Option<TableAt>| {
            place.set(table.map_or(0, |table| table.at), table.map_or(0, |table| table.bytes));
        };
        set(&self.last, tables.last);
        for (place, dump) in self.dumps.iter().zip(tables.dumps) {
            set(place, dump);
        }
        for (place, level) in self.levels.iter().zip(tables.levels) {
            place.set(level.at, level.tables.into());
        }
    }

    /// Says which bypass index it has, or which helper its last table has. In a [change](Self::change), or before readers look
    /// there.
    pub(super) fn set_helper(&self, helper: u32) {
        self.helper.store(helper, Ordering::Release);
    }

    /// Says whether the bypass index has all that is in the levels above the last one, or all tables have their helpers.
    pub(super) fn set_bypassed(&self, is_bypassed: bool) {
        self.is_bypassed.store(is_bypassed.into(), Ordering::Release);
    }
}

/// Holds a lock of a shard. A holder that panics makes the store refuse writes.
pub(super) struct Locked<'a, T> {
    _poison: PoisonOnPanic<'a>,
    guard: MutexGuard<'a, T>,
}

impl<T> Deref for Locked<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Locked<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(all(test, loom))]
mod models;
