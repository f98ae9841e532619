//! Listings: every entry, in an order that does not depend on how the table has grown.

use super::ExtendibleHash;
use crate::pool::Location;

/// Where the entries of a hash come in a listing. The directory goes by the low bits of a hash. With these
/// turned to the front, whatever is in a segment is next to each other, also after a split; and the order
/// follows from the hashes alone.
#[inline(always)]
pub(crate) const fn position_of(hash: u64) -> u64 {
    hash.reverse_bits()
}

/// The hash that comes at a position.
pub(super) const fn hash_at(position: u64) -> u64 {
    position.reverse_bits()
}

impl ExtendibleHash {
    /// Adds to `into`, in no order, the entries from position `from` on up to some later position, and
    /// returns the position after that: `None` when there is none. What is there at this moment is
    /// added, exactly once. No lock is held afterwards.
    ///
    /// # Cost
    /// Reads a segment, or what is behind `from` in it, with its lock held.
    pub(crate) fn list(&self, from: u64, into: &mut Vec<(u64, Location)>) -> Option<u64> {
        let locked = self.lock(hash_at(from));
        // All hashes of the segment have this many low bits in common.
        let last = from | u64::MAX.checked_shr(locked.header.depth()).unwrap_or(0);
        locked.slots().for_each(|entry| {
            if position_of(entry.hash) >= from {
                into.push((entry.hash, entry.location));
            }
        });
        // Its entries in the overflow change under the segment's lock only.
        self.overflow.list(from..=last, into);
        last.checked_add(1)
    }

    /// Hands out every entry. One that is there all the time comes exactly once. No lock is held while
    /// `take` runs.
    pub(crate) fn for_each(&self, mut take: impl FnMut(u64, Location)) {
        let mut batch = Vec::with_capacity(self.geometry.slots_per_segment() as usize);
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.list(from, &mut batch);
            batch.drain(..).for_each(|(hash, location)| take(hash, location));
        }
    }
}
