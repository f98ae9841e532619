//! Every byte of a block's records is verified, but for the eight of a number that is updated in place.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use chimera::{BackupOptions, Db, Error, ExportOptions, Options};

use crate::tools::media::{FIRST_SEGMENT, find, flip};
use crate::tools::{
    KEY_BYTES, SMALL, assert_sound, bytes_of, fill, key, open, restore, scratch, small, small_any,
    value,
};

/// So many that they fit a block, with one more for the record that is written anew.
const RECORDS: u64 = 6;
/// The key whose value has a number that is updated in place, and where in the value.
const COUNTER: u64 = 2;
const AT: usize = 8;

/// Stores of records of one size and of any size, and bytes of a record before its key.
fn stores() -> [(Options, usize); 2] {
    [(small(), 16), (small_any(), 24)]
}

/// The value of a key when the number was updated so many times.
fn updated(number: u64, times: u64) -> Vec<u8> {
    let mut value = value(number, 1);
    if number == COUNTER {
        let was = u64::from_le_bytes(value[AT..AT + 8].try_into().expect("8 bytes"));
        value[AT..AT + 8].copy_from_slice(&was.wrapping_add(times).to_le_bytes());
    }
    value
}

/// Makes a closed store. Where the record of each key lies in the first segment: all in one block.
fn make(path: &Path, options: &Options, header_bytes: usize) -> Vec<Range<usize>> {
    let db = open(path, options);
    let mut session = db.session();
    fill(&mut session, 0..RECORDS, 1);
    for _ in 0..2 {
        session.fetch_add_u64(key(COUNTER), AT, 1).expect("there is room");
    }
    assert_eq!((session.stats().updates, session.stats().updates_in_place), (1, 1));
    drop(session);
    let report = db.check(None);
    assert_eq!((report.damages, report.words_unchecked), (0, 1), "{report:?}");
    db.close().expect("nobody else has it");
    let record = |number| {
        let bytes = [key(number), updated(number, 2)].concat();
        let at = find(path, FIRST_SEGMENT, &bytes);
        at - header_bytes..at + bytes.len()
    };
    let records: Vec<_> = (0..RECORDS).map(record).collect();
    let block_bytes = (SMALL.page_bytes * SMALL.pages_per_block) as usize;
    assert!(records.iter().all(|record| record.end <= block_bytes), "{records:?}");
    records
}

/// The bytes of the number in its record.
fn of_number(record: &Range<usize>, header_bytes: usize) -> Range<usize> {
    let start = record.start + header_bytes + KEY_BYTES + AT;
    start..start + 8
}

/// Asserts that a get, `check`, an export and a backup each notice that the record of key `number` is damaged.
fn assert_noticed(path: &Path, options: &Options, number: u64, at: usize) {
    let refused = Db::open(path, options);
    assert!(matches!(refused, Err(Error::Corrupted { .. })), "byte {at} of {number}: {refused:?}");
    // Keys are verified at open, and values when they are read.
    let db = match Db::open(path, &options.clone().verify_at_open(false).read_only(true)) {
        Err(Error::Corrupted { .. }) => return,
        other => other.expect("it opens or is damaged"),
    };
    let report = db.check(None);
    assert_eq!((report.damages, report.records), (1, RECORDS - 1), "byte {at}: {report:?}");
    let is_damage = |outcome: Option<Error>| matches!(outcome, Some(Error::Corrupted { .. }));
    assert!(is_damage(db.get(key(number)).err()), "byte {at} of {number}: get");
    let exported = db.export(&mut Vec::new(), &ExportOptions::new());
    assert!(is_damage(exported.err()), "byte {at} of {number}: export");
    let copy = scratch();
    let backup = db.backup(copy.path().join("copy"), &BackupOptions::new());
    assert!(is_damage(backup.err()), "byte {at} of {number}: backup");
    for other in (0..RECORDS).filter(|other| *other != number) {
        let found = db.get(key(other)).expect("not damaged");
        assert_eq!(found, Some(updated(other, 2)), "byte {at} of {number}, key {other}");
    }
}

