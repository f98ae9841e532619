//! [`Engine`]: the engine of a store, chosen once, called by one match.

use chimera_pmem::journal::Journal;
use chimera_pmem::{Hardware, Pmem};

use crate::engine::Poison;
use crate::engine::viper::{Client, Listed, Sizes, Step, Viper};
use crate::pool::Pool;
use crate::records::vpage::{LogPages, SlottedPages};
use crate::types::check::CheckReport;
use crate::types::error::Result;
use crate::types::inspect::InspectReport;
use crate::types::options::Progress;
use crate::types::stats::ReclaimStats;
use crate::types::swap::Swap;

/// The engine of a store.
pub(crate) enum Engine<P: Pmem = Hardware> {
    Viper(Viper<P, SlottedPages>),
    /// Viper with records of any size.
    ViperLog(Viper<P, LogPages>),
}

/// Calls the same method of whichever engine it is.
macro_rules! each {
    ($self:ident, $engine:ident => $call:expr) => {
        match $self {
            Engine::Viper($engine) => $call,
            Engine::ViperLog($engine) => $call,
        }
    };
}

impl<P: Pmem> Engine<P> {
    pub(crate) fn pool(&self) -> &Pool<P> {
        each!(self, engine => &engine.pool)
    }

    pub(crate) fn poison(&self) -> &Poison {
        each!(self, engine => &engine.poison)
    }

    #[inline]
    pub(crate) fn put(&self, client: &mut Client, key: &[u8], value: &[u8]) -> Result<bool> {
        self.settled(each!(self, engine => engine.put(client, key, value)))
    }

    #[inline]
    pub(crate) fn get_with<T>(
        &self,
        client: &mut Client,
        key: &[u8],
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        let Some(journal) = self.pool().pmem.journal() else {
            return each!(self, engine => engine.get_with(client, key, take));
        };
        let safe = |value: &[u8]| self.pool().settle_read(journal).map(|()| take(value));
        match each!(self, engine => engine.get_with(client, key, safe))? {
            Some(taken) => taken.map(Some),
            None => self.pool().settle_read(journal).map(|()| None),
        }
    }

    pub(crate) fn multi_get_with<K: AsRef<[u8]>>(
        &self,
        client: &mut Client,
        keys: &[K],
        mut take: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        let Some(journal) = self.pool().pmem.journal() else {
            return each!(self, engine => engine.multi_get_with(client, keys, take));
        };
        let mut settled = Ok(());
        let safe = |number: usize, value: Option<&[u8]>| {
            if settled.is_ok() {
                settled = self.pool().settle_read(journal);
            }
            if settled.is_ok() {
                take(number, value);
            }
        };
        each!(self, engine => engine.multi_get_with(client, keys, safe))?;
        settled
    }

    pub(crate) fn update(
        &self,
        client: &mut Client,
        key: &[u8],
        change: impl FnMut(&mut Vec<u8>),
    ) -> Result<bool> {
        self.settled(each!(self, engine => engine.update(client, key, change)))
    }

    #[inline]
    pub(crate) fn update_u64(
        &self,
        client: &mut Client,
        key: &[u8],
        at: usize,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>> {
        self.settled(each!(self, engine => engine.update_u64(client, key, at, change)))
    }

    pub(crate) fn compare_and_swap(
        &self,
        client: &mut Client,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
    ) -> Result<Swap> {
        self.settled(each!(self, engine => engine.compare_and_swap(client, key, expected, new)))
    }

    #[inline]
    pub(crate) fn delete(&self, client: &mut Client, key: &[u8]) -> Result<bool> {
        self.settled(each!(self, engine => engine.delete(client, key)))
    }

    pub(crate) fn list(
        &self,
        client: &mut Client,
        from: u64,
        mut take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()> {
        let Some(journal) = self.pool().pmem.journal() else {
            return each!(self, engine => engine.list(client, from, take));
        };
        let mut settled = Ok(());
        let safe = |listed: &Listed<'_>| {
            settled = self.pool().settle_read(journal);
            settled.is_ok() && take(listed)
        };
        each!(self, engine => engine.list(client, from, safe))?;
        // Also for the keys that were not there any more.
        settled.and_then(|()| self.pool().settle_read(journal))
    }

    /// Waits, where there is a journal, until a write may be acknowledged. One that failed is not.
    #[inline(always)]
    fn settled<T>(&self, outcome: Result<T>) -> Result<T> {
        match self.pool().pmem.journal() {
            Some(journal) if outcome.is_ok() => self.settle(journal).and(outcome),
            Some(journal) => {
                journal.forget();
                outcome
            }
            None => outcome,
        }
    }

    #[inline(never)]
    fn settle(&self, journal: &Journal) -> Result<()> {
        let settled = self.pool().settle(journal);
        settled.inspect_err(|error| self.poison().poison(&error.to_string()))
    }

    pub(crate) fn end(&self, client: &mut Client) {
        each!(self, engine => engine.end(client));
        if let Some(journal) = self.pool().pmem.journal() {
            journal.forget();
        }
    }

    pub(crate) fn check(&self, progress: Option<&Progress>) -> CheckReport {
        each!(self, engine => engine.check(progress))
    }

    pub(crate) fn inspect(&self, progress: Option<&Progress>) -> InspectReport {
        each!(self, engine => engine.inspect(progress))
    }

    pub(crate) fn sizes(&self) -> Sizes {
        each!(self, engine => engine.sizes())
    }

    /// One step of space reclamation. Nobody waits until it is durable: what is moved is there twice
    /// until it is.
    pub(crate) fn reclaim_step(&self, free_percent: u32) -> Result<Step> {
        let step = each!(self, engine => engine.reclaim_step(free_percent));
        if let Some(journal) = self.pool().pmem.journal() {
            journal.forget();
        }
        step
    }

    pub(crate) fn end_reclaim(&self) {
        each!(self, engine => engine.end_reclaim());
    }

    pub(crate) fn reclaim_stats(&self) -> ReclaimStats {
        each!(self, engine => engine.reclaim_stats())
    }

    /// Closes the pool in order. A poisoned store stays marked as open.
    pub(crate) fn close(&self) -> Result<()> {
        self.pool().stop_background();
        match self.poison().failure() {
            Some(_) => Ok(()),
            None => self.pool().close(),
        }
    }
}
