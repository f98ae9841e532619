//! Engines: how records and an index are joined into a store. Each fixes the order of writes,
//! flushes, fences and index changes, and argues why a crash between any two of them loses nothing.
//!
//! An engine knows the records it keeps and the index that points at them; neither knows the other.
//! What engines share is here: the hash of a key, the locks of keys, the state after a failure.

mod keys;
mod poison;
pub(crate) mod viper;

pub(crate) use keys::{KeyHash, KeyLocks};
pub(crate) use poison::Poison;
