//! [`Listed`]: a record as a listing gives it.
//!
//! A *position* is a place in the order of a store's listings, which stays the same for as long as the store
//! lives. Each key has one, and hardly ever two keys the same. What the number means is the engine's.

#[cfg(feature = "teaching-engine")]
use {
    super::client::Client, crate::engine::Engine, crate::types::error::Result, chimera_pmem::Pmem,
    std::ops::Bound,
};

/// A record as a listing gives it.
pub(crate) struct Listed<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) position: u64,
    /// Records before this position have been handed out, this one included unless another one is at the
    /// same.
    pub(crate) done_below: u64,
}

/// Hands records, keys and values, to `take`: all that there are at `position`. `false` when it says so. `buffer` gets a value
/// back, to be used again.
pub(crate) fn hand_out(
    position: u64,
    records: Vec<(Vec<u8>, Vec<u8>)>,
    buffer: &mut Vec<u8>,
    take: &mut impl FnMut(&Listed<'_>) -> bool,
) -> bool {
    let count = records.len();
    records.into_iter().enumerate().all(|(number, (key, value))| {
        let done_below = position.saturating_add(u64::from(number + 1 == count));
        let goes_on = take(&Listed { key: &key, value: &value, position, done_below });
        *buffer = value;
        goes_on
    })
}

/// A key with its position in listings, as a range of an ordered map begins or ends with it.
#[cfg(feature = "teaching-engine")]
pub(crate) type PlacedKey = (u64, Vec<u8>);

/// [`Engine::list`] of an engine that has its keys in order. `key_after` finds the first key after another one, and
/// tells whether no other key at its position follows.
#[cfg(feature = "teaching-engine")]
pub(crate) fn by_key<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    from: u64,
    mut take: impl FnMut(&Listed<'_>) -> bool,
    key_after: impl Fn(Bound<PlacedKey>) -> Option<(PlacedKey, bool)>,
) -> Result<()> {
    let mut after = Bound::Included((from, Vec::new()));
    while let Some(((position, key), is_last)) = key_after(after) {
        let done_below = if is_last { position.saturating_add(1) } else { position };
        if engine.read(client, engine.core().hash.of(&key), &key)? {
            let value = &client.shared().value;
            if !take(&Listed { key: &key, value, position, done_below }) {
                return Ok(());
            }
        }
        after = Bound::Excluded((position, key));
    }
    Ok(())
}
