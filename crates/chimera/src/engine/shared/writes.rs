//! Puts and deletes, with lengths that are checked; and what a replacement does with the value that it has found.

use chimera_pmem::Pmem;
use chimera_pmem::journal::Journal;

use super::GROUP;
use crate::engine::contract::client::{Client, Written};
use crate::engine::contract::engine::Engine;
use crate::types::error::{Error, Result};
use crate::types::swap::Swap;

/// Stores `value` under `key`; tells whether the key is new.
#[inline(always)]
pub(crate) fn put<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
    value: &[u8],
) -> Result<bool> {
    engine.check_key(key)?;
    engine.check_value(value)?;
    admit(engine, client, key)?;
    engine.put(client, key, value)
}

/// As [`put`], of a value with a number that will be updated, at a position inside it.
pub(crate) fn put_counter<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
    value: &[u8],
    at: usize,
) -> Result<bool> {
    engine.check_key(key)?;
    engine.check_value(value)?;
    if at.checked_add(8).is_none_or(|end| end > value.len()) {
        return Err(Error::FieldOutOfRange { at, value_bytes: value.len() });
    }
    admit(engine, client, key)?;
    if at.is_multiple_of(8) {
        engine.put_counter(client, key, value, at)
    } else {
        engine.put(client, key, value)
    }
}

/// Refuses a new key where the index may take no more memory: only stores with a journal have such a limit.
///
/// # Errors
/// `MemoryBudget`, with nothing changed.
#[inline(always)]
pub(super) fn admit<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
) -> Result<()> {
    match engine.core().pool.pmem.journal() {
        Some(journal) if journal.needs_too_much() => admit_present(engine, client, key, journal),
        _ => Ok(()),
    }
}

/// A key that is there already takes no more memory.
#[cold]
#[inline(never)]
fn admit_present<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
    journal: &Journal,
) -> Result<()> {
    if engine.read(client, engine.core().hash.of(key), key)? {
        return Ok(());
    }
    let (needed, budget) = journal.needs();
    Err(Error::MemoryBudget { needed, budget })
}

/// Removes `key`; tells whether it was there.
#[inline(always)]
pub(crate) fn delete<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
) -> Result<bool> {
    engine.check_key(key)?;
    engine.delete(client, key)
}

/// Replaces the value that the client has read, under its key's lock, by `new` if it is `expected`: `write` does so, unless
/// they are the same.
#[inline(always)]
pub(crate) fn swap_read<C: Client>(
    client: &mut C,
    expected: &[u8],
    new: &[u8],
    write: impl FnOnce(&mut C) -> Result<()>,
) -> Result<Swap> {
    if client.shared().value != expected {
        return Ok(Swap::Different);
    }
    if new == expected {
        client.shared().written = Written::Nothing;
        return Ok(Swap::Swapped);
    }
    client.shared().written = Written::Anew;
    write(client).map(|()| Swap::Swapped)
}

/// Puts `records`, one after the other; tells `done` of each whether its key is new, and the bytes of its value. No key
/// and no value is refused after a record was put.
///
/// # Errors
/// As a put. Records before the one that fails were put.
pub(crate) fn put_many<P: Pmem, E: Engine<P>, K: AsRef<[u8]>, V: AsRef<[u8]>>(
    engine: &E,
    client: &mut E::Client,
    records: &[(K, V)],
    mut done: impl FnMut(bool, usize),
) -> Result<()> {
    for (key, value) in records {
        engine.check_key(key.as_ref())?;
        engine.check_value(value.as_ref())?;
    }
    for group in records.chunks(GROUP) {
        for (key, _) in group {
            engine.prefetch_to_put(engine.core().hash.of(key.as_ref()));
        }
        for (key, value) in group {
            let value = value.as_ref();
            admit(engine, client, key.as_ref())?;
            let is_new = engine.put(client, key.as_ref(), value)?;
            done(is_new, value.len());
        }
    }
    Ok(())
}
