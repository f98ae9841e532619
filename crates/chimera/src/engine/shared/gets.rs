//! Gets of many records.

use chimera_pmem::Pmem;

use super::GROUP;
use super::client::Client;
use crate::engine::Engine;
use crate::types::error::Result;

/// Hands the values of `keys`, which are checked, to `take`, with the key's number. Cache misses of a group overlap, as far
/// as the engine can start loading.
pub(crate) fn get_many<P: Pmem, E: Engine<P>, K: AsRef<[u8]>>(
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
