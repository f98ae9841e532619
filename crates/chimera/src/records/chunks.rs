//! Values that are too large to lie beside their keys: spilled to chunks, which a descriptor beside the key leads
//! to (Viper, section 3.2.3).
//!
//! ```text
//! descriptor   [location of the first chunk: 8] [name: 8] [bytes of the value: 4 | check: 4]
//! chunk        [1 | 0: 15 | length: 16 | check: 32] [name: 8] [location of the record: 8]
//!              [location of the next chunk: 8] [chunks after this one: 4 | check: 4] bytes
//! ```
//! # The naming rule
//! A value's name is a random number. A chunk is live while the record at the location it says is live and has
//! the chunk's name. So nothing has to be done about chunks when a record is retired, nor about the chunks of
//! a record that a crash prevented.
//!
//! How a location becomes a place where a chunk can lie is not known here.

use chimera_pmem::{Extent, Fenced, Pmem, Site};

use super::lengths::{DESCRIPTOR_BYTES, Entry};
use crate::pool::{Location, Pool, checked_word};

/// From the start of a descriptor to its fields.
const DESCRIBED_NAME_AT: u64 = 8;
const DESCRIBED_BYTES_AT: u64 = 16;

/// From the start of a chunk to its fields and to its bytes.
const NAME_AT: u64 = 8;
const RECORD_AT: u64 = 16;
const NEXT_AT: u64 = 24;
const POSITION_AT: u64 = 32;
pub(crate) const BYTES_AT: u64 = 40;

/// Bytes of a chunk with so many bytes of a value.
pub(crate) fn span(bytes: u64) -> u64 {
    BYTES_AT + bytes.next_multiple_of(8)
}

/// What lies beside the key of a record whose value is spilled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// The raw location of the first chunk: 0 when there is none.
    pub(crate) first: u64,
    pub(crate) name: u64,
    /// Of the value.
    pub(crate) bytes: u32,
}

impl Descriptor {
    /// As it is on media.
    pub(crate) fn to_bytes(self) -> [u8; DESCRIPTOR_BYTES] {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        let words = [self.first, self.name, checked_word::encode(self.bytes)];
        for (bytes, word) in bytes.chunks_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The descriptor at offset `at`, unless its length is damaged.
    pub(crate) fn load<P: Pmem>(pmem: &P, at: u64) -> Option<Self> {
        let name = Self::load_name(pmem, at);
        let bytes = checked_word::decode(pmem.load_u64(at + DESCRIBED_BYTES_AT))?;
        Some(Self { first: pmem.load_u64(at), name, bytes })
    }

    /// The name alone.
    pub(crate) fn load_name<P: Pmem>(pmem: &P, at: u64) -> u64 {
        pmem.load_u64(at + DESCRIBED_NAME_AT)
    }
}

/// A chunk to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk<'a> {
    pub(crate) record: Location,
    pub(crate) name: u64,
    pub(crate) next: Option<Location>,
    /// How many chunks come after this one.
    pub(crate) position: u32,
    pub(crate) bytes: &'a [u8],
}

impl Chunk<'_> {
    /// Writes the chunk at offset `at` and flushes it. Nothing was left in its block when `emptied` was fenced, where that
    /// is known. Returns where it lies.
    ///
    /// # Durability
    /// After the caller's next fence.
    pub(crate) fn write<P: Pmem>(
        &self,
        pool: &Pool<P>,
        at: u64,
        emptied: Option<Fenced>,
        site: Site,
    ) -> Extent {
        let length = self.bytes.len() as u64;
        let fields = [
            (NAME_AT, self.name),
            (RECORD_AT, self.record.raw()),
            (NEXT_AT, self.next.map_or(0, Location::raw)),
            (POSITION_AT, checked_word::encode(self.position)),
            (0, Entry::chunk(at, self.bytes.len())),
        ];
        pool.pmem.copy(pool.extent(at + BYTES_AT, length), self.bytes, site);
        for (field_at, word) in fields {
            pool.pmem.store_u64(at + field_at, word, site);
        }
        let all = pool.extent(at, span(length));
        match emptied {
            // The fields lead to the bytes: they pass the journal, and so does the line that they share.
            Some(emptied) => {
                pool.pmem.flush_beside_new(pool.extent(at, BYTES_AT), site);
                let bytes = pool.extent(at + BYTES_AT, span(length) - BYTES_AT);
                pool.pmem.flush_new_shared(bytes, emptied, site);
            }
            None => pool.pmem.flush(all, site),
        }
        all
    }
}

