//! `check` on damaged stores: it says where, changes nothing, and says what is left.

mod common;

use std::fs;
use std::path::PathBuf;

use chimera::{Db, Options};
use common::{Place, close, seal_superblock};

/// Header, key and value of a record of 16 + 200 bytes.
const RECORD_BYTES: u64 = 16 + 16 + 200;

fn segment(place: &Place) -> PathBuf {
    place.store().join("segment-000000")
}

/// Flips a bit of the first place where `text` is in the segment; gives back where.
fn flip(place: &Place, text: &[u8]) -> u64 {
    let mut bytes = fs::read(segment(place)).expect("a segment");
    let at = bytes.windows(text.len()).position(|window| window == text).expect("it is there");
    bytes[at] ^= 4;
    fs::write(segment(place), bytes).expect("writable");
    at as u64
}

/// Asserts that the report names the record around byte `at` of the segment.
fn assert_is_at(report: &serde_json::Value, at: u64) {
    let first = &report["first_damage"];
    assert_eq!(first["file"], "segment-000000", "{report}");
    let found = first["file_offset"].as_u64().expect("an offset");
    assert!((found..found + RECORD_BYTES).contains(&at), "{found} is not the record around {at}");
    assert_eq!(first["at"].as_u64(), Some(found + 8192));
}

#[test]
fn a_sound_store_is_said_to_be_sound() {
    let place = Place::new();
    place.fill(1000);
    let before = fs::read(segment(&place)).expect("a segment");
    let report = place.run(["check", "--json"]).expect(0).json();
    assert_eq!(report["sound"], true);
    assert_eq!((&report["records"], &report["index_entries"]), (&1000.into(), &1000.into()));
    assert_eq!(report["damages"], 0);
    assert_eq!(report["words_unchecked"], 0);
    for _ in 0..2 {
        place.run(["update-u64", "key-5", "1", "--force"]).ok();
        let report = place.run(["check", "--json"]).expect(0).json();
        assert_eq!(report["words_unchecked"], 1);
    }
    assert!(place.run(["check"]).ok().contains("words unchecked    1"));
    assert_ne!(before, fs::read(segment(&place)).expect("a segment"));
}

#[test]
fn a_damaged_value_is_found_and_the_rest_can_be_read() {
    let place = Place::new();
    place.fill(200);
    let at = flip(&place, b"value-123");
    let damaged = fs::read(segment(&place)).expect("a segment");

    let run = place.run(["check", "--json"]).expect(1);
    assert_eq!(run.error_kind(), "damaged");
    let report = run.json();
    assert_eq!((&report["sound"], &report["damages"]), (&false.into(), &1.into()));
    assert_eq!(report["records"], 199);
    assert_is_at(&report, at);
    let text = place.run(["check"]).expect(1).out;
    assert!(text.contains("of the file `segment-000000`"), "{text}");

    let refused = place.run(["get", "key-7"]).expect(3);
    assert!(refused.err.contains("--salvage"), "{refused:?}");
    assert_eq!(place.run(["get", "key-7", "--json"]).expect(3).error_kind(), "corrupted");
    assert_eq!(place.run(["get", "key-7", "--salvage"]).expect(4).out, "value-7\n");
    place.run(["get", "key-123", "--salvage"]).expect(4);
    assert_eq!(place.run(["list-keys", "--salvage"]).expect(4).out.lines().count(), 199);
    let stats = place.run(["stats", "--salvage", "--json"]).expect(4).json();
    assert_eq!(stats["records_damaged"], 1);
    assert_eq!(damaged, fs::read(segment(&place)).expect("a segment"), "nothing was changed");
}

