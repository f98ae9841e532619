//! Exports, imports and backups.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use chimera::{
    BackupOptions, Db, Error, ExportOptions, ImportOptions, ImportReport, Options, Result,
    StreamReader,
};
use chimera_pmem::{Environment, Hardware, SteppedEnvironment};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{Records, assert_holds, at_once};
use crate::tools::{assert_sound, bytes_of, contents, copy_store, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    what_is_exported_and_imported_is_the_same,
    a_stream_is_taken_by_a_store_of_any_size,
    an_export_that_was_cut_goes_on_where_it_ends,
    an_import_that_stopped_goes_on_where_it_was,
    no_flipped_bit_of_a_stream_is_imported,
    a_backup_is_a_store_like_the_one_it_was_made_of,
    a_backup_leaves_what_is_there_alone,
    a_backup_that_was_interrupted_never_opens_as_a_store,
    copies_beside_writers_have_every_key_that_stays,
];

const RECORDS: u64 = 300;

fn filled(configuration: &Configuration, path: &std::path::Path) -> (Db, Records) {
    let db = configuration.open(path);
    configuration.fill(&mut db.session(), 0..RECORDS, 1);
    (db, configuration.records(0..RECORDS, 1))
}

/// A stream of all records, in small frames.
fn exported(db: &Db) -> Vec<u8> {
    let mut stream = Vec::new();
    let report = db.export(&mut stream, &ExportOptions::new().frame_bytes(500));
    let report = report.expect("an export");
    assert_eq!(report.bytes, stream.len() as u64);
    assert_eq!(report.records, report.records_written);
    stream
}

fn import(db: &Db, stream: &[u8]) -> Result<ImportReport> {
    db.import(&mut StreamReader::new(stream)?, &ImportOptions::new())
}

fn what_is_exported_and_imported_is_the_same(configuration: &Configuration) {
    let directory = scratch();
    let (db, records) = filled(configuration, &directory.path().join("one"));
    let stream = exported(&db);
    let verified = StreamReader::new(&stream[..]).expect("a stream").verify().expect("read");
    assert!(verified.is_complete());
    assert_eq!(verified.records(), RECORDS);
    let copy = configuration.open(&directory.path().join("copy"));
    let report = import(&copy, &stream).expect("a whole stream");
    assert_eq!((report.records, report.replaced), (RECORDS, 0));
    assert_holds(&copy, &records);
    // What is there already is replaced.
    configuration.fill(&mut copy.session(), 0..RECORDS / 2, 7);
    let report = import(&copy, &stream).expect("a whole stream");
    assert_eq!((report.records, report.replaced), (RECORDS, RECORDS));
    assert_holds(&copy, &records);
    // An empty store is a stream, too.
    let empty = configuration.open(&directory.path().join("empty"));
    let report = import(&copy, &exported(&empty)).expect("a whole stream");
    assert_eq!(report.records, 0);
}

fn a_stream_is_taken_by_a_store_of_any_size(configuration: &Configuration) {
    let directory = scratch();
    let (db, records) = filled(configuration, &directory.path().join("one"));
    let options = Options::new().segment_bytes(8 << 20).populate_ahead_bytes(0);
    let copy = open(&directory.path().join("any"), &options);
    import(&copy, &exported(&db)).expect("a whole stream");
    assert_holds(&copy, &records);
    let again = configuration.open(&directory.path().join("back"));
    import(&again, &exported(&copy)).expect("a whole stream");
    assert_holds(&again, &records);
}

