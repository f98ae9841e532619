//! Reading values by their keys.

use chimera_pmem::Pmem;

use crate::engine::contract::client::Client;
use crate::engine::contract::engine::Engine;
use crate::types::error::Result;

/// Hands the value of `key` to `take`.
#[inline]
pub(crate) fn get_with<P: Pmem, E: Engine<P>, T>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
    take: impl FnOnce(&[u8]) -> T,
) -> Result<Option<T>> {
    engine.check_key(key)?;
    let found = engine.get(client, engine.core().hash.of(key), key)?;
    Ok(if found { Some(take(&client.shared().value)) } else { None })
}

/// Hands the values of `keys` to `take`, with the key's number.
pub(crate) fn multi_get_with<P: Pmem, E: Engine<P>, K: AsRef<[u8]>>(
    engine: &E,
    client: &mut E::Client,
    keys: &[K],
    take: impl FnMut(usize, Option<&[u8]>),
) -> Result<()> {
    for key in keys {
        engine.check_key(key.as_ref())?;
    }
    engine.read_many(client, keys, take)
}
