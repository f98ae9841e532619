use super::*;
use crate::records::checksum::{Summed, key_checksum, value_checksum};

fn layout(layout: RecordLayout, key: u32, value: u32) -> PageLayout {
    PageLayout::new(&Geometry::default(), layout, key, value).unwrap()
}

#[test]
fn published_pages_hold_what_the_paper_says() {
    assert_eq!(layout(RecordLayout::Published, 16, 200).slots, 18);
    assert_eq!(layout(RecordLayout::Published, 8, 8).slots, 253);
}

#[test]
fn checked_pages_hold_seventeen() {
    let layout = layout(RecordLayout::Checked, 16, 200);
    assert_eq!(layout.slots, 17);
    let lines = lines_touched(layout.first_slot, layout.slot_bytes, layout.slots);
    assert!(f64::from(lines) / 17.0 + 1.0 <= 5.6, "{lines} lines");
}

#[test]
fn slots_lie_inside_the_page_and_apart() {
    for (key, value) in [(1, 0), (8, 8), (16, 100), (16, 200), (32, 500), (100, 900), (5, 3)] {
        for kind in [RecordLayout::Checked, RecordLayout::Published] {
            let layout = layout(kind, key, value);
            assert!(layout.first_slot >= 8 + 8 * layout.bitset_words);
            assert!(layout.slot_at(layout.slots - 1) + u64::from(layout.slot_bytes) <= 4096);
            assert!(layout.value_at + value <= layout.slot_bytes);
            assert!(layout.key_at + key <= layout.value_at);
        }
    }
}

#[test]
fn a_record_too_large_for_a_page_has_no_layout() {
    let geometry = Geometry::default();
    assert_eq!(PageLayout::new(&geometry, RecordLayout::Checked, 16, 4096), None);
}

#[test]
fn checksums_depend_on_place_version_and_bytes() {
    let words = [64, 1, 0x1234_5678_9abc_def0_u64];
    let check = |[place, version, hash]: [u64; 3]| key_checksum(place, version, hash);
    for word in 0..3 {
        for bit in 0..64 {
            let mut changed = words;
            changed[word] ^= 1 << bit;
            assert_ne!(check(words), check(changed), "word {word}, bit {bit}");
        }
    }
    let value = [7; 200];
    for bit in 0..64 {
        assert_ne!(
            value_checksum(64, Summed::of(&value)),
            value_checksum(64 ^ 1 << bit, Summed::of(&value))
        );
    }
    for bit in 0..1600 {
        let mut changed = value;
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_ne!(
            value_checksum(64, Summed::of(&value)),
            value_checksum(64, Summed::of(&changed)),
            "bit {bit}"
        );
    }
}
