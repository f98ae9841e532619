//! The work of Viper beside sessions: reclamation, and verifying everything.

use chimera_pmem::Pmem;

use super::check::Check;
use super::store::Viper;
use crate::engine::contract::upkeep::{Point, Scrubbed, Step, Upkeep};
use crate::records::vpage::Pages;
use crate::types::check::CheckReport;
use crate::types::error::Result;
use crate::types::stats::ReclaimStats;

/// The work of a store beside its sessions.
pub(crate) struct ViperUpkeep<'a, P: Pmem, V: Pages>(pub(super) &'a Viper<P, V>);

impl<P: Pmem, V: Pages> Upkeep for ViperUpkeep<'_, P, V> {
    fn pass(&self, hash: u64) {
        self.0.records().pass_key(hash);
    }

    fn reclaims(&self) -> bool {
        true
    }

    fn reclaim_step(&self, free_percent: u32) -> Result<Step> {
        self.0.reclaim.step(&self.0.writer, free_percent)
    }

    fn end_reclaim(&self) {
        self.0.reclaim.end(&self.0.writer);
    }

    fn reclaim_stats(&self) -> ReclaimStats {
        self.0.reclaim.stats(self.0.records())
    }

    fn scrub_step(&self, from: Point, report: &mut CheckReport) -> Scrubbed {
        Check::new(self.0.records()).step(from, report)
    }
}
