//! Records through the command: every call is a process of its own on the same store.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use common::{Place, spawn};

#[test]
fn a_record_is_put_read_changed_and_deleted_across_processes() {
    let place = Place::new();
    let first = place.run(["put", "greeting", "hello world"]).ok();
    assert!(first.contains("created store") && first.ends_with("inserted\n"), "{first}");
    assert_eq!(place.run(["get", "greeting"]).ok(), "hello world\n");
    assert_eq!(place.run(["put", "greeting", "hi"]).ok(), "replaced\n");
    assert_eq!(place.run(["get", "greeting"]).ok(), "hi\n");
    assert_eq!(place.run(["put", "other", "-5"]).ok(), "inserted\n");
    assert_eq!(place.run(["get", "other"]).ok(), "-5\n");
    assert_eq!(place.run(["delete", "greeting"]).ok(), "deleted\n");
    place.run(["get", "greeting"]).expect(1);
    assert_eq!(place.run(["list-keys"]).ok(), "other\n");
    assert!(place.run(["check"]).ok().ends_with("sound\n"));
}

#[test]
fn a_number_is_added_to_and_wraps_around() {
    let place = Place::new();
    place.run(["put", "--key-size", "16", "--value-size", "200", "other", "x"]).ok();
    place.run(["update-u64", "visitors", "1"]).expect(1);
    assert_eq!(
        place.run(["update-u64", "--create", "--at", "0", "visitors", "41"]).ok(),
        "0 -> 41\n"
    );
    assert_eq!(
        place.run(["update-u64", "--create", "--at", "0", "visitors", "1"]).ok(),
        "41 -> 42\n"
    );
    let wrapped = format!("42 -> {}\n", u64::MAX);
    assert_eq!(place.run(["update-u64", "visitors", "-43", "--force"]).ok(), wrapped);
    let second = place.run(["--json", "update-u64", "visitors", "7", "--at", "8"]).json();
    assert_eq!((second["old"].as_u64(), second["new"].as_u64()), (Some(0), Some(7)));
    assert_eq!(second["key"], "visitors");
    place.run(["update-u64", "visitors", "1", "--at", "193"]).expect(3);
    assert!(place.run(["get", "visitors", "--hex"]).expect(2).err.contains("hexadecimal"));
    let value = place.run(["get", "76697369746f7273", "--hex"]).ok();
    assert!(value.starts_with("ffffffffffffffff070000000000000000"), "{value}");
}

#[test]
fn a_value_that_is_no_counter_is_left_alone() {
    let place = Place::new();
    place.run(["put", "text", "hello world"]).ok();
    place.run(["put", "short", "hello"]).ok();
    for (key, bytes) in [("text", "has 11 bytes"), ("short", "has 5 bytes")] {
        for more in [&[][..], &["--create"]] {
            let run = place.run([&["update-u64", key, "1"], more].concat()).expect(3);
            assert!(run.err.contains(bytes) && run.err.contains("no counter"), "{run:?}");
            assert!(run.err.contains("hint: ") && run.err.contains("--force"), "{run:?}");
        }
        let run = place.run(["update-u64", key, "1", "--json"]).expect(3);
        assert_eq!(run.error_kind(), "not_a_counter");
    }
    assert_eq!(place.run(["get", "text"]).ok(), "hello world\n");
    place.run(["update-u64", "text", "1", "--force"]).ok();
    assert_eq!(place.run(["get", "text"]).ok(), "iello world\n");
    place.run(["update-u64", "text", "1", "--at", "3"]).ok();
    assert_eq!(place.run(["get", "text"]).ok(), "ielmo world\n");
    // There is no number in less than 8 bytes, whatever is said.
    let run = place.run(["update-u64", "short", "1", "--force", "--json"]).expect(3);
    assert_eq!(run.error_kind(), "field_out_of_range");
    place.run(["update-u64", "text", "1", "--force", "--at", "0"]).expect(2);
    // What it makes itself is a counter, and so are 8 bytes that were put.
    place.run(["update-u64", "--create", "visitors", "1"]).ok();
    assert_eq!(place.run(["update-u64", "visitors", "1"]).ok(), "1 -> 2\n");
    place.run(["put", "--hex-value", "made", "0700000000000000"]).ok();
    assert_eq!(place.run(["update-u64", "made", "1"]).ok(), "7 -> 8\n");
    assert!(place.run(["update-u64", "--help"]).ok().contains("exactly 8 bytes"));
}

