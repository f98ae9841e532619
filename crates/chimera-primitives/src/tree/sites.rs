//! The places where trees store, flush and fence.

chimera_pmem::sites! {
    /// Sizes of the tree, when it is made.
    HEADER = "primitives.tree.header";
    /// The word that leads to the first leaf.
    HEAD = "primitives.tree.head", in_place;
    /// A record in a leaf, before it is part of it.
    RECORD = "primitives.tree.record", in_place;
    /// The fingerprint of a record.
    FINGERPRINT = "primitives.tree.fingerprint", in_place;
    /// The bitmap or the count, which makes a record part of a leaf.
    COMMIT = "primitives.tree.commit", in_place;
    /// A new leaf.
    LEAF = "primitives.tree.leaf", in_place;
    /// The link to the next leaf.
    LINK = "primitives.tree.link", in_place;
    /// The micro-log of a split.
    SPLIT_LOG = "primitives.tree.split_log", in_place;
}
