//! [`Shards`]: all shards, and the tables that they have.

use std::sync::Arc;

use chimera_pmem::{Extent, Pmem};

use super::shape::Shape;
use super::shard::Shard;
use crate::index::Probe;
use crate::index::persistent::shard_manifest::{ShardManifest, TableAt};
use crate::index::probing_table::{Found, Image, PersistentTable, Tables, VolatileTable};
use crate::pool::Pool;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, lock};
use crate::types::error::{Error, Result};

/// The index: all shards.
pub(super) struct Shards<P: Pmem> {
    pub(super) shape: Shape,
    pub(super) manifest: ShardManifest<P>,
    pool: Arc<Pool<P>>,
    /// That of a shard has the shard's number.
    memtables: Tables,
    bypasses: Tables,
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
        huge_pages: bool,
        mut entries_max: impl FnMut() -> u32,
    ) -> Result<Self> {
        let memtables = Tables::new(shape.memtable_slots, huge_pages);
        let bypasses = Tables::new(shape.bypass_slots(), huge_pages);
        let out_of_memory =
            |_| Error::PoolFull { reason: "there is no memory for MemTables".to_owned() };
        let shard = |number| {
            let memtable = memtables.take().map_err(out_of_memory)?;
            assert_eq!(memtable, number, "they are handed out in order");
            let bypass = bypasses.take().map_err(out_of_memory)?;
            Ok(Shard::new(bypass, entries_max()))
        };
        let parts = (0..shape.shards()).map(shard).collect::<Result<_>>()?;
        Ok(Self {
            shape,
            manifest,
            pool,
            memtables,
            bypasses,
            parts,
            images: Mutex::default(),
            unbypassed: AtomicU32::new(0),
            bypassed_below: AtomicU32::new(0),
        })
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

    #[inline(always)]
    pub(super) fn bypass(&self, number: u32) -> VolatileTable<'_> {
        self.bypasses.table(self.shard(number).bypass())
    }

    /// An empty bypass index, to take the place of another one.
    ///
    /// # Errors
    /// When there is no memory for one more.
    pub(super) fn take_bypass(&self) -> Result<u32> {
        let reason = "there is no memory for a bypass index".to_owned();
        self.bypasses.take().map_err(|_| Error::PoolFull { reason })
    }

    pub(super) fn give_back_bypass(&self, bypass: u32) {
        self.bypasses.give_back(bypass);
    }

    /// Asks `probe` about the entries of a hash, the newest one of each key first. See [`Tables`] for the answers.
    ///
    /// # Errors
    /// `Corrupted` when a table is damaged. Whoever holds no lock forgets it, unless what was seen is valid.
    ///
    /// # Cost
    /// A line, sometimes 2, of at most three places: the MemTable, the bypass index, the last table; and of each dump. Until
    /// the bypass index is complete, of each table of the shard.
    #[inline]
    pub(super) fn probe<T>(
        &self,
        number: u32,
        hash: u64,
        mut probe: impl FnMut(Found) -> Probe<T>,
    ) -> Result<Probe<T>> {
        for table in [self.memtable(number), self.bypass(number)] {
            match table.probe(hash, &mut probe) {
                Probe::NotThis => {}
                answer => return Ok(answer),
            }
        }
        let shard = self.shard(number);
        if !shard.is_bypassed() {
            for table in self.upper_tables(number) {
                match self.probe_table(table, hash, &mut probe)? {
                    Probe::NotThis => {}
                    answer => return Ok(answer),
                }
            }
        }
        for table in shard.dumps().chain(shard.last()) {
            match self.probe_table(table, hash, &mut probe)? {
                Probe::NotThis => {}
                answer => return Ok(answer),
            }
        }
        Ok(Probe::NotThis)
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
    fn upper_tables(&self, number: u32) -> impl Iterator<Item = TableAt> {
        let levels = 0..self.shape.upper_levels();
        levels.flat_map(move |level| {
            let (at, tables) = self.shard(number).level(level);
            (0..tables.min(self.shape.ratio))
                .rev()
                .map(move |table| self.table_at(level, at, table))
        })
    }

    /// Where a table of a level lies that begins at `at`.
    pub(super) fn table_at(&self, level: usize, at: u64, table: u32) -> TableAt {
        let bytes = Shape::table_bytes(self.shape.table_slots(level));
        TableAt { at: at + u64::from(table) * bytes, bytes }
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

    /// Bytes of DRAM of MemTables, and of bypass indexes.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.memtables.bytes(), self.bypasses.bytes())
    }
}
