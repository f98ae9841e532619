//! `chimera stats`, of stores that nobody has open and of such as this process has.

mod common;

use std::time::Duration;

use chimera::metrics::{FILE, Published};
use chimera::{Db, Options};
use common::{Place, close};

/// A store that this process has open, with one record.
fn open(place: &Place, options: Options) -> Db {
    let options = options.fixed_size(16, 200).segment_bytes(4 << 20).populate_ahead_bytes(0);
    let db = Db::open(place.store(), &options).expect("a new store");
    db.put([1; 16], [1; 200]).expect("room");
    db
}

/// One that publishes, and has done so since the record was put.
fn publishing(place: &Place) -> Db {
    let every = Duration::from_millis(10);
    let db = open(place, Options::new().latency_sampling(1).publish_metrics(every));
    let has_put = || {
        let text = std::fs::read_to_string(place.store().join(FILE)).unwrap_or_default();
        let metrics = Published::parse(&text).ok();
        let labels = [("operation", "put"), ("outcome", "inserted")];
        metrics.and_then(|metrics| metrics.value("chimera_operations_total", &labels)) == Some(1.0)
    };
    while !has_put() {
        std::thread::sleep(Duration::from_millis(1));
    }
    db
}

#[test]
fn a_store_that_nobody_has_open_is_opened() {
    let place = Place::new();
    place.run(["stats"]).expect(3);
    place.fill(7);
    let text = place.run(["stats"]).ok();
    assert!(text.lines().any(|line| line == "records               7"), "{text}");
    let json = place.run(["stats", "--json"]).json();
    assert_eq!(json["records"], 7);
    assert_eq!(json["operations"]["get_hits"], 0);
    let text = place.run(["stats", "--open-metrics"]).ok();
    let metrics = Published::parse(&text).expect("sound");
    assert_eq!(metrics.value("chimera_records", &[]), Some(7.0));
    let unpublished = place.run(["stats", "--watch"]).expect(3);
    assert!(unpublished.err.contains("no metrics are published in"), "{unpublished:?}");
    let unpublished = place.run(["stats", "--watch", "--json"]).expect(3);
    assert_eq!(unpublished.error_kind(), "unpublished");
}

#[test]
fn of_a_store_in_use_what_is_published_is_shown() {
    let place = Place::new();
    let db = publishing(&place);
    let text = place.run(["stats"]).ok();
    let process = format!("in use by process {}", std::process::id());
    assert!(text.contains(&process) && text.contains("published "), "{text}");
    let scrub = "reads verified always; no full pass has ended, 0 damages";
    assert!(text.contains(scrub), "{text}");
    assert!(text.lines().any(|line| line.starts_with("insert ")), "{text}");
    let metrics = Published::parse(&place.run(["stats", "--open-metrics"]).ok()).expect("sound");
    assert_eq!(metrics.value("chimera_records", &[]), Some(1.0));
    let json = place.run(["stats", "--json"]).json();
    assert_eq!(json["process"], std::process::id().to_string());
    assert_eq!(json["metrics"]["chimera_records"], 1.0);
    assert!(json["interval"]["operations"]["insert"]["latency_ns"]["p50"].is_u64(), "{json}");
    close(db);
    assert_eq!(place.run(["stats", "--json"]).json()["records"], 1);
}

#[test]
fn how_to_publish_is_said_where_nothing_is() {
    let place = Place::new();
    let db = open(&place, Options::new());
    let run = place.run(["stats"]).expect(3);
    assert!(run.err.contains("does not publish its metrics"), "{run:?}");
    assert!(run.err.contains("hint: ") && run.err.contains("Options::publish_metrics"), "{run:?}");
    assert_eq!(place.run(["stats", "--json"]).expect(3).error_kind(), "locked");
    // What somebody else has left there long ago is not this process's.
    let file = place.store().join(FILE);
    std::fs::write(
        &file,
        "# TYPE chimera_store info\nchimera_store_info{process=\"0\"} 1\n# EOF\n",
    )
    .expect("room");
    let old = std::fs::File::options().write(true).open(&file).expect("there");
    old.set_modified(std::time::UNIX_EPOCH).expect("a time");
    assert_eq!(place.run(["stats", "--json"]).expect(3).error_kind(), "locked");
    std::fs::write(&file, "# TYPE").expect("room");
    assert_eq!(place.run(["stats", "--json"]).expect(3).error_kind(), "not_metrics");
    close(db);
}

#[test]
fn a_watch_shows_rates_and_latencies_of_each_interval() {
    let place = Place::new();
    let db = publishing(&place);
    let arguments = ["stats", "--watch", "--every", "0.1", "--rounds", "4", "--json"];
    let watched = std::thread::scope(|scope| {
        let watch = scope.spawn(|| place.run(arguments).ok());
        while !watch.is_finished() {
            assert!(db.get([1; 16]).expect("sound").is_some());
        }
        watch.join().expect("no panic")
    });
    let rounds: Vec<serde_json::Value> =
        watched.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!((2..=4).contains(&rounds.len()), "{watched}");
    assert!(rounds[0]["interval"]["operations"]["insert"].is_object(), "since it is open");
    for round in &rounds[1..] {
        let operations = &round["interval"]["operations"];
        assert!(operations["insert"].is_null(), "{round}");
        assert!(operations["get"]["per_second"].as_f64() > Some(0.0), "{round}");
        let latency = &operations["get"]["latency_ns"];
        assert!(latency["p50"].as_u64() <= latency["p99.9"].as_u64(), "{round}");
        assert_eq!(round["is_stale"], false);
    }
    let uptimes: Vec<_> = rounds.iter().map(|round| round["uptime_seconds"].as_f64()).collect();
    assert!(uptimes.is_sorted_by(|one, other| one < other), "{watched}");
    let text = place.run(["stats", "--watch", "--rounds", "1"]).ok();
    assert!(text.contains("; insert ") && text.contains(" p99.9 "), "{text}");
    close(db);
}

#[test]
fn arguments_of_a_watch_are_checked() {
    let place = Place::new();
    for wrong in [
        &["stats", "--every", "1"][..],
        &["stats", "--rounds", "1"],
        &["stats", "--watch", "--every", "0"],
        &["stats", "--watch", "--rounds", "0"],
        &["stats", "--watch", "--open-metrics"],
        &["stats", "--json", "--open-metrics"],
    ] {
        place.run(wrong).expect(2);
    }
}

#[test]
fn a_store_of_chameleondb_says_what_its_levels_have() {
    let place = Place::new();
    for key in 0..3 {
        let key = format!("key {key}");
        place.run(["put", "--engine", "chameleon", &key, "value"]).ok();
    }
    let text = place.run(["stats"]).ok();
    for line in [
        "engine                chameleon",
        "records               3",
        "mode                  normal",
        "  full at a load of   87 to 87 %",
    ] {
        assert!(text.lines().any(|it| it == line), "`{line}` is missing in:\n{text}");
    }
    assert!(text.contains("last level, tables") && text.contains("  for a restart"), "{text}");
    let json = place.run(["stats", "--json"]).json();
    assert_eq!(json["details"]["chameleon"]["mode"], "normal");
    let text = place.run(["inspect"]).ok();
    assert!(text.contains("slots of a MemTable") && text.contains("free blocks"), "{text}");
    let help = place.run(["put", "--help"]).ok();
    assert!(help.contains("viper, hikv, chameleon") && !help.contains("pmem-hash"), "{help}");
}
