//! The superblock: what a pool is, in two copies.
//!
//! Each copy begins its own 4 KiB page: 16 common words of 8 bytes, little-endian, and behind them the
//! totals of a closed store and the engine's area. The last common word is a checksum over the others. What
//! follows has a length and a checksum of its own, which also covers the copy's sequence number, so that it
//! never goes with the common words of another update. An update writes the copy that is not in force, with
//! the next sequence number, so that a torn update leaves the other copy as it was. A copy with an even number is
//! the first one, so two copies that were exchanged are damage.

use chimera_pmem::CACHE_LINE;
use zerocopy::IntoBytes;

use crate::types::error::{Error, Result};
use crate::types::totals::Totals;

/// First word of both copies: "CHIMERA1" in ASCII, little-endian.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"CHIMERA1");
/// Version of the media format that this program writes.
pub(crate) const FORMAT_VERSION: u32 = 4;
/// Common words of a copy.
pub(crate) const COMMON_WORDS: usize = 16;
/// Most words that an engine may keep.
pub(crate) const AREA_WORDS_MAX: usize = 30;
/// Words of a copy: common ones, length and checksum of the area, totals, the area.
pub(crate) const WORDS: usize = AREA_AT + AREA_WORDS_MAX;
/// Bytes from one copy to the other.
pub(crate) const COPY_STRIDE: u64 = 4096;
/// Bytes of the superblock file.
pub(crate) const FILE_BYTES: u64 = 2 * COPY_STRIDE;
/// Words of an engine that say something of a store only while it is closed in order.
pub(crate) const CLOSED_WORDS: usize = 2;

/// A word of bits: what every later opening keeps to. The word behind it is 0.
const KEPT_AT: usize = 10;
/// Keys are kept in their order.
const KEPT_ORDER: u64 = 1;
/// Where in a copy the words lie that are more than one number's.
const CLOSED_WORDS_AT: usize = 12;
const CHECKSUM_AT: usize = COMMON_WORDS - 1;
/// The area begins a line of its own.
const AREA_LENGTH_AT: usize = COMMON_WORDS;
const AREA_LENGTH_MAX: u64 = AREA_WORDS_MAX as u64;
const LINE_WORDS: usize = (CACHE_LINE / 8) as usize;
const AREA_CHECKSUM_AT: usize = COMMON_WORDS + 1;
const TOTALS_AT: usize = COMMON_WORDS + 2;
const AREA_AT: usize = TOTALS_AT + Totals::WORDS;
/// Where in a copy the engine's area begins, in bytes.
pub(crate) const AREA_BYTE: u64 = 8 * AREA_AT as u64;
/// Where in a copy the totals begin, in bytes.
pub(crate) const TOTALS_BYTE: u64 = 8 * TOTALS_AT as u64;

/// Whether the store was closed in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// Closed in order; everything was synced.
    Clean,
    /// Open without a journal, or ended without closing.
    Open,
    /// Open with a journal, or ended without closing: with the journal everything is in order.
    OpenJournaled,
    /// Being made as a copy of another store, or left like that: it lacks records.
    Incomplete,
}

/// Sizes of a pool's parts, fixed at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "names end with their unit")]
pub(crate) struct PoolGeometry {
    pub(crate) segment_bytes: u64,
    pub(crate) block_bytes: u32,
    /// Bytes that the first block of a segment is shifted from the start of the segment.
    pub(crate) block_shift_bytes: u32,
}

impl PoolGeometry {
    /// Checks what every pool must keep to.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let line = |bytes: u32| bytes.is_multiple_of(64);
        if self.block_bytes == 0 || !line(self.block_bytes) || !line(self.block_shift_bytes) {
            let text = "blocks must have, and be shifted by, a multiple of 64 bytes";
            return Err(format!("{text}, not {} and {}", self.block_bytes, self.block_shift_bytes));
        }
        if self.segment_bytes > 1 << 44 || !self.segment_bytes.is_multiple_of(4096) {
            let text = "a segment must have a multiple of 4096 bytes, up to 16 TiB";
            return Err(format!("{text}, not {}", self.segment_bytes));
        }
        Ok(())
    }
}

