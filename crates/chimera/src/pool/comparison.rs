//! Comparing what opening has found with what the pool held when it was closed in order.
//!
//! Until they are compared, opening changes nothing on media but the superblock: where a part is older or missing, the rest may be
//! needed once that part is put back.

use chimera_pmem::Pmem;

use super::{Pool, TOTALS_AT};
use crate::types::error::{Error, Result};
use crate::types::totals::Totals;

/// What opening has found was compared with what the pool held when it was closed in order, if it was. Whoever has this may
/// change what was found.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct Compared(Option<(Totals, Totals)>);

impl Compared {
    /// Whether the pool held something else. Only one that is salvaged goes on then.
    pub(crate) fn differs(self) -> bool {
        self.0.is_some()
    }
}

impl<P: Pmem> Pool<P> {
    /// Compares what an engine has `found` with what the pool held when it was closed in order, if it was and no opening for
    /// writing has ended since. An engine calls this once, before it changes anything on media.
    ///
    /// # Errors
    /// `Corrupted` where it is something else, unless the pool is salvaged: records are missing, or a part is older.
    pub(crate) fn compare_with_closing(
        &self,
        salvage: bool,
        found: impl FnOnce() -> Totals,
    ) -> Result<Compared> {
        let Some(closed) = self.closed_totals else { return Ok(Compared(None)) };
        let found = found();
        match closed.difference(found) {
            None => Ok(Compared(None)),
            Some(_) if salvage => Ok(Compared(Some((closed, found)))),
            Some(what) => Err(Error::corrupted(what, TOTALS_AT)),
        }
    }

    /// Says, and notes as a loss, that a pool that is salvaged is not what it was when it was closed.
    pub(crate) fn note_difference(&self, compared: Compared) {
        let Compared(Some((closed, found))) = compared else { return };
        let Some(what) = closed.difference(found) else { return };
        if self.losses().is_empty() {
            // Else what is missing was counted where it lay.
            self.note_loss(TOTALS_AT, &what);
        }
    }
}