/// Bytes of the value that is updated, behind its number, and of the other values of its block.
#[test]
fn beside_an_updated_number_damage_is_found_by_each_command() {
    let place = Place::new();
    place.fill(50);
    place.run(["update-u64", "key-5", "1", "--at", "192"]).ok();
    place.run(["update-u64", "key-5", "1", "--at", "192"]).ok();
    let sound = fs::read(segment(&place)).expect("a segment");
    for (key, text) in
        [("key-5", &b"key-5\0\0\0\0\0\0\0\0\0\0\0value-5"[..]), ("key-6", b"value-6")]
    {
        // Wherever it is: what was replaced lies there still, and does not matter.
        let mut bytes = sound.clone();
        let last = text.len() - 1;
        for at in (0..bytes.len() - last).filter(|at| sound[*at..].starts_with(text)) {
            bytes[at + last] ^= 4;
        }
        fs::write(segment(&place), &bytes).expect("writable");
        let report = place.run(["check", "--json"]).expect(1).json();
        assert_eq!((&report["damages"], &report["records"]), (&1.into(), &49.into()), "{key}");
        assert_eq!(report["words_unchecked"], u64::from(key != "key-5"));
        assert_eq!(place.run(["get", key, "--json"]).expect(3).error_kind(), "corrupted");
        let (stream, copy) = (format!("{key}.stream"), format!("{key}.copy"));
        place.run(["export", &stream]).expect(3);
        place.run(["backup", &copy]).expect(3);
        assert!(!place.directory.path().join(copy).exists());
    }
}

#[test]
fn a_damaged_key_keeps_the_store_from_opening_and_is_found() {
    let place = Place::new();
    place.fill(200);
    let at = flip(&place, b"key-77\0");
    let report = place.run(["check", "--json"]).expect(1).json();
    assert!(report["refusal"].is_string(), "{report}");
    assert_eq!((&report["readable"], &report["records"]), (&true.into(), &199.into()));
    assert_is_at(&report, at);
}

#[test]
fn of_several_damages_the_first_is_shown() {
    let place = Place::new();
    place.fill(200);
    let places = [&b"value-20\0"[..], b"key-90\0", b"value-3\0"].map(|text| flip(&place, text));
    let report = place.run(["check", "--json"]).expect(1).json();
    assert_eq!((&report["damages"], &report["records"]), (&3.into(), &197.into()));
    assert_is_at(&report, places.into_iter().min().expect("three"));
}

#[test]
fn a_store_without_a_superblock_copy_that_is_right_cannot_be_read() {
    let place = Place::new();
    place.fill(10);
    let path = place.store().join("superblock");
    let mut bytes = fs::read(&path).expect("a superblock");
    for copy in [0, 4096] {
        bytes[copy + 20] ^= 1;
    }
    fs::write(&path, bytes).expect("writable");
    let report = place.run(["check", "--json"]).expect(1).json();
    assert_eq!((&report["readable"], &report["sound"]), (&false.into(), &false.into()));
    assert_eq!(report["first_damage"]["file"], "superblock");
    assert!(place.run(["check"]).expect(1).out.contains("restore a copy"));
}

/// The store as a restart of the machine would find it: copied while open, and of another boot.
fn store_after_power_loss(place: &Place) {
    let open = place.directory.path().join("open");
    fs::rename(place.store(), &open).expect("same file system");
    let db = Db::open(&open, &Options::new().populate_ahead_bytes(0)).expect("a store");
    fs::create_dir(place.store()).expect("the old one is away");
    for name in ["lock", "superblock", "segment-000000"] {
        fs::copy(open.join(name), place.store().join(name)).expect("room");
    }
    close(db);
    let path = place.store().join("superblock");
    let mut bytes = fs::read(&path).expect("a superblock");
    for copy in bytes.chunks_mut(4096) {
        // Word 9 is the boot.
        copy[72] ^= 1;
        seal_superblock(copy);
    }
    fs::write(&path, bytes).expect("writable");
}

#[test]
fn a_store_left_open_by_a_power_loss_is_reported_and_can_be_accepted() {
    let place = Place::new();
    place.fill(100);
    if place.run(["stats", "--json"]).json()["durability"] != "process" {
        // On persistent memory a power loss is nothing to report.
        return;
    }
    store_after_power_loss(&place);
    assert_eq!(place.run(["get", "key-1", "--json"]).expect(3).error_kind(), "power_lost");
    let report = place.run(["check", "--json"]).expect(1).json();
    assert_eq!((&report["damages"], &report["records"]), (&0.into(), &100.into()));
    assert!(place.run(["check"]).expect(1).out.contains("before the power loss"));
    let salvaged = place.run(["get", "key-1", "--salvage"]).expect(4);
    assert_eq!(salvaged.out, "value-1\n");
    assert!(salvaged.err.contains("writes may be missing"), "{salvaged:?}");
    // Who has written to it has accepted what it has.
    place.run(["put", "key-1", "new", "--salvage"]).expect(4);
    assert_eq!(place.run(["get", "key-1"]).ok(), "new\n");
    place.run(["check"]).ok();
}
