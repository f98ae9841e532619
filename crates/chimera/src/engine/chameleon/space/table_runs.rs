//! [`TableRuns`]: which runs of blocks tables have.

use std::collections::HashMap;

use crate::engine::chameleon::runs::TABLE;
use crate::pool::runs::Run;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};

/// The runs of tables.
#[derive(Debug, Default)]
pub(super) struct TableRuns {
    /// By the offset where a table can begin.
    by_start: Mutex<HashMap<u64, Run>>,
    /// Blocks of last tables and dumps.
    last_blocks: AtomicU64,
}

impl TableRuns {
    pub(super) fn put(&self, at: u64, run: Run) {
        if run.is(TABLE) {
            self.last_blocks.fetch_add(run.blocks().into(), Ordering::Relaxed);
        }
        lock(&self.by_start).insert(at, run);
    }

    pub(super) fn take(&self, at: u64) -> Option<Run> {
        let run = lock(&self.by_start).remove(&at);
        if let Some(run) = run.as_ref().filter(|run| run.is(TABLE)) {
            self.last_blocks.fetch_sub(run.blocks().into(), Ordering::Relaxed);
        }
        run
    }

    pub(super) fn blocks(&self, at: u64) -> Option<u32> {
        lock(&self.by_start).get(&at).map(Run::blocks)
    }

    /// Blocks of all last tables and dumps.
    pub(super) fn last_blocks(&self) -> u64 {
        self.last_blocks.load(Ordering::Relaxed)
    }
}
