//! `doctor` with and without a store.

mod common;

use std::fs;

use common::{Place, close};

#[test]
fn it_works_without_a_store_and_leaves_nothing_behind() {
    let place = Place::new();
    let text = place.run(["doctor"]).ok();
    for word in ["Medium", "Set-up", "Flushing", "Durability", "Huge pages", "Machine", "Limits"] {
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
    assert_eq!(
        (&before["opening"]["opens"], &after["opening"]["opens"]),
        (&().into(), &true.into())
    );
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
    let text = place.run(["doctor"]).ok();
    assert!(text.contains(&format!("it is open in process {}", std::process::id())), "{text}");
    assert_eq!(before, names());
    db.put(b"0123456789abcdef", [1; 200]).expect("still writable");
    close(db);
    place.run(["check"]).ok();
}

#[test]
fn it_explains_what_cannot_hold_a_store() {
    let place = Place::new();
    fs::write(place.store(), "text").expect("writable");
    let run = place.run(["doctor", "--json"]).expect(3);
    assert_eq!(run.error_kind(), "not_a_store");
    let report = run.json();
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
    let run = place.run(["doctor", "--path", "/dev/null"]).expect(3);
    assert!(run.out.contains("not a free one"), "{run:?}");
}

#[test]
fn a_device_that_is_absent_is_an_error_and_nothing_else_is_examined() {
    let place = Place::new();
    for path in ["/dev/dax99.9", "/dev/../dev/dax99.9"] {
        let run = place.run(["doctor", "--path", path]).expect(3);
        assert!(run.err.contains("there is no device `/dev") && run.out.is_empty(), "{run:?}");
        assert!(run.err.contains("hint: "), "{run:?}");
        let run = place.run(["doctor", "--json", "--path", path]).expect(3);
        assert_eq!((run.error_kind().as_str(), run.out.as_str()), ("no_device", ""));
    }
    // What a file is said to contain is not its parent.
    fs::write(place.store(), "text").expect("writable");
    let run = place.run(["doctor", "--path", "store/inside"]).expect(3);
    assert!(run.err.contains("cannot look at the path"), "{run:?}");
}

#[test]
fn a_store_that_cannot_be_opened_is_exit_code_3() {
    let place = Place::new();
    place.fill(10);
    place.run(["doctor"]).ok();
    fs::remove_file(place.store().join("segment-000000")).expect("it was there");
    let run = place.run(["doctor"]).expect(3);
    assert!(run.out.lines().any(|line| line.starts_with("  opens               no: ")), "{run:?}");
    assert!(run.err.contains("segment-000000"), "{run:?}");
    let report = place.run(["doctor", "--json"]).expect(3).json();
    assert_eq!(report["opening"]["opens"], false);
    // No store can be made where nothing can be.
    let run = place.run(["doctor", "--path", "/proc/none"]).expect(3);
    assert!(run.err.contains("no store can be made here"), "{run:?}");
}

#[test]
fn the_set_up_is_that_of_the_medium() {
    let place = Place::new();
    let report = place.run(["doctor", "--json"]).json();
    let steps = report["setup"].as_array().expect("steps");
    assert!(!steps.is_empty() && steps.iter().all(|step| step["what"].is_string()), "{report}");
    let text = place.run(["doctor"]).ok();
    for step in steps {
        assert!(text.contains(step["what"].as_str().expect("text")), "{text}");
    }
    let shared = std::path::Path::new("/dev/shm");
    if shared.is_dir() {
        let report = place.run(["doctor", "--json", "--path", "/dev/shm/none"]).json();
        if report["probe"]["medium"] == "tmpfs" {
            let text = report["setup"].to_string();
            assert!(text.contains("what must last needs a directory on a disk"), "{text}");
        }
    }
}
