//! `--salvage`: what each command leaves out because it is damaged, it says, with an exit code of its own.

mod common;

use std::fs;
use std::path::PathBuf;

use chimera::{Db, Options};
use common::{Place, Run, close, seal_superblock};
use serde_json::Value;

const RECORDS: usize = 50;
/// Of which the value is damaged.
const LOST: &str = "key-12";
/// Done, but damage has kept something out.
const LOSSES: i32 = 4;

/// A store of an engine with a damaged record.
fn damaged(engine: &str) -> Place {
    let place = filled(engine);
    flip(&place, b"the value of number 12.");
    place
}

/// A store of an engine.
fn filled(engine: &str) -> Place {
    let place = Place::new();
    let options = Options::new()
        .engine(engine.parse().expect("an engine"))
        .segment_bytes(4 << 20)
        .populate_ahead_bytes(0)
        // One partition: no later key is the first one of its partition, which would take a segment of the index.
        .hikv(|hikv| hikv.partitions(1))
        .chameleon(|chameleon| chameleon.shards(2).memtable_bytes(1024));
    let db = Db::open(place.store(), &options).expect("a new store");
    for number in 0..RECORDS {
        let (key, value) = (format!("key-{number}"), format!("the value of number {number}."));
        db.put(key.as_bytes(), value.as_bytes()).expect("room");
    }
    close(db);
    place
}

/// Flips a bit in `text`, wherever the store has it.
fn flip(place: &Place, text: &[u8]) {
    flip_at(place, text, |at| at + 4);
}

/// Flips a bit in what lies so many bytes before `text`.
fn flip_before(place: &Place, text: &[u8], bytes: usize) {
    flip_at(place, text, |at| at - bytes);
}

fn flip_at(place: &Place, text: &[u8], which: impl Fn(usize) -> usize) {
    let path: PathBuf = place.store().join("segment-000000");
    let mut bytes = fs::read(&path).expect("a segment");
    let at = bytes.windows(text.len()).position(|window| window == text).expect("it is there");
    bytes[which(at)] ^= 4;
    fs::write(path, bytes).expect("writable");
}

/// Asserts that a run says how much is left out, and where the first of it was.
#[track_caller]
fn assert_says(run: Run) -> Run {
    let run = run.expect(LOSSES);
    assert!(run.err.contains("1 place of the store is left out, first at byte "), "{run:?}");
    assert!(run.err.contains("checksum") || run.err.contains("damaged"), "{run:?}");
    run
}

/// Asserts that what a run printed as JSON says so, too.
#[track_caller]
fn assert_reports(run: Run) -> Value {
    let run = assert_says(run);
    assert_eq!(run.error_kind(), "losses");
    let report = run.json();
    let losses = &report["losses"];
    assert_eq!((&losses["count"], &losses["may_be_more"]), (&1.into(), &false.into()), "{report}");
    let at = losses["first"]["at"].as_u64().expect("a place");
    assert!(run.err.contains(&format!("first at byte {at}: ")), "{run:?}");
    assert!(losses["first"]["what"].as_str().expect("text").len() > 10, "{report}");
    report
}

/// Runs a command that reads, as text and as JSON, with losses and, of another store, without.
fn reads(arguments: &[&str], check: impl Fn(&str, Value)) {
    for engine in ["viper", "hikv", "chameleon"] {
        let place = damaged(engine);
        let refused = place.run(arguments);
        assert!(refused.code == 3 || refused.code == 0, "without --salvage: {refused:?}");
        let with = |more: &[&'static str]| -> Run {
            place.run(arguments.iter().copied().chain(more.iter().copied()))
        };
        let text = assert_says(with(&["--salvage"])).out;
        check(&text, assert_reports(with(&["--salvage", "--json"])));
    }
    let sound = Place::new();
    sound.run(["put", "key-1", "something"]).ok();
    let report = sound.run(arguments.iter().copied().chain(["--salvage", "--json"])).expect(0);
    let none = serde_json::json!({ "count": 0, "first": null, "may_be_more": false });
    assert_eq!(report.json()["losses"], none);
    assert!(report.err.is_empty(), "{report:?}");
}

#[test]
fn get_says_what_is_left_out() {
    reads(&["get", "key-1"], |text, report| {
        assert_eq!(text, "the value of number 1.\n");
        assert_eq!(report["value"], "the value of number 1.");
    });
}

