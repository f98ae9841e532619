//! Making room in full buckets by moving entries to their other bucket (cuckoo displacement).
//!
//! A breadth-first search from the two full buckets of a new entry, along the other buckets of what
//! is in them, to the nearest bucket with a free slot. The other bucket follows from the fingerprint,
//! which is in the table, so no record is read. The moves are then made from the far end, each into
//! a slot that is free at that moment, so no entry is ever absent.

use super::bucket::{Bucket, Slots};
use super::geometry::{BUCKET_SLOTS, HashGeometry};

/// Full buckets whose entries are considered for a move. Their other buckets are looked at as well,
/// so up to five times as many cache lines are read before the search gives up. This is what bounds
/// an insert; DRAM use follows from it through the load at which segments split.
const EXPANDED_MAX: usize = 16;

/// The search begins at the two buckets of the new entry.
const ROOTS: usize = 2;

/// A full bucket that the search has reached, and how.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    bucket: u16,
    /// The step from which it was reached, and the slot there of the entry that could move here.
    parent: u8,
    slot: u8,
}

/// The buckets the search has looked at.
struct Seen([u64; (HashGeometry::SLOTS_MAX / BUCKET_SLOTS) as usize / 64]);

impl Seen {
    /// Adds a bucket: whether it is new.
    fn insert(&mut self, bucket: u32) -> bool {
        let word = &mut self.0[bucket as usize / 64];
        let bit = 1 << (bucket % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}

/// Frees a slot in one of two full buckets, and returns both. `None`, with nothing changed, when
/// the search gave up.
pub(super) fn make_room(slots: Slots<'_>, full: [u32; ROOTS]) -> Option<(Bucket<'_>, u32)> {
    let mut steps = [Step::default(); EXPANDED_MAX];
    let mut count = ROOTS;
    let mut seen = Seen([0; _]);
    for (step, bucket) in steps.iter_mut().zip(full) {
        step.bucket = bucket as u16;
        seen.insert(bucket);
    }
    let mut current = 0;
    while current < count {
        let number = u32::from(steps[current].bucket);
        let bucket = slots.bucket(number);
        let others: [u32; BUCKET_SLOTS as usize] = std::array::from_fn(|slot| {
            slots.geometry().other(bucket.fingerprint(slot as u32), number)
        });
        // Four cache misses at once instead of one after the other.
        for other in others {
            slots.bucket(other).prefetch();
        }
        for (slot, other) in (0..).zip(others) {
            if !seen.insert(other) {
                continue;
            }
            let reached = slots.bucket(other);
            if let Some(free) = reached.free_slot() {
                bucket.relocate(slot, reached, free);
                return Some(shift(slots, &steps, current, slot));
            }
            if count < EXPANDED_MAX {
                steps[count] =
                    Step { bucket: other as u16, parent: current as u8, slot: slot as u8 };
                count += 1;
            }
        }
        current += 1;
    }
    None
}

/// Moves a free slot from the bucket of step `current` back along the way to a root.
fn shift<'a>(
    slots: Slots<'a>,
    steps: &[Step; EXPANDED_MAX],
    mut current: usize,
    mut free: u32,
) -> (Bucket<'a>, u32) {
    let mut bucket = slots.bucket(u32::from(steps[current].bucket));
    while current >= ROOTS {
        let Step { parent, slot, .. } = steps[current];
        current = usize::from(parent);
        let previous = slots.bucket(u32::from(steps[current].bucket));
        previous.relocate(u32::from(slot), bucket, free);
        (bucket, free) = (previous, u32::from(slot));
    }
    (bucket, free)
}
