//! Entries in the order of their hashes, which is that of listings: segments have consecutive hashes.

use chimera_pmem::Pmem;

use super::PartitionedHash;
use crate::index::persistent::buckets::{Batch, Prefix};

impl<P: Pmem> PartitionedHash<P> {
    /// The entries of the segment that covers `from`, from there on.
    ///
    /// # Cost
    /// Reads a segment, with its lock held. Where there is none, a look at an entry of the directory.
    pub(crate) fn list(&self, from: u64, batch: &mut Batch) {
        let Some(locked) = self.lock(from) else {
            // Nothing begun here, or in a salvaged store nothing left: one entry of the directory.
            *batch = Batch::default();
            let depth = self.directory.depth();
            let prefix = from.checked_shr(u64::BITS - depth).unwrap_or(0);
            batch.next = Prefix { prefix, depth }.range().1.checked_add(1);
            return;
        };
        let prefix = locked.segment.prefix();
        self.slots(locked.segment).list(locked.segment.at(), prefix, from, batch);
    }
}
