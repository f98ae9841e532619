//! Steps of recovery and checks of space reclamation that a tool can leave out.

chimera_pmem::steps! {
    /// Marking the room of items that are reached as taken.
    MARK_ITEMS = "hikv.step.mark_items";
    /// Freeing the segments that a crash left beside the one that they were split off.
    FREE_ORPHANS = "hikv.step.free_orphans";
    /// Moving an item only if the index leads to it.
    MOVE_CURRENT = "hikv.step.move_current";
    /// Moving a value only if it is as it was written.
    MOVE_CHECK = "hikv.step.move_check";
}

/// The same, of a store with a write-ahead log.
#[cfg(feature = "baselines")]
pub(super) mod of_log {
    chimera_pmem::steps! {
        /// Making again what the log says.
        REDO = "hikv.step.redo";
    }
}
