//! Steps of recovery that a tool can leave out.

chimera_pmem::steps! {
    /// Marking the room of items that are reached as taken.
    MARK_ITEMS = "hikv.step.mark_items";
    /// Freeing the segments that a crash left beside the one that they were split off.
    FREE_ORPHANS = "hikv.step.free_orphans";
}

/// The same, of a store with a write-ahead log.
#[cfg(feature = "baselines")]
pub(super) mod of_log {
    chimera_pmem::steps! {
        /// Making again what the log says.
        REDO = "hikv.step.redo";
    }
}
