//! [`NodeShape`]: what a node is to hold; [`Geometry`]: where everything in it lies (DaMoN'20, Figure 2).

use chimera_pmem::CACHE_LINE;

use super::LayoutKind;
use crate::error::{PrimitivesError, Result};

/// Largest node, in bytes: the lines that an operation dirties are remembered in 256 bits.
pub const NODE_BYTES_MAX: u64 = 16 << 10;
/// Most entries of a node with slots: a slot is one byte, and one of its values is kept free.
const SLOTTED_ENTRIES_MAX: usize = 254;
/// Bytes of the link to the next node, and of that to the one before: as large as the persistent pointers of the paper.
const LINK_BYTES: u64 = 16;
const WORD: u64 = 8;

/// What a node is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeShape {
    /// How it is organised.
    pub kind: LayoutKind,
    /// Bytes of a key. All keys have as many. Default 8.
    pub key_bytes: u32,
    /// Bytes of a value. All values have as many. Default 16.
    pub value_bytes: u32,
    /// Bytes of the whole node. Default 256.
    pub node_bytes: u32,
}

impl NodeShape {
    /// The paper's keys of 8 and values of 16 bytes in a node of `node_bytes` bytes.
    #[must_use]
    pub fn published(kind: LayoutKind, node_bytes: u32) -> Self {
        Self { kind, key_bytes: 8, value_bytes: 16, node_bytes }
    }
}

/// Where everything in a node lies, as offsets from its start. Offsets of what a layout does not have are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// What was asked for.
    pub shape: NodeShape,
    /// Entries that a node holds: M of Figure 2.
    pub entries: usize,
    /// Words of a key.
    pub key_words: usize,
    /// Bytes from one key to the next.
    pub key_stride: u64,
    /// Bytes from one value to the next.
    pub value_stride: u64,
    /// Words of the bitmap.
    pub bitmap_words: usize,
    /// The count of entries.
    pub count_at: u64,
    /// The bitmap.
    pub bitmap_at: u64,
    /// The slots: their count, and then the index of the smallest key, of the next one, and so on.
    pub slots_at: u64,
    /// A hash of each key.
    pub hashes_at: u64,
    /// The link to the next node.
    pub next_at: u64,
    /// The link to the node before.
    pub prev_at: u64,
    /// The keys, at the beginning of a line.
    pub keys_at: u64,
    /// The values, right behind the keys.
    pub values_at: u64,
}

/// Bytes of an array of bytes, in whole words.
fn whole_words(bytes: u64) -> u64 {
    bytes.next_multiple_of(WORD)
}

impl Geometry {
    /// The geometry with the most entries that fit.
    ///
    /// # Errors
    /// `Shape` when keys or values have no bytes, the node is larger than [`NODE_BYTES_MAX`] or no multiple of a line, or
    /// has no room for two entries.
    pub fn new(shape: NodeShape) -> Result<Self> {
        let bytes = u64::from(shape.node_bytes);
        if shape.key_bytes == 0 || shape.value_bytes == 0 {
            return refuse("keys and values must have at least one byte");
        }
        if bytes > NODE_BYTES_MAX || !bytes.is_multiple_of(CACHE_LINE) {
            return refuse("a node has whole lines of 64 bytes, 16 KiB at most");
        }
        let least = Self::with(shape, 1);
        let mut most = (bytes / (least.key_stride + least.value_stride)) as usize;
        if shape.kind.has_slots() {
            most = most.min(SLOTTED_ENTRIES_MAX);
        }
        let fitting = (2..=most).rev().map(|entries| Self::with(shape, entries));
        match fitting.into_iter().find(|geometry| geometry.end() <= bytes) {
            Some(geometry) => Ok(geometry),
            None => refuse("a node must have room for two entries"),
        }
    }

    /// The geometry of a node with so many entries, as large as it must be; `node_bytes` of `shape` is ignored.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_entries(shape: NodeShape, entries: usize) -> Result<Self> {
        if shape.key_bytes == 0 || shape.value_bytes == 0 || entries < 2 {
            return refuse(
                "a node has two entries at least, with keys and values of a byte at least",
            );
        }
        if shape.kind.has_slots() && entries > SLOTTED_ENTRIES_MAX {
            return refuse("a node with slots has 254 entries at most");
        }
        let mut geometry = Self::with(shape, entries);
        let bytes = geometry.end().next_multiple_of(CACHE_LINE);
        if bytes > NODE_BYTES_MAX {
            return refuse("a node has 16 KiB at most: fewer entries, or shorter ones");
        }
        geometry.shape.node_bytes = bytes as u32;
        Ok(geometry)
    }

    /// Figure 2, from left to right. Search structures begin at words, since a word is all that can be stored at once.
    fn with(shape: NodeShape, entries: usize) -> Self {
        let kind = shape.kind;
        let bitmap_words = if kind.has_bitmap() { entries.div_ceil(64) } else { 0 };
        let count = if kind.has_count() { WORD } else { 0 };
        let bitmap = bitmap_words as u64 * WORD;
        // Hashes have the spare byte that the count is among the slots, so that both hold as many entries (Table 4).
        let bytes = whole_words(entries as u64 + 1);
        let slots = if kind.has_slots() { bytes } else { 0 };
        let hashes = if kind.has_hashes() { bytes } else { 0 };
        let next_at = count + bitmap + slots + hashes;
        let keys_at = (next_at + 2 * LINK_BYTES).next_multiple_of(CACHE_LINE);
        let key_stride = whole_words(u64::from(shape.key_bytes));
        Self {
            shape,
            entries,
            key_words: (key_stride / WORD) as usize,
            key_stride,
            value_stride: whole_words(u64::from(shape.value_bytes)),
            bitmap_words,
            count_at: 0,
            // Figure 2b has the slots first, 2c and 2d the bitmap.
            slots_at: 0,
            bitmap_at: slots,
            hashes_at: count + bitmap,
            next_at,
            prev_at: next_at + LINK_BYTES,
            keys_at,
            values_at: keys_at + entries as u64 * key_stride,
        }
    }

    /// Bytes of the node.
    pub fn node_bytes(&self) -> u64 {
        u64::from(self.shape.node_bytes)
    }

    /// Bytes of a key with its value, as they are stored.
    pub fn entry_bytes(&self) -> u64 {
        self.key_stride + self.value_stride
    }

    /// One past the last value.
    fn end(&self) -> u64 {
        self.values_at + self.entries as u64 * self.value_stride
    }

    /// Which bits of a word of the bitmap belong to entries.
    pub(crate) fn bitmap_mask(&self, word: usize) -> u64 {
        match self.entries.saturating_sub(word * 64) {
            0 => 0,
            bits @ 1..64 => (1 << bits) - 1,
            _ => u64::MAX,
        }
    }
}

fn refuse<T>(why: &str) -> Result<T> {
    Err(PrimitivesError::Shape(why.to_owned()))
}
