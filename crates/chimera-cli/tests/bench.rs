//! `bench` through the command: the result is JSON, and a store in use is safe from it.

mod common;

use common::Place;

/// A benchmark that is done at once.
fn tiny<'a>(path: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let sizes = ["--records", "500", "--operations", "500", "--repetitions", "1"];
    [&["bench", "core", "--path", path], &sizes[..], more].concat()
}

#[test]
fn the_result_is_one_json_object() {
    let place = Place::new();
    let path = place.directory.path().join("bench");
    let path = path.to_str().expect("text");
    let report = place.run(tiny(path, &["--json", "--seed", "7"])).expect(0).json();
    for field in ["machine", "medium", "durability", "seed", "rows"] {
        assert!(!report[field].is_null(), "no {field} in {report}");
    }
    assert_eq!(report["seed"], 7);
    assert!(report["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{report}");
    assert!(!std::path::Path::new(path).exists(), "the store is removed at the end");
}

#[test]
fn a_store_is_not_overwritten_unless_told_so() {
    let place = Place::new();
    place.run(["put", "k", "v"]).ok();
    let store = place.store();
    let path = store.to_str().expect("text");
    assert_eq!(place.run(tiny(path, &["--json"])).expect(3).error_kind(), "bench");
    assert_eq!(place.run(["get", "k"]).ok(), "v\n");
    let run = place.run(tiny(path, &["--threads", "0", "--json"])).expect(2);
    assert_eq!(run.error_kind(), "usage");
}

#[test]
fn what_is_published_meanwhile_is_gone_at_the_end() {
    let place = Place::new();
    let path = place.directory.path().join("bench");
    let path = path.to_str().expect("text");
    let more = ["--publish-metrics", "0.01", "--latency-sampling", "1", "--no-counters"];
    place.run(tiny(path, &more)).ok();
    assert!(!std::path::Path::new(path).exists(), "the store is removed at the end");
    place.run(tiny(path, &["--publish-metrics", "0"])).expect(2);
}