/// A chunk at an offset of the pool, where there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkAt(pub(crate) u64);

impl ChunkAt {
    /// Bytes of a value, as the first word says; none where no chunk begins.
    pub(crate) fn length<P: Pmem>(self, pmem: &P) -> Option<u32> {
        match Entry::decode(pmem.load_u64(self.0), self.0) {
            Some(Entry::Chunk { bytes }) => Some(bytes),
            _ => None,
        }
    }

    /// The raw location of its record.
    pub(crate) fn record<P: Pmem>(self, pmem: &P) -> u64 {
        pmem.load_u64(self.0 + RECORD_AT)
    }

    pub(crate) fn name<P: Pmem>(self, pmem: &P) -> u64 {
        pmem.load_u64(self.0 + NAME_AT)
    }

    /// The raw location of the next chunk.
    pub(crate) fn next<P: Pmem>(self, pmem: &P) -> u64 {
        pmem.load_u64(self.0 + NEXT_AT)
    }

    /// How many chunks come after this one, unless that is damaged.
    pub(crate) fn position<P: Pmem>(self, pmem: &P) -> Option<u32> {
        checked_word::decode(pmem.load_u64(self.0 + POSITION_AT))
    }
}

/// The order of a value's chunks, verified while they are followed. Positions count down to zero, so a chain
/// cannot come back to where it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    bytes_left: u64,
    position: Option<u32>,
}

impl Chain {
    /// Of a value of so many bytes.
    pub(crate) fn new(bytes: u32) -> Self {
        Self { bytes_left: u64::from(bytes), position: None }
    }

    /// Whether all of the value was met.
    pub(crate) fn is_complete(&self) -> bool {
        self.bytes_left == 0
    }

    /// Whether a chunk of this length and position comes next.
    pub(crate) fn accepts(&mut self, length: u64, position: u32) -> bool {
        let is_in_order = self.position.is_none_or(|last| last.checked_sub(1) == Some(position));
        // All but the last have whole words, so that a word of the value is a word of a chunk.
        let is_aligned = position == 0 || length.is_multiple_of(8);
        let is_last = self.bytes_left == length;
        if !is_in_order || !is_aligned || length > self.bytes_left || is_last != (position == 0) {
            return false;
        }
        self.bytes_left -= length;
        self.position = Some(position);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether chunks of these lengths and positions are the chain of a value of `bytes`.
    fn is_chain(bytes: u32, chunks: &[(u64, u32)]) -> bool {
        let mut chain = Chain::new(bytes);
        chunks.iter().all(|(length, position)| chain.accepts(*length, *position))
            && chain.is_complete()
    }

    #[test]
    fn a_chain_counts_down_to_the_end_of_its_value() {
        assert!(is_chain(5, &[(5, 0)]));
        assert!(is_chain(21, &[(8, 2), (8, 1), (5, 0)]));
        assert!(!is_chain(21, &[(8, 2), (8, 1)]), "a chunk is missing");
        assert!(!is_chain(21, &[(8, 2), (8, 2), (5, 0)]), "a chunk comes twice");
        assert!(!is_chain(21, &[(8, 3), (8, 1), (5, 0)]), "a chunk was left out");
        assert!(!is_chain(16, &[(8, 2), (8, 1)]), "more are to come");
        assert!(!is_chain(16, &[(8, 1), (9, 0)]), "longer than the value");
        assert!(!is_chain(16, &[(7, 1), (9, 0)]), "not at a whole word");
        assert!(!is_chain(16, &[(8, 0), (8, u32::MAX)]), "beyond the last");
    }

    #[test]
    fn a_descriptor_has_its_declared_length_and_fields() {
        let descriptor = Descriptor { first: 0x0102_0304, name: u64::MAX - 1, bytes: 70_000 };
        let bytes = descriptor.to_bytes();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(word(0), descriptor.first);
        assert_eq!(word(DESCRIBED_NAME_AT as usize), descriptor.name);
        assert_eq!(checked_word::decode(word(DESCRIBED_BYTES_AT as usize)), Some(70_000));
        assert_eq!(span(1), BYTES_AT + 8);
    }
}
