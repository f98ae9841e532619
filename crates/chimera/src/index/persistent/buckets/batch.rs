//! [`Batch`]: the entries of a part of an index, for listings.

/// The entries of a part of the index, as they were at one moment.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Hash and position, in the order of hashes.
    pub(crate) entries: Vec<(u64, u64)>,
    /// Offsets of what is damaged, of the whole segment.
    pub(crate) damages: Vec<u64>,
    /// The first hash behind this part. None at the end.
    pub(crate) next: Option<u64>,
}

impl Batch {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.damages.clear();
    }
}
