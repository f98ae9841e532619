//! [`Shards`]: all shards, and the tables that they have.

#[cfg(feature = "baselines")]
mod baselines;
mod bypasses;
mod probe;

use std::sync::Arc;

use chimera_pmem::{Extent, Pmem};

use self::bypasses::Bypasses;
use super::baselines::TableHelpers;
use super::shape::{Shape, Upper};
use super::shard::{Locked, Shard, Work, Writing};
use crate::index::Probe;
use crate::index::persistent::shard_manifest::{ShardManifest, ShardTables, TableAt};
use crate::index::probing_table::{
    Found, Image, PersistentTable, SLOTS_UNIT, Tables, VolatileTable, slots_for,
};
use crate::pool::Pool;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, lock};
use crate::types::error::{Error, Result};

/// The index: all shards.
pub(super) struct Shards<P: Pmem> {
    shape: Shape,
    manifest: ShardManifest<P>,
    pool: Arc<Pool<P>>,
    /// That of a shard has the shard's number.
    memtables: Tables,
    bypasses: Bypasses,
    /// Where there is no bypass index, a table that stays empty.
    no_bypass: u32,
    helpers: TableHelpers,
    parts: Box<[Shard]>,
    /// Buffers for tables that are made.
    images: Mutex<Vec<Images>>,
    /// Shards whose bypass index is incomplete; those below this number have a complete one.
    unbypassed: AtomicU32,
    bypassed_below: AtomicU32,
}

/// Two buffers.
pub(super) type Images = [Image; 2];

impl<P: Pmem> Shards<P> {
    /// Shards without tables. `entries_max` is asked for each how many entries its MemTable takes.
    ///
    /// # Errors
    /// When there is no memory.
    pub(super) fn new(
        pool: Arc<Pool<P>>,
        shape: Shape,
        manifest: ShardManifest<P>,
        helpers: TableHelpers,
        huge_pages: bool,
        mut entries_max: impl FnMut() -> u32,
    ) -> Result<Self> {
        let slots = if pool.read_only { shape.read_only_slots() } else { shape.memtable_slots };
        let memtables = Tables::new(slots, huge_pages && !pool.read_only);
        let (least, most) = (shape.bypass_slots_min(), shape.bypass_slots());
        let (least, most) =
            if helpers.is_bypass() { (least, most) } else { (SLOTS_UNIT, SLOTS_UNIT) };
        let bypasses = Bypasses::new(least, most, huge_pages);
        let no_bypass = if helpers.is_bypass() { None } else { Some(bypasses.take_smallest()?) };
        let out_of_memory = |_| Error::no_memory("MemTables");
        // Made at once: a list that grows leaves holes in the heap, as large as itself.
        let mut parts = Vec::with_capacity(shape.shards() as usize);
        for number in 0..shape.shards() {
            let memtable = memtables.take().map_err(out_of_memory)?;
            assert_eq!(memtable, number, "they are handed out in order");
            let helper = if helpers.is_bypass() { bypasses.take_smallest()? } else { 0 };
            parts.push(Shard::new(helper, entries_max()));
        }
        Ok(Self {
            shape,
            manifest,
            pool,
            memtables,
            bypasses,
            no_bypass: no_bypass.unwrap_or_default(),
            helpers,
            parts: parts.into(),
            images: Mutex::default(),
            unbypassed: AtomicU32::new(0),
            bypassed_below: AtomicU32::new(0),
        })
    }

    /// Makes MemTables anew, all empty, that have room for more than so many entries each, unless they have it: for a store that
    /// can make no tables. How many entries each takes, which is more than that. Before there are entries.
    ///
    /// # Errors
    /// When there is no memory, or there are more entries than a table can have.
    pub(super) fn enlarge_memtables(&mut self, entries: usize) -> Result<u32> {
        let out_of_memory =
            || Error::PoolFull { reason: "there is no memory for larger MemTables".to_owned() };
        // Seven of eight are used, and one entry more would be too many.
        let slots = slots_for(entries as u64 + 1, 87).ok_or_else(out_of_memory)?;
        if slots > self.memtables.slots() {
            self.memtables = Tables::new(slots, false);
            for number in 0..self.shape.shards() {
                let memtable = self.memtables.take().map_err(|_| out_of_memory())?;
                assert_eq!(memtable, number, "they are handed out in order");
            }
        }
        Ok(self.memtables.slots() / 8 * 7)
    }

