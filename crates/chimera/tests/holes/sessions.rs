//! Holes that sessions of one process would fall into.

use chimera::baselines::RecordLayout;
use chimera::{Db, Geometry, Options};

use crate::tools::media::{FIRST_SEGMENT, SEGMENT_HEADER_AT, find, word};
use crate::tools::{
    KEY_BYTES, SMALL, VALUE_BYTES, assert_sound, contents, fill, filled_store, key, open, scratch,
    small, small_any, small_with, value, value_of, version_of,
};

#[test]
fn hole_03_of_two_million_deleted_keys_none_is_found() {
    let options = Options::new().segment_bytes(256 << 20);
    none_of_the_deleted_is_found(&options.fixed_size(8, 8));
}

#[test]
fn hole_03_of_two_million_deleted_keys_of_any_size_none_is_found() {
    none_of_the_deleted_is_found(&Options::new().segment_bytes(256 << 20));
}

fn none_of_the_deleted_is_found(options: &Options) {
    const KEYS: u64 = 2_000_000;
    let directory = scratch();
    let db = open(directory.path(), options);
    let mut session = db.session();
    let key = |number: u64| number.to_le_bytes();
    for number in 0..KEYS {
        assert!(session.put(key(number), key(!number)).expect("put"), "{number} is new");
    }
    for number in (0..KEYS).step_by(7) {
        assert!(!session.put(key(number), key(number)).expect("put"), "{number} is not new");
    }
    assert_eq!(db.stats().records, KEYS);
    for number in 0..KEYS {
        assert!(session.delete(key(number)).expect("delete"), "{number} is there");
    }
    for number in 0..KEYS {
        assert!(session.get_with(key(number), |_| ()).expect("get").is_none(), "{number} is found");
    }
    assert_eq!(db.stats().records, 0);
    assert!(contents(&db).is_empty());
    assert!(!session.delete(key(1)).expect("delete"));
    assert!(session.put(key(1), key(1)).expect("put"), "a deleted key is new");
}

/// What an update has read may be gone or changed when it writes: both happen here inside of it.
#[test]
fn hole_05_updates_and_deletes_look_again_under_the_lock() {
    look_again_under_the_lock(&small());
    look_again_under_the_lock(&small_any());
}

fn look_again_under_the_lock(options: &Options) {
    let directory = scratch();
    let db = open(directory.path(), options);
    let (mut session, mut other) = (db.session(), db.session());
    fill(&mut session, 0..20, 1);

    let mut runs = 0;
    let found = session.update(key(1), |old| {
        runs += 1;
        if runs == 1 {
            assert!(other.delete(key(1)).expect("delete"));
        }
        old[0] = 99;
    });
    assert!(!found.expect("update"), "a deleted key was updated");
    assert_eq!((runs, db.get(key(1)).expect("get")), (1, None), "a deleted key has come back");

    let mut runs = 0;
    let found = session.update(key(2), |old| {
        runs += 1;
        if runs == 1 {
            other.put(key(2), value(2, 7)).expect("put");
        }
        assert_eq!(version_of(2, old), if runs == 1 { 1 } else { 7 });
        old.copy_from_slice(&value(2, 8));
    });
    assert!(found.expect("update"));
    assert_eq!((runs, db.get(key(2)).expect("get")), (2, Some(value(2, 8))));

    // Deleted and inserted again, with the same value or another.
    for version in [1, 9] {
        let mut runs = 0;
        let found = session.update(key(3), |old| {
            runs += 1;
            if runs == 1 {
                assert!(other.delete(key(3)).expect("delete"));
                other.put(key(3), value(3, version)).expect("put");
            }
            old.copy_from_slice(&value(3, 1));
        });
        assert!(found.expect("update"));
        assert_eq!(db.get(key(3)).expect("get"), Some(value(3, 1)));
    }
    assert_eq!(contents(&db).len(), 19);
    assert_sound(&db);
}

/// No lock is on media, and versions do not wrap.
#[test]
fn hole_07_many_writes_of_one_page_leave_nothing_behind() {
    let any = small_with(Geometry { pages_per_block: 1, ..SMALL });
    many_writes_leave_nothing_behind(&any.clone().fixed_size(KEY_BYTES as u32, VALUE_BYTES as u32));
    many_writes_leave_nothing_behind(&any);
}

fn many_writes_leave_nothing_behind(options: &Options) {
    let directory = scratch();
    let path = directory.path();
    let db = open(path, options);
    let mut session = db.session();
    for version in 1..=100_000 {
        session.put(key(1), value(1, version)).expect("put");
    }
    for _ in 0..1000 {
        session.fetch_add_u64(key(1), 8, 1).expect("in place");
    }
    drop(session);
    assert!(db.stats().blocks_used <= 3);
    db.close().expect("nobody else has it");
    let mut expected = value(1, 100_000);
    let was = u64::from_le_bytes(expected[8..16].try_into().expect("8 bytes"));
    expected[8..16].copy_from_slice(&was.wrapping_add(1000).to_le_bytes());
    let slot = find(path, FIRST_SEGMENT, &[key(1), expected.clone()].concat()) - 16;
    // The first addition has written the record anew, with the number of its word, counted from one.
    let version_word = word(path, FIRST_SEGMENT, slot + 8);
    assert_eq!((version_word >> 51, version_word << 13 >> 13), (2, 100_001));
    let db = open(path, options);
    assert_eq!(db.get(key(1)).expect("get"), Some(expected));
    db.put(key(1), value(1, 100_001)).expect("put");
    assert_eq!(contents(&db).len(), 1);
    assert_sound(&db);
}