#[test]
fn values_of_a_fixed_size_are_counters_where_that_is_8_bytes() {
    let place = Place::new();
    place.run(["put", "--value-size", "8", "k", ""]).ok();
    assert_eq!(place.run(["update-u64", "k", "1"]).ok(), "0 -> 1\n");
    assert_eq!(place.run(["update-u64", "--create", "new", "1"]).ok(), "0 -> 1\n");
    let place = Place::new();
    place.fill(1);
    let run = place.run(["update-u64", "--create", "new", "1"]).expect(3);
    assert!(run.err.contains("has 200 bytes"), "{run:?}");
    assert_eq!(place.run(["list-keys"]).ok(), "key-0\n");
}

#[test]
fn hexadecimal_goes_round() {
    let place = Place::new();
    place.run(["--hex", "put", "--key-size", "16", "0x00ff10", "C0FFEE00"]).ok();
    let key = format!("00ff10{}", "00".repeat(13));
    assert_eq!(place.run(["list-keys", "--hex"]).ok(), format!("{key}\n"));
    let value = place.run(["get", "--hex", &key]).ok();
    assert_eq!(value, format!("c0ffee00{}\n", "00".repeat(196)));
    let again = place.run(["put", "--hex", &key, value.trim_end()]).ok();
    assert_eq!(again, "replaced\n");
    // What is no text is hexadecimal in JSON, and says so.
    let listed = place.run(["list-keys", "--json"]).json();
    assert_eq!(listed["key"], key.as_str());
    assert_eq!(listed["encoding"], "hex");
}

#[test]
fn keys_and_values_are_hexadecimal_apart() {
    let place = Place::new();
    place.run(["put", "--hex-key", "ff01", "text"]).ok();
    place.run(["--hex-value", "put", "plain", "00ff"]).ok();
    assert_eq!(place.run(["get", "--hex-key", "ff01"]).ok(), "text\n");
    assert_eq!(place.run(["get", "plain", "--hex-value"]).ok(), "00ff\n");
    assert_eq!(place.run(["get", "--hex", "ff01"]).ok(), "74657874\n");
    let listed = place.run(["scan", "--values", "--hex-key"]).ok();
    assert_eq!(listed, "706c61696e\t\\x00\\xff\nff01\ttext\n");
    let listed = place.run(["scan", "--values", "--hex-value"]).ok();
    assert_eq!(listed, "plain\t00ff\n\\xff\\x01\t74657874\n");
    let record = place.run(["get", "--json", "--hex-key", "ff01"]).json();
    assert_eq!((&record["key"], &record["value"]), (&"ff01".into(), &"text".into()));
    assert_eq!((&record["encoding"], &record["value_encoding"]), (&"hex".into(), &"text".into()));
    let run = place.run(["put", "--hex-value", "k", "xyz"]).expect(2);
    assert!(run.err.contains("the value `xyz` is not hexadecimal"), "{run:?}");
    assert_eq!(place.run(["delete", "--hex-key", "--prefix", "ff"]).ok(), "1 deleted\n");
    assert_eq!(place.run(["--hex-key", "delete", "706c61696e"]).ok(), "deleted\n");
}

#[test]
fn standard_input_and_raw_output_are_exact() {
    let place = Place::new();
    let bytes: Vec<u8> = (0..200).collect();
    let put = place.run_with_input(&["put", "bytes", "-"], &bytes);
    assert!(String::from_utf8_lossy(&put).ends_with("inserted\n"));
    assert_eq!(place.run_with_input(&["get", "bytes", "--raw"], b""), bytes);
    place.run_with_input(&["put", "--hex", "aa", "-"], b"01 02\n03\n");
    assert_eq!(place.run(["get", "--hex", "aa"]).ok(), "010203\n");
}

#[test]
fn keys_are_listed_by_prefix_and_up_to_a_limit() {
    let place = Place::new();
    place.fill(120);
    let lines = |arguments: &[&str]| {
        let mut lines: Vec<_> = place.run(arguments).ok().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&["list-keys"]).len(), 120);
    assert_eq!(lines(&["list-keys", "--limit", "7"]).len(), 7);
    assert_eq!(lines(&["list-keys", "--limit", "0"]).len(), 0);
    let expected: Vec<_> =
        ["key-11", "key-110", "key-111", "key-112", "key-113", "key-114"].map(str::to_owned).into();
    assert_eq!(lines(&["list-keys", "--prefix", "key-11"])[..6], expected[..]);
    assert_eq!(lines(&["list-keys", "--values", "--prefix", "key-42"]), ["key-42\tvalue-42"]);
    let some = place.run(["list-keys", "--json", "--limit", "5", "--values"]).json_lines();
    assert_eq!(some.len(), 5);
    for record in some {
        let (key, value) = (record["key"].as_str(), record["value"].as_str());
        assert_eq!(key.map(|key| key.replace("key", "value")).as_deref(), value);
        assert_eq!(record["encoding"], "text");
    }
    let all = place.run(["list-keys", "--json"]).json_lines();
    assert_eq!(all.iter().filter(|record| record["key"].is_string()).count(), 120);
    assert_eq!(place.run(["list-keys", "--json", "--prefix", "none"]).ok(), "");
}