fn an_export_that_was_cut_goes_on_where_it_ends(configuration: &Configuration) {
    let directory = scratch();
    let path = directory.path().join("one");
    let (mut db, mut records) = filled(configuration, &path);
    let whole = exported(&db);
    for (round, length) in (64..whole.len()).step_by(whole.len() / 7).enumerate() {
        if round % 3 == 2 {
            drop(db);
            db = configuration.open(&path);
        }
        // New keys have a place before or behind the cut.
        let new = RECORDS + round as u64;
        configuration.fill(&mut db.session(), [new], 1);
        records.extend(configuration.records([new], 1));
        let mut stream = whole[..length].to_vec();
        let verified = StreamReader::new(&stream[..]).expect("a head").verify().expect("read");
        stream.truncate(verified.bytes() as usize);
        let options = ExportOptions::new().frame_bytes(500).resume(verified);
        let report = db.export(&mut stream, &options).expect("it goes on");
        assert_eq!(report.bytes, stream.len() as u64);
        let copy = configuration.open(&directory.path().join(format!("copy-{length}")));
        let imported = import(&copy, &stream).expect("a whole stream");
        assert_eq!((imported.records, imported.replaced), (report.records, 0));
        let mut copied = contents(&copy);
        copied.extend(configuration.records(RECORDS..=new, 1));
        assert!(copied == records, "cut at {length}");
    }
}

fn an_import_that_stopped_goes_on_where_it_was(configuration: &Configuration) {
    let directory = scratch();
    let (db, records) = filled(configuration, &directory.path().join("one"));
    let whole = exported(&db);
    let is_part = |part: &Records| part.iter().all(|(key, value)| records.get(key) == Some(value));
    for length in (64..whole.len()).step_by(whole.len() / 9) {
        let path = directory.path().join(format!("copy-{length}"));
        let copy = configuration.open(&path);
        let outcome = import(&copy, &whole[..length]);
        let Err(Error::ImportStopped { records: stored, position, .. }) = outcome else {
            panic!("{length} bytes were taken for a whole stream: {outcome:?}")
        };
        let kept = contents(&copy);
        assert!(kept.len() as u64 == stored && is_part(&kept), "{length} bytes");
        drop(copy);
        let copy = configuration.open(&path);
        let mut reader = StreamReader::new(&whole[..]).expect("a stream");
        let report = copy.import(&mut reader, &ImportOptions::new().resume(position));
        let report = report.expect("a whole stream");
        assert_eq!((report.skipped, report.records), (stored, RECORDS - stored));
        assert_eq!(report.replaced, 0);
        assert_holds(&copy, &records);
    }
}

fn no_flipped_bit_of_a_stream_is_imported(configuration: &Configuration) {
    let directory = scratch();
    let (db, records) = filled(configuration, &directory.path().join("one"));
    let whole = exported(&db);
    let copy = configuration.open(&directory.path().join("copy"));
    for at in (0..whole.len()).step_by(whole.len() / 100) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        let error = import(&copy, &damaged).expect_err("it is damaged");
        assert!(!error.to_string().is_empty());
        for (key, value) in contents(&copy) {
            assert!(records.get(&key) == Some(&value), "byte {at}: a wrong record");
        }
    }
    import(&copy, &whole).expect("a whole stream");
    assert_holds(&copy, &records);
}

fn a_backup_is_a_store_like_the_one_it_was_made_of(configuration: &Configuration) {
    let directory = scratch();
    let (db, mut records) = filled(configuration, &directory.path().join("one"));
    let path = directory.path().join("backup");
    let report = db.backup(&path, &BackupOptions::new()).expect("a backup");
    assert_eq!(report.records, RECORDS);
    // Opens with the very options, and with none.
    drop(open(&path, &Options::new()));
    let copy = configuration.open(&path);
    let (found, of) = (copy.stats(), db.stats());
    assert!(found.recovery.clean);
    assert_eq!(found.engine, configuration.engine);
    assert_eq!((found.key_bytes, found.value_bytes), (of.key_bytes, of.value_bytes));
    assert_eq!((found.block_bytes, found.segment_bytes), (of.block_bytes, of.segment_bytes));
    assert_holds(&copy, &records);
    // It is a store of its own.
    configuration.fill(&mut copy.session(), 0..10, 2);
    assert_holds(&db, &records);
    records.extend(configuration.records(0..10, 2));
    assert_holds(&copy, &records);
}

