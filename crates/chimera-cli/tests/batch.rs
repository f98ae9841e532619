//! Many operations in one run, from a file or standard input.

mod common;

use std::fs;

use common::Place;

fn write(place: &Place, name: &str, text: &[u8]) {
    fs::write(place.directory.path().join(name), text).expect("writable");
}

#[test]
fn a_file_and_standard_input_do_the_same() {
    let lines = b"# fruit\nput\tapples\tred\n\nput\tpears\tgreen\tand yellow\nput\tapples\tgreen\ndelete\tpears\ndelete\tplums\nput\tlast\tno line break";
    let place = Place::new();
    write(&place, "changes", lines);
    let said = "3 inserted, 1 replaced, 1 deleted, 1 not there to delete\n";
    let out = place.run(["batch", "changes"]).ok();
    assert_eq!(out, format!("created store `{}`\n{said}", place.store().display()));
    let of_file = place.run(["scan", "--values"]).ok();
    assert_eq!(of_file, "apples\tgreen\nlast\tno line break\n");
    let out = place.run_with_input(&["batch", "-", "--path", "other"], lines);
    assert_eq!(out, format!("created store `other`\n{said}").as_bytes());
    assert_eq!(place.run(["scan", "--values", "--path", "other"]).ok(), of_file);
    let report = place.run(["--json", "batch", "changes"]).json();
    assert_eq!((&report["inserted"], &report["complete"]), (&1.into(), &true.into()));
    assert!(place.run(["check"]).ok().ends_with("sound\n"));
}

#[test]
fn all_lines_are_carried_out_or_none() {
    let place = Place::new();
    place.run(["put", "apples", "red"]).ok();
    write(
        &place,
        "changes",
        b"put\tapples\tgreen\nput\tpears\tred\ndelete\tpears\ndelete\tplums\n",
    );
    write(&place, "wrong", b"put\tapples\tblue\n\nnonsense\n");
    let run = place.run(["batch", "--atomic", "wrong"]).expect(3);
    assert!(run.err.contains("line 3") && run.err.contains("nothing was done"), "{run:?}");
    assert_eq!(place.run(["scan", "--values"]).ok(), "apples\tred\n");
    let said = place.run(["batch", "--atomic", "changes"]).ok();
    assert_eq!(said, "1 inserted, 1 replaced, 1 deleted, 1 not there to delete\n");
    assert_eq!(place.run(["scan", "--values"]).ok(), "apples\tgreen\n");
    // A line that the store finds wrong.
    let place = Place::new();
    place.fill(1);
    let before = place.run(["list-keys"]).ok();
    write(&place, "changes", format!("put\tk\tv\nput\tk\t{}\n", "v".repeat(201)).as_bytes());
    let run = place.run(["batch", "--atomic", "changes"]).expect(3);
    assert!(run.err.contains("line 2: the value has 201 bytes"), "{run:?}");
    assert_eq!(place.run(["list-keys"]).ok(), before);
}

#[test]
fn any_bytes_go_round_in_hexadecimal() {
    let place = Place::new();
    place.run(["put", "--hex", "ff09", "0a00"]).ok();
    place.run(["put", "plain", "text"]).ok();
    let listed = place.run(["scan", "--values", "--hex"]).ok();
    let lines = format!("put\t{}\n", listed.trim_end().replace('\n', "\nput\t"));
    place.run_with_input(&["batch", "--hex", "--path", "copy", "-"], lines.as_bytes());
    assert_eq!(place.run(["scan", "--values", "--hex", "--path", "copy"]).ok(), listed);
    place.run_with_input(&["batch", "--hex-key", "--path", "copy", "-"], b"delete\tff09\n");
    assert_eq!(place.run(["scan", "--path", "copy"]).ok(), "plain\n");
}

#[test]
fn a_wrong_line_is_named_and_those_before_it_are_kept() {
    let place = Place::new();
    for (line, says) in [
        ("put\tkey", "is no operation"),
        ("delete\tkey\tmore", "is no operation"),
        ("add\tkey\t1", "is no operation"),
        ("put key value", "is no operation"),
        ("put\t\tvalue", "a key has at least one byte"),
    ] {
        write(
            &place,
            "changes",
            format!("put\tgood\tvalue\n\n{line}\nput\tnext\tvalue\n").as_bytes(),
        );
        let run = place.run(["batch", "changes"]).expect(3);
        assert!(run.err.starts_with("chimera: line 3: ") && run.err.contains(says), "{run:?}");
        assert!(run.err.contains("the lines before it are done and kept"), "{run:?}");
        let run = place.run(["batch", "changes", "--json"]).expect(3);
        assert_eq!((run.error_kind().as_str(), &run.json()["complete"]), ("line", &false.into()));
        assert_eq!(place.run(["list-keys"]).ok(), "good\n");
    }
    // Nothing is made for a file that begins with one, or has none.
    for text in ["nonsense\n", "", "# nothing\n"] {
        write(&place, "changes", text.as_bytes());
        let run = place.run(["batch", "changes", "--path", "none"]);
        assert_eq!(run.code, if text == "nonsense\n" { 3 } else { 0 }, "{run:?}");
        assert!(!place.directory.path().join("none").exists());
    }
    let run = place.run(["batch", "absent"]).expect(3);
    assert!(run.err.contains("cannot open the file"), "{run:?}");
    // Records of a fixed size, of which one is too long.
    let place = Place::new();
    place.fill(1);
    write(&place, "changes", format!("put\tk\tv\nput\tk\t{}\n", "v".repeat(201)).as_bytes());
    let run = place.run(["batch", "changes"]).expect(3);
    assert!(run.err.contains("line 2: the value has 201 bytes"), "{run:?}");
}
