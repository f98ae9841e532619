//! Waiting, where there is a journal, until an operation may be acknowledged. An operation waits once, at
//! its end, outside of all locks; engines do not know.

use chimera_pmem::Pmem;
use chimera_pmem::journal::Journal;

use super::read;
use crate::engine::contract::core::Core;
use crate::engine::contract::engine::Engine;
use crate::engine::contract::listed::Listed;
use crate::types::error::Result;

impl<P: Pmem> Core<P> {
    /// Waits until a write may be acknowledged. One that failed is not.
    #[inline(always)]
    pub(crate) fn settled<T>(&self, outcome: Result<T>) -> Result<T> {
        match self.pool.pmem.journal() {
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
        let settled = self.pool.settle(journal);
        settled.inspect_err(|error| self.poison.poison(&error.to_string()))
    }

    /// Nobody waits for these writes, because no user made them.
    pub(crate) fn forget(&self) {
        if let Some(journal) = self.pool.pmem.journal() {
            journal.forget();
        }
    }
}

/// [`read::get_with`], settled before the value is handed out.
#[inline(always)]
pub(crate) fn get_with<P: Pmem, E: Engine<P>, T>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
    take: impl FnOnce(&[u8]) -> T,
) -> Result<Option<T>> {
    match engine.core().pool.pmem.journal() {
        Some(journal) => get_settled(engine, client, key, take, journal),
        None => read::get_with(engine, client, key, take),
    }
}

/// As [`get_with`], where there is a journal: apart, so that gets of the others stay as short as they are.
#[inline(never)]
fn get_settled<P: Pmem, E: Engine<P>, T>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
    take: impl FnOnce(&[u8]) -> T,
    journal: &Journal,
) -> Result<Option<T>> {
    let pool = &*engine.core().pool;
    let safe = |value: &[u8]| pool.settle_read(journal).map(|()| take(value));
    match read::get_with(engine, client, key, safe)? {
        Some(taken) => taken.map(Some),
        None => pool.settle_read(journal).map(|()| None),
    }
}

/// [`read::multi_get_with`], settled before values are handed out.
pub(crate) fn multi_get_with<P: Pmem, E: Engine<P>, K: AsRef<[u8]>>(
    engine: &E,
    client: &mut E::Client,
    keys: &[K],
    mut take: impl FnMut(usize, Option<&[u8]>),
) -> Result<()> {
    let pool = &*engine.core().pool;
    let Some(journal) = pool.pmem.journal() else {
        return read::multi_get_with(engine, client, keys, take);
    };
    let mut settled = Ok(());
    let safe = |number: usize, value: Option<&[u8]>| {
        if settled.is_ok() {
            settled = pool.settle_read(journal);
        }
        if settled.is_ok() {
            take(number, value);
        }
    };
    read::multi_get_with(engine, client, keys, safe)?;
    settled
}

/// [`Engine::list`], settled before records are handed out.
pub(crate) fn list<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    from: u64,
    mut take: impl FnMut(&Listed<'_>) -> bool,
) -> Result<()> {
    let pool = &*engine.core().pool;
    let Some(journal) = pool.pmem.journal() else {
        return engine.list(client, from, take);
    };
    let mut settled = Ok(());
    let safe = |listed: &Listed<'_>| {
        settled = pool.settle_read(journal);
        settled.is_ok() && take(listed)
    };
    engine.list(client, from, safe)?;
    // Also for the keys that were not there any more.
    settled.and_then(|()| pool.settle_read(journal))
}
