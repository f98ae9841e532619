//! `doctor` with and without a store.

mod common;

use std::fs;

use common::{Place, close};

#[test]
fn it_works_without_a_store_and_leaves_nothing_behind() {
    let place = Place::new();
    let text = place.run(["doctor"]).ok();
    for word in ["Medium", "Flushing", "Durability", "Huge pages", "Machine", "Limits"] {
        assert!(text.lines().any(|line| line == word), "no {word} in {text}");
    }
    let deep = place.store().join("a/b/c");
    let report = place.run(["doctor", "--json", "--path", deep.to_str().expect("text")]).json();
    assert_eq!(report["place"]["occupant"], "nothing");
    let directory = place.directory.path().to_str().expect("text");
    assert_eq!(report["place"]["directory"], directory);
    let left = fs::read_dir(place.directory.path()).expect("a directory").count();
    assert_eq!(left, 0);
}

#[test]
fn it_says_what_a_store_there_then_is() {
    let place = Place::new();
    let before = place.run(["doctor", "--json"]).json();
    place.run(["put", "k", "v"]).ok();
    let stats = place.run(["stats", "--json"]).json();
    let after = place.run(["doctor", "--json"]).json();
    for report in [&before, &after] {
        assert_eq!(report["probe"]["medium"], stats["medium"]);
        assert_eq!(report["durability"]["effective"], stats["durability"]);
        let flush = report["probe"]["flush_instruction"].as_str().expect("an instruction");
        assert_eq!(flush.replace('_', " "), stats["flush_instruction"].as_str().expect("text"));
        assert!(report["probe"]["problem"].is_null(), "{report}");
        assert!(report["machine"]["cores"].as_u64() > Some(0));
        assert!(report["probe"]["address_space_bytes"].as_u64() >= Some(1 << 30));
    }
    assert_eq!(after["place"]["occupant"], "store");
    assert_eq!(after["place"]["segments"], 1);
}

#[test]
fn it_disturbs_neither_a_store_nor_its_user() {
    let place = Place::new();
    place.fill(10);
    let options = chimera::Options::new().populate_ahead_bytes(0);
    let db = chimera::Db::open(place.store(), &options).expect("a store");
    let names = || {
        let files = fs::read_dir(place.store()).expect("a store");
        let mut names: Vec<_> = files.map(|file| file.expect("a file").file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    place.run(["doctor"]).ok();
    assert_eq!(before, names());
    db.put(b"0123456789abcdef", [1; 200]).expect("still writable");
    close(db);
    place.run(["check"]).ok();
}

#[test]
fn it_explains_what_cannot_hold_a_store() {
    let place = Place::new();
    fs::write(place.store(), "text").expect("writable");
    let report = place.run(["doctor", "--json"]).expect(0).json();
    assert_eq!(report["place"]["occupant"], "file");
    let advice = report["advice"].as_array().expect("advice");
    let says = |text: &str| {
        advice.iter().any(|one| one["warning"].as_str().is_some_and(|one| one.contains(text)))
    };
    assert!(says("a store is a directory"), "{report}");
    assert_eq!(fs::read(place.store()).expect("still there"), b"text");
}

#[test]
fn it_tells_a_device_that_is_none_of_its_kind() {
    let place = Place::new();
    let report = place.run(["doctor", "--json", "--path", "/dev/null"]).json();
    assert_eq!(report["place"]["occupant"], "device");
    assert!(report["place"]["mount"].is_null(), "{report}");
    let problem = report["probe"]["problem"].as_str().expect("a problem");
    assert!(problem.contains("not a DAX device"), "{problem}");
    let text = place.run(["doctor", "--path", "/dev/null"]).ok();
    assert!(text.contains("not a free one"), "{text}");
}
