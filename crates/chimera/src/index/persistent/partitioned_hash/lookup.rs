//! Lookups: without a lock, validated by the version of a segment.

use chimera_pmem::Pmem;

use super::PartitionedHash;
use super::segment::Segment;
use crate::index::Probe;
use crate::index::persistent::buckets::{Slot, damaged_slot};
use crate::pool::Held;
use crate::sync::until_some;
use crate::types::error::Result;

/// What probing a window has found.
enum Probed<T> {
    Found(T),
    Nothing,
    /// The closure saw something that is not stable.
    Unstable,
    /// Nothing, and a slot at this offset is damaged.
    Damaged(u64),
}

impl<P: Pmem> PartitionedHash<P> {
    /// Starts loading the home bucket of a hash.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        if let Some(segment) = self.segment_of(hash) {
            let slots = self.slots(segment);
            let home = slots.window(hash).next().unwrap_or_default();
            self.pool.pmem.prefetch(self.pool.extent(slots.offset(home), 8));
        }
    }

    /// Where the record of a hash probably lies, to start loading it. Proves nothing: nothing is validated.
    #[inline]
    pub(crate) fn peek(&self, hash: u64) -> Option<u64> {
        let slots = self.slots(self.segment_of(hash)?);
        slots.window(hash).find_map(|slot| match slots.read(slot) {
            Slot::Entry { signature, at } if signature == hash => Some(at),
            _ => None,
        })
    }

    /// Looks an entry up: `probe` is asked about the positions of this hash, one after the other, until it has found its
    /// record. What it answers is taken only if nobody has changed the segment meanwhile; otherwise it is asked again.
    ///
    /// # Errors
    /// `Corrupted` when nothing is found, and a slot in which the entry may have been is damaged.
    ///
    /// # Cost
    /// 1 to 4 lines.
    pub(crate) fn find<T>(
        &self,
        hash: u64,
        mut probe: impl FnMut(u64) -> Probe<T>,
    ) -> Result<Option<T>> {
        until_some(&*self.pool.environment, || {
            let outcome = self.find_once(hash, &mut probe);
            if outcome.is_none() {
                self.pool.pmem.operation_rereads();
            }
            outcome
        })
    }

    /// As [`find`](Self::find), in one attempt. `None` when somebody has changed the segment meanwhile.
    #[inline]
    pub(crate) fn find_once<T>(
        &self,
        hash: u64,
        probe: &mut impl FnMut(u64) -> Probe<T>,
    ) -> Option<Result<Option<T>>> {
        let Some(segment) = self.segment_of(hash) else { return Some(Ok(None)) };
        let version = segment.lock.read_begin()?;
        if !segment.prefix().covers(hash) {
            return None;
        }
        let probed = self.probe(segment, hash, probe);
        if !segment.lock.read_is_valid(version) {
            return None;
        }
        match probed {
            Probed::Found(found) => Some(Ok(Some(found))),
            Probed::Nothing => Some(Ok(None)),
            Probed::Unstable => None,
            Probed::Damaged(at) if self.salvages => {
                // Recovery has noted it with what it may have led to.
                self.pool.note_lost_of(Held::Nothing, &damaged_slot(at), at);
                Some(Ok(None))
            }
            Probed::Damaged(at) => Some(Err(damaged_slot(at))),
        }
    }

    #[inline(always)]
    fn probe<T>(
        &self,
        segment: &Segment,
        hash: u64,
        probe: &mut impl FnMut(u64) -> Probe<T>,
    ) -> Probed<T> {
        let (slots, mut damaged) = (self.slots(segment), None);
        for slot in slots.window(hash) {
            match slots.read(slot) {
                Slot::Entry { signature, at } if signature == hash => match probe(at) {
                    Probe::Found(found) => return Probed::Found(found),
                    Probe::NotThis => {}
                    Probe::Retry => return Probed::Unstable,
                },
                Slot::Damaged => damaged = Some(slots.offset(slot)),
                Slot::Empty | Slot::Entry { .. } => {}
            }
        }
        damaged.map_or(Probed::Nothing, Probed::Damaged)
    }
}