#[test]
fn each_flipped_byte_of_a_block_with_a_number_is_noticed_but_for_the_number() {
    for (options, header_bytes) in stores() {
        let directory = scratch();
        let path = directory.path();
        let records = make(path, &options, header_bytes);
        let files = bytes_of(path);
        let number_at = of_number(&records[COUNTER as usize], header_bytes);
        let mut unnoticed = 0;
        for (number, record) in (0..).zip(records) {
            for at in record.clone() {
                restore(path, &files);
                flip(path, FIRST_SEGMENT, at, 1 << (at % 8));
                if !number_at.contains(&at) {
                    assert_noticed(path, &options, number, at - record.start);
                    continue;
                }
                unnoticed += 1;
                let db = open(path, &options);
                let report = db.check(None);
                assert_eq!((report.damages, report.words_unchecked), (0, 1), "{report:?}");
                let mut found = db.get(key(COUNTER)).expect("not noticed").expect("there");
                found[at - number_at.start + AT] ^= 1 << (at % 8);
                assert_eq!(found, updated(COUNTER, 2));
            }
        }
        assert_eq!(unnoticed, 8);
    }
}

#[test]
fn each_flipped_byte_of_a_record_with_a_number_is_noticed_while_the_store_is_open() {
    for (options, header_bytes) in stores() {
        let directory = scratch();
        let path = directory.path();
        let record = make(path, &options, header_bytes)[COUNTER as usize].clone();
        let number_at = of_number(&record, header_bytes);
        let db = open(path, &options);
        let mut session = db.session();
        let file = File::options().read(true).write(true).open(path.join(FIRST_SEGMENT));
        let file = file.expect("the segment is there");
        for at in record.clone().filter(|at| !number_at.contains(at)) {
            let mut good = [0];
            file.read_exact_at(&mut good, at as u64).expect("read");
            file.write_all_at(&[good[0] ^ 0x20], at as u64).expect("written");
            let found = session.get(key(COUNTER));
            let key_at = record.start + header_bytes;
            let is_key = (key_at..key_at + KEY_BYTES).contains(&at);
            // A key that is not there any more is not found.
            assert!(found.is_err() || is_key && matches!(found, Ok(None)), "byte {at}: {found:?}");
            assert!(!db.check(None).is_sound(), "byte {at}");
            file.write_all_at(&good, at as u64).expect("written");
            assert_eq!(session.get(key(COUNTER)).expect("whole again"), Some(updated(COUNTER, 2)));
        }
        assert_sound(&db);
    }
}

#[test]
fn a_reopened_store_updates_the_same_word_in_place_and_a_put_ends_that() {
    for (options, header_bytes) in stores() {
        let directory = scratch();
        let path = directory.path();
        make(path, &options, header_bytes);
        let db = open(path, &options);
        let mut session = db.session();
        session.fetch_add_u64(key(COUNTER), AT, 1).expect("in place");
        assert_eq!((session.stats().updates, session.stats().updates_in_place), (0, 1));
        assert_eq!(db.get(key(COUNTER)).expect("sound"), Some(updated(COUNTER, 3)));
        // Another word of the record takes its place, and a put takes it away.
        session.fetch_add_u64(key(COUNTER), AT + 8, 0).expect("there is room");
        assert_eq!((session.stats().updates, db.check(None).words_unchecked), (1, 1));
        session.fetch_add_u64(key(COUNTER + 1), AT, 0).expect("there is room");
        assert_eq!(db.check(None).words_unchecked, 2);
        session.put(key(COUNTER), value(COUNTER, 2)).expect("there is room");
        assert_eq!(db.check(None).words_unchecked, 1);
        assert_eq!(session.stats().updates_in_place, 1);
    }
}
