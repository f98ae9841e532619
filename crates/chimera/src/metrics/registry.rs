//! [`Registry`]: the meters of open sessions, and the totals of those that have ended.

use std::sync::Arc;

use chimera_pmem::Environment;
use chimera_pmem::environment::Origin;

use super::block::{Block, Totals};
use crate::sync::{Mutex, lock};
use crate::types::operations::SessionStats;

/// All meters of a store.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(super) environment: Arc<dyn Environment>,
    /// One operation in so many is timed; 0 for none.
    pub(super) every: u32,
    /// The process that the store is open in.
    origin: Origin,
    meters: Mutex<Meters>,
}

#[derive(Debug, Default)]
struct Meters {
    open: Vec<Arc<Block>>,
    /// Of those that have ended.
    ended: Totals,
    opened: u64,
}

impl Registry {
    pub(crate) fn new(environment: Arc<dyn Environment>, every: u32) -> Arc<Self> {
        let origin = environment.origin();
        Arc::new(Self { environment, every, origin, meters: Mutex::default() })
    }

    /// The process that the store is open in.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// One operation in so many is timed; 0 for none.
    pub(crate) fn every(&self) -> u32 {
        self.every
    }

    /// What all sessions have counted, those that have ended included.
    pub(crate) fn totals(&self) -> Totals {
        let (mut totals, open) = {
            let meters = lock(&self.meters);
            (meters.ended.clone(), meters.open.clone())
        };
        // One that ends meanwhile is still what it was.
        for block in &open {
            block.add_to(&mut totals);
        }
        totals
    }

    /// What each open session has counted.
    pub(crate) fn sessions(&self) -> Vec<SessionStats> {
        let open = lock(&self.meters).open.clone();
        let stats = |block: &Arc<Block>| {
            let mut totals = Totals::default();
            block.add_to(&mut totals);
            SessionStats { number: block.number, operations: totals.stats() }
        };
        open.iter().map(stats).collect()
    }

    /// Sessions that are open, and that ever were.
    pub(crate) fn session_counts(&self) -> (u64, u64) {
        let meters = lock(&self.meters);
        (meters.open.len() as u64, meters.opened)
    }

    pub(super) fn enter(&self, block: Arc<Block>) {
        let mut meters = lock(&self.meters);
        meters.open.push(block);
        meters.opened += 1;
    }

    pub(super) fn leave(&self, block: &Arc<Block>) {
        if !self.origin.is_here() {
            // Forked: whoever held the lock then may hold it for ever.
            return;
        }
        let mut meters = lock(&self.meters);
        let found = meters.open.iter().position(|open| Arc::ptr_eq(open, block));
        if let Some(at) = found {
            meters.open.swap_remove(at);
            block.add_to(&mut meters.ended);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
