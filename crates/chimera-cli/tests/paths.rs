//! Paths that are not UTF-8, and symbolic links to nothing.

mod common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use common::{Place, Run};

/// A path with a byte that is not UTF-8.
const NAME: &[u8] = b"st\xffre";
const SHOWN: &str = "st\u{fffd}re";
const HEX: &str = "7374ff7265";

fn run(place: &Place, arguments: &[&str]) -> Run {
    let arguments = arguments.iter().map(OsStr::new);
    place.run(arguments.chain([OsStr::new("--path"), OsStr::from_bytes(NAME)]))
}

#[test]
fn reports_of_a_store_at_a_path_that_is_not_utf_8_are_whole() {
    let place = Place::new();
    let put = run(&place, &["put", "k", "v"]).ok();
    assert!(put.starts_with(&format!("created store `{SHOWN}`")), "{put}");
    for command in ["stats", "check", "inspect"] {
        let report = run(&place, &[command, "--json"]).expect(0);
        assert_eq!((report.err.as_str(), report.out.lines().count()), ("", 1), "{command}");
        let report = report.json();
        assert_eq!((&report["path"], &report["path_hex"]), (&SHOWN.into(), &HEX.into()));
        assert_eq!(report["records"], 1, "{command}");
    }
    let report = run(&place, &["doctor", "--json"]).expect(0).json();
    let path = report["place"]["path"].as_str().expect("a path");
    assert!(path.ends_with(SHOWN), "{path}");
    assert!(report["place"]["path_hex"].as_str().expect("bytes").ends_with(HEX), "{report}");
    assert_eq!(report["place"]["directory"], path);
    // Of a path that is UTF-8 there is nothing to add.
    place.run(["put", "k", "v"]).ok();
    assert!(place.run(["stats", "--json"]).json().get("path_hex").is_none());
}

#[test]
fn a_watch_of_such_a_path_is_whole() {
    let place = Place::new();
    let run = run(&place, &["stats", "--watch", "--json"]).expect(3);
    assert_eq!((run.error_kind().as_str(), run.out.as_str()), ("unpublished", ""));
}

#[test]
fn a_link_to_nothing_is_named() {
    let place = Place::new();
    let link = place.directory.path().join("link");
    symlink("nowhere", &link).expect("a link");
    for command in [
        &["get", "k"][..],
        &["put", "k", "v"],
        &["check"],
        &["stats"],
        &["stats", "--watch"],
        &["doctor"],
        &["import", "stream"],
    ] {
        for path in ["link", "link/deeper"] {
            let command = [command, &["--path", path]].concat();
            let run = place.run(&command).expect(3);
            let says = "chimera: `link` is a symbolic link to `nowhere`, where there is nothing";
            assert!(run.err.starts_with(says), "{command:?}: {run:?}");
            let run = place.run([&command[..], &["--json"]].concat()).expect(3);
            assert_eq!(run.error_kind(), "dangling_link");
        }
    }
    place.run(["put", "k", "v"]).ok();
    for command in [["export", "link"], ["import", "link"], ["backup", "link"]] {
        let run = place.run(command).expect(3);
        assert!(run.err.contains("is a symbolic link to `nowhere`"), "{run:?}");
    }
    assert!(!place.directory.path().join("nowhere").exists());
    // With something there the link is as good as the path.
    fs::rename(place.store(), place.directory.path().join("nowhere")).expect("moved");
    assert_eq!(place.run(["get", "k", "--path", "link"]).ok(), "v\n");
}
