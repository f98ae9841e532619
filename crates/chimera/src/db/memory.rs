//! The memory budget of a store on a plain file: what index and order take of it, and what is left for pages.

use std::sync::Arc;

use chimera_pmem::Pmem;
use chimera_pmem::journal::MemoryLimits;

use super::Inner;
use crate::pool::PoolOptions;
use crate::types::error::{Error, Result};

/// Bytes for pages that were stored to, at least: below that a store does little but wait.
const PAGES_MIN: u64 = 8 << 20;

/// What pages may take of a budget of which the index and tables take `dram_bytes`. A quarter of the rest is for what a long
/// step adds before it waits, and for the lines that a checkpoint writes back.
fn for_pages(budget: u64, dram_bytes: u64) -> u64 {
    (budget.saturating_sub(dram_bytes) / 4 * 3).max(PAGES_MIN)
}

/// A budget that nobody asked for is a share of what the process may use. A store must not need more than this many of it,
/// three quarters of all: beyond that the operating system is about to end the process.
const USUAL_BUDGETS_MAX: u64 = 3;

/// What a store cannot do without.
fn needed(dram_bytes: u64) -> u64 {
    dram_bytes.saturating_add(PAGES_MIN)
}

impl<P: Pmem> Inner<P> {
    /// DRAM of the index, of tables and of the order of keys.
    fn dram_bytes(&self) -> u64 {
        let dram = self.engine.dram();
        let order = self.engine.core().changes.order().map_or(0, |order| order.stats().dram_bytes);
        dram.index_bytes + dram.table_bytes + order
    }
}

/// Bounds the memory of a store that has a journal, now and as long as it is open.
///
/// # Errors
/// `MemoryBudget` when the index leaves too little of a budget that was asked for.
pub(super) fn limit<P: Pmem>(inner: &Arc<Inner<P>>, options: &PoolOptions) -> Result<()> {
    let pool = &inner.engine.core().pool;
    let Some(journal) = pool.pmem.journal().filter(|_| options.page_limit.is_none()) else {
        return Ok(());
    };
    let (environment, options) = (pool.environment.clone(), options.clone());
    let Some(budget) = options.memory_budget(&*environment) else { return Ok(()) };
    let dram_bytes = inner.dram_bytes();
    let needed_now = needed(dram_bytes);
    if needed_now > budget && options.memory_budget.is_some() {
        return Err(Error::MemoryBudget { needed: needed_now, budget });
    }
    let budgets_max = if options.memory_budget.is_some() { 1 } else { USUAL_BUDGETS_MAX };
    let limits = move |budget: u64, dram_bytes| MemoryLimits {
        budget,
        needed: needed(dram_bytes),
        needed_max: budget.saturating_mul(budgets_max),
        pages: for_pages(budget, dram_bytes),
    };
    journal.limit_memory(limits(budget, dram_bytes));
    let inner = Arc::downgrade(inner);
    journal.ask_for_limits(move || {
        let (inner, budget) = (inner.upgrade()?, options.memory_budget(&*environment)?);
        Some(limits(budget, inner.dram_bytes()))
    });
    Ok(())
}