    #[inline(always)]
    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(super) fn manifest(&self) -> &ShardManifest<P> {
        &self.manifest
    }

    pub(super) fn helpers(&self) -> &TableHelpers {
        &self.helpers
    }

    /// Slots of each MemTable.
    pub(super) fn memtable_slots(&self) -> u32 {
        self.memtables.slots()
    }

    /// The number of the shard of a key with this hash.
    #[inline(always)]
    pub(super) fn number_of(&self, hash: u64) -> u32 {
        self.shape.shard_of(hash)
    }

    #[inline(always)]
    pub(super) fn shard(&self, number: u32) -> &Shard {
        &self.parts[number as usize]
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Shard> {
        self.parts.iter()
    }

    /// The bypass index of a shard is incomplete: it was just found. Before there are sessions.
    pub(super) fn set_unbypassed(&self, number: u32) {
        self.shard(number).set_bypassed(false);
        self.unbypassed.fetch_add(1, Ordering::AcqRel);
    }

    /// The bypass index of a shard is complete now. Whether those of all are.
    pub(super) fn set_bypassed(&self, number: u32) -> bool {
        self.shard(number).set_bypassed(true);
        self.unbypassed.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Shards whose bypass index is incomplete.
    pub(super) fn unbypassed(&self) -> u32 {
        self.unbypassed.load(Ordering::Acquire)
    }

    /// The first shard whose bypass index is incomplete.
    pub(super) fn first_unbypassed(&self) -> Option<u32> {
        let below = self.bypassed_below.load(Ordering::Relaxed);
        let found = (below..self.shape.shards()).find(|number| !self.shard(*number).is_bypassed());
        self.bypassed_below.fetch_max(found.unwrap_or(self.shape.shards()), Ordering::Relaxed);
        found
    }

    #[inline(always)]
    pub(super) fn memtable(&self, number: u32) -> VolatileTable<'_> {
        self.memtables.table(number)
    }

    /// The bypass index of a shard; an empty table where there is none.
    #[inline(always)]
    pub(super) fn bypass(&self, number: u32) -> VolatileTable<'_> {
        self.bypasses.table(if self.has_bypass() {
            self.shard(number).helper()
        } else {
            self.no_bypass
        })
    }

    #[inline(always)]
    pub(super) fn has_bypass(&self) -> bool {
        self.helpers.is_bypass()
    }

    /// An empty bypass index, to take the place of that of a shard: as large, or of the smallest size where it is
    /// [larger than there is memory for](Self::bypass_exceeds_budget). 0 where there are none.
    ///
    /// # Errors
    /// When there is no memory for one more.
    pub(super) fn take_bypass(&self, number: u32) -> Result<u32> {
        if !self.has_bypass() {
            Ok(0)
        } else if self.bypass_exceeds_budget(number) {
            self.bypasses.take_smallest()
        } else {
            self.bypasses.take_alike(self.shard(number).helper())
        }
    }