/// What a pool is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// The number of the engine; never 0. What the numbers mean is the engines' matter.
    pub(crate) engine: u32,
    pub(crate) pool_id: u64,
    pub(crate) hash_seed: u64,
    pub(crate) geometry: PoolGeometry,
    pub(crate) sequence: u64,
    pub(crate) segments: u64,
    pub(crate) closing: Closing,
    pub(crate) boot_id: u64,
    /// Whether keys are kept in their order, unless an opening says otherwise.
    pub(crate) is_ordered: bool,
    /// Words of the engine that it replaces atomically, as where its structures begin.
    pub(crate) closed_words: [u64; CLOSED_WORDS],
    /// Of a store that is closed in order, what it held; else zeros.
    pub(crate) totals: Totals,
    /// What else the engine keeps, at most [`AREA_WORDS_MAX`] words: fixed at creation.
    pub(crate) area: Vec<u64>,
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn low(word: u64) -> u32 {
    word as u32
}

fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

/// XXH3 of words, as they lie on media.
pub(super) fn checksum(words: &[u64], seed: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(words.as_bytes(), seed)
}

/// Makes the checksums of a copy right, whatever its words are.
pub(super) fn seal(words: &mut [u64; WORDS]) {
    words[CHECKSUM_AT] = checksum(&words[..CHECKSUM_AT], 0);
    words[AREA_CHECKSUM_AT] = area_checksum(words);
}

/// Depends on the common words: an update that a crash tore, and the one behind it, have the same sequence number, so that
/// the common words of one may lie beside the area of the other.
fn area_checksum(words: &[u64; WORDS]) -> u64 {
    let length = (words[AREA_LENGTH_AT] as usize).min(AREA_WORDS_MAX);
    checksum(&words[TOTALS_AT..AREA_AT + length], words[CHECKSUM_AT] ^ words[AREA_LENGTH_AT])
}

pub(super) const SEQUENCE_AT: usize = 6;
/// The word that says how the pool was closed, and where in a copy it lies.
const CLOSING_WORD: usize = 8;
pub(super) const CLOSING_AT: u64 = 8 * CLOSING_WORD as u64;

/// Whether these words can be what creations that were interrupted left of a copy: each stored all of its words
/// over zeros, or over what another one, perhaps of another engine, had left.
///
/// So of each line the words up to some one are those of the last creation, and the others are older. The first two
/// lines begin with words that are never zero, the magic number and the state: without these such a line is zero.
/// Of the lines of the area only the length tells: an area that was longer may lie behind it.
pub(super) fn is_part_of_new(words: &[u64; WORDS]) -> bool {
    let is_zero = |part: &[u64]| part.iter().all(|&word| word == 0);
    let (first, second) = words[..AREA_LENGTH_AT].split_at(LINE_WORDS);
    (first[0] == MAGIC || is_zero(first))
        && (matches!(second[0], 1..=4) || is_zero(second))
        && words[AREA_LENGTH_AT] <= AREA_LENGTH_MAX
}

impl Superblock {
    /// Whether this copy was written after `other`. Numbers wrap, so that none is the last.
    pub(crate) fn is_newer_than(&self, other: &Self) -> bool {
        (self.sequence.wrapping_sub(other.sequence) as i64) > 0
    }

    /// The words of a copy that are in use.
    pub(crate) fn words_used(&self) -> usize {
        AREA_AT + self.area.len()
    }

    /// The words of the engine, of a store that was closed in order.
    pub(crate) fn closed_words(&self) -> [u64; CLOSED_WORDS] {
        if self.closing == Closing::Clean { self.closed_words } else { [0; CLOSED_WORDS] }
    }

