//! Puts of many records.

use chimera_pmem::Pmem;

use crate::engine::contract::engine::Engine;
use crate::types::error::Result;

/// Keys whose cache misses in the index overlap.
const GROUP: usize = 16;

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
            let is_new = engine.put(client, key.as_ref(), value)?;
            done(is_new, value.len());
        }
    }
    Ok(())
}
