//! What the store calls of whichever engine it has.

use chimera_pmem::Pmem;

use super::engines::{AnyEngine, AnySession, each_engine, each_session};
use super::report::InspectReport;
use crate::engine::contract::client::{Client, SharedClient};
use crate::engine::contract::core::Core;
use crate::engine::contract::engine::Engine;
use crate::engine::contract::reports::{Dram, Reports};
use crate::engine::contract::upkeep::{Point, Scrubbed, Step, Upkeep};
use crate::engine::options::Options;
use crate::engine::shared::{batch, order, scrub};
use crate::metrics::Exposition;
use crate::ordered::RebuildStep;
use crate::types::check::{CheckReport, Damage};
use crate::types::durability::Durability;
use crate::types::error::Result;
use crate::types::progress::Progress;
use crate::types::stats::ReclaimStats;
use crate::types::stream::StreamKind;

impl<P: Pmem> AnySession<P> {
    /// What every session has.
    #[inline(always)]
    pub(crate) fn client(&self) -> &SharedClient {
        each_session!(self, _engine, client => client.shared_ref())
    }

    /// Gives back what the session holds.
    pub(crate) fn end(&mut self) {
        each_session!(self, engine, client => {
            engine.end(client);
            engine.core().forget();
        });
    }
}

impl<P: Pmem> AnyEngine<P> {
    pub(crate) fn core(&self) -> &Core<P> {
        each_engine!(self, engine => Engine::core(&**engine))
    }

    pub(crate) fn durability(&self, given: Durability) -> Durability {
        each_engine!(self, engine => Engine::durability(&**engine, given))
    }

    /// Makes acknowledged writes that wait for a batch as durable as others.
    pub(crate) fn sync(&self) {
        each_engine!(self, engine => {
            Engine::sync(&**engine);
            engine.core().forget();
        });
    }

    /// Whether a task in the background is to reclaim space.
    pub(crate) fn reclaims(&self) -> bool {
        each_engine!(self, engine => engine.upkeep().reclaims())
    }

    /// Verifies everything. Other sessions may go on.
    pub(crate) fn check(&self, progress: Option<&Progress>) -> CheckReport {
        let mut report = each_engine!(self, engine => scrub::check(&**engine, progress));
        for Damage { at, what } in self.core().pool.damages() {
            report.damage(at, what);
        }
        report
    }

    /// One step of a pass that verifies everything.
    pub(crate) fn scrub_step(&self, from: Point, report: &mut CheckReport) -> Scrubbed {
        each_engine!(self, engine => engine.upkeep().scrub_step(from, report))
    }

    pub(crate) fn inspect(&self, progress: Option<&Progress>) -> InspectReport {
        let pool = &self.core().pool;
        let (blocks_used, ready) = (pool.used_blocks(), pool.ready_blocks());
        let report = InspectReport {
            block_bytes: pool.map.block_bytes,
            blocks_used,
            blocks_ready: ready.saturating_sub(blocks_used),
            records: self.records(),
            losses: pool.losses(),
            details: self.details(progress),
        };
        if let Some(progress) = progress {
            progress(blocks_used, blocks_used);
        }
        report
    }

    pub(crate) fn records(&self) -> u64 {
        each_engine!(self, engine => Engine::records(&**engine))
    }

    pub(crate) fn kind(&self) -> StreamKind {
        each_engine!(self, engine => Engine::kind(&**engine))
    }

    pub(crate) fn options_for_copy(&self) -> Options {
        each_engine!(self, engine => Reports::options_for_copy(&**engine))
    }

    pub(crate) fn write_metrics(&self, text: &mut Exposition) {
        each_engine!(self, engine => Reports::write_metrics(&**engine, text));
    }

    /// One step of space reclamation. Nobody waits until it is durable, because a moved record has two copies
    /// until it is.
    pub(crate) fn reclaim_step(&self, free_percent: u32) -> Result<Step> {
        let step = each_engine!(self, engine => engine.upkeep().reclaim_step(free_percent));
        self.core().forget();
        step
    }

    pub(crate) fn is_rebuilding(&self) -> bool {
        each_engine!(self, engine => engine.upkeep().is_rebuilding())
    }

    /// One step of what opening left to be done.
    pub(crate) fn rebuild_step(&self) -> Step {
        let step = each_engine!(self, engine => engine.upkeep().rebuild_step());
        self.core().forget();
        step
    }

    pub(crate) fn trim(&self) -> Result<()> {
        each_engine!(self, engine => engine.upkeep().trim())
    }

    pub(crate) fn end_reclaim(&self) {
        each_engine!(self, engine => engine.upkeep().end_reclaim());
    }

    /// DRAM of its index and of its tables.
    pub(crate) fn dram(&self) -> Dram {
        each_engine!(self, engine => Reports::dram(&**engine))
    }

    pub(crate) fn reclaim_stats(&self) -> ReclaimStats {
        each_engine!(self, engine => engine.upkeep().reclaim_stats())
    }

    /// Ends batches that a crash has cut off.
    pub(crate) fn end_batches(&self, salvage: bool) -> Result<batch::Ended> {
        each_engine!(self, engine => batch::recover(&**engine, salvage))
    }

    /// As a batch that is cut off once its record is durable: of these changes.
    #[cfg(test)]
    pub(crate) fn leave_record(&self, changes: &[u8]) {
        each_engine!(self, engine => batch::leave_record(&**engine, changes));
    }

    /// A batch with nothing set aside.
    #[cfg(test)]
    pub(crate) fn write_without_room(&self, batch: &crate::Batch) -> Result<()> {
        each_engine!(self, engine => batch::write_without_room(&**engine, batch))
    }

    /// Frees what is kept for the records of batches.
    pub(crate) fn give_back_pieces(&self) {
        each_engine!(self, engine => batch::give_back(&**engine));
    }

    /// Begins to make the order of all keys, if there is to be one.
    pub(crate) fn begin_order(&self, threads: usize) -> Result<()> {
        each_engine!(self, engine => order::begin(&**engine, threads))
    }

    /// One step of making it, by a thread in the background.
    pub(crate) fn order_step(&self, number: u32) -> Result<RebuildStep> {
        each_engine!(self, engine => order::step(&**engine, number))
    }

    /// Closes the pool in order. A poisoned store stays marked as open; what was acknowledged before is made durable all
    /// the same, and where that fails, now or earlier, this fails.
    pub(crate) fn close(&self) -> Result<()> {
        let core = self.core();
        core.pool.stop_background();
        if core.poison.failure().is_some() {
            return core.pool.sync();
        }
        self.give_back_pieces();
        each_engine!(self, engine => engine.upkeep().seal());
        let saved = each_engine!(self, engine => engine.upkeep().save_order());
        let totals = each_engine!(self, engine => Engine::totals(&**engine));
        core.pool.close_with(saved, totals)
    }
}
