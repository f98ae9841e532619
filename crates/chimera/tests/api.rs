//! What a Rust program may rely on beside what is stored: which types may be sent and shared, closures that
//! panic, iterators that are dropped, kinds of errors, the end of a handle.

#[path = "tools/mod.rs"]
mod tools;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use chimera::{
    BackupOptions, CloseError, Db, Error, ErrorKind, Iter, Keys, Options, Result, Session, Swap,
    TypedDb, TypedSession,
};
use tools::media::{FIRST_SEGMENT, SUPERBLOCK, find, flip, forge_superblock, word};
use tools::{
    assert_sound, contents, fill, filled_store, key, open, scratch, small, small_any, value,
};

const fn is_send<T: Send>() {}
const fn is_shared<T: Send + Sync + Clone>() {}
const fn is_plain<T: Send + Sync + 'static>() {}

// Checked by the compiler.
const _: () = {
    is_shared::<Db>();
    is_shared::<TypedDb<u64, u64>>();
    is_shared::<Options>();
    is_send::<Session>();
    is_send::<TypedSession<u64, u64>>();
    is_send::<Iter<'_>>();
    is_send::<Keys<'_>>();
    is_plain::<Error>();
    is_plain::<ErrorKind>();
    is_plain::<CloseError>();
};

const RECORDS: u64 = 40;

/// Stores of one size and of any size.
fn both() -> [Options; 2] {
    [small(), small_any()]
}

/// Runs a call in which the user's closure panics.
fn panics<T>(call: impl FnOnce() -> T) {
    catch_unwind(AssertUnwindSafe(call)).err().expect("the closure panics");
}

/// What a leak would change: blocks, blocks that sessions own, sessions.
#[derive(Debug, PartialEq)]
struct Held {
    blocks_used: u64,
    blocks_owned: u64,
    sessions: usize,
    records: u64,
}

/// What is held once all that nobody holds is given back.
fn held(db: &Db) -> Held {
    db.compact(1, None).expect("compaction");
    let inspect = db.inspect(None);
    let blocks_owned = inspect.viper().expect("Viper").blocks.owned;
    Held {
        blocks_used: inspect.blocks_used,
        blocks_owned,
        sessions: db.session_stats().len(),
        records: db.len(),
    }
}

/// Panics 100 times in each way, and expects that nothing is held by what has panicked.
fn nothing_leaks(options: &Options, ways: &[&dyn Fn(&Db)]) {
    let directory = scratch();
    let db = open(directory.path(), options);
    fill(&mut db.session(), 0..RECORDS, 1);
    // The sessions that `Db` borrows are there from its first calls on.
    db.put(key(0), value(0, 1)).expect("put");
    for way in ways {
        let before = held(&db);
        for _ in 0..100 {
            way(&db);
        }
        // A leak would be of 100. Where records lie may make a block or two of difference.
        let after = held(&db);
        assert!(after.blocks_used <= before.blocks_used + 2, "{before:?} {after:?}");
        assert!(after.blocks_owned <= before.blocks_owned, "{before:?} {after:?}");
        assert_eq!(after.sessions, before.sessions);
        assert_eq!(after.records, before.records);
        // A lock that is still held would hang one of these.
        fill(&mut db.session(), 0..RECORDS, 2);
        fill(&mut db.session(), 0..RECORDS, 1);
        assert!(db.delete(key(1)).expect("delete"));
        db.put(key(1), value(1, 1)).expect("put");
        assert_eq!(db.len(), RECORDS);
        assert_sound(&db);
    }
    db.close().expect("nothing holds the store");
    assert_eq!(contents(&open(directory.path(), options)).len() as u64, RECORDS);
}

#[test]
fn closures_that_panic_in_the_store_leak_nothing() {
    for options in both() {
        nothing_leaks(
            &options,
            &[
                &|db| panics(|| db.update(key(3), |_| panic!("by the user"))),
                &|db| panics(|| db.for_each(|_, _| panic!("by the user"))),
                &|db| {
                    let mut left = 5;
                    panics(|| {
                        db.for_each(|_, _| {
                            left -= 1;
                            assert!(left > 0, "by the user");
                            true
                        })
                    });
                },
                &|db| {
                    panics(|| {
                        let mut records = db.iter();
                        records.next();
                        assert!(records.next().is_none(), "by the user");
                    });
                },
                &|db| panics(|| db.compact(1, Some(&progress()))),
                &|db| panics(|| db.check(Some(&progress()))),
                &|db| panics(|| db.inspect(Some(&progress()))),
            ],
        );
    }
}