#[test]
fn ranges_are_scanned_in_order_and_deleted() {
    let place = Place::new();
    place.fill(120);
    let scan = |arguments: &[&str]| {
        let lines = place.run([&["scan"], arguments].concat()).ok();
        lines.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let all = scan(&[]);
    assert!(all.len() == 120 && all.is_sorted(), "{all:?}");
    let mut back = scan(&["--reverse"]);
    back.reverse();
    assert_eq!(back, all);
    assert_eq!(scan(&["--from", "key-118", "--to", "key-12"]), ["key-118", "key-119"]);
    assert_eq!(scan(&["--from", "key-98", "--limit", "1", "--values"]), ["key-98\tvalue-98"]);
    assert_eq!(scan(&["--reverse", "--limit", "2"]), ["key-99", "key-98"]);
    assert_eq!(scan(&["--prefix", "key-11"]).len(), 11);
    assert!(scan(&["--from", "key-2", "--to", "key-1"]).is_empty());
    let some = place.run(["scan", "--json", "--limit", "5"]).json_lines();
    let keys: Vec<_> = some.iter().filter_map(|record| record["key"].as_str()).collect();
    assert_eq!(keys, all[..5]);
    place.run(["scan", "--from", "a", "--prefix", "b"]).expect(2);
    assert_eq!(place.run(["delete", "--prefix", "key-11"]).ok(), "11 deleted\n");
    let deleted = place.run(["delete", "--json", "--from", "key-2", "--to", "key-3"]).json();
    assert_eq!(deleted["deleted"], 11);
    assert_eq!(scan(&[]).len(), 98);
    place.run(["delete"]).expect(2);
    place.run(["delete", "key-1", "--prefix", "key"]).expect(2);
    assert!(place.run(["check"]).ok().ends_with("sound\n"));
}

/// The lines about order in the README, on the file that is in the repository.
#[test]
fn the_readme_scans_and_deletes_ranges_of_its_file() {
    let place = Place::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/elements.tsv");
    for line in std::fs::read_to_string(file).expect("the file").lines() {
        let (key, value) = line.split_once('\t').expect("a tab");
        place.run(["put", key, value]).ok();
    }
    let first = place.run(["scan", "--prefix", "element:", "--values", "--limit", "3"]).ok();
    assert_eq!(first, "element:001\tH Hydrogen\nelement:002\tHe Helium\nelement:003\tLi Lithium\n");
    let range = place.run(["scan", "--from", "element:010", "--to", "element:013"]).ok();
    assert_eq!(range, "element:010\nelement:011\nelement:012\n");
    let deleted = place.run(["delete", "--from", "element:002", "--to", "element:036"]).ok();
    assert_eq!(deleted, "34 deleted\n");
    assert_eq!(place.run(["scan", "--reverse", "--limit", "1"]).ok(), "kelvin:373\n");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    place.fill(10_000);
    for arguments in [&["list-keys", "--values"][..], &["list-keys", "--values", "--json"]] {
        let mut command = place.command();
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(&mut command);
        let mut out = BufReader::with_capacity(16, child.stdout.take().expect("piped"));
        let mut first = Vec::new();
        out.read_until(b'y', &mut first).expect("something to read");
        drop(out);
        let mut err = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
        assert_eq!(err, "");
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
    }
}

#[test]
fn sizes_are_chosen_at_creation_and_kept() {
    let place = Place::new();
    place.run(["put", "--key-size", "4", "--value-size", "8", "k", "v"]).ok();
    let stats = place.run(["stats", "--json"]).json();
    assert_eq!((&stats["key_bytes"], &stats["value_bytes"]), (&4.into(), &8.into()));
    assert_eq!(stats["records"], 1);
    // Said again or not said, they must agree.
    place.run(["put", "--key-size", "4", "abcd", "12345678"]).ok();
    let other = place.run(["put", "--key-size", "16", "k", "v", "--json"]).expect(3);
    assert_eq!(other.error_kind(), "mismatch");
    let other = place.run(["put", "--segment-size", "1GiB", "k", "v", "--json"]).expect(3);
    assert_eq!(other.error_kind(), "mismatch");
    let long = place.run(["put", "abcde", "v"]).expect(3);
    assert!(long.err.contains("5 bytes") && long.err.contains("at most 4"), "{}", long.err);
    let long = place.run(["put", "a", "123456789", "--json"]).expect(3);
    assert_eq!(long.error_kind(), "value_size");
    assert_eq!(place.run(["get", "abcde", "--json"]).expect(3).error_kind(), "key_size");
}

#[test]
fn a_record_that_cannot_fit_creates_no_store() {
    let place = Place::new();
    place.run(["put", "--value-size", "9", "a-key-of-more-than-16-bytes", "v"]).expect(3);
    place.run(["put", "--value-size", "1", "k", "vv"]).expect(3);
    assert!(!place.store().exists());
}

#[test]
fn a_small_store_takes_little_space() {
    use std::os::unix::fs::MetadataExt;
    let place = Place::new();
    for number in 0..3 {
        place.run(["put", &format!("key-{number}"), "value"]).ok();
    }
    let files = std::fs::read_dir(place.store()).expect("a store");
    let blocks: u64 =
        files.map(|file| file.and_then(|file| file.metadata()).expect("a file").blocks()).sum();
    assert!(blocks * 512 < 1 << 20, "{blocks} blocks of 512 bytes");
}

#[test]
fn the_path_is_an_option_or_a_variable() {
    let place = Place::new();
    place.run(["put", "k", "by variable"]).ok();
    let other = place.directory.path().join("other");
    let other = other.to_str().expect("text");
    place.run(["put", "--path", other, "k", "by option"]).ok();
    assert_eq!(place.run(["get", "k"]).ok(), "by variable\n");
    assert_eq!(place.run(["get", "k", "--path", other]).ok(), "by option\n");
    let mut command = place.command();
    command.env_remove("CHIMERA_PATH").args(["put", "k", "by default"]).stdout(Stdio::null());
    assert!(spawn(&mut command).wait().expect("it ends").success());
    assert!(place.directory.path().join("chimera-data/superblock").exists());
}

#[test]
fn a_store_made_without_sizes_takes_any() {
    let place = Place::new();
    let out = place.run(["put", "k", "v"]).ok();
    assert!(out.contains("keys and values of any size"), "{out}");
    let key = "a key of more than sixteen bytes".repeat(20);
    let large = vec![b'x'; 3 << 20];
    place.run_with_input(&["put", &key, "-"], &large);
    let found = place.run(["get", &key]).ok();
    assert!(found.trim_end().as_bytes() == large);
    assert_eq!(
        place.run(["put", &"k".repeat(5000), "v", "--json"]).expect(3).error_kind(),
        "key_length"
    );
    place.run(["update-u64", "--create", "--at", "800", "counter", "5"]).ok();
    assert_eq!(place.run(["update-u64", "--at", "800", "counter", "1"]).ok(), "5 -> 6\n");
    let other = place.run(["put", "--key-size", "16", "k", "v", "--json"]).expect(3);
    assert_eq!(other.error_kind(), "mismatch");
    assert!(place.run(["stats"]).ok().contains("of any size"));
    assert!(place.run(["check"]).ok().ends_with("sound\n"));
}

#[test]
fn compaction_gives_space_back() {
    let place = Place::new();
    place.run(["put", "k", "v"]).ok();
    for number in 0..40 {
        place.run_with_input(&["put", &format!("large {number}"), "-"], &vec![7; 40_000]);
    }
    for number in (0..40).filter(|number| number % 4 > 0) {
        place.run(["delete", &format!("large {number}")]).ok();
    }
    let report = place.run(["compact", "--json"]).json();
    let bytes = |name: &str| report[name].as_u64().expect("a number");
    assert!(bytes("bytes_after") < bytes("bytes_before") / 2, "{report:#}");
    assert!(place.run(["compact"]).ok().contains("in use instead of"));
    assert!(place.run(["check"]).ok().ends_with("sound\n"));
    assert_eq!(place.run(["get", "large 4"]).ok().len(), 40_001);
    place.run(["compact", "--free-percent", "0"]).expect(2);
}

#[test]
fn a_new_store_has_the_engine_that_is_asked_for() {
    let place = Place::new();
    let unknown = place.run(["put", "--engine", "leveldb", "a", "b"]).expect(2);
    assert!(unknown.err.contains("viper") && unknown.err.contains("hikv"), "{unknown:?}");
    place.run(["put", "--engine", "hikv", "a", "b"]).ok();
    assert_eq!(place.run(["put", "--engine", "hikv", "a", "c"]).ok(), "replaced\n");
    let other = place.run(["put", "--engine", "viper", "a", "d"]).expect(3);
    assert!(other.err.contains("hikv"), "{other:?}");
    assert_eq!(place.run(["get", "a"]).ok(), "c\n");
    let stats = place.run(["stats"]).ok();
    // The second put found out what is free before it took a fresh run.
    assert!(stats.contains("hikv") && stats.contains("runs of items         1\n"), "{stats}");
    let inspected = place.run(["inspect"]).ok();
    assert!(inspected.contains("partitions of the index 16"), "{inspected}");
}
