//! Checks and steps that a tool can leave out.

chimera_pmem::steps! {
    /// Freeing the tables that a crash left, which the manifest does not name.
    FREE_ORPHANS = "chameleon.step.free_orphans";
    /// That the index refers to a record that is collected.
    COLLECT_CURRENT = "chameleon.step.collect_current";
}
