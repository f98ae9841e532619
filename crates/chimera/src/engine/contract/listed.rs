//! [`Listed`]: a record as a listing gives it.
//!
//! A *position* is a place in the order of a store's listings, which stays the same for as long as the store
//! lives. Each key has one, and hardly ever two keys the same. What the number means is the engine's.

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
