//! Tables of full levels become one of a level behind them.

use std::collections::VecDeque;
use std::ops::Range;

use chimera_pmem::Pmem;

use super::plan::Plan;
use super::{Compactor, Dropped};
use crate::engine::chameleon::edit::Edit;
use crate::engine::chameleon::index::LOADED_AHEAD;
use crate::engine::chameleon::shard::{Locked, Work};
use crate::engine::chameleon::space::Need;
use crate::index::Probe;
use crate::index::probing_table::{Image, Slot, Source, VolatileTable, merge};
use crate::types::error::Result;

impl<P: Pmem> Compactor<P> {
    /// Makes room in the first level of a shard.
    ///
    /// # Errors
    /// When there is no space for a table, or one is damaged. The compaction that failed has changed nothing.
    pub(super) fn compact(&self, shard: u32, work: &mut Locked<'_, Work>) -> Result<()> {
        let shape = self.index().shards().shape();
        while let Some(plan) = Plan::next(&work.current.tables, shape, self.compaction) {
            match plan {
                Plan::Upper(from) => self.compact_upper(shard, work, from)?,
                Plan::Last => self.compact_last(shard, work, None, Need::Upkeep)?,
            }
        }
        Ok(())
    }

    /// Compacts levels into one table of the level behind them.
    fn compact_upper(
        &self,
        shard: u32,
        work: &mut Locked<'_, Work>,
        from: Range<usize>,
    ) -> Result<()> {
        let (index, target) = (self.index(), from.end);
        let slots = index.shards().shape().table_slots(target);
        let sources = index.upper_sources(shard, work, from.clone())?;
        if index.count_entries(&sources)? > u64::from(slots) {
            // Levels are fuller than these compactions leave them: others were at work before.
            return self.compact_last(shard, work, None, Need::Upkeep);
        }
        self.tables.reserve_level(shard, work, target)?;
        let mut images = index.shards().take_images();
        let filled = self.gather(shard, &sources, slots, &mut images[0]);
        if filled.is_ok() {
            let before = work.current.tables;
            self.tables.write_upper(shard, &mut images[0], &before, target);
            self.tables.install(shard, work, Edit::Upper(from).apply(&before), None);
        }
        index.shards().put_images(images);
        filled
    }

    /// Puts what tables have, the newest one first, into the image of one table, but for what was superseded. The bypass index
    /// knows that: it has the newest slot of each key. Without one they are merged.
    fn gather(
        &self,
        shard: u32,
        sources: &[Source<'_>],
        slots: u32,
        image: &mut Image,
    ) -> Result<()> {
        let index = self.index();
        let pmem = &index.core().pool.pmem;
        if !index.shards().has_bypass() {
            let mut dropped = Dropped { index, slots: Vec::new() };
            return merge(pmem, sources, slots, image, &mut dropped);
        }
        let bypass = index.shards().bypass(shard);
        image.begin(slots);
        let mut enter = |slot| {
            if is_in(bypass, slot) {
                assert!(image.enter(slot), "a table of a level has room for those above");
            }
        };
        // The bypass index is far larger than any cache: where a slot would be is loaded while others are looked at.
        let mut waiting = VecDeque::with_capacity(LOADED_AHEAD);
        let mut visit = |slot: Slot| {
            if waiting.len() == LOADED_AHEAD {
                waiting.pop_front().into_iter().for_each(&mut enter);
            }
            bypass.prefetch(slot.hash);
            waiting.push_back(slot);
            Ok(())
        };
        for source in sources {
            match source {
                Source::Volatile(table) => table.iter().try_for_each(&mut visit)?,
                Source::Persistent(table) => table.for_each(pmem, &mut visit)?,
            }
        }
        waiting.into_iter().for_each(enter);
        Ok(())
    }
}

/// Whether a table has this very slot.
fn is_in(table: VolatileTable<'_>, slot: Slot) -> bool {
    let is_it =
        |location| if location == slot.location { Probe::Found(()) } else { Probe::NotThis };
    matches!(table.probe(slot.hash, |found| is_it(found.location)), Probe::Found(()))
}
