//! Entries in the order of their hashes, which is that of listings: segments have consecutive hashes.

use chimera_pmem::Pmem;

use super::PartitionedHash;
use super::layout::Prefix;
use super::slots::Slot;

/// The entries of a part of the index, as they were at one moment.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Hash and position, in the order of hashes.
    pub(crate) entries: Vec<(u64, u64)>,
    /// Offsets of what is damaged, of the whole segment.
    pub(crate) damages: Vec<u64>,
    /// The first hash behind this part. None at the end.
    pub(crate) next: Option<u64>,
}

impl<P: Pmem> PartitionedHash<P> {
    /// The entries of the segment that covers `from`, from there on.
    ///
    /// # Cost
    /// Reads a segment, with its lock held. Where there is none, a look at an entry of the directory.
    pub(crate) fn list(&self, from: u64, batch: &mut Batch) {
        batch.entries.clear();
        batch.damages.clear();
        let Some(locked) = self.lock(from) else {
            // Nothing begun here, or in a salvaged store nothing left: one entry of the directory.
            let depth = self.directory.depth();
            let prefix = from.checked_shr(u64::BITS - depth).unwrap_or(0);
            batch.next = Prefix { prefix, depth }.range().1.checked_add(1);
            return;
        };
        let (slots, prefix) = (self.slots(locked.segment), locked.segment.prefix());
        let at = locked.segment.at();
        if self.pool.pmem.load_u64(at) != prefix.encode(at) {
            batch.damages.push(at);
        }
        for slot in 0..slots.count() {
            match slots.read(slot) {
                Slot::Entry { signature, at } if signature >= from && prefix.covers(signature) => {
                    batch.entries.push((signature, at));
                }
                Slot::Damaged => batch.damages.push(slots.offset(slot)),
                Slot::Empty | Slot::Entry { .. } => {}
            }
        }
        batch.entries.sort_unstable();
        batch.next = prefix.range().1.checked_add(1);
    }
}
