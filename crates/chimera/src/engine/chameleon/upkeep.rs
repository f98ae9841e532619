//! The work of ChameleonDB beside sessions: collecting the log, completing bypass indexes, verifying everything.

use chimera_pmem::Pmem;

use super::index::check_step;
use super::store::Chameleon;
use crate::engine::Engine;
use crate::engine::contract::upkeep::{Point, Scrubbed, Step, Upkeep};
use crate::types::check::CheckReport;
use crate::types::error::Result;
use crate::types::stats::ReclaimStats;

/// The work of a store beside its sessions.
pub(crate) struct ChameleonUpkeep<'a, P: Pmem>(pub(super) &'a Chameleon<P>);

impl<P: Pmem> Upkeep for ChameleonUpkeep<'_, P> {
    fn pass(&self, hash: u64) {
        let index = self.0.index();
        drop(index.lock_to_look(index.shards().number_of(hash)));
    }

    /// Runs of the log become free, where there are bypass indexes. That the pool becomes shorter is not promised.
    fn reclaims(&self) -> bool {
        self.0.index().shards().has_bypass()
    }

    fn reclaim_step(&self, free_percent: u32) -> Result<Step> {
        self.0.collector.collect_step(free_percent)
    }

    fn trim(&self) -> Result<()> {
        self.0.flusher().compactor().trim()
    }

    fn end_reclaim(&self) {
        self.0.flusher().leave_runs();
    }

    fn reclaim_stats(&self) -> ReclaimStats {
        self.0.collector.stats()
    }

    fn is_rebuilding(&self) -> bool {
        !self.0.core().pool.read_only && self.0.index().shards().unbypassed() > 0
    }

    fn rebuild_step(&self) -> Step {
        self.0.flusher().complete_one()
    }

    fn scrub_step(&self, from: Point, report: &mut CheckReport) -> Scrubbed {
        check_step(self.0.index(), from, report)
    }

    /// Damage of the last record of a run is not taken for one that was cut off.
    fn seal(&self) {
        self.0.index().log().seal_left();
    }
}
