//! [`TreeShape`]: what a tree is made of, and [`Layout`]: what follows from it for the nodes.

/// Words in front of the slots: version, header, fences.
pub(super) const HEADER_WORDS: u32 = 3;
/// Units in front of the slots.
pub(super) const HEADER_UNITS: u32 = 2 * HEADER_WORDS;
/// Units of a slot.
pub(super) const SLOT_UNITS: u32 = 2;
/// Bytes of a unit of the heap.
pub(super) const UNIT: u32 = 4;
/// Bytes of a key that its slot has.
pub(super) const HEAD: u32 = 4;
/// Most bytes of a key behind its head that are kept in a node.
const TAIL_MAX: u32 = 96;
/// Entries of any size for which there is room in every node, so that one that is full can be split.
const ENTRIES_MIN: u32 = 4;

/// What a tree is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeShape {
    /// Bytes of a node: a multiple of 64, from 128 to 64 KiB. Large nodes make scans faster and inserts
    /// slower.
    pub(crate) node_bytes: u32,
    /// Asks the system for 2 MiB pages: fewer address-translation misses, for up to 2 MiB of memory not
    /// needed yet.
    pub(crate) huge_pages: bool,
    /// Changes leaves in hardware transactions, where they commit.
    pub(crate) transactions: bool,
}

impl Default for TreeShape {
    fn default() -> Self {
        Self { node_bytes: 2048, huge_pages: false, transactions: false }
    }
}

/// The measures of the nodes of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Words of a node.
    pub(super) words: u32,
    /// Words from the first one on that a node with short keys has in front of its heap, roughly.
    pub(super) words_of_slots: u32,
    /// Most bytes of a prefix.
    pub(super) prefix_max: u32,
    /// Most bytes of a key behind the prefix that are kept in a node.
    pub(super) rest_max: u32,
}

impl Layout {
    /// # Panics
    /// When nodes cannot have this size.
    pub(super) fn new(shape: TreeShape) -> Self {
        let bytes = shape.node_bytes;
        assert!(bytes.is_multiple_of(64) && (128..=64 << 10).contains(&bytes), "{shape:?}");
        let prefix_max = (bytes / 16).min(u32::from(u8::MAX)) / UNIT * UNIT;
        // The largest entries have a slot, the number of a child and a tail; fences have head and tail.
        let fixed = HEADER_WORDS * 8 + prefix_max + 2 * HEAD + ENTRIES_MIN * (8 + UNIT);
        let tail = (bytes - fixed) / (2 + ENTRIES_MIN) / UNIT * UNIT;
        Self {
            words: bytes / 8,
            words_of_slots: bytes / 8 / 3,
            prefix_max,
            rest_max: HEAD + tail.min(TAIL_MAX),
        }
    }

    /// Units of a node.
    #[inline(always)]
    pub(super) fn units(self) -> u32 {
        self.words * 2
    }

    /// Most slots of a node.
    #[inline(always)]
    pub(super) fn slots_max(self) -> u32 {
        self.words - HEADER_WORDS
    }

    /// Units that an entry has in the heap if it has `length` bytes behind the prefix.
    #[inline(always)]
    pub(super) fn entry_units(self, level: u32, length: u32) -> u32 {
        let tail = if length > self.rest_max { 1 } else { tail_units(length) };
        child_units(level) + tail
    }

    /// Units that a fence has in the heap if it has `length` bytes behind the prefix.
    #[inline(always)]
    pub(super) fn fence_units(self, length: u32) -> u32 {
        if length > self.rest_max { 1 } else { length.div_ceil(UNIT) }
    }

    /// Units of the largest entry of inner nodes, with its slot.
    pub(super) fn separator_units_max(self) -> u32 {
        SLOT_UNITS + 1 + tail_units(self.rest_max)
    }
}

/// Units of the number of a child in an entry: there is one in inner nodes.
#[inline(always)]
pub(super) fn child_units(level: u32) -> u32 {
    u32::from(level > 0)
}

/// Units of what is behind the head of a rest of `length` bytes.
#[inline(always)]
pub(super) fn tail_units(length: u32) -> u32 {
    length.saturating_sub(HEAD).div_ceil(UNIT)
}
