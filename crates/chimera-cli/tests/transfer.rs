//! Export, import, backup and inspect through the command.

mod common;

use std::fs;
use std::process::Stdio;

use common::{Place, spawn};

/// All records, sorted.
fn records(place: &Place, store: &str) -> Vec<String> {
    let text = place.run(["list-keys", "--values", "--hex", "--path", store]).ok();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_store_goes_through_a_file_into_a_new_one() {
    let place = Place::new();
    place.fill(1000);
    let out = place.run(["export", "--path", "store", "records.stream"]).ok();
    assert!(out.starts_with("exported 1,000 records, in 1 frames: "), "{out}");
    let out =
        place.run(["import", "--path", "copy", "records.stream", "--segment-size", "4MiB"]).ok();
    assert_eq!(out, "created store `copy`\nimported 1,000 records\n");
    assert_eq!(records(&place, "copy"), records(&place, "store"));
    assert_eq!(records(&place, "copy").len(), 1000);
    assert!(place.run(["check", "--path", "copy"]).ok().ends_with("sound\n"));
    let out = place.run(["import", "--path", "copy", "records.stream"]).ok();
    assert_eq!(out, "imported 1,000 records, 1,000 of which replaced others\n");
    let report = place.run(["--json", "import", "--path", "copy", "records.stream"]).json();
    assert_eq!((&report["complete"], &report["replaced"]), (&true.into(), &1000.into()));
    assert_eq!(report["created_store"], false);
    // A file that is there is not written over.
    let run = place.run(["export", "--path", "store", "records.stream"]).expect(3);
    assert!(run.err.contains("--resume"), "{run:?}");
}

#[test]
fn a_store_goes_through_a_pipe() {
    let place = Place::new();
    place.fill(300);
    let mut export = place.command();
    let mut export = spawn(
        export
            .args(["export", "--path", "store", "-", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    );
    let mut import = place.command();
    import.args(["import", "--path", "copy", "-", "--segment-size", "4MiB"]);
    import.stdin(Stdio::from(export.stdout.take().expect("piped"))).stdout(Stdio::piped());
    let imported = spawn(&mut import).wait_with_output().expect("it ends");
    let exported = export.wait_with_output().expect("it ends");
    assert!(imported.status.success() && exported.status.success());
    let report: serde_json::Value = serde_json::from_slice(&exported.stderr).expect("a report");
    assert_eq!(report["records"], 300);
    assert_eq!(records(&place, "copy"), records(&place, "store"));
}

#[test]
fn an_interrupted_export_goes_on_in_its_file() {
    let place = Place::new();
    // More than a frame.
    place.fill(12_000);
    let file = place.directory.path().join("records.stream");
    place.run(["export", "--path", "store", "records.stream"]).ok();
    let whole = fs::read(&file).expect("a stream");
    assert!(whole.len() > 2 << 20);
    for length in [0, 30, 64, 1 << 20, whole.len() - 1, whole.len()] {
        fs::write(&file, &whole[..length]).expect("writable");
        let report = place
            .run(["export", "--json", "--resume", "--path", "store", "records.stream"])
            .expect(0)
            .json();
        assert_eq!(report["records"], 12_000, "{length} bytes");
        let written = report["records_written"].as_u64().expect("a number");
        assert_eq!(written == 0, length >= whole.len() - 1, "{length} bytes");
        let now = fs::read(&file).expect("a stream");
        assert!(length < 64 || now == whole, "{length} bytes");
        fs::remove_dir_all(place.directory.path().join("copy")).ok();
        place.run(["import", "--path", "copy", "records.stream", "--segment-size", "4MiB"]).ok();
        assert_eq!(records(&place, "copy").len(), 12_000, "{length} bytes");
    }
    // What is no stream is left alone.
    fs::write(&file, "dear reader").expect("writable");
    let run =
        place.run(["--json", "export", "--resume", "--path", "store", "records.stream"]).expect(3);
    assert_eq!(run.error_kind(), "stream_damaged");
    assert_eq!(fs::read(&file).expect("readable"), b"dear reader");
}

#[test]
fn an_import_that_stops_says_where_to_go_on() {
    let place = Place::new();
    place.fill(12_000);
    let file = place.directory.path().join("records.stream");
    place.run(["export", "--path", "store", "records.stream"]).ok();
    let whole = fs::read(&file).expect("a stream");
    let mut damaged = whole.clone();
    damaged[3 << 19] ^= 1;
    fs::write(&file, &damaged).expect("writable");
    let arguments =
        ["--json", "import", "--path", "copy", "records.stream", "--segment-size", "4MiB"];
    let run = place.run(arguments).expect(3);
    assert_eq!(run.error_kind(), "import_stopped");
    let report = run.json();
    assert_eq!((&report["complete"], &report["frame"]), (&false.into(), &1.into()));
    let kept = report["records"].as_u64().expect("a number");
    assert_eq!(records(&place, "copy").len() as u64, kept);
    let position = report["position"].as_str().expect("a position").to_owned();
    let run =
        place.run(["import", "--path", "copy", "records.stream", "--resume", &position]).expect(3);
    assert!(run.err.contains("does not match its checksum") && run.err.contains(&position));

    fs::write(&file, &whole).expect("writable");
    let out = place.run(["import", "--path", "copy", "records.stream", "--resume", &position]).ok();
    assert!(out.contains("were passed over"), "{out}");
    assert_eq!(records(&place, "copy"), records(&place, "store"));
    place.run(["import", "--path", "copy", "records.stream", "--resume", "nonsense"]).expect(2);
}

#[test]
fn nothing_is_made_of_what_is_no_stream_or_no_store() {
    let place = Place::new();
    let file = place.directory.path().join("letter");
    fs::write(&file, "x".repeat(1000)).expect("writable");
    let run = place.run(["--json", "import", "--path", "copy", "letter"]).expect(3);
    assert_eq!(run.error_kind(), "stream_damaged");
    place.run(["import", "--path", "copy", "missing"]).expect(3);
    assert_eq!(
        place.run(["--json", "export", "--path", "copy", "file"]).expect(3).error_kind(),
        "store_not_found"
    );
    place.run(["export", "--path", "copy", "-", "--resume"]).expect(2);
    place.run(["backup", "--path", "copy", "other"]).expect(3);
    place.run(["inspect", "--path", "copy"]).expect(3);
    for name in ["copy", "other", "file"] {
        assert!(!place.directory.path().join(name).exists(), "{name}");
    }
}

#[test]
fn a_backup_is_a_store_of_its_own() {
    let place = Place::new();
    place.fill(500);
    let report = place.run(["--json", "backup", "--path", "store", "copy"]).expect(0).json();
    assert_eq!(report["records"], 500);
    assert_eq!(records(&place, "copy"), records(&place, "store"));
    assert!(place.run(["check", "--path", "copy"]).ok().ends_with("sound\n"));
    place.run(["put", "--path", "copy", "key-1", "changed"]).ok();
    assert_eq!(place.run(["get", "key-1"]).ok(), "value-1\n");
    let run = place.run(["--json", "backup", "--path", "store", "copy"]).expect(3);
    assert_eq!(run.error_kind(), "already_exists");
    assert_eq!(place.run(["get", "--path", "copy", "key-1"]).ok(), "changed\n");
}

#[test]
fn what_a_store_is_made_of_is_printed() {
    let place = Place::new();
    place.fill(500);
    let report = place.run(["--json", "inspect", "--path", "store"]).json();
    assert_eq!(report["records"], 500);
    assert_eq!(report["path"], "store");
    assert_eq!(report["details"]["viper"]["index"]["entries"], 500);
    let viper = &report["details"]["viper"];
    let blocks = viper["blocks"]["used"].as_u64().expect("a number");
    // 102 records of 16 + 200 bytes in a block.
    assert_eq!(blocks, 5);
    let tenths = viper["fill"]["tenths"].as_array().expect("a histogram");
    assert_eq!(tenths.iter().filter_map(serde_json::Value::as_u64).sum::<u64>(), blocks);
    let text = place.run(["inspect", "--path", "store"]).ok();
    let says = |words: [&str; 2]| text.lines().any(|line| line.split_whitespace().eq(words));
    assert!(says(["records", "500"]) && says(["damaged", "0"]), "{text}");
    assert!(text.contains("up to 100 %"), "{text}");
}
