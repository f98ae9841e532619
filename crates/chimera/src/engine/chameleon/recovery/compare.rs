//! Whether a store is what it was when it was closed in order.

use std::collections::HashMap;

use chimera_pmem::Pmem;

use super::{PREFETCHED, Recovery, Unflushed};
use crate::index::probing_table::Slot;
use crate::pool::TOTALS_AT;
use crate::types::error::{Error, Result};
use crate::types::totals::Totals;

impl<P: Pmem> Recovery<'_, P> {
    /// What was found, to be compared with what the store held when it was closed in order.
    pub(super) fn found_totals(&self) -> Totals {
        let pool = &self.index().core().pool;
        let mut found = Totals { records: self.index().count_records(), ..self.totals };
        if let Some(closed) = pool.closed_totals().filter(|_| !pool.was_clean()) {
            // An opening that was interrupted may have flushed, and what it made is no older than the closing.
            found.state_sum = closed.state_sum;
        }
        found
    }

    /// Compares the tables and the log with what they were when the store was closed in order, before anything is changed:
    /// what is older may be put right by hand. How many records there are is known when the log was replayed; where that makes
    /// tables, they are [counted](Self::compare_count) before.
    ///
    /// # Errors
    /// `Corrupted` where a part is older, unless the store is salvaged.
    pub(super) fn compare_state(&self) -> Result<()> {
        let pool = &self.index().core().pool;
        let Some(closed) = pool.closed_totals().filter(|_| pool.was_clean() && !self.salvage)
        else {
            return Ok(());
        };
        let state = |totals: Totals| Totals { state_sum: totals.state_sum, ..Totals::default() };
        let difference = state(closed).difference(state(self.totals));
        difference.map_or(Ok(()), |what| Err(Error::corrupted(what, TOTALS_AT)))
    }

    /// Compares how many records there will be when these writes are replayed, in the order of their shards and versions, with
    /// how many there were when the store was closed in order. Where replay makes tables, these say how many there are: a
    /// wrong number could not be put right by hand any more.
    ///
    /// # Errors
    /// `Corrupted` where there were others, or where something that has to be looked at is damaged.
    ///
    /// # Cost
    /// A look at the tables for each write.
    pub(super) fn compare_count(&self, unflushed: &[Unflushed]) -> Result<()> {
        let index = self.index();
        let count = |records| Totals { records, ..Totals::default() };
        let closed = index.core().pool.closed_totals().map(|closed| count(closed.records));
        let Some(closed) = closed.filter(|closed| closed.records != Totals::UNCOUNTED) else {
            return Ok(());
        };
        let mut records = index.count_records();
        let mut newest: HashMap<u64, Vec<Slot>> = HashMap::new();
        for (number, write) in unflushed.iter().enumerate().rev() {
            if let Some(earlier) = number.checked_sub(PREFETCHED).map(|number| &unflushed[number]) {
                index.shards().prefetch_all(earlier.slot.hash);
            }
            let newer = newest.entry(write.slot.hash).or_default();
            if newer.iter().any(|newer| index.records().is_same_key(*newer, write.slot)) {
                continue;
            }
            newer.push(write.slot);
            let old = index.find_replaced(write.shard, write.slot)?;
            let is_live = write.slot.found().is_some_and(|found| !found.is_tombstone);
            records = records.saturating_add(is_live.into());
            records = records.saturating_sub(old.is_some_and(|old| !old.is_tombstone).into());
        }
        let difference = closed.difference(count(records));
        difference.map_or(Ok(()), |what| Err(Error::corrupted(what, TOTALS_AT)))
    }
}