#[test]
fn a_key_that_is_not_in_what_is_left_is_told_from_one_that_is_nowhere() {
    for engine in ["viper", "hikv", "chameleon"] {
        let place = damaged(engine);
        place.run(["get", LOST]).expect(3);
        for arguments in
            [&["get", LOST][..], &["delete", "nowhere"], &["update-u64", "nowhere", "1"]]
        {
            let run = assert_says(place.run(arguments.iter().chain(&["--salvage"])));
            let key = if arguments.contains(&LOST) { LOST } else { "nowhere" };
            let text = format!("there is no key `{key}` in what damage has left");
            assert!(run.err.contains(&text) && run.out.is_empty(), "{run:?}");
        }
        // Where the key is sound its record can be removed, with the damaged value.
        assert_says(place.run(["delete", LOST, "--salvage"]));
    }
}

#[test]
fn listings_say_what_is_left_out() {
    for (command, engine) in ["list-keys", "scan"]
        .into_iter()
        .flat_map(|command| ["viper", "hikv", "chameleon"].map(|engine| (command, engine)))
    {
        let place = damaged(engine);
        let text = assert_says(place.run([command, "--salvage"])).out;
        assert_eq!(text.lines().count(), RECORDS - 1);
        assert!(text.lines().all(|key| key != LOST));
        // Each line is a record: the losses are in the error.
        let run = assert_says(place.run([command, "--salvage", "--json"]));
        assert_eq!(run.json_lines().len(), RECORDS - 1);
        let losses = &run.error()["losses"];
        assert_eq!((&losses["count"], run.error_kind().as_str()), (&1.into(), "losses"));
    }
}

#[test]
fn figures_say_what_is_left_out() {
    reads(&["stats"], |text, report| {
        assert!(text.contains("left out              1 place of the store"), "{text}");
        assert_eq!(report["records_damaged"], 1);
        assert_eq!(report["recovery"]["losses"], report["losses"]);
    });
    reads(&["inspect"], |_, report| assert_eq!(report["records"], RECORDS - 1));
    let place = damaged("hikv");
    let metrics = assert_says(place.run(["stats", "--open-metrics", "--salvage"])).out;
    assert!(metrics.lines().any(|line| line == "chimera_losses 1"), "{metrics}");
}

#[test]
fn exports_and_backups_say_what_they_lack() {
    for engine in ["viper", "hikv", "chameleon"] {
        let place = damaged(engine);
        place.run(["export", "refused.stream"]).expect(3);
        let text = assert_says(place.run(["export", "stream", "--salvage"])).out;
        assert!(text.starts_with(&format!("exported {} records", RECORDS - 1)), "{text}");
        // Everything that is left is in it.
        let resumed = place.run(["export", "stream", "--resume", "--salvage", "--json"]);
        assert_eq!(assert_reports(resumed)["records"], RECORDS - 1);
        let piped = place.run(["export", "-", "--salvage"]).expect(LOSSES);
        assert!(piped.err.contains("1 place of the store is left out"), "{}", piped.err);
        place.run(["backup", "refused"]).expect(3);
        assert_says(place.run(["backup", "copy", "--salvage"]));
        let report = assert_reports(place.run(["backup", "another", "--salvage", "--json"]));
        assert_eq!(report["records"], RECORDS - 1);
        // A copy of what is left is a sound store.
        place.run(["check", "--path", "copy"]).ok();
    }
}

#[test]
fn an_import_into_a_damaged_store_says_what_that_lacks() {
    for engine in ["viper", "hikv", "chameleon"] {
        let place = damaged(engine);
        let other = Place::new();
        other.run(["put", "more", "of it"]).ok();
        let stream = place.directory.path().join("stream").display().to_string();
        other.run(["export", &stream]).ok();
        let text = assert_says(place.run(["import", "stream", "--salvage"])).out;
        assert!(text.starts_with("imported 1 records"), "{text}");
        let report = assert_reports(place.run(["import", "stream", "--salvage", "--json"]));
        assert_eq!((&report["complete"], &report["replaced"]), (&true.into(), &1.into()));
    }
}

