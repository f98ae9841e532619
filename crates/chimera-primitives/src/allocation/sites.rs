//! The places where allocators store, flush and fence.

chimera_pmem::sites! {
    /// What is about to be done, so that it can be done again.
    REDO = "primitives.allocate.redo";
    /// A node is made of zeros.
    ZERO = "primitives.allocate.zero";
    /// Which nodes are taken, and the link to the one that is.
    STATE = "primitives.allocate.state", in_place;
    /// The bit of a node of a group.
    BIT = "primitives.allocate.bit", in_place;
}
