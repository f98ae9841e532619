//! The places where transactions, guarded nodes and runs are stored to, flushed and fenced.

chimera_pmem::sites! {
    /// What a place held before, in the undo log.
    UNDO_RECORD = "primitives.undo.record";
    /// How much of the log is in force.
    UNDO_HEAD = "primitives.undo.head";
    /// A store within a transaction.
    UNDO_STORE = "primitives.undo.store", in_place;
    /// What was stored within a transaction, at its end. Operations that care for durability have flushed some of it.
    UNDO_COMMIT = "primitives.undo.commit", may_be_clean;
    /// What a place held before, put back.
    UNDO_BACK = "primitives.undo.back", in_place;
    /// The copy of a node that is to be changed.
    NODE_COPY = "primitives.guarded.copy";
    /// Which of both places holds the node.
    NODE_ROOT = "primitives.guarded.root";
    /// The entries of a run, and how many there are.
    RUN_DATA = "primitives.run.data";
    /// Which runs there are.
    RUN_POINTER = "primitives.run.pointer";
}
