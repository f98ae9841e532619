//! Segments that are missing, foreign, exchanged, cut or damaged.

use std::fs;
use std::path::Path;

use chimera::Db;

use crate::tools::media::{FIRST_SEGMENT, SEGMENT_HEADER_AT, SEGMENT_HEADER_BYTES, change, flip};
use crate::tools::{
    assert_fails, assert_sound, bytes_of, contents, filled_store, open, restore, scratch, small,
};

/// Enough for three segments of 24 blocks of 10 records.
const RECORDS: u64 = 600;

const SECOND_SEGMENT: &str = "segment-000001";

fn store(path: &Path) {
    filled_store(path, &small(), RECORDS);
    assert!(path.join("segment-000002").exists());
}

fn assert_whole(path: &Path) {
    let db = open(path, &small());
    assert_eq!(contents(&db).len() as u64, RECORDS);
    assert_sound(&db);
}

#[test]
fn each_flipped_byte_of_a_header_is_refused() {
    let directory = scratch();
    let path = directory.path();
    store(path);
    let files = bytes_of(path);
    for name in [FIRST_SEGMENT, SECOND_SEGMENT] {
        for at in 0..SEGMENT_HEADER_BYTES {
            restore(path, &files);
            flip(path, name, SEGMENT_HEADER_AT + at, 0x80);
            assert_fails(Db::open(path, &small()), &["damaged at byte", "header of segment"]);
        }
    }
    restore(path, &files);
    assert_whole(path);
}

#[test]
fn a_cut_extended_or_missing_segment_is_named() {
    let directory = scratch();
    let path = directory.path();
    store(path);
    let files = bytes_of(path);
    for name in [FIRST_SEGMENT, SECOND_SEGMENT] {
        for length in [0, 1, 4096, (16 << 10) - 1, (16 << 10) + 1, 32 << 10] {
            change(path, name, |bytes| bytes.resize(length, 0));
            assert_fails(Db::open(path, &small()), &[name, "16384", "cut or extended"]);
            restore(path, &files);
        }
        fs::remove_file(path.join(name)).expect("the segment is there");
        assert_fails(Db::open(path, &small()), &[name, "missing", "put it back"]);
        restore(path, &files);
    }
    assert_whole(path);
}

#[test]
fn a_segment_of_another_pool_is_named() {
    let (directory, other) = (scratch(), scratch());
    let path = directory.path();
    store(path);
    store(other.path());
    let files = bytes_of(path);
    fs::copy(other.path().join(SECOND_SEGMENT), path.join(SECOND_SEGMENT)).expect("a copy");
    assert_fails(Db::open(path, &small()), &["segment 1 belongs to another pool"]);
    restore(path, &files);
    assert_whole(path);
}

#[test]
fn exchanged_segments_are_named() {
    let directory = scratch();
    let path = directory.path();
    store(path);
    let files = bytes_of(path);
    fs::write(path.join(FIRST_SEGMENT), &files[Path::new(SECOND_SEGMENT)]).expect("written");
    fs::write(path.join(SECOND_SEGMENT), &files[Path::new(FIRST_SEGMENT)]).expect("written");
    assert_fails(Db::open(path, &small()), &["segment 0 holds segment 1"]);
    restore(path, &files);
    assert_whole(path);
}

/// A file behind the last segment is what an interrupted growth leaves: it is replaced when needed.
#[test]
fn an_orphan_segment_is_replaced() {
    let directory = scratch();
    let path = directory.path();
    store(path);
    fs::write(path.join("segment-000003"), [0; 9]).expect("written");
    let db = open(path, &small());
    crate::tools::fill(&mut db.session(), RECORDS..2 * RECORDS, 1);
    db.close().expect("nobody else has it");
    let db = open(path, &small());
    assert_eq!(contents(&db).len() as u64, 2 * RECORDS);
    assert_sound(&db);
}

/// Records that are moved are not records: each is bound to its place.
#[test]
fn blocks_copied_over_others_are_refused() {
    let directory = scratch();
    let path = directory.path();
    store(path);
    change(path, FIRST_SEGMENT, |bytes| bytes.copy_within(0..512, 512));
    assert_fails(Db::open(path, &small()), &["damaged at byte 8", "restore a copy", "salvage"]);
    let db = open(path, &small().salvage(true));
    let left = contents(&db).len() as u64;
    assert!((RECORDS - 10..RECORDS).contains(&left), "{left} records are left");
    assert!(db.stats().records_damaged > 0);
}
