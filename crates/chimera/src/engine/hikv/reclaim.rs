//! [`Reclaim`]: space reclamation: items are moved out of runs that are mostly free, so that the runs become free.
//!
//! # Rules
//! 1. What is free has to be known first: a pass begins with the steps of the rebuild that are left.
//! 2. The runs of a pass are chosen at its beginning, and only if their items need fewer runs: so the pass after it does
//!    nothing. The emptiest one comes first.
//! 3. Sessions come first: a pass ends where there is no room for what it moves.
//! 4. Reclamation decides which runs are emptied, and when; [`Mover`] how.

use chimera_pmem::{Operation, Pmem};

use super::items::Items;
use super::mover::{Buffers, Moved, Mover};
use super::write::Writer;
use crate::engine::contract::upkeep::Step;
use crate::records::item_heap::SparseRun;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, lock_relaxing};
use crate::types::error::{Error, Result};
use crate::types::stats::ReclaimStats;

/// A pass, as far as it has come. Whoever goes on with it is the mover.
#[derive(Debug, Default)]
struct Pass {
    /// Runs to be emptied; the last one comes first. None between two passes.
    sparse: Vec<SparseRun>,
    buffers: Buffers,
}

/// Space reclamation of a store.
#[derive(Debug, Default)]
pub(super) struct Reclaim {
    pass: Mutex<Pass>,
    passes: AtomicU64,
    moved: Moved,
}

impl Reclaim {
    /// One step of a pass over runs of which at least so much is free: empties one run at most.
    ///
    /// # Errors
    /// Those of a write. The pass is over then, and no record is lost.
    pub(super) fn step<P: Pmem>(&self, writer: &Writer<P>, free_percent: u32) -> Result<Step> {
        let (items, mover) = (writer.items(), Mover::new(writer, &self.moved));
        let rebuilt = writer.rebuild().step(items);
        if rebuilt != Step::Done || items.core().poison.check().is_err() {
            return Ok(rebuilt);
        }
        let mut pass = self.pass(items);
        let _booked = items.core().book(Operation::Reclaim, 0);
        let before = self.moved.bytes.load(Ordering::Relaxed);
        if pass.sparse.is_empty() {
            pass.sparse = items.heap().evacuate_sparse(free_percent);
        }
        let Pass { sparse, buffers } = &mut *pass;
        let emptied = sparse.pop().map(|run| mover.empty_run(run, buffers));
        match emptied {
            Some(Ok(())) if !sparse.is_empty() => {
                let moved_bytes = self.moved.bytes.load(Ordering::Relaxed) - before;
                return Ok(Step::More { moved_bytes });
            }
            // Sessions come first.
            None | Some(Ok(()) | Err(Error::PoolFull { .. })) => self.end_pass(&mut pass, items),
            Some(Err(error)) => {
                self.end_pass(&mut pass, items);
                return Err(error);
            }
        }
        Ok(Step::Done)
    }

    fn end_pass<P: Pmem>(&self, pass: &mut Pass, items: &Items<P>) {
        pass.sparse.drain(..).for_each(|run| items.heap().keep(run));
        self.passes.fetch_add(1, Ordering::Relaxed);
    }

    /// The store is closed: no run is evacuated any more.
    pub(super) fn end<P: Pmem>(&self, items: &Items<P>) {
        let mut pass = self.pass(items);
        pass.sparse.drain(..).for_each(|run| items.heap().keep(run));
    }

    /// The pass, for the mover: nobody else takes this lock.
    fn pass<P: Pmem>(&self, items: &Items<P>) -> MutexGuard<'_, Pass> {
        lock_relaxing(&self.pass, &**items.core().environment())
    }

    /// The work that reclamation has done, and what is free in runs, once that is known.
    pub(super) fn stats<P: Pmem>(&self, writer: &Writer<P>) -> ReclaimStats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (_, heap_bytes, item_bytes) = writer.items().heap().counts();
        let is_known = writer.rebuild().is_known();
        ReclaimStats {
            debt_bytes: if is_known { heap_bytes - item_bytes } else { 0 },
            passes: of(&self.passes),
            moved_records: of(&self.moved.records),
            moved_bytes: of(&self.moved.bytes),
            blocks_freed: of(&self.moved.blocks_freed),
            blocks_given_back: 0,
        }
    }
}
