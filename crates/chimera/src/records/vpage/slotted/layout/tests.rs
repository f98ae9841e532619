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

/// Found by trying all numbers of slots, from many to few, and all places for the first one, by other means.
#[test]
fn pages_of_this_format_have_these_layouts() {
    use RecordLayout::{Checked, Published};
    for (kind, page_bytes, [key, value], [slots, words, first, slot_bytes], lines) in [
        (Checked, 4096, [16, 200], [17, 1, 16, 232], 76),
        (Published, 4096, [16, 200], [18, 1, 16, 216], 76),
        (Checked, 4096, [8, 8], [126, 4, 64, 32], 126),
        (Published, 4096, [8, 8], [253, 4, 48, 16], 253),
        (Checked, 4096, [1, 0], [168, 6, 56, 24], 210),
        (Checked, 4096, [100, 900], [3, 1, 64, 1024], 48),
        (Published, 4096, [8, 1336], [3, 1, 64, 1344], 63),
        (Published, 4096, [8, 4072], [1, 1, 16, 4080], 64),
        (Checked, 4096, [24, 456], [8, 1, 16, 496], 68),
        (Checked, 256, [8, 8], [7, 1, 32, 32], 7),
    ] {
        let geometry = Geometry { page_bytes, ..Geometry::default() };
        let layout = PageLayout::new(&geometry, kind, key, value).unwrap();
        let found = [layout.slots, layout.bitset_words, layout.first_slot, layout.slot_bytes];
        assert_eq!(found, [slots, words, first, slot_bytes], "{kind:?}, {key} and {value} bytes");
        assert_eq!(lines_touched(first, slot_bytes, slots), lines);
        let last = first + (slots - 1) * slot_bytes;
        assert_eq!(layout.slot_at(slots - 1), u64::from(last));
    }
    // A byte more, and not even one record fits.
    let geometry = Geometry::default();
    assert_eq!(PageLayout::new(&geometry, Published, 8, 4073), None);
}

#[test]
fn a_page_has_no_more_slots_than_locations_can_say() {
    let geometry = Geometry { page_bytes: 1 << 20, ..Geometry::default() };
    let layout = PageLayout::new(&geometry, RecordLayout::Published, 8, 0).unwrap();
    assert_eq!((layout.slots, layout.slot_bytes), (65_534, 8));
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
