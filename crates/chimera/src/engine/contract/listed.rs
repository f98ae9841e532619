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
