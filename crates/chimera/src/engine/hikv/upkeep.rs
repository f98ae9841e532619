//! The work of HiKV beside sessions: finding out which space is free, moving items, verifying everything, and the dump of the
//! order.

use chimera_pmem::Pmem;

use super::check::Check;
use super::order;
use super::store::Hikv;
use crate::engine::contract::upkeep::{Point, Scrubbed, Step, Upkeep};
use crate::ordered::Order;
use crate::pool::CLOSED_WORDS;
use crate::types::check::CheckReport;
use crate::types::error::Result;
use crate::types::stats::ReclaimStats;

/// The work of a store beside its sessions.
pub(crate) struct HikvUpkeep<'a, P: Pmem>(pub(super) &'a Hikv<P>);

impl<P: Pmem> Upkeep for HikvUpkeep<'_, P> {
    fn pass(&self, hash: u64) {
        self.0.items().pass_key(hash);
    }

    /// Also what space there is, is known afterwards.
    fn reclaim_step(&self, free_percent: u32) -> Result<Step> {
        let step = self.0.reclaim.step(&self.0.writer, free_percent)?;
        let pool = &self.0.items().core().pool;
        // Without a journal whoever reads what was just freed may find no storage, which is a signal on a full `tmpfs`.
        if step == Step::Done && pool.pmem.journal().is_some() {
            pool.release_storage();
        }
        Ok(step)
    }

    fn end_reclaim(&self) {
        self.0.reclaim.end(self.0.items());
        if self.0.items().core().poison.check().is_ok() {
            self.0.items().heap().end_waiting();
        }
        self.0.rebuild().end(self.0.items());
    }

    fn reclaim_stats(&self) -> ReclaimStats {
        self.0.reclaim.stats(&self.0.writer)
    }

    fn is_rebuilding(&self) -> bool {
        self.0.rebuild().is_pending()
    }

    fn rebuild_step(&self) -> Step {
        self.0.rebuild().step(self.0.items())
    }

    fn scrub_step(&self, from: Point, report: &mut CheckReport) -> Scrubbed {
        Check { items: self.0.items(), rebuild: self.0.rebuild() }.step(from, report)
    }

    fn load_order(&self, order: Option<&Order>) -> Result<bool> {
        self.0.last_dump.load(self.0.items(), self.0.limits, order)
    }

    fn save_order(&self) -> [u64; CLOSED_WORDS] {
        order::save(self.0.items())
    }
}
