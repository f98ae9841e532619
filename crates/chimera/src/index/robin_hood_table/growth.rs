//! Growth: all parts double in place, while everybody waits.
//!
//! Part `p` of `s` slots each begins at slot `p * s`. Afterwards it begins at `p * 2 * s`, where parts `2 * p` and `2 * p + 1`
//! were. These have moved before, because the last part moves first; of part 0 itself all entries are in hand when they are
//! put back.

use super::shape::Shape;
use super::{NoRoom, PER_LINE, RobinHoodTable};
use crate::index::probing_table::Slot;
use crate::index::{OutOfSpace, TooManyCollisions};
use crate::sync::atomic::Ordering;

/// A table with fewer entries than this part of its slots does not grow: a part of it is full on purpose.
const SPARSE: u64 = 16;
/// Slots up to which it always may.
const SLOTS_ALWAYS_MAX: u64 = 1 << 12;
/// Bits of a hash that choose a slot, at most.
const HOME_BITS_MAX: u32 = 44;

impl RobinHoodTable {
    /// Doubles the table, unless it has another shape by now.
    #[cold]
    pub(super) fn grow(&self, old: Shape) -> Result<(), NoRoom> {
        let environment = &*self.environment;
        let _guards: Vec<_> = self.parts.iter().map(|part| part.lock.lock(environment)).collect();
        if self.shape() != old {
            return Ok(());
        }
        let (slots, new) = (self.slots(), Shape { slot_bits: old.slot_bits + 1, ..old });
        let is_sparse = slots > SLOTS_ALWAYS_MAX && self.len() < slots / SPARSE;
        if is_sparse || new.part_bits + new.slot_bits > HOME_BITS_MAX {
            return Err(TooManyCollisions.into());
        }
        self.lines.ensure(2 * slots / PER_LINE).map_err(|_| OutOfSpace)?;
        let mut moved = Vec::new();
        moved.try_reserve(old.slots() as usize).map_err(|_| OutOfSpace)?;
        for part in (0..self.parts.len() as u64).rev() {
            let first = part << old.slot_bits;
            for number in first..first + old.slots() {
                let slot = self.load(number);
                if slot.location != 0 {
                    moved.push(slot);
                    self.store(number, Slot::EMPTY);
                }
            }
            moved.drain(..).for_each(|slot| self.enter(new, slot));
        }
        self.slot_bits.store(new.slot_bits, Ordering::Release);
        Ok(())
    }
}
