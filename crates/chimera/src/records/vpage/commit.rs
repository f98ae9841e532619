//! [`Commit`]: the word that makes a record live.

use chimera_pmem::Pmem;

use super::{Codec, Place, Stored};
use crate::pool::Pool;
use crate::types::error::Result;

/// How records of one kind become live and are retired: by one word each time, so a crash leaves a record live
/// or not, and nothing between.
pub(crate) trait Commit: Codec {
    /// Whether the record at a place is live.
    ///
    /// # Errors
    /// `Corrupted` when the word that says so is damaged.
    fn is_live<P: Pmem>(&self, pool: &Pool<P>, place: &Place) -> Result<bool>;

    /// Makes a record live.
    ///
    /// # Errors
    /// `Corrupted`, with nothing changed, when the word that says so is damaged.
    ///
    /// # Durability
    /// The record is live and durable on return.
    ///
    /// # Cost
    /// 1 line, 1 fence.
    fn commit<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        key: &[u8],
        stored: &Stored<'_>,
    ) -> Result<()>;

    /// Retires a record: it is not live any more. Calls `retired` with the units that become free once that can
    /// be seen and before it is durable, so that atomic instructions there need not wait for the fence.
    ///
    /// # Errors
    /// `Corrupted`, with nothing changed, when the word that says so is damaged.
    ///
    /// # Durability
    /// The record is durably retired on return.
    ///
    /// # Cost
    /// 1 line, 1 fence.
    fn retire<P: Pmem>(
        &self,
        pool: &Pool<P>,
        place: &Place,
        retired: impl FnOnce(u32),
    ) -> Result<()>;

    /// Starts loading the line that [`retire`](Self::retire) changes.
    fn prefetch_retire<P: Pmem>(&self, pool: &Pool<P>, place: &Place);
}