    /// As the words of a copy; those that are not in use are 0.
    pub(crate) fn encode(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[0] = MAGIC;
        words[1] = pair(FORMAT_VERSION, self.engine);
        words[2] = self.pool_id;
        words[3] = self.hash_seed;
        words[4] = self.geometry.segment_bytes;
        words[5] = pair(self.geometry.block_bytes, self.geometry.block_shift_bytes);
        words[SEQUENCE_AT] = self.sequence;
        words[7] = self.segments;
        words[CLOSING_WORD] = match self.closing {
            Closing::Clean => 1,
            Closing::Open => 2,
            Closing::OpenJournaled => 3,
            Closing::Incomplete => 4,
        };
        words[9] = self.boot_id;
        words[KEPT_AT] = if self.is_ordered { KEPT_ORDER } else { 0 };
        words[CLOSED_WORDS_AT..CLOSED_WORDS_AT + CLOSED_WORDS].copy_from_slice(&self.closed_words);
        words[AREA_LENGTH_AT] = self.area.len() as u64;
        words[TOTALS_AT..AREA_AT].copy_from_slice(&self.totals.to_words());
        words[AREA_AT..AREA_AT + self.area.len()].copy_from_slice(&self.area);
        seal(&mut words);
        words
    }

    /// Of a store that was closed in order, what it held, until an opening for writing has ended.
    pub(crate) fn closed_totals(&self) -> Option<Totals> {
        let is_to_be_compared = self.closing == Closing::Clean || self.totals != Totals::default();
        is_to_be_compared.then_some(self.totals)
    }

