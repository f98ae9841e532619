//! The places where nodes are stored to, flushed and fenced.

chimera_pmem::sites! {
    /// A node is made empty.
    FORMAT = "primitives.node.format";
    /// Keys and values.
    ENTRY = "primitives.node.entry", in_place;
    /// Hashes or slots.
    SEARCH = "primitives.node.search", in_place;
    /// The count or the bitmap, which say what is there.
    COMMIT = "primitives.node.commit", in_place;
    /// The links to neighbours.
    LINK = "primitives.node.link", in_place;
}
