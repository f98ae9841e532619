//! Reading, changing and replacing a value as one step.

use chimera_pmem::Pmem;

use crate::engine::contract::client::{Client, Written};
use crate::engine::contract::engine::Engine;
use crate::types::error::{Error, Result};
use crate::types::swap::Swap;

/// Replaces the value of `key` by what `change` makes of a copy of it, which it changes outside of all
/// locks; `false` when there is no such key. `change` runs again when another session was faster. Where it says `false`, nothing
/// is changed.
pub(crate) fn update<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
    mut change: impl FnMut(&mut Vec<u8>) -> bool,
) -> Result<bool> {
    let core = engine.core();
    engine.check_key(key)?;
    core.poison.check()?;
    let hash = core.hash.of(key);
    let mut attempt = 0;
    loop {
        if !engine.read(client, hash, key)? {
            return Ok(false);
        }
        let before = std::mem::take(&mut client.shared().value);
        let mut after = std::mem::take(&mut client.shared().changed);
        after.clear();
        after.extend_from_slice(&before);
        let swap = if change(&mut after) {
            let checked = engine.check_value(&after);
            checked.and_then(|()| engine.replace(client, hash, key, &before, &after, false))
        } else {
            client.shared().written = Written::Nothing;
            Ok(Swap::Swapped)
        };
        client.shared().value = before;
        client.shared().changed = after;
        match swap? {
            Swap::Swapped => return Ok(true),
            // Gone since it was read, or changed: the present value decides.
            Swap::Missing | Swap::Different => {
                core.environment().relax(attempt);
                attempt = attempt.saturating_add(1);
            }
        }
    }
}

/// [`Engine::update_word`] for 8 bytes that are no aligned word: the record is written anew.
#[cold]
pub(crate) fn update_bytes<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
    at: usize,
    change: impl Fn(u64) -> Option<u64>,
) -> Result<Option<u64>> {
    let kind = engine.kind();
    let value_bytes = kind.value_bytes as usize;
    if kind.is_fixed() && at.checked_add(8).is_none_or(|end| end > value_bytes) {
        return Err(Error::FieldOutOfRange { at, value_bytes });
    }
    let (mut previous, mut outside) = (0, None);
    let found = update(engine, client, key, |value| {
        let value_bytes = value.len();
        let field = at.checked_add(8).and_then(|end| value.get_mut(at..end));
        let Some(field) = field else {
            outside = Some(value_bytes);
            return false;
        };
        outside = None;
        previous = u64::from_le_bytes((&*field).try_into().expect("8 bytes"));
        if let Some(new) = change(previous) {
            field.copy_from_slice(&new.to_le_bytes());
        }
        true
    })?;
    match outside {
        Some(value_bytes) => Err(Error::FieldOutOfRange { at, value_bytes }),
        None => Ok(found.then_some(previous)),
    }
}

/// Replaces the value of `key` by `new` if it is `expected`.
pub(crate) fn compare_and_swap<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
    expected: &[u8],
    new: &[u8],
) -> Result<Swap> {
    engine.check_key(key)?;
    engine.check_value(expected)?;
    engine.check_value(new)?;
    engine.replace(client, engine.core().hash.of(key), key, expected, new, true)
}

/// As [`Engine::update_word`], at any position.
#[inline]
pub(crate) fn update_u64<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
    at: usize,
    change: impl Fn(u64) -> Option<u64>,
) -> Result<Option<u64>> {
    engine.check_key(key)?;
    if at.is_multiple_of(8) {
        engine.update_word(client, key, at, change)
    } else {
        update_bytes(engine, client, key, at, change)
    }
}
