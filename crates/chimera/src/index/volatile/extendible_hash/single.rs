//! Changes of entries whose commit step does nothing, and which are known by their location alone: for tests.

use std::convert::Infallible;

use super::ExtendibleHash;
use super::bucket::Found;
use crate::pool::Location;

impl ExtendibleHash {
    pub(crate) fn insert(&self, hash: u64, location: Location) {
        let Ok(()) = self.insert_after(hash, location, || Ok::<(), Infallible>(()));
    }

    pub(crate) fn swap_if(&self, hash: u64, old: Location, new: Location) -> bool {
        let Ok(swapped) =
            self.swap_after(hash, &by_location(old), new, || Ok::<(), Infallible>(()));
        swapped
    }

    pub(crate) fn remove_if(&self, hash: u64, old: Location) -> bool {
        let Ok(removed) = self.remove_after(hash, &by_location(old), || Ok::<(), Infallible>(()));
        removed
    }
}

/// As if a lookup had found the entry in the overflow.
pub(super) fn by_location<'a>(location: Location) -> Found<'a> {
    Found { segment: 0, slot: None, location }
}
