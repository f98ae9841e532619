//! The steps of a pass.

use chimera_pmem::Pmem;

use super::Collector;
use super::debt::Debt;
use super::pass::{Part, Pass};
use crate::engine::chameleon::space::Need;
use crate::engine::contract::upkeep::Step;
use crate::records::storage_log::Victim;
use crate::types::error::{Error, Result};

impl<P: Pmem> Collector<P> {
    /// A step; `false` when nothing is left.
    pub(super) fn step(&self, pass: &mut Pass, percent: u32) -> Result<bool> {
        let log = self.flusher.index().log();
        match pass.part {
            Part::Idle => Ok(self.begin(pass, percent)),
            Part::MergeBefore(shard) => {
                pass.part = Part::MergeBefore(shard + 1);
                if !self.merge_one(shard)? {
                    log.free_ready()?;
                    pass.begin_collecting(log.freed());
                }
                Ok(true)
            }
            Part::Collect => {
                match self.collect_one(pass, percent) {
                    Ok(true) => {}
                    Ok(false) | Err(Error::PoolFull { .. }) => pass.part = Part::MergeAfter(0),
                    Err(error) => return Err(error),
                }
                Ok(true)
            }
            Part::MergeAfter(shard) => {
                pass.part = Part::MergeAfter(shard + 1);
                if self.merge_one(shard)? {
                    return Ok(true);
                }
                log.free_ready()?;
                Ok(self.go_on(pass))
            }
        }
    }

    /// Begins a pass, if it is worth while. Bypass indexes come first: that they are complete, and small enough.
    fn begin(&self, pass: &mut Pass, percent: u32) -> bool {
        let index = self.flusher.index();
        if index.shards().unbypassed() > 0 {
            return self.flusher.complete_one() != Step::Done;
        }
        if self.flusher.shrink_one() {
            return true;
        }
        let debt = Debt::of(index);
        pass.begin_collecting(index.log().freed());
        if debt.superseded > debt.dropped {
            pass.part = Part::MergeBefore(0);
        }
        index.log().seal_left();
        debt.is_worth_a_pass(percent, index.records().run_bytes())
    }

    /// In a full pool a part of a pass makes room for the next one. Whether there is one.
    fn go_on(&self, pass: &mut Pass) -> bool {
        self.flusher.keep_growth_room();
        let freed = self.flusher.index().log().freed();
        let is_gain = pass.freed != freed && self.flusher.is_nearly_full();
        pass.begin_collecting(freed);
        is_gain
    }

    /// Merges a shard, if there is room; `false` when there is no shard of that number.
    fn merge_one(&self, shard: u32) -> Result<bool> {
        if shard == self.flusher.index().shards().shape().shards() {
            return Ok(false);
        }
        match self.flusher.compactor().merge_shard(shard, Need::Upkeep) {
            Ok(()) | Err(Error::PoolFull { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Collects the run with the most that is not referred to; `false` when there is none left.
    fn collect_one(&self, pass: &mut Pass, percent: u32) -> Result<bool> {
        let (records, log) = (self.flusher.index().records(), self.flusher.index().log());
        let freed = log.freed();
        let victims = log.victims(u64::from(percent.max(1)));
        let dead = victims.iter().map(Victim::dead_bytes).sum::<u64>();
        if dead < records.run_bytes() {
            return Ok(false);
        }
        let left = pass.left_of(&victims);
        let is_left = |victim: &&Victim| left.contains(&victim.start);
        // In a full pool a run is collected as a whole or not at all.
        let is_full = self.flusher.is_nearly_full();
        let may_collect =
            |victim: &&Victim| !is_full || records.hold_room_for_copies(victim.live_bytes);
        let Some(victim) = victims.iter().filter(is_left).find(may_collect) else {
            return Ok(false);
        };
        pass.note_collected(victim.start);
        match self.collect_run(victim) {
            // Another session freed runs meanwhile, perhaps this one: if it is there and damaged, the next pass finds that.
            Err(Error::Corrupted { .. }) if !log.is_unchanged(freed) => {}
            collected => collected?,
        }
        // Copies are in no table yet.
        match records.taken_for_copies() {
            0 => {}
            bytes => self.flusher.bound_replay_by(bytes, 0),
        }
        Ok(true)
    }
}