#[test]
fn a_stream_that_is_damaged_is_an_error_and_nothing_of_it_is_passed_over() {
    let place = damaged("viper");
    place.run(["export", "stream", "--salvage"]).expect(LOSSES);
    let path = place.directory.path().join("stream");
    let mut bytes = fs::read(&path).expect("a stream");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).expect("writable");
    let run = place.run(["import", "stream", "--path", "copy", "--salvage", "--json"]).expect(3);
    assert_eq!(run.error_kind(), "import_stopped");
    assert_eq!(
        (&run.json()["complete"], &run.json()["losses"]["count"]),
        (&false.into(), &0.into())
    );
}

#[test]
fn writes_say_what_the_store_lacks() {
    for engine in ["viper", "hikv", "chameleon"] {
        let place = damaged(engine);
        assert_eq!(assert_says(place.run(["put", "new", "value", "--salvage"])).out, "inserted\n");
        let report = assert_reports(place.run(["put", "new", "again", "--salvage", "--json"]));
        assert_eq!(report["inserted"], false);
        let added = place.run(["update-u64", "--create", "number", "1", "--salvage", "--json"]);
        assert_eq!(assert_reports(added)["new"], 1);
        let report = assert_reports(place.run(["delete", "key-3", "--salvage", "--json"]));
        assert_eq!(report["deleted"], true);
        let range = ["delete", "--prefix", "key-4", "--salvage", "--json"];
        assert_eq!(assert_reports(place.run(range))["deleted"], 11);
    }
}

#[test]
fn a_compaction_says_what_the_store_lacks() {
    for engine in ["viper", "hikv", "chameleon"] {
        let place = damaged(engine);
        assert!(assert_says(place.run(["compact", "--salvage"])).out.contains("in use"));
        let report = assert_reports(place.run(["compact", "--salvage", "--json"]));
        assert!(report["bytes_after"].as_u64() > Some(0), "{report}");
    }
}

/// A record is damaged, and all but the superblock is older than the closing.
#[test]
fn what_is_missing_beside_damage_is_said_once() {
    for engine in ["viper", "hikv", "chameleon"] {
        let place = filled(engine);
        let (superblock, segment) =
            (place.store().join("superblock"), place.store().join("segment-000000"));
        let older = fs::read(&segment).expect("a segment");
        place.run(["put", "one-more", "value"]).ok();
        let closed = fs::read(&superblock).expect("a superblock");
        fs::write(&segment, older).expect("writable");
        flip(&place, b"the value of number 12.");
        for _ in 0..2 {
            let run = place.run(["list-keys", "--salvage", "--json"]).expect(LOSSES);
            let losses = &run.error()["losses"];
            assert_eq!((&losses["count"], &losses["first"]["at"]), (&2.into(), &144.into()));
            let said = "2 places of the store are left out, first at byte 144: the store differs from its closing by more";
            assert!(run.err.contains(said), "{engine}: {run:?}");
            // As it was: what is salvaged is closed in order.
            fs::write(&superblock, &closed).expect("writable");
        }
    }
}

/// Of two records with damaged keys it is not known whether they are those that are missing.
#[test]
fn that_more_may_be_missing_is_said() {
    let place = filled("viper");
    for value in [b"the value of number 12.", b"the value of number 13."] {
        // A key takes whole words.
        flip_before(&place, value, 6);
    }
    let run = place.run(["stats", "--salvage"]).expect(LOSSES);
    for text in [&run.out, &run.err] {
        let (told, said) = ("2 places of the store", "since the store was closed is not known");
        assert!(text.contains(told) && text.contains(said), "{run:?}");
    }
}

#[test]
fn a_backup_that_was_interrupted_says_that_it_is_a_part() {
    let place = Place::new();
    place.run(["put", "key", "value"]).ok();
    let path = place.store().join("superblock");
    let mut bytes = fs::read(&path).expect("a superblock");
    for copy in bytes.chunks_mut(4096) {
        // Word 8 says how the store was closed.
        copy[64] = 4;
        seal_superblock(copy);
    }
    fs::write(&path, bytes).expect("writable");
    assert_eq!(place.run(["get", "key", "--json"]).expect(3).error_kind(), "incomplete");
    let run = place.run(["get", "key", "--salvage"]).expect(LOSSES);
    assert_eq!(run.out, "value\n");
    assert!(run.err.contains("a backup that was interrupted"), "{run:?}");
}