    /// Puts a larger bypass index in the place of that of a shard, if that is too small for so many entries more. Readers find
    /// each entry all the time: in the one before, until the larger one has all of them.
    ///
    /// # Errors
    /// When there is no memory for it, and not a slot for each. Nothing has changed.
    ///
    /// # Cost
    /// Each entry moves. That is seldom: the next size is eight times as large, and a bypass index gets smaller only where the
    /// memory budget did.
    pub(super) fn enlarge_bypass(
        &self,
        number: u32,
        more: u32,
        work: &Locked<'_, Work>,
        writing: &Locked<'_, Writing>,
    ) -> Result<()> {
        if !self.has_bypass() {
            return Ok(());
        }
        let (place, before) = (self.shard(number), self.bypass(number));
        let replaced = place.helper();
        let entries = before.len().saturating_add(more);
        let helper = match self.bypasses.take_larger(replaced, entries) {
            Ok(Some(helper)) => helper,
            Ok(None) => return Ok(()),
            // It gets fuller than it would.
            Err(_) if entries <= before.slots() => return Ok(()),
            Err(error) => return Err(error),
        };
        let larger = self.bypasses.table(helper);
        for slot in before.iter() {
            larger.insert(slot, u32::MAX).expect("it has more slots than the one before");
        }
        place.change(work, writing, |place| place.set_helper(helper));
        self.bypasses.give_back_memory(replaced);
        Ok(())
    }

    /// Entries that the bypass index of a shard may have, if it must not grow: on plain files all of them together take half of what
    /// the memory budget leaves beside the least of pages.
    pub(super) fn bypass_entries_in_budget(&self, number: u32) -> Option<u32> {
        let journal = self.pool.pmem.journal().filter(|_| self.has_bypass())?;
        let helper = self.shard(number).helper();
        self.bypasses.entries_without_growth(helper, journal.table_bytes_max())
    }

    /// Whether the bypass index of a shard could be smaller, and all of them take more memory than they may: where the budget is
    /// smaller than it was, or than that of the process that wrote what they have.
    pub(super) fn bypass_exceeds_budget(&self, number: u32) -> bool {
        self.has_bypass() && self.exceeds_budget(self.shard(number).helper())
    }

    fn exceeds_budget(&self, helper: u32) -> bool {
        let journal = self.pool.pmem.journal();
        journal.is_some_and(|journal| self.bypasses.exceed(helper, journal.table_bytes_max()))
    }

    /// Takes a bypass index back, or the helper of a last table.
    pub(super) fn give_back_helper(&self, helper: u32) {
        if !self.has_bypass() {
            self.helpers.give_back_last(helper);
        } else if self.exceeds_budget(helper) {
            self.bypasses.give_back_memory(helper);
        } else {
            self.bypasses.give_back(helper);
        }
    }

