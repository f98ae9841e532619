//! Slots: what is noticed of damage.

use super::*;
use crate::index::probing_table::slot::{OFFSET_END, decode, encode};

#[test]
fn every_flipped_bit_of_a_slot_is_noticed() {
    for seed in 1..400_u64 {
        let (hash, offset) = (mixed(seed), (mixed(seed) >> 19) & !7 | 8);
        let slot = Slot::new(hash, offset, 24 + seed * seed * 8, seed % 2 == 0);
        let found = slot.found().unwrap();
        assert_eq!((found.offset, found.is_tombstone), (offset, seed % 2 == 0));
        for bit in 0..64 {
            assert_eq!(decode(hash ^ 1 << bit, slot.location), None, "bit {bit} of the hash");
            let flipped = Slot { hash, location: slot.location ^ 1 << bit };
            assert_eq!(flipped.found(), None, "bit {bit} of the location");
            assert!(!flipped.is_empty(), "an entry that is gone");
        }
    }
}

#[test]
fn two_flipped_bits_are_missed_as_seldom_as_fourteen_bits_can() {
    let (mut tried, mut missed) = (0_u32, 0);
    for seed in 0..40_u64 {
        let hash = mixed(seed);
        let slot = Slot::new(hash, 8 * (seed * 12_345 + 1), 24 + seed, false);
        for first in 0..128 {
            for second in 0..first {
                let bits: u128 = 1 << first | 1 << second;
                let flipped = Slot {
                    hash: hash ^ bits as u64,
                    location: slot.location ^ (bits >> 64) as u64,
                };
                assert!(!flipped.is_empty());
                tried += 1;
                missed += u32::from(flipped.found().is_some());
            }
        }
    }
    assert!(missed < tried / (1 << 12), "{missed} of {tried}");
}

#[test]
fn no_flipped_bit_makes_an_empty_slot_an_entry() {
    assert!(Slot::EMPTY.is_empty() && Slot::EMPTY.found().is_none());
    for bit in 0..64 {
        for slot in [Slot { hash: 1 << bit, location: 0 }, Slot { hash: 0, location: 1 << bit }] {
            assert!(!slot.is_empty() && slot.found().is_none(), "bit {bit}");
        }
    }
    for first in 0..128 {
        for second in 0..first {
            let bits: u128 = 1 << first | 1 << second;
            let slot = Slot { hash: bits as u64, location: (bits >> 64) as u64 };
            // One bit in the offset and one in the class are the only way: the check notices it.
            assert!(slot.found().is_none(), "bits {first} and {second}");
        }
    }
    // Memory full of ones, and what memory full of zeros is on media.
    assert_eq!(decode(u64::MAX, u64::MAX), None);
    assert_eq!(decode(0, u64::MAX), None);
}

/// What a location says of a record of so many bytes.
fn rounded_bytes(bytes: u64) -> u64 {
    Slot::new(1, 8, bytes, false).found().unwrap().bytes
}

#[test]
fn sizes_are_rounded_up_by_a_quarter_at_most() {
    let mut last = 0;
    let sizes = (1..5000).chain((12..34).flat_map(|shift| {
        (0..32_u64).flat_map(move |part| [0, 1, 8].map(|more| ((32 + part) << (shift - 5)) + more))
    }));
    for bytes in sizes {
        let rounded = rounded_bytes(bytes);
        assert!(
            rounded >= bytes && rounded <= (bytes + bytes / 4).next_multiple_of(8),
            "{bytes}: {rounded}"
        );
        assert_eq!(rounded_bytes(rounded), rounded);
        assert!(rounded >= last || bytes <= last, "{bytes}: {rounded} after {last}");
        last = rounded;
        let found = Slot::new(bytes, 4096, bytes, false).found().unwrap();
        assert_eq!(found.bytes, rounded);
        assert_eq!(encode(bytes, 4096, rounded, false), found.location);
    }
    // Lengths are bounded by records; a larger one is not wrong, but said too small.
    assert!(rounded_bytes(u64::MAX) > 1 << 35);
    assert!(Slot::new(1, 8, u64::MAX, true).found().is_some());
}

#[test]
fn offsets_of_no_record_are_refused() {
    for offset in [0, 4, 12, OFFSET_END, u64::MAX - 7] {
        assert!(std::panic::catch_unwind(|| encode(1, offset, 24, false)).is_err(), "{offset}");
    }
    let last = Slot::new(1, OFFSET_END - 8, 24, true).found().unwrap();
    assert_eq!((last.offset, last.is_tombstone), (OFFSET_END - 8, true));
}

#[test]
fn no_check_makes_a_location_that_leads_nowhere_an_entry() {
    // Without an offset, without a size class, and with the size class of memory full of ones.
    for rest in [5 << 43, 1 << 20, 1 << 20 | 127 << 43] {
        let is_entry = |check: u64| decode(77, rest | check << 50).is_some();
        assert_eq!((0..1 << 14).filter(|check| is_entry(*check)).count(), 0, "{rest:#x}");
    }
    let is_entry = |check: u64| decode(77, 1 << 20 | 126 << 43 | check << 50).is_some();
    assert_eq!((0..1 << 14).filter(|check| is_entry(*check)).count(), 1);
}