    /// From the words of a copy at byte `at` of the pool.
    ///
    /// # Errors
    /// `NewerFormat` for a later version, `OlderFormat` for an earlier one, else `Corrupted`.
    pub(crate) fn decode(words: &[u64; WORDS], at: u64) -> Result<Self> {
        if words[0] != MAGIC {
            return Err(Error::corrupted("the superblock has no magic number", at));
        }
        if words[CHECKSUM_AT] != checksum(&words[..CHECKSUM_AT], 0) {
            return Err(Error::corrupted("the superblock does not match its checksum", at));
        }
        if low(words[1]) > FORMAT_VERSION {
            return Err(Error::NewerFormat { found: low(words[1]), supported: FORMAT_VERSION });
        }
        let bad = |what: &str, word: usize| {
            Error::corrupted(format!("the superblock has no valid {what}"), at + 8 * word as u64)
        };
        if low(words[1]) == 0 {
            return Err(bad("format version", 1));
        }
        // Of every version so far the checksum is this one.
        if low(words[1]) < FORMAT_VERSION {
            return Err(Error::OlderFormat { found: low(words[1]), supported: FORMAT_VERSION });
        }
        if high(words[1]) == 0 {
            return Err(bad("engine", 1));
        }
        if words[SEQUENCE_AT] % 2 != at / COPY_STRIDE {
            let what = "a copy of the superblock lies in the place of the other one";
            return Err(Error::corrupted(what, at));
        }
        let length = words[AREA_LENGTH_AT] as usize;
        if length > AREA_WORDS_MAX || words[AREA_CHECKSUM_AT] != area_checksum(words) {
            return Err(bad("area of its engine", AREA_LENGTH_AT));
        }
        Ok(Self {
            engine: high(words[1]),
            pool_id: words[2],
            hash_seed: words[3],
            geometry: PoolGeometry {
                segment_bytes: words[4],
                block_bytes: low(words[5]),
                block_shift_bytes: high(words[5]),
            },
            sequence: words[SEQUENCE_AT],
            segments: words[7],
            closing: match words[CLOSING_WORD] {
                1 => Closing::Clean,
                2 => Closing::Open,
                3 => Closing::OpenJournaled,
                4 => Closing::Incomplete,
                _ => return Err(bad("state", 8)),
            },
            boot_id: words[9],
            is_ordered: words[KEPT_AT] & KEPT_ORDER != 0,
            closed_words: [words[CLOSED_WORDS_AT], words[CLOSED_WORDS_AT + 1]],
            totals: Totals::from_words(&words[TOTALS_AT..AREA_AT]),
            area: words[AREA_AT..AREA_AT + length].to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    mod forms;
    mod hostile;

    use super::*;

    fn example() -> Superblock {
        Superblock {
            engine: 1,
            pool_id: 0x0123_4567_89ab_cdef,
            hash_seed: 42,
            geometry: PoolGeometry {
                segment_bytes: 1 << 30,
                block_bytes: 24 << 10,
                block_shift_bytes: 0,
            },
            sequence: 8,
            segments: 3,
            closing: Closing::Open,
            boot_id: 99,
            is_ordered: false,
            closed_words: [3, 4],
            totals: Totals { records: 8, key_sum: 9, state_sum: 10 },
            area: vec![5, 6, 7],
        }
    }

    #[test]
    fn a_superblock_comes_back_as_it_was() {
        for area in [vec![], vec![1], vec![u64::MAX; AREA_WORDS_MAX]] {
            let superblock = Superblock { area, ..example() };
            assert_eq!(Superblock::decode(&superblock.encode(), 0).unwrap(), superblock);
        }
    }

    #[test]
    fn that_keys_are_kept_in_order_is_one_bit_and_others_are_left_to_come() {
        for is_ordered in [false, true] {
            let words = Superblock { is_ordered, ..example() }.encode();
            assert_eq!(words[KEPT_AT..=KEPT_AT + 1], [u64::from(is_ordered), 0]);
            assert_eq!(Superblock::decode(&words, 0).unwrap().is_ordered, is_ordered);
        }
        let mut words = example().encode();
        words[KEPT_AT] = !KEPT_ORDER;
        seal(&mut words);
        assert!(!Superblock::decode(&words, 0).unwrap().is_ordered);
    }

    #[test]
    fn the_words_of_closing_say_nothing_of_an_open_pool() {
        for closing in [Closing::Clean, Closing::Open, Closing::OpenJournaled, Closing::Incomplete]
        {
            let expected = if closing == Closing::Clean { [3, 4] } else { [0, 0] };
            let superblock = Superblock { closing, ..example() };
            assert_eq!(superblock.closed_words(), expected);
            // Of one that is open it had them when it was closed, and no opening has ended since.
            assert_eq!(superblock.closed_totals(), Some(superblock.totals));
            let without = Superblock { totals: Totals::default(), ..superblock };
            assert_eq!(without.closed_totals().is_some(), closing == Closing::Clean);
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let words = example().encode();
        for bit in 0..example().words_used() * 64 {
            let mut damaged = words;
            damaged[bit / 64] ^= 1 << (bit % 64);
            assert!(Superblock::decode(&damaged, 0).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn an_area_goes_with_the_update_that_wrote_it_alone() {
        let (old, new) = (example(), Superblock { sequence: 10, ..example() });
        let mut torn = new.encode();
        torn[COMMON_WORDS..].copy_from_slice(&old.encode()[COMMON_WORDS..]);
        let error = Superblock::decode(&torn, 0).unwrap_err();
        assert!(error.to_string().contains("area of its engine"), "{error}");
    }

    /// An update that a crash tore, and the one that recovery makes next, have one sequence number.
    #[test]
    fn an_area_does_not_go_with_another_update_of_the_same_number() {
        let closed = Superblock {
            closing: Closing::Clean,
            totals: Totals { records: 2, key_sum: 3, state_sum: 4 },
            ..example()
        };
        let open = Superblock { closing: Closing::Open, totals: Totals::default(), ..example() };
        for (common, area) in [(&closed, &open), (&open, &closed)] {
            let mut torn = common.encode();
            torn[COMMON_WORDS..].copy_from_slice(&area.encode()[COMMON_WORDS..]);
            let error = Superblock::decode(&torn, 0).unwrap_err();
            assert!(error.to_string().contains("area of its engine"), "{error}");
        }
    }

    /// What a crash can leave of a new copy that was stored over `old`: of each line the words up to some one.
    fn parts_of_new(area: Vec<u64>, old: &[[u64; WORDS]]) -> Vec<[u64; WORDS]> {
        let whole = Superblock { sequence: 0, area, ..example() }.encode();
        let mut parts = old.to_vec();
        for start in (0..WORDS).step_by(LINE_WORDS) {
            // None of a line, all, and what ends in the middle.
            let ends = [0, 1, 3, LINE_WORDS].map(|stored| (start + stored).min(WORDS));
            let longer = |part: &[u64; WORDS]| {
                ends.map(|end| {
                    let mut part = *part;
                    part[start..end].copy_from_slice(&whole[start..end]);
                    part
                })
            };
            parts = parts.iter().flat_map(longer).collect();
        }
        parts
    }

    #[test]
    fn whatever_is_left_of_a_new_copy_is_known_as_such() {
        for length in [0, 1, 3, 4, AREA_WORDS_MAX] {
            let parts = parts_of_new((1..=length as u64).collect(), &[[0; WORDS]]);
            assert!(parts.iter().all(is_part_of_new), "an area of {length} words");
            // Over what a creation of another engine has left.
            let some: Vec<_> = parts.into_iter().step_by(997).collect();
            for other in [0, 2, AREA_WORDS_MAX] {
                let parts = parts_of_new((7..7 + other as u64).collect(), &some);
                assert!(parts.iter().all(is_part_of_new), "{other} words over {length}");
            }
        }
    }

    #[test]
    fn what_somebody_else_left_is_no_part_of_a_new_copy() {
        // Beyond these words an area may be there without its length.
        for byte in 0..8 * COMMON_WORDS {
            let mut words = [0_u64; WORDS];
            words[byte / 8] = u64::from(b'x') << (8 * (byte % 8));
            assert!(!is_part_of_new(&words), "byte {byte}");
        }
        let mut words = [0; WORDS];
        words[AREA_LENGTH_AT] = AREA_LENGTH_MAX + 1;
        assert!(!is_part_of_new(&words));
    }

    #[test]
    fn a_copy_in_the_place_of_the_other_one_is_damage() {
        for (sequence, at) in [(8, COPY_STRIDE), (9, 0)] {
            let words = Superblock { sequence, ..example() }.encode();
            let error = Superblock::decode(&words, at).unwrap_err();
            assert!(error.to_string().contains("in the place of the other one"), "{error}");
            Superblock::decode(&words, COPY_STRIDE - at).unwrap();
        }
    }

    #[test]
    fn an_older_format_is_named_and_what_no_format_had_is_damage() {
        for version in 0..FORMAT_VERSION {
            let mut words = example().encode();
            words[1] = pair(version, 1);
            // That of what followed was another one.
            words[CHECKSUM_AT] = checksum(&words[..CHECKSUM_AT], 0);
            match Superblock::decode(&words, 0) {
                Err(Error::OlderFormat { found, supported: FORMAT_VERSION }) if version > 0 => {
                    assert_eq!(found, version);
                }
                Err(Error::Corrupted { at: 8, .. }) if version == 0 => {}
                other => panic!("version {version}: {other:?}"),
            }
            words[2] ^= 1;
            assert!(matches!(Superblock::decode(&words, 0), Err(Error::Corrupted { .. })));
        }
    }

    #[test]
    fn a_newer_format_is_named() {
        let mut words = example().encode();
        words[1] = pair(FORMAT_VERSION + 1, 1);
        seal(&mut words);
        assert!(matches!(
            Superblock::decode(&words, 0),
            Err(Error::NewerFormat { found, .. }) if found == FORMAT_VERSION + 1
        ));
    }
}