fn a_backup_leaves_what_is_there_alone(configuration: &Configuration) {
    let directory = scratch();
    let (db, records) = filled(configuration, &directory.path().join("one"));
    let other = directory.path().join("other");
    db.backup(&other, &BackupOptions::new()).expect("a backup");
    let foreign = directory.path().join("foreign");
    std::fs::create_dir(&foreign).expect("a directory");
    std::fs::write(foreign.join("letter"), "dear").expect("a file");
    for path in [&other, &foreign] {
        let before = bytes_of(path);
        let outcome = db.backup(path, &BackupOptions::new());
        assert!(matches!(outcome, Err(Error::AlreadyExists { .. })), "{outcome:?}");
        assert!(bytes_of(path) == before);
    }
    assert_holds(&db, &records);
}

/// What a killed process leaves at any moment of it.
fn a_backup_that_was_interrupted_never_opens_as_a_store(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(&directory.path().join("one"));
    configuration.fill(&mut db.session(), 0..1000, 1);
    let path = directory.path().join("backup");
    let copies = Arc::new(Mutex::new(Vec::new()));
    let progress = {
        let (path, copies, root) = (path.clone(), copies.clone(), directory.path().to_owned());
        move |done: u64, _: u64| {
            let copy = root.join(format!("copy-{done}"));
            copy_store(&path, &copy);
            copies.lock().expect("nobody panics").push((done, copy));
        }
    };
    let options = BackupOptions::new().progress(Arc::new(progress));
    let pmem = Hardware::new(configuration.options().hardware_options()).expect("address space");
    // Nothing in the background while files are copied.
    let environment: Arc<dyn Environment> = Arc::new(SteppedEnvironment::new(1));
    db.backup_on(pmem, &environment, &path, &options).expect("a backup");
    let copies = std::mem::take(&mut *copies.lock().expect("nobody panics"));
    assert!(copies.len() >= 3);
    for (done, copy) in copies {
        for options in
            [Options::new(), Options::new().read_only(true), Options::new().salvage(true)]
        {
            let outcome = Db::open(&copy, &options);
            assert!(matches!(outcome, Err(Error::Incomplete { .. })), "{done}: {outcome:?}");
        }
        // What it holds is not lost.
        let part = open(&copy, &Options::new().read_only(true).salvage(true));
        assert_eq!(contents(&part).len() as u64, done);
    }
    assert_holds(&configuration.open(&path), &contents(&db));
}

/// Exports and backups while records come, go and change.
fn copies_beside_writers_have_every_key_that_stays(configuration: &Configuration) {
    const HOT: u64 = RECORDS + 40;
    let directory = scratch();
    let (db, records) = filled(configuration, &directory.path().join("one"));
    configuration.fill(&mut db.session(), RECORDS..HOT, 1);
    let is_over = AtomicBool::new(false);
    let check = |copy: &Db, count: u64| {
        assert_sound(copy);
        let mut copied = contents(copy);
        assert_eq!(copied.len() as u64, count, "a key comes twice");
        for (key, value) in &records {
            assert!(copied.remove(key).as_ref() == Some(value), "a key that stays");
        }
        for number in RECORDS..HOT {
            let found = copied.remove(&configuration.key(number)).expect("it is always there");
            configuration.version(number, &found);
        }
        for (key, found) in copied {
            configuration.version(crate::records::number_of(&key), &found);
        }
    };
    at_once(2, |thread| {
        if thread == 0 {
            let (mut session, mut version) = (db.session(), 1);
            while !is_over.load(Ordering::Acquire) {
                version += 1;
                configuration.fill(&mut session, RECORDS..HOT, version);
                configuration.fill(&mut session, HOT..HOT + 20, version);
                for number in HOT..HOT + 20 {
                    assert!(session.delete(configuration.key(number)).expect("delete"));
                }
            }
            return;
        }
        let copy_all = || {
            for round in 0..4 {
                let stream = exported(&db);
                let copy = configuration.open(&directory.path().join(format!("copy-{round}")));
                let report = import(&copy, &stream).expect("a whole stream");
                check(&copy, report.records);
                let path = directory.path().join(format!("backup-{round}"));
                let report = db.backup(&path, &BackupOptions::new()).expect("a backup");
                check(&configuration.open(&path), report.records);
            }
        };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(copy_all));
        is_over.store(true, Ordering::Release);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}