#[test]
fn hole_08_files_say_what_they_are() {
    files_say_what_they_are(&small());
    files_say_what_they_are(&small_any());
}

fn files_say_what_they_are(options: &Options) {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, options, 25);
    let ascii = |name: &str, at: usize| word(path, name, at).to_le_bytes();
    assert_eq!(&ascii("superblock", 0), b"CHIMERA1");
    assert_eq!(word(path, "superblock", 8) as u32, 4, "the format version");
    assert_eq!(&ascii(FIRST_SEGMENT, SEGMENT_HEADER_AT), b"CHIMSEG1");
    assert_eq!(word(path, FIRST_SEGMENT, SEGMENT_HEADER_AT + 8), word(path, "superblock", 16));
    let slot = find(path, FIRST_SEGMENT, &[key(7), value(7, 1)].concat()) - 16;
    assert_ne!(word(path, FIRST_SEGMENT, slot), 0, "the checksums of a record");
}

#[test]
fn hole_09_any_number_of_pages_threads_and_sessions() {
    for (pages_per_block, is_fixed) in (1..=8).flat_map(|pages| [(pages, true), (pages, false)]) {
        let directory = scratch();
        let any = small_with(Geometry { pages_per_block, ..SMALL });
        let options = if is_fixed { any.fixed_size(8, 24) } else { any };
        let db = open(directory.path(), &options);
        std::thread::scope(|scope| {
            for thread in 0..5 * u64::from(pages_per_block) {
                let db = &db;
                scope.spawn(move || fill(&mut db.session(), thread * 100..thread * 100 + 60, 1));
            }
        });
        db.close().expect("nobody else has it");
        for threads in [0, 1, 2, 5, 64] {
            let db = open(directory.path(), &options.clone().recovery_threads(threads));
            assert_eq!(contents(&db).len() as u64, 300 * u64::from(pages_per_block));
            assert_sound(&db);
        }
    }
}

/// Each overwrite needs the page of the old record and that of the new one; here they are the same few
/// pages for all sessions.
#[test]
fn hole_10_overwrites_across_pages_do_not_deadlock() {
    let any = small_with(Geometry { pages_per_block: 1, ..SMALL });
    let fixed = any.clone().fixed_size(8, 24);
    for options in [fixed.clone(), fixed.viper(|viper| viper.layout(RecordLayout::Published)), any]
    {
        let directory = scratch();
        let db = open(directory.path(), &options);
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let db = &db;
                scope.spawn(move || {
                    let mut session = db.session();
                    for step in 0..15_000_u64 {
                        let number = (step * 7 + thread) % 11;
                        session.put(key(number), value(number, step)).expect("put");
                        if step % 3 == 0 {
                            session.fetch_add_u64(key(10 - number), 8, 0).expect("in place");
                        }
                    }
                });
            }
        });
        assert_eq!(contents(&db).len(), 11);
        assert_sound(&db);
    }
}

#[test]
fn hole_12_a_store_that_never_had_a_session_opens() {
    for options in [small(), small_any()] {
        never_had_a_session(&options);
    }
}

fn never_had_a_session(options: &Options) {
    let directory = scratch();
    for round in 0..4 {
        let db = open(directory.path(), options);
        assert_eq!(db.get(key(1)).expect("get"), None);
        assert!(contents(&db).is_empty());
        assert_sound(&db);
        if round % 2 == 0 {
            db.close().expect("nobody else has it");
        }
    }
    let db = open(directory.path(), &options.clone().read_only(true));
    assert!(contents(&db).is_empty());
    // A session that does nothing.
    drop(db.session());
}

#[test]
fn hole_12_values_larger_than_a_page_come_back_right() {
    let sizes = [4095, 4096, 4097, 5000, 20_000, 524_288];
    for (value_bytes, is_fixed) in sizes.into_iter().flat_map(|size| [(size, true), (size, false)])
    {
        let directory = scratch();
        let any = Options::new().segment_bytes(32 << 20).populate_ahead_bytes(0);
        let options = if is_fixed { any.fixed_size(8, value_bytes as u32) } else { any };
        let db = open(directory.path(), &options);
        let put = |db: &Db, version: u64| {
            let mut session = db.session();
            for number in 0..20 {
                let value = value_of(number, version, value_bytes);
                session.put(key(number), &value).expect("put");
            }
        };
        put(&db, 1);
        put(&db, 2);
        db.close().expect("nobody else has it");
        let db = open(directory.path(), &options);
        for number in 0..20 {
            let found = db.get(key(number)).expect("get").expect("it is there");
            assert!(found == value_of(number, 2, value_bytes), "{value_bytes} bytes: {number}");
        }
        assert_sound(&db);
    }
}