fn progress() -> chimera::Progress {
    std::sync::Arc::new(|_, _| panic!("by the user"))
}

/// A session that survives, because it is not in the closure; and one that goes while its thread unwinds.
#[test]
fn closures_that_panic_in_a_session_leak_nothing() {
    for options in both() {
        nothing_leaks(
            &options,
            &[
                &|db| {
                    let mut session = db.session();
                    session.put(key(2), value(2, 1)).expect("it owns a block");
                    panics(|| session.update(key(3), |_| panic!("by the user")));
                    panics(|| session.get_with(key(3), |_| -> u8 { panic!("by the user") }));
                    let keys = [key(3), key(4)];
                    panics(|| session.multi_get_with(&keys, |_, _| panic!("by the user")));
                    // It goes on.
                    assert_eq!(session.get(key(3)).expect("get"), Some(value(3, 1)));
                    assert!(!session.put(key(3), value(3, 1)).expect("put"));
                },
                &|db| {
                    let mut session = db.session();
                    session.put(key(2), value(2, 1)).expect("it owns a block");
                    panics(move || session.update(key(3), |_| panic!("by the user")));
                },
                &|db| {
                    let mut session = db.session();
                    session.put(key(2), value(2, 1)).expect("it owns a block");
                    panics(move || session.get_with(key(3), |_| -> u8 { panic!("by the user") }));
                },
            ],
        );
    }
}

#[test]
fn an_iterator_that_is_dropped_early_holds_nothing() {
    for options in both() {
        let directory = scratch();
        let db = open(directory.path(), &options);
        fill(&mut db.session(), 0..500, 1);
        db.iter().next();
        let before = held(&db);
        for taken in [0, 1, 127, 128, 129, 400] {
            for _ in 0..20 {
                assert_eq!(db.iter().take(taken).count(), taken);
                assert_eq!(db.keys().take(taken).count(), taken);
                let mut forgotten = db.iter();
                forgotten.next();
            }
        }
        assert_eq!(held(&db), before);
        // What it reads ahead is bounded.
        let listed = db.stats().operations.records_listed;
        db.keys().next().expect("a key").expect("no damage");
        assert!(db.stats().operations.records_listed <= listed + 129);
        db.close().expect("no iterator holds the store");
    }
}

/// An iterator holds no lock between two items: its own thread may write.
#[test]
fn the_store_takes_writes_beside_an_iterator_in_another_thread_or_the_same() {
    for options in both() {
        let directory = scratch();
        let db = open(directory.path(), &options);
        fill(&mut db.session(), 0..500, 1);
        let mut keys = db.keys();
        let mut records = db.iter();
        let mut seen = BTreeSet::new();
        for number in 500..1000 {
            db.put(key(number), value(number, 1)).expect("put");
            db.put(key(number - 500), value(number - 500, 2)).expect("put");
            if let Some(record) = records.next() {
                assert!(seen.insert(record.expect("no damage").0), "a key comes twice");
            }
            keys.next();
        }
        std::thread::scope(|scope| {
            let rest = move || records.map(|it| it.expect("no damage").0).collect::<Vec<_>>();
            for key in scope.spawn(rest).join().expect("no panic") {
                assert!(seen.insert(key), "a key comes twice");
            }
        });
        assert!((0..500).all(|number| seen.contains(&key(number))), "they were there all the time");
    }
}

#[test]
fn contains_key_len_and_is_empty_say_what_get_says() {
    for options in both() {
        let directory = scratch();
        let db = open(directory.path(), &options);
        let mut session = db.session();
        assert!(db.is_empty() && !db.contains_key(key(0)).expect("no error"));
        for number in 0..RECORDS {
            assert!(session.put(key(number), value(number, 1)).expect("put"));
            assert!(!session.put(key(number), value(number, 2)).expect("put"));
            assert!(session.contains_key(key(number)).expect("no error"));
            assert!(db.contains_key(key(number)).expect("no error"));
            assert!(!session.contains_key(key(number + 1)).expect("no error"));
            assert_eq!((db.len(), db.is_empty()), (number + 1, false));
        }
        for number in 0..RECORDS {
            assert!(session.delete(key(number)).expect("delete"));
            assert!(!session.contains_key(key(number)).expect("no error"));
            assert_eq!(db.len(), RECORDS - number - 1);
        }
        assert!(db.is_empty());
    }
}

