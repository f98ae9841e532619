//! Writes with a condition: the key is absent, or its value is as expected. Each is one atomic step on its key.

use chimera_pmem::Pmem;

use super::update::{update, update_u64};
use super::writes::admit;
use crate::engine::contract::client::Client;
use crate::engine::contract::engine::Engine;
use crate::types::error::{Error, Result};
use crate::types::swap::Swap;

/// Stores `value` under `key` if there is no such key; tells whether there was none.
pub(crate) fn insert<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
    value: &[u8],
) -> Result<bool> {
    engine.check_key(key)?;
    engine.check_value(value)?;
    admit(engine, client, key)?;
    engine.insert(client, engine.core().hash.of(key), key, value)
}

/// Replaces the value of `key` by what `change` makes of it, or stores `absent` where there is no such key; tells whether
/// there was none.
pub(crate) fn update_or_insert<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
    absent: &[u8],
    mut change: impl FnMut(&mut Vec<u8>) -> bool,
) -> Result<bool> {
    until_done(engine, || {
        if update(engine, client, key, &mut change)? {
            return Ok(Some(false));
        }
        Ok(insert(engine, client, key, absent)?.then_some(true))
    })
}

/// Adds to the number at `at` of the value of `key`, or of `absent`, which is stored then, where there is no such key. The
/// number before.
pub(crate) fn add_or_insert<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
    (at, delta): (usize, u64),
    absent: &[u8],
) -> Result<(u64, bool)> {
    let add = |old: u64| Some(old.wrapping_add(delta));
    until_done(engine, || {
        if let Some(before) = update_u64(engine, client, key, at, add)? {
            return Ok(Some((before, false)));
        }
        let mut value = absent.to_vec();
        let field = at.checked_add(8).and_then(|end| value.get_mut(at..end));
        let outside = || Error::FieldOutOfRange { at, value_bytes: absent.len() };
        let field = field.ok_or_else(outside)?;
        let before = u64::from_le_bytes((&*field).try_into().expect("8 bytes"));
        field.copy_from_slice(&before.wrapping_add(delta).to_le_bytes());
        Ok(insert(engine, client, key, &value)?.then_some((before, true)))
    })
}

/// Replaces the value of `key` by `new` if it is `expected`. `None` is that there is no such key.
pub(crate) fn swap<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
    expected: Option<&[u8]>,
    new: Option<&[u8]>,
) -> Result<Swap> {
    let swapped = |is_done: bool| if is_done { Swap::Swapped } else { Swap::Different };
    match (expected, new) {
        (Some(expected), Some(new)) => {
            super::update::compare_and_swap(engine, client, key, expected, new)
        }
        (None, Some(new)) => insert(engine, client, key, new).map(swapped),
        (Some(expected), None) => {
            engine.check_key(key)?;
            engine.check_value(expected)?;
            engine.remove_if(client, engine.core().hash.of(key), key, expected)
        }
        (None, None) => {
            engine.check_key(key)?;
            let is_there = engine.read(client, engine.core().hash.of(key), key)?;
            Ok(swapped(!is_there))
        }
    }
}

/// Removes `key` if `condition` holds of its value. It is asked again when the value has changed meanwhile.
pub(crate) fn delete_if<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
    mut condition: impl FnMut(&[u8]) -> bool,
) -> Result<Swap> {
    engine.check_key(key)?;
    engine.core().poison.check()?;
    let hash = engine.core().hash.of(key);
    until_done(engine, || {
        if !engine.read(client, hash, key)? {
            return Ok(Some(Swap::Missing));
        }
        let value = std::mem::take(&mut client.shared().changed);
        let value = std::mem::replace(&mut client.shared().value, value);
        let removed = if condition(&value) {
            engine.remove_if(client, hash, key, &value).map(|swap| match swap {
                Swap::Swapped | Swap::Missing => Some(swap),
                Swap::Different => None,
            })
        } else {
            Ok(Some(Swap::Different))
        };
        client.shared().changed = value;
        removed
    })
}

/// Tries again while another session is faster.
fn until_done<P: Pmem, E: Engine<P>, T>(
    engine: &E,
    mut attempt: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let mut attempts = 0;
    loop {
        if let Some(done) = attempt()? {
            return Ok(done);
        }
        engine.core().environment().relax(attempts);
        attempts = attempts.saturating_add(1);
    }
}
