//! Entries in the order of their homes, which is that of hashes but for the last bits.

use super::{RobinHoodTable, Slot};

/// Homes whose entries are listed at a time.
const HOMES: u64 = 64;

impl RobinHoodTable {
    /// Hands the entries with hash `from` and some of those behind to `take`, in any order, as they are at one moment. The first
    /// hash that was not come to; none at the end.
    ///
    /// # Cost
    /// The lines of 64 slots, with the lock of their part held.
    pub(crate) fn list(&self, from: u64, mut take: impl FnMut(Slot)) -> Option<u64> {
        let _guard = self.lock(from);
        let shape = self.shape();
        let home = shape.home(from);
        // All of these are of the part, whose number of slots is a power of two.
        let most = HOMES.min(shape.slots());
        let homes = most - home % most;
        let mut number = home;
        // Behind the last slot of the part are those that went round.
        for step in 0..homes + shape.slots() {
            let (slot, this) = (self.load(number), number);
            number = shape.next(number);
            if slot.location == 0 {
                if step >= homes {
                    break;
                }
                continue;
            }
            // From the first home to that of the entry; less than nothing where it was pushed here from before.
            let behind = step as i64 - shape.distance(slot.hash, this) as i64;
            if behind >= homes as i64 {
                break;
            }
            if behind >= 0 && slot.hash >= from {
                take(slot);
            }
        }
        let next = home + homes;
        (next >> (u64::BITS - shape.rest_bits()) == 0).then(|| next << shape.rest_bits())
    }
}