#[test]
fn close_gives_the_handle_back_and_becomes_an_error() {
    let directory = scratch();
    let db = open(directory.path(), &small());
    let session = db.session();
    let failed = db.close().expect_err("a session is open");
    assert_eq!(failed.error().kind(), ErrorKind::InUse);
    assert_eq!(failed.to_string(), failed.error().to_string());
    assert!(std::error::Error::source(&failed).is_none());
    // The handle is as good as before.
    let db = failed.into_db().expect("the store is open");
    db.put(key(1), value(1, 1)).expect("put");
    assert_eq!(db.compare_and_swap(key(1), value(1, 1), value(1, 2)).expect("swap"), Swap::Swapped);
    // By `?` it is an error like any other.
    let by_question_mark = |db: Db| -> Result<()> { Ok(db.close()?) };
    let error = by_question_mark(db.clone()).expect_err("two others");
    assert!(matches!(error, Error::StillInUse { others: 2 }), "{error}");
    drop(session);
    by_question_mark(db).expect("nobody else has it");
    assert!(open(directory.path(), &small()).stats().recovery.clean);
}

/// A case of each kind.
#[test]
fn errors_are_told_apart_by_their_kind() {
    let directory = scratch();
    let path = directory.path().join("store");
    let mut seen = Vec::new();
    let mut expect = |kind: ErrorKind, outcome: Result<()>| {
        let error = outcome.expect_err("this must fail");
        assert_eq!(error.kind(), kind, "{error}");
        seen.push(kind);
    };
    let open_with = |options: Options| Db::open(&path, &options).map(drop);

    expect(ErrorKind::NotFound, open_with(Options::new().create(false)));
    filled_store(&path, &small(), RECORDS);
    let db = open(&path, &small());
    expect(ErrorKind::InUse, open_with(Options::new()));
    expect(ErrorKind::AlreadyExists, db.backup(&path, &BackupOptions::new()).map(drop));
    expect(ErrorKind::InvalidArgument, db.put(key(1), b"short").map(drop));
    expect(ErrorKind::InvalidArgument, db.fetch_add_u64(key(1), 20, 1).map(drop));
    drop(db);
    expect(ErrorKind::Mismatch, open_with(Options::new().fixed_size(9, 9)));
    let invalid = Options::new().fixed_size(0, 1);
    let other = directory.path().join("other");
    expect(ErrorKind::InvalidArgument, Db::open(&other, &invalid).map(drop));

    let full = open(&other, &small().capacity_bytes(512));
    let fill_up = (0..).try_for_each(|it| full.put(key(it), value(it, 1)).map(drop));
    expect(ErrorKind::Full, fill_up);
    let reader = open(&path, &small().read_only(true));
    expect(ErrorKind::WritesRefused, reader.delete(key(1)).map(drop));
    drop(reader);

    std::fs::write(directory.path().join("file"), "dear").expect("a file");
    let inside = Db::open(directory.path().join("file/store"), &small());
    expect(ErrorKind::Io, inside.map(drop));
    flip(&path, FIRST_SEGMENT, find(&path, FIRST_SEGMENT, &value(5, 1)), 1);
    expect(ErrorKind::Damaged, open_with(Options::new()));
    forge_superblock(&path, &[(1, word(&path, SUPERBLOCK, 8) + 1)]);
    expect(ErrorKind::Unsupported, open_with(Options::new()));

    let kinds = [
        ErrorKind::NotFound,
        ErrorKind::AlreadyExists,
        ErrorKind::InUse,
        ErrorKind::InvalidArgument,
        ErrorKind::Mismatch,
        ErrorKind::Full,
        ErrorKind::Damaged,
        ErrorKind::Unsupported,
        ErrorKind::WritesRefused,
        ErrorKind::Io,
    ];
    assert!(kinds.iter().all(|kind| seen.contains(kind)), "{seen:?}");
}
