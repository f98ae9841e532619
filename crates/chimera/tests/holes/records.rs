//! Holes that only records of any size fall into.

use std::path::Path;

use chimera::Geometry;

use crate::tools::media::{FIRST_SEGMENT, SUPERBLOCK_BYTES, checked_word_at, find, word};
use crate::tools::{
    assert_sound, contents, key, key_of, open, scratch, small_any, small_with, value_of,
};

/// A key that is not like anything else in a store.
fn long_key(number: u64) -> Vec<u8> {
    key_of(number, 16)
}

/// The lengths of the record with such a key in the first segment.
fn lengths_of(path: &Path, number: u64) -> u64 {
    word(path, FIRST_SEGMENT, find(path, FIRST_SEGMENT, &long_key(number)) - 24)
}

/// The word of that record with this number.
fn word_of(path: &Path, number: u64, lengths: u32) -> u64 {
    let at = find(path, FIRST_SEGMENT, &long_key(number)) - 24;
    checked_word_at(lengths, SUPERBLOCK_BYTES + at as u64)
}

const SET: u32 = 1;
const KEY_OF_16: u32 = 16 << 1;

#[test]
fn hole_14_an_empty_value_is_neither_the_end_of_a_page_nor_a_chunk() {
    let directory = scratch();
    let path = directory.path();
    let db = open(path, &small_any());
    let mut session = db.session();
    // Two empty ones in a row, and something behind them.
    for number in 0..30 {
        let length = if number % 3 < 2 { 0 } else { 24 };
        session.put(long_key(number), value_of(number, 1, length)).expect("room");
    }
    drop(session);
    let all = contents(&db);
    assert_eq!((all.len(), all[&long_key(0)].len(), all[&long_key(2)].len()), (30, 0, 24));
    db.close().expect("nobody else has it");
    assert_eq!(lengths_of(path, 3), word_of(path, 3, SET | KEY_OF_16));
    let db = open(path, &small_any());
    assert_eq!(contents(&db), all);
    assert!(db.delete(long_key(3)).expect("delete"));
    assert_eq!(db.get(long_key(3)).expect("get"), None);
    db.close().expect("nobody else has it");
    assert_eq!(lengths_of(path, 3), word_of(path, 3, KEY_OF_16));
    let db = open(path, &small_any());
    // The log goes on behind it.
    assert_eq!(contents(&db).len(), 29);
    assert_eq!(db.get(long_key(4)).expect("get"), Some(vec![]));
    assert_sound(&db);
}

/// Then there is no word left to say that the log ends.
#[test]
fn hole_14_a_page_may_end_with_its_last_record() {
    // 8 + 24 + 8 + 216 = 256, a page; 8 + 24 + 192 + 288 = 512, a block.
    for (key_bytes, value_bytes) in [(8, 216), (192, 288)] {
        let directory = scratch();
        let db = open(directory.path(), &small_any());
        for number in 0..9 {
            let value = value_of(number, 1, value_bytes);
            db.put(key_of(number, key_bytes), &value).expect("room");
        }
        assert_eq!(
            db.inspect(None).viper().expect("Viper").bytes.live,
            9 * (24 + key_bytes + value_bytes) as u64
        );
        let all = contents(&db);
        db.close().expect("nobody else has it");
        let db = open(directory.path(), &small_any());
        assert_eq!(contents(&db), all);
        for number in 0..9 {
            assert!(db.delete(key_of(number, key_bytes)).expect("delete"));
            db.put(key(100 + number), b"short").expect("room");
        }
        assert_eq!(contents(&db).len(), 9);
        assert_sound(&db);
    }
}

/// What 16 bits can say, and what they cannot: 65,520 is the longest value beside its key, 65,535 says
/// that it is elsewhere.
#[test]
fn hole_14_values_around_64_kib_are_told_apart() {
    let geometry = Geometry {
        page_bytes: 16 << 10,
        pages_per_block: 8,
        block_shift_bytes: 0,
        segment_bytes: 4 << 20,
    };
    let directory = scratch();
    let path = directory.path();
    let options = small_with(geometry).populate_ahead_bytes(0);
    let lengths =
        [65_519, 65_520, 65_521, 65_528, 65_534, 65_535, 65_536, 65_537, 131_000, 131_072, 200_000];
    for version in 1..3 {
        let db = open(path, &options);
        for (number, length) in (0..).zip(lengths) {
            db.put(long_key(number), value_of(number, version, length)).expect("room");
        }
        drop(db);
        let db = open(path, &options);
        for (number, length) in (0..).zip(lengths) {
            let found = db.get(long_key(number)).expect("get").expect("it is there");
            assert!(found == value_of(number, version, length), "{length}");
        }
        assert_sound(&db);
        drop(db);
        if version == 1 {
            for (number, length) in (0..).zip(lengths) {
                let field = if length <= 65_520 { length as u32 } else { 65_535 };
                let expected = word_of(path, number, SET | KEY_OF_16 | field << 16);
                assert_eq!(lengths_of(path, number), expected, "{length}");
            }
        }
    }
}
