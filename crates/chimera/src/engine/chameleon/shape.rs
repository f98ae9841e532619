//! [`Shape`]: how many shards, and how large their tables are. The one place where sizes follow from numbers of keys.

use std::ops::RangeInclusive;

use crate::engine::ChameleonOptions;
use crate::index::probing_table::{PersistentTable, TABLE_ALIGN};

pub(super) const SEGMENT_BYTES: u64 = 1 << 30;
pub(super) const LOG_RUN_BYTES: u32 = 256 << 10;
pub(super) const SLOT_BYTES: u32 = 16;
/// Of a table of the last level so many slots out of 100 are in use when it is made.
pub(super) const LAST_LOAD_PERCENT: u32 = 75;

const EXPECTED_KEYS: u64 = 16_000_000;
/// A billion in 16,384 shards are 61,035.
const KEYS_PER_SHARD: u64 = 61_440;
const MEMTABLE_BYTES: u32 = 8 << 10;
const LEVELS: u32 = 4;
const RATIO: u32 = 4;
const SHARD_BITS_MAX: u32 = 16;
/// The lower half of a hash.
const HALF: u64 = u32::MAX as u64;

/// Shards, and sizes of their tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Bits of a hash, the highest ones, that choose a shard.
    pub(super) shard_bits: u32,
    pub(super) memtable_slots: u32,
    /// With the last one.
    pub(super) levels: u32,
    pub(super) ratio: u32,
}

/// Which table above the last level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Upper {
    pub(super) shard: u32,
    pub(super) level: usize,
    /// In its level: the oldest one is 0.
    pub(super) table: u32,
}

impl Shape {
    /// The shape that the options ask for, be it possible or not.
    pub(super) fn of(options: &ChameleonOptions) -> Self {
        let memtable_slots = options.memtable_bytes.unwrap_or(MEMTABLE_BYTES) / SLOT_BYTES;
        let (levels, ratio) = (options.levels.unwrap_or(LEVELS), options.ratio.unwrap_or(RATIO));
        let mut shape = Self { shard_bits: 0, memtable_slots, levels, ratio };
        shape.shard_bits = match options.shards {
            Some(shards) if shards.is_power_of_two() => shards.ilog2(),
            Some(_) => u32::MAX,
            None => {
                let keys = options.expected_keys.unwrap_or(EXPECTED_KEYS);
                let shards = keys.div_ceil(KEYS_PER_SHARD).clamp(1, 1 << SHARD_BITS_MAX);
                shards.next_power_of_two().ilog2()
            }
        };
        if let (Some(bytes), None, true) = (options.dram_bytes, options.shards, shape.is_possible())
        {
            while shape.shard_bits > 0 && shape.dram_bytes() > bytes {
                shape.shard_bits -= 1;
            }
        }
        shape
    }

    pub(super) fn is_possible(&self) -> bool {
        let is_power = |number: u32, least: u32, most: u32| {
            number.is_power_of_two() && (least..=most).contains(&number)
        };
        self.shard_bits <= SHARD_BITS_MAX
            && is_power(self.memtable_slots, 16, 65_536)
            && (2..=7).contains(&self.levels)
            && is_power(self.ratio, 2, 16)
            // So that slots are counted in 32 bits.
            && self.memtable_slots.ilog2() + (self.levels - 1) * self.ratio.ilog2() <= 28
    }

    pub(super) fn shards(&self) -> u32 {
        1 << self.shard_bits
    }

    /// The shard of a key with this hash.
    #[inline(always)]
    pub(super) fn shard_of(&self, hash: u64) -> u32 {
        hash.checked_shr(u64::BITS - self.shard_bits).unwrap_or(0) as u32
    }

    /// The place of a hash in listings: its shard, then the half by which tables are ordered, then the rest.
    pub(super) fn position_of(&self, hash: u64) -> u64 {
        let rest_bits = 32 - self.shard_bits;
        let rest = hash >> 32 & ((1 << rest_bits) - 1);
        let shard = u64::from(self.shard_of(hash)) << 32;
        (shard | hash & HALF) << rest_bits | rest
    }

    /// The hash at a place in listings.
    pub(super) fn hash_at(&self, position: u64) -> u64 {
        let rest_bits = 32 - self.shard_bits;
        let rest = position & ((1 << rest_bits) - 1);
        let shard = u64::from(self.shard_of(position)) << rest_bits;
        (shard | rest) << 32 | position >> rest_bits & HALF
    }

    /// The halves by which tables are ordered of the hashes in a range of positions within a shard.
    pub(super) fn halves_of(&self, positions: &RangeInclusive<u64>) -> RangeInclusive<u32> {
        let half = |position: u64| (position >> (32 - self.shard_bits)) as u32;
        half(*positions.start())..=half(*positions.end())
    }

    /// Levels above the last one.
    pub(super) fn upper_levels(&self) -> usize {
        self.levels as usize - 1
    }

    /// Slots of a table of this level.
    pub(super) fn table_slots(&self, level: usize) -> u32 {
        self.memtable_slots * self.ratio.pow(level as u32)
    }

    /// Slots of a bypass index that is as large as they get: as many as a full last but one level has.
    pub(super) fn bypass_slots(&self) -> u32 {
        self.table_slots(self.upper_levels())
    }

    /// Slots of a bypass index that is small, at least: it takes a full MemTable with a quarter of its slots free.
    pub(super) fn bypass_slots_min(&self) -> u32 {
        self.memtable_slots * 2
    }