    /// Starts loading where the entries of a hash are in DRAM, in both places at once: the MemTable and the bypass index.
    /// Helpers of tables are left out.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        let number = self.number_of(hash);
        self.memtable(number).prefetch(hash);
        if self.has_bypass() {
            self.bypasses.table(self.shard(number).helper()).prefetch(hash);
        }
    }

    /// Starts loading where the entries of a hash are in the last table, unless DRAM has one. Proves nothing. Not
    /// where there is no bypass index.
    #[inline]
    pub(super) fn prefetch_last(&self, hash: u64) {
        let number = self.number_of(hash);
        let Some(last) = self.shard(number).last().filter(|_| self.has_bypass()) else { return };
        let has = |table: VolatileTable<'_>| {
            !matches!(table.probe(hash, |_| Probe::Found(())), Probe::NotThis)
        };
        if has(self.memtable(number)) || has(self.bypass(number)) {
            return;
        }
        self.prefetch_table(last, hash);
    }

    /// Starts loading where the entries of a hash are in DRAM and in every table of its shard. Proves nothing.
    pub(super) fn prefetch_all(&self, hash: u64) {
        self.prefetch(hash);
        let number = self.number_of(hash);
        let shard = self.shard(number);
        let upper = self.upper_tables(number).map(|(_, table)| table);
        for place in upper.chain(shard.dumps()).chain(shard.last()) {
            self.prefetch_table(place, hash);
        }
    }

    /// Starts loading where the entries of a hash are in a table. Nothing where the words of its place did not belong
    /// together: then it would be of no use.
    #[inline(always)]
    fn prefetch_table(&self, table: TableAt, hash: u64) {
        let (pmem, slots) = (&self.pool.pmem, Shape::slots_of(table.bytes));
        if let Some(table) = PersistentTable::from_parts(pmem, table.at, slots) {
            table.prefetch(pmem, hash);
        }
    }

    #[inline(always)]
    fn probe_table<T>(
        &self,
        table: TableAt,
        hash: u64,
        probe: impl FnMut(Found) -> Probe<T>,
    ) -> Result<Probe<T>> {
        let slots = Shape::slots_of(table.bytes);
        match PersistentTable::from_parts(&self.pool.pmem, table.at, slots) {
            Some(table) => table.probe(&self.pool.pmem, hash, probe),
            // Its words did not belong together.
            None => Ok(Probe::Retry),
        }
    }

    /// Tables of the levels above the last one, the newest one first.
    pub(super) fn upper_tables(&self, number: u32) -> impl Iterator<Item = (Upper, TableAt)> {
        let levels = 0..self.shape.upper_levels();
        levels.flat_map(move |level| {
            let (at, tables) = self.shard(number).level(level);
            (0..tables.min(self.shape.ratio)).rev().map(move |table| {
                (Upper { shard: number, level, table }, self.table_at(level, at, table))
            })
        })
    }

    /// Entries above the last table of a shard, at most, whose tables stay meanwhile; those of the MemTable left out. None
    /// where a table is damaged.
    ///
    /// # Cost
    /// Without a complete bypass index a line of each table.
    pub(super) fn upper_entries(&self, number: u32) -> Option<u32> {
        if self.has_bypass() && self.shard(number).is_bypassed() {
            return Some(self.bypass(number).len());
        }
        self.upper_tables(number).map(|(_, table)| self.entries_of(table)).sum()
    }

    /// Entries of a table, as its header says; none where that is damaged.
    pub(super) fn entries_of(&self, table: TableAt) -> Option<u32> {
        let pmem = &self.pool.pmem;
        let slots = Shape::slots_of(table.bytes);
        PersistentTable::from_parts(pmem, table.at, slots)?.entries(pmem).ok()
    }

    /// Whether a shard has a table.
    pub(super) fn has_tables(&self, number: u32) -> bool {
        let shard = self.shard(number);
        let mut lower = shard.dumps().chain(shard.last());
        lower.next().is_some() || self.upper_tables(number).next().is_some()
    }

    /// Where a table of a level lies that begins at `at`.
    pub(super) fn table_at(&self, level: usize, at: u64, table: u32) -> TableAt {
        let bytes = Shape::table_bytes(self.shape.table_slots(level));
        TableAt { at: at + u64::from(table) * bytes, bytes }
    }

    /// Every table of a shard, and the word of its owner.
    pub(super) fn tables_of(
        &self,
        number: u32,
        tables: &ShardTables,
    ) -> impl Iterator<Item = (TableAt, u64)> {
        let upper = self.shape.upper_levels();
        let levels = tables.levels.into_iter().enumerate().take(upper);
        let uppers = levels.flat_map(move |(level, place)| {
            let at = move |table| (self.table_at(level, place.at, table), owner(number, level));
            (0..place.tables).map(at)
        });
        let dumps = tables.dumps.into_iter().flatten();
        let dumps = dumps.map(move |dump| (dump, owner(number, upper + 1)));
        let last = tables.last.map(|last| (last, owner(number, upper)));
        uppers.chain(dumps).chain(last)
    }

    pub(super) fn extent(&self, table: TableAt) -> Extent {
        self.pool.extent(table.at, table.bytes)
    }

    /// Two buffers, to be [put back](Self::put_images).
    pub(super) fn take_images(&self) -> Images {
        lock(&self.images).pop().unwrap_or_default()
    }

    pub(super) fn put_images(&self, images: Images) {
        lock(&self.images).push(images);
    }

    /// Bytes of DRAM of MemTables, and of bypass indexes or helpers of tables.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.memtables.bytes(), self.bypasses.bytes() + self.helpers.bytes())
    }
}

/// What tables say of themselves: shard and level. The last level is the number of levels above it, and a dump one more.
pub(super) fn owner(shard: u32, level: usize) -> u64 {
    u64::from(shard) << 8 | level as u64
}
