//! Every exit code, and errors as text and as JSON.

mod common;

use std::fs;

use chimera::{Db, Options};
use common::{Place, close};

#[test]
fn a_missing_key_is_exit_code_1() {
    let place = Place::new();
    place.run(["put", "there", "x"]).ok();
    for command in [&["get", "k"][..], &["delete", "k"], &["update-u64", "k", "1"]] {
        let run = place.run(command).expect(1);
        assert_eq!((run.out.as_str(), run.err.as_str()), ("", "chimera: there is no key `k`\n"));
        let run = place.run([command, &["--json"]].concat()).expect(1);
        assert_eq!((run.out.as_str(), run.error_kind().as_str()), ("", "key_not_found"));
    }
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    let place = Place::new();
    let wrong = [
        &["nonsense"][..],
        &["get"],
        &["put", "k"],
        &["put", "", "v"],
        &["put", "k", "v", "--key-size", "0"],
        &["put", "k", "v", "--segment-size", "much"],
        &["put", "k", "v", "--durability", "best"],
        &["put", "--hex", "xyz", "00"],
        &["get", "--hex", "abc"],
        &["update-u64", "k", "1.5"],
        &["get", "k", "--raw", "--json"],
        &["completion", "tcl"],
    ];
    for arguments in wrong {
        let run = place.run(arguments).expect(2);
        assert!(run.out.is_empty() && !run.err.is_empty(), "{run:?}");
        let mut arguments = arguments.to_vec();
        if !arguments.contains(&"--json") {
            arguments.push("--json");
        }
        assert_eq!(place.run(&arguments).expect(2).error_kind(), "usage", "{arguments:?}");
    }
    place.run([""; 0]).expect(2);
    assert!(!place.store().exists());
}

#[test]
fn no_store_is_exit_code_3_and_none_is_made() {
    let place = Place::new();
    let commands = [
        &["get", "k"][..],
        &["delete", "k"],
        &["update-u64", "k", "1"],
        &["list-keys"],
        &["stats"],
        &["check"],
    ];
    for command in commands {
        let run = place.run(command).expect(3);
        assert!(run.err.starts_with("chimera: there is no store at"), "{run:?}");
        let run = place.run([command, &["--json"]].concat()).expect(3);
        assert_eq!(run.error_kind(), "store_not_found");
    }
    assert!(!place.store().exists());
}

#[test]
fn what_is_no_store_is_refused_and_left_alone() {
    let place = Place::new();
    fs::write(place.store(), "text").expect("writable");
    for command in [&["get", "k"][..], &["put", "k", "v"], &["check"]] {
        let run = place.run([command, &["--json"]].concat()).expect(3);
        assert_eq!(run.error_kind(), "not_a_store");
    }
    assert_eq!(fs::read(place.store()).expect("still there"), b"text");
}

#[test]
fn a_segment_that_is_missing_is_named() {
    let place = Place::new();
    place.fill(10);
    fs::remove_file(place.store().join("segment-000000")).expect("it was there");
    for command in ["check", "list-keys", "stats"] {
        let run = place.run([command]).expect(3);
        assert!(run.err.contains("segment-000000"), "{run:?}");
    }
}

#[test]
fn a_second_opener_learns_who_holds_the_store() {
    let place = Place::new();
    place.fill(10);
    let db = Db::open(place.store(), &Options::new()).expect("a store");
    for command in [&["get", "key-1"][..], &["put", "k", "v"], &["check"], &["stats"]] {
        let run = place.run(command).expect(3);
        let holder = format!("process {}", std::process::id());
        assert!(run.err.contains(&holder), "{run:?}");
        let run = place.run([command, &["--json"]].concat()).expect(3);
        assert_eq!(run.error_kind(), "locked");
    }
    close(db);
    // Readers share it.
    let reader = Db::open(place.store(), &Options::new().read_only(true)).expect("a store");
    assert_eq!(place.run(["get", "key-1"]).ok(), "value-1\n");
    place.run(["check"]).ok();
    close(reader);
    place.run(["put", "k", "v"]).ok();
}

#[test]
fn durability_that_cannot_be_had_is_refused() {
    let place = Place::new();
    place.fill(1);
    let best = place.run(["stats", "--json"]).json()["durability"].clone();
    let put = place.run(["put", "k", "v", "--durability", "immediate", "--json"]);
    if best == "process" {
        assert_eq!(put.expect(3).error_kind(), "invalid_options");
    } else {
        // Wherever there is more than memory.
        assert_eq!(put.expect(0).json()["durability"], "immediate");
    }
    let put = place.run(["put", "l", "v", "--durability", "process", "--json"]).expect(0).json();
    assert_eq!(put["durability"], "process");
    assert_eq!((&put["inserted"], &put["created_store"]), (&true.into(), &false.into()));
}