    /// Entries that a bypass index ever has: as many as the fullest MemTables of its levels.
    pub(super) fn bypass_entries_max(&self) -> u32 {
        let memtables = self.bypass_slots() / self.memtable_slots;
        self.entries_max(1.0) * memtables
    }

    /// Slots of a MemTable of a store that is open for reading only. It makes no table, so it has room for all that the process
    /// before had in MemTable and bypass index.
    pub(super) fn read_only_slots(&self) -> u32 {
        // Seven of eight are used, and a bypass index may have been filled to its last slot.
        (self.bypass_slots() + self.memtable_slots).div_ceil(7) * 8
    }

    /// Entries of a full MemTable, which is to use this part of its slots.
    pub(super) fn entries_max(&self, load: f64) -> u32 {
        let slots = self.memtable_slots;
        ((f64::from(slots) * load) as u32).clamp(1, slots * 7 / 8)
    }

    /// Bytes of a table on media, header included.
    pub(super) fn table_bytes(slots: u32) -> u64 {
        PersistentTable::bytes_of(slots)
    }

    /// Slots of a table of so many bytes on media.
    #[inline(always)]
    pub(super) fn slots_of(bytes: u64) -> u32 {
        (bytes.saturating_sub(PersistentTable::bytes_of(0)) / u64::from(SLOT_BYTES)) as u32
    }

    /// Bytes of all tables of this level, and what aligning them may take.
    pub(super) fn level_bytes(&self, level: usize) -> u64 {
        u64::from(self.ratio) * Self::table_bytes(self.table_slots(level)) + TABLE_ALIGN
    }

    /// Bytes of DRAM for MemTables and bypass indexes.
    pub(super) fn dram_bytes(&self) -> u64 {
        let slots = u64::from(self.memtable_slots) + u64::from(self.bypass_slots());
        u64::from(self.shards()) * slots * u64::from(SLOT_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(change: impl FnOnce(ChameleonOptions) -> ChameleonOptions) -> Shape {
        Shape::of(&change(ChameleonOptions::default()))
    }

    #[test]
    fn the_published_shape_takes_8320_mib() {
        let shape = shape(ChameleonOptions::published);
        assert_eq!((shape.shards(), shape.memtable_slots), (16_384, 512));
        assert_eq!((shape.bypass_slots(), shape.table_slots(2)), (32_768, 8_192));
        assert_eq!(shape.dram_bytes(), 8320 << 20);
    }

    #[test]
    fn shards_follow_from_keys_and_memory() {
        assert_eq!(shape(|options| options.expected_keys(1_000_000_000)).shards(), 16_384);
        assert_eq!(shape(|options| options.expected_keys(31_250_000)).shards(), 512);
        assert_eq!(shape(|options| options.expected_keys(0)).shards(), 1);
        let small = |bytes| shape(|options| options.expected_keys(31_250_000).dram_bytes(bytes));
        assert_eq!(small(256 << 20).shards(), 256, "520 KiB for each shard");
        assert!(small(256 << 20).dram_bytes() <= 256 << 20);
        assert_eq!(small(1).shards(), 1);
    }

    #[test]
    fn a_store_opened_for_reading_has_room_for_whatever_the_process_before_had_in_dram() {
        for bytes in [256, 512, 1024, 8192] {
            for (levels, ratio) in [(2, 2), (2, 7), (3, 2), (3, 3), (4, 4), (5, 5)] {
                let of = |options: ChameleonOptions| options.levels(levels).ratio(ratio);
                let shape = shape(|options| of(options.memtable_bytes(bytes)));
                let slots = shape.read_only_slots();
                let usable = shape.bypass_slots() + shape.memtable_slots;
                assert!(
                    slots.is_multiple_of(8) && slots / 8 * 7 >= usable,
                    "{bytes} {levels} {ratio}"
                );
            }
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(shape(|options| options).is_possible());
        assert!(!shape(|options| options.shards(3)).is_possible());
        assert!(!shape(|options| options.shards(0)).is_possible());
        assert!(!shape(|options| options.shards(1 << 17)).is_possible());
        assert!(!shape(|options| options.memtable_bytes(100)).is_possible());
        assert!(!shape(|options| options.levels(1)).is_possible());
        assert!(!shape(|options| options.levels(8)).is_possible());
        assert!(!shape(|options| options.ratio(5)).is_possible());
        assert!(!shape(|options| options.ratio(16).levels(7)).is_possible());
    }

    #[test]
    fn positions_go_by_shard_and_then_by_the_place_in_tables() {
        for shards in [1, 2, 1 << 16] {
            let shape = shape(|options| options.shards(shards));
            let hashes = (0..1000_u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut all: Vec<_> = hashes.chain([0, u64::MAX]).collect();
            for hash in &all {
                assert_eq!(shape.hash_at(shape.position_of(*hash)), *hash);
                let position = shape.position_of(*hash);
                assert_eq!(shape.shard_of(position), shape.shard_of(*hash));
                assert_eq!(shape.halves_of(&(position..=position)), *hash as u32..=*hash as u32);
            }
            all.sort_unstable_by_key(|hash| shape.position_of(*hash));
            assert!(all.is_sorted_by_key(|hash| (shape.shard_of(*hash), *hash as u32)));
        }
    }

    #[test]
    fn hashes_are_spread_over_shards_by_their_highest_bits() {
        let one = shape(|options| options.shards(1));
        assert_eq!((one.shard_of(0), one.shard_of(u64::MAX)), (0, 0));
        let many = shape(|options| options.shards(8));
        assert_eq!((many.shard_of(u64::MAX), many.shard_of(3 << 61)), (7, 3));
    }
}
