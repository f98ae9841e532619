//! Replay: what the log has that is in no table goes to MemTables.

use chimera_pmem::{Operation, Pmem};

use super::found::Found;
use super::{PREFETCHED, Recovery, Unflushed};
use crate::engine::chameleon::space::Need;
use crate::engine::chameleon::steps;
use crate::index::probing_table::Slot;
use crate::records::storage_log::Recovered;
use crate::types::error::{Error, Result};

impl<P: Pmem> Recovery<'_, P> {
    /// Enters the writes that are in no table into MemTables. What was replayed.
    ///
    /// A store that has lost tables makes no others: its MemTables have room for all of it, and so have those of a store that is
    /// open for reading only.
    pub(super) fn replay(&mut self, mut runs: Found) -> Result<Recovered> {
        let (log, is_lost) = (std::mem::take(&mut runs.log), runs.lost > 0);
        let (index, shards) = (self.flusher.index(), self.flusher.index().shards());
        let mut unflushed = Vec::new();
        let all = 0..shards.shape().shards();
        // Without a bypass index the references of tables are never counted.
        let is_counted = shards.has_bypass() || !all.clone().any(|it| shards.has_tables(it));
        let flushed: Vec<_> = all.map(|shard| index.lock_to_look(shard).version).collect();
        let (recovered, unsettled) = {
            let _booked = index.core().book(Operation::Recovery, 0);
            index.log().recover_from(log, self.salvage, is_lost, |replayed| {
                let shard = shards.number_of(replayed.hash);
                let is_unflushed = replayed.version > flushed[shard as usize];
                if is_unflushed {
                    let slot = Slot::new(
                        replayed.hash,
                        replayed.at,
                        replayed.bytes,
                        replayed.is_tombstone,
                    );
                    unflushed.push(Unflushed { shard, version: replayed.version, slot });
                }
                Ok(is_unflushed)
            })?
        };
        self.totals.merge(recovered.totals);
        unflushed.sort_unstable_by_key(|write| (write.shard, write.version));
        self.compare_state()?;
        let read_only = index.core().pool.read_only;
        let makes_tables = !read_only && !is_lost && !self.have_room_for(&unflushed);
        if makes_tables && !self.salvage {
            self.compare_count(&unflushed)?;
        }
        index.core().pool.begin_changes();
        let booked = index.core().book(Operation::Recovery, 0);
        self.free_orphans(runs)?;
        index.log().settle(unsettled);
        drop(booked);
        if read_only || is_lost {
            self.make_room_for(&unflushed)?;
        }
        self.replay_all(&unflushed, makes_tables)?;
        let index = self.index();
        if is_counted && index.shards().unbypassed() == 0 {
            index.log().end_counting();
        }
        Ok(recovered)
    }

    fn replay_all(&self, unflushed: &[Unflushed], makes_tables: bool) -> Result<()> {
        let index = self.index();
        // All of them, before a table is made: the log frees runs once it knows all references.
        for found in unflushed.iter().filter_map(|write| write.slot.found()) {
            index.log().count_reference(found.offset, found.bytes);
        }
        if makes_tables {
            // Before tables take fresh blocks.
            self.flusher.keep_growth_room();
        }
        for (number, write) in unflushed.iter().enumerate() {
            if let Some(later) = unflushed.get(number + PREFETCHED) {
                index.shards().prefetch_all(later.slot.hash);
            }
            self.replay_one(write)?;
        }
        Ok(())
    }

    /// Frees runs of tables that nothing names, where no part of the store was lost. After the
    /// [comparison](Self::compare_state): they may belong to a part that is older.
    fn free_orphans(&self, found: Found) -> Result<()> {
        let pool = &self.index().core().pool;
        if pool.read_only || found.lost > 0 || pool.pmem.skips(steps::FREE_ORPHANS) {
            return Ok(());
        }
        found.tables.into_values().try_for_each(|run| pool.free_run(run))
    }

    /// Makes room for these writes, in the order of their shards, in MemTables.
    fn make_room_for(&mut self, unflushed: &[Unflushed]) -> Result<()> {
        let of_shards = unflushed.chunk_by(|one, next| one.shard == next.shard);
        let most = of_shards.map(<[_]>::len).max().unwrap_or(0);
        let entries_max =
            self.flusher.tables_mut().index_mut().shards_mut().enlarge_memtables(most)?;
        let index = self.index();
        for shard in 0..index.shards().shape().shards() {
            index.lock_to_look(shard).entries_max = entries_max;
        }
        Ok(())
    }

    /// Whether the MemTables have room for these writes, in the order of their shards.
    fn have_room_for(&self, unflushed: &[Unflushed]) -> bool {
        unflushed.chunk_by(|one, next| one.shard == next.shard).all(|of_shard| {
            let writing = self.index().lock_to_look(of_shard[0].shard);
            of_shard.len() as u64 <= u64::from(writing.entries_max)
        })
    }

    fn replay_one(&self, write: &Unflushed) -> Result<()> {
        let index = self.index();
        let Unflushed { shard, version, slot } = *write;
        while index.is_memtable_full(shard) {
            match self.flusher.make_room(0, shard, Need::Delete) {
                Err(Error::PoolFull { .. }) if !index.core().pool.read_only => {
                    self.flusher.absorb_in_need(shard)?;
                }
                made => made?,
            }
        }
        let mut writing = index.lock_to_look(shard);
        let old = index.find_replaced(shard, slot)?;
        let found = slot.found().expect("just made");
        index.enter(shard, slot, old);
        let was_live = old.is_some_and(|old| !old.is_tombstone);
        let records = writing.records + u64::from(!found.is_tombstone);
        writing.records = records.saturating_sub(was_live.into());
        writing.version = writing.version.max(version);
        Ok(())
    }
}
