//! ChameleonDB whose shards have lost their tables: salvage reads what the log has, also where the pool is full.

use std::collections::BTreeMap;
use std::path::Path;

use chimera::{Db, EngineKind, Error, Options};

use crate::tools::media::{FIRST_SEGMENT, change};
use crate::tools::{bytes_of, key, open, restore, scratch, value};

/// Where the current word of the first shard lies in the first segment: the manifest is made first.
const CURRENT_AT: usize = 256;

fn small() -> Options {
    let options = Options::new().engine(EngineKind::Chameleon).segment_bytes(64 << 10);
    options.populate_ahead_bytes(0).reclaim_percent(0).huge_pages(false).chameleon(|chameleon| {
        chameleon.shards(2).memtable_bytes(256).levels(3).ratio(2).log_run_bytes(4096)
    })
}

/// Writes records until the pool is full or so many are there.
fn fill(path: &Path, options: &Options, most: u64) -> BTreeMap<u64, Vec<u8>> {
    let db = open(path, options);
    let (mut session, mut records) = (db.session(), BTreeMap::new());
    for number in 0..most {
        match session.put(key(number), value(number, 1)) {
            Ok(_) => records.insert(number, value(number, 1)),
            Err(Error::PoolFull { .. }) => break,
            Err(error) => panic!("{error}"),
        };
    }
    drop(session);
    db.close().expect("nobody else has it");
    records
}

/// Opens in spite of damage, for reading only and for writing: nothing is written over what is left, and no write is taken.
fn each_salvage(path: &Path, options: &Options, mut check: impl FnMut(&Db)) {
    let before = bytes_of(path);
    for read_only in [true, false] {
        restore(path, &before);
        let db = Db::open(path, &options.clone().salvage(true).read_only(read_only));
        let db = db.unwrap_or_else(|error| panic!("read-only {read_only}: {error}"));
        assert!(db.stats().records_damaged > 0, "read-only {read_only}");
        check(&db);
        if !read_only {
            let refused = db.session().put(key(0), value(0, 2));
            assert!(refused.is_err(), "a write to a store that has lost a part: {refused:?}");
            assert!(db.compact(1, None).is_err(), "it moves nothing either");
        }
        drop(db);
        // Who opens it as ever is told again.
        let again = Db::open(path, options);
        assert!(matches!(again, Err(Error::Corrupted { .. })), "{again:?}");
    }
    restore(path, &before);
}

fn assert_all(db: &Db, records: &BTreeMap<u64, Vec<u8>>) {
    let mut session = db.session();
    for (number, value) in records {
        let found = session.get(key(*number)).expect("the record is sound");
        assert_eq!(found.as_ref(), Some(value), "key {number}");
    }
    let mut listed = 0;
    let all = db.for_each(|_, _| {
        listed += 1;
        true
    });
    all.expect("the records are sound");
    assert_eq!(listed, records.len());
    assert_eq!(db.len(), records.len() as u64);
}

#[test]
fn all_records_are_read_where_a_shard_has_lost_its_tables() {
    let directory = scratch();
    let path = directory.path();
    let records = fill(path, &small(), 700);
    assert_eq!(records.len(), 700, "there is room");
    change(path, FIRST_SEGMENT, |bytes| bytes[CURRENT_AT..CURRENT_AT + 8].fill(0));
    each_salvage(path, &small(), |db| assert_all(db, &records));
}

#[test]
fn all_records_are_read_where_both_shards_of_a_full_store_have_lost_their_tables() {
    let (directory, options) = (scratch(), small().capacity_bytes(256 << 10));
    let path = directory.path();
    let records = fill(path, &options, u64::MAX);
    assert!(records.len() > 500, "{} records", records.len());
    change(path, FIRST_SEGMENT, |bytes| bytes[CURRENT_AT..CURRENT_AT + 128].fill(0));
    each_salvage(path, &options, |db| assert_all(db, &records));
}

#[test]
fn what_other_segments_of_the_pool_have_is_read_where_the_manifest_is_gone() {
    let directory = scratch();
    let path = directory.path();
    let records = fill(path, &small(), 2000);
    // The word of its run: where runs begin behind it is not known.
    change(path, FIRST_SEGMENT, |bytes| bytes[..8].fill(0));
    each_salvage(path, &small(), |db| {
        let mut session = db.session();
        let found = records.iter().filter(|(number, value)| {
            let found = session.get(key(**number)).expect("the record is sound");
            assert!(found.is_none() || found.as_ref() == Some(*value), "key {number}");
            found.is_some()
        });
        let found = found.count();
        assert!(found > 500 && found < 2000, "{found} records");
    });
}
