//! The memory budget of a store on a plain file: what index and order take of it, and what is left for pages.

use std::sync::Arc;
use std::time::Duration;

use chimera_pmem::Pmem;
use chimera_pmem::journal::MemoryLimits;

use super::Inner;
use crate::pool::{Pool, PoolOptions};
use crate::types::error::{Error, Result};

/// Bytes for pages that were stored to, at least: below that a store does little but wait.
const PAGES_MIN: u64 = 8 << 20;
/// A budget that nobody asked for is a share of what the process may use. A store must not need more than this many of it,
/// three quarters of all: beyond that the operating system is about to end the process.
const USUAL_BUDGETS_MAX: u64 = 3;

/// How often to look at what the index takes. It grows by some 10 MiB in a second, at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The same where the system is asked for the budget, which takes reading files: there may be many stores.
const LOOK_AT_SYSTEM_EVERY: Duration = Duration::from_secs(5);

/// What pages may take of a budget of which the index and tables take `dram_bytes`. Five sixteenths of the rest are for what a
/// long step adds before it waits, and for the lines that a checkpoint writes back.
fn for_pages(budget: u64, dram_bytes: u64) -> u64 {
    (budget.saturating_sub(dram_bytes) / 16 * 11).max(PAGES_MIN)
}

/// What tables may take that could as well be smaller: half of what the least of pages leaves.
fn for_tables(budget: u64) -> u64 {
    budget.saturating_sub(PAGES_MIN) / 2
}

/// What a store cannot do without.
fn needed(dram_bytes: u64) -> u64 {
    dram_bytes.saturating_add(PAGES_MIN)
}

/// The limits of a store of which the index and tables take `dram_bytes`.
fn limits(budget: u64, is_asked_for: bool, dram_bytes: u64) -> MemoryLimits {
    let budgets_max = if is_asked_for { 1 } else { USUAL_BUDGETS_MAX };
    MemoryLimits {
        budget,
        needed: needed(dram_bytes),
        needed_max: budget.saturating_mul(budgets_max),
        pages: for_pages(budget, dram_bytes),
        tables: for_tables(budget),
    }
}

impl<P: Pmem> Inner<P> {
    /// DRAM of the index, of tables and of the order of keys.
    fn dram_bytes(&self) -> u64 {
        let dram = self.engine.dram();
        let order = self.engine.core().changes.order().map_or(0, |order| order.stats().dram_bytes);
        dram.index_bytes + dram.table_bytes + order
    }
}

/// Bounds the tables of a store that has a journal and is being opened: what they may grow to is known before they do.
pub(super) fn limit_tables<P: Pmem>(pool: &Pool<P>, options: &PoolOptions) {
    let journal = pool.pmem.journal().filter(|_| options.page_limit.is_none());
    if let Some((journal, budget)) = journal.zip(options.memory_budget(&*pool.environment)) {
        journal.limit_tables(for_tables(budget));
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
    let is_asked_for = options.memory_budget.is_some();
    let now = limits(budget, is_asked_for, inner.dram_bytes());
    if is_asked_for && now.needed > budget {
        return Err(Error::MemoryBudget { needed: now.needed, budget });
    }
    journal.limit_memory(now);
    let inner = Arc::downgrade(inner);
    let every = if is_asked_for { LOOK_EVERY } else { LOOK_AT_SYSTEM_EVERY };
    journal.ask_for_limits(every, move || {
        let (inner, budget) = (inner.upgrade()?, options.memory_budget(&*environment)?);
        Some(limits(budget, is_asked_for, inner.dram_bytes()))
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_budget_that_was_asked_for_is_a_bound_and_another_one_a_third_of_it() {
        let [asked, usual] = [true, false].map(|is_asked_for| limits(100 * MIB, is_asked_for, MIB));
        assert_eq!((asked.needed, asked.needed_max), (9 * MIB, 100 * MIB));
        assert_eq!((usual.needed, usual.needed_max), (9 * MIB, 300 * MIB));
        assert_eq!(limits(u64::MAX, false, u64::MAX).needed_max, u64::MAX);
    }

    #[test]
    fn pages_get_eleven_sixteenths_of_what_the_index_leaves_and_a_little_at_least() {
        let pages = |dram_bytes| limits(100 * MIB, true, dram_bytes).pages;
        assert_eq!([0, 60, 95, 200].map(|mib| pages(mib * MIB) / MIB), [68, 27, 8, 8]);
    }

    #[test]
    fn tables_that_grow_as_far_as_they_may_leave_room_for_pages() {
        for budget in [0, 1, 8, 9, 100] {
            let tables = limits(budget * MIB, true, 0).tables;
            assert!(tables == 0 || needed(tables) < budget * MIB);
        }
        assert_eq!(limits(108 * MIB, true, 0).tables, 50 * MIB);
    }
}
