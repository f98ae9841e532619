//! Reading values by their keys.

use chimera_pmem::Pmem;

use super::GROUP;
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
    read_groups(engine, client, keys, take)
}

/// Hands the values of `keys`, which are checked, to `take`, with the key's number. Cache misses of a group overlap, as far
/// as the engine can start loading.
fn read_groups<P: Pmem, E: Engine<P>, K: AsRef<[u8]>>(
    engine: &E,
    client: &mut E::Client,
    keys: &[K],
    mut take: impl FnMut(usize, Option<&[u8]>),
) -> Result<()> {
    let mut first = 0;
    for group in keys.chunks(GROUP) {
        let mut hashes = [0; GROUP];
        for (hash, key) in hashes.iter_mut().zip(group) {
            *hash = engine.core().hash.of(key.as_ref());
            engine.prefetch_to_get(*hash);
        }
        engine.prefetch_records(&hashes[..group.len()]);
        for (number, (hash, key)) in hashes.iter().zip(group).enumerate() {
            let found = engine.get(client, *hash, key.as_ref())?;
            take(first + number, found.then_some(&client.shared().value));
        }
        first += group.len();
    }
    Ok(())
}
