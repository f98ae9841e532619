//! Room that waits to be written back. Bytes that are new in their place go there ahead of the journal
//! ([`Pmem::flush_new`]), but only where no crash can bring back what was there. So large room that becomes free is used again
//! once it is written back, and until then fresh room is taken, as long as not much waits.

use chimera_pmem::Pmem;
use chimera_pmem::journal::Journal;

use super::Pool;
use crate::types::error::{Error, Result};

/// One part in so many of the other blocks in use waits, at most, and from the least to the most bytes.
const WAITING_PART: u64 = 4;
const WAITING_BYTES_MIN: u64 = 1 << 20;
const WAITING_BYTES_MAX: u64 = 64 << 20;

impl<P: Pmem> Pool<P> {
    /// Most bytes that wait to be written back, where so many do.
    pub(crate) fn waiting_bytes_max(&self, waiting: u64) -> u64 {
        let others = (self.used_blocks() * self.map.block_bytes).saturating_sub(waiting);
        (others / WAITING_PART).clamp(WAITING_BYTES_MIN, WAITING_BYTES_MAX)
    }

    /// Writes back what was fenced before the call: what waits may be used again.
    ///
    /// # Errors
    /// When the journal has failed, or fails.
    ///
    /// # Cost
    /// A checkpoint. Large values are in their place by then, so it writes little.
    #[cold]
    pub(crate) fn write_back(&self, journal: &Journal) -> Result<()> {
        journal.checkpoint().map_err(Error::io("write back", &self.files.path))
    }
}
