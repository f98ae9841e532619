//! Which durability is in force, and what becomes of a store when it changes.

use chimera::Error;
use chimera_pmem::environment::{MemoryFiles, RealFiles};

use super::*;
use crate::tools::{
    assert_fails, bytes_of, contents, copy_store, fill, key, restore, scratch_on_disk, value,
};

#[test]
fn the_default_on_a_plain_file_is_group() {
    let directory = scratch_on_disk();
    let db = Db::open(directory.path(), &options(Durability::Auto)).expect("opens");
    if is_plain(&db) {
        assert_eq!(db.effective_durability(), GROUP);
        assert!(directory.path().join("journal").exists());
    }
}

#[test]
fn every_durability_reads_what_any_other_one_wrote() {
    let all = [GROUP, Durability::Process, Durability::Immediate];
    let directory = scratch_on_disk();
    let mut written = 0;
    for round in 0..18 {
        let durability = all[round % 3];
        let db = Db::open(directory.path(), &options(durability)).expect("opens");
        if !is_plain(&db) {
            return;
        }
        assert_eq!(db.effective_durability(), durability);
        assert_eq!(contents(&db).len() as u64, written, "round {round} with {durability}");
        let has_journal = directory.path().join("journal").exists();
        assert_eq!(has_journal, durability != Durability::Process);
        fill(&mut db.session(), written..written + 30, 1);
        written += 30;
        if round % 2 == 0 {
            db.close().expect("nobody else has it");
            continue;
        }
        // The end of the process: what is in the files now is all that is left.
        let left = bytes_of(directory.path());
        drop(db);
        restore(directory.path(), &left);
    }
}

#[test]
fn a_reader_sees_what_the_journal_holds_and_changes_nothing() {
    let directory = scratch_on_disk();
    let db = Db::open(directory.path(), &options(GROUP)).expect("opens");
    if !is_plain(&db) {
        return;
    }
    fill(&mut db.session(), 0..100, 1);
    let copy = scratch_on_disk();
    copy_store(directory.path(), copy.path());
    let before = bytes_of(copy.path());
    let reader = Db::open(copy.path(), &options(GROUP).read_only(true)).expect("opens");
    assert_eq!(contents(&reader), contents(&db));
    assert!(matches!(reader.put([0; 8], [0; 24]), Err(Error::ReadOnly)));
    drop(reader);
    assert!(bytes_of(copy.path()) == before, "a reader changed something");
}

#[test]
fn a_power_loss_without_a_journal_is_refused_and_with_one_survived() {
    let directory = scratch_on_disk();
    for (durability, survives) in [(Durability::Process, false), (GROUP, true)] {
        let path = directory.path().join(survives.to_string());
        let open =
            |boot, durability| open_at(boot, Arc::new(RealFiles), &path, &options(durability));
        let (db, _environment) = open(1, durability).expect("opens");
        if !is_plain(&db) {
            return;
        }
        fill(&mut db.session(), 0..40, 1);
        db.sync().expect("a disk that works");
        let left = bytes_of(&path);
        drop(db);
        restore(&path, &left);
        for durability in [Durability::Process, GROUP] {
            restore(&path, &left);
            match open(2, durability) {
                Ok((db, _)) => assert!(survives && contents(&db).len() == 40),
                Err(error) => assert!(!survives && matches!(error, Error::PowerLost { .. })),
            }
        }
        restore(&path, &left);
        let salvaging = options(GROUP).salvage(true);
        let salvaged = open_at(3, Arc::new(RealFiles), &path, &salvaging);
        assert_eq!(contents(&salvaged.expect("opens").0).len(), 40);
    }
}

#[test]
fn a_journal_of_another_store_is_refused() {
    let directory = scratch_on_disk();
    let paths = ["a", "b"].map(|name| directory.path().join(name));
    for path in &paths {
        drop(Db::open(path, &options(GROUP)).expect("opens"));
        let db = Db::open(path, &options(GROUP)).expect("opens");
        if !is_plain(&db) {
            return;
        }
        fill(&mut db.session(), 0..10, 1);
        let left = bytes_of(path);
        drop(db);
        restore(path, &left);
    }
    std::fs::copy(paths[0].join("journal"), paths[1].join("journal")).expect("a copy");
    let open = || Db::open(&paths[1], &options(GROUP));
    assert_fails(open(), &["journal", "another pool"]);
}

#[test]
fn a_damaged_journal_is_named_and_can_be_given_up() {
    let directory = scratch_on_disk();
    let db = Db::open(directory.path(), &options(GROUP)).expect("opens");
    if !is_plain(&db) {
        return;
    }
    fill(&mut db.session(), 0..10, 1);
    db.close().expect("nobody else has it");
    let mut journal = std::fs::read(directory.path().join("journal")).expect("there");
    journal[40] ^= 1;
    journal[4096 + 40] ^= 1;
    std::fs::write(directory.path().join("journal"), journal).expect("written");
    let open = |options: &Options| Db::open(directory.path(), options);
    assert_fails(open(&options(GROUP)), &["`journal`", "checksum", "salvage"]);
    let db = open(&options(GROUP).salvage(true)).expect("opens");
    assert_eq!(contents(&db).len(), 10, "all had been brought home");
}

/// It begins small, grows where writers find it too small, and is small again when the store is closed.
#[test]
fn a_journal_is_as_large_as_its_writers_need() {
    let files = Arc::new(MemoryFiles::new().on(Medium::File));
    let path = Path::new("store");
    let length = |files: &MemoryFiles| {
        let mode = chimera_pmem::environment::OpenMode::Read;
        files.open(&path.join("journal"), mode).and_then(|file| file.length()).expect("there")
    };
    let open = |bytes| open_at(1, files.clone(), path, &options(GROUP).journal_bytes(bytes));
    let (db, _) = open(64 << 10).expect("opens");
    assert_eq!(length(&files), 8192 + (16 << 10));
    fill(&mut db.session(), 0..1000, 1);
    assert_eq!(length(&files), 8192 + (64 << 10));
    let figures = db.stats().journal.expect("a plain file has one");
    assert_eq!(figures.capacity_bytes, 64 << 10);
    db.close().expect("nobody else has it");
    assert_eq!(length(&files), 8192 + (16 << 10));
    let db = open(16 << 10).expect("opens").0;
    fill(&mut db.session(), 500..1500, 2);
    assert_eq!(length(&files), 8192 + (16 << 10), "no more than it may have");
    assert_eq!(contents(&db).len(), 1500);
    drop(db);
    for wrong in [0, 4096, (16 << 10) + 1, 2 << 30] {
        assert_fails(open(wrong).map(|_| ()), &["a journal must have", "16 KiB to 1 GiB"]);
    }
}

#[test]
fn records_that_are_put_together_wait_for_one_sync() {
    let directory = scratch_on_disk();
    let options = options(Durability::Immediate);
    let (db, _) = open_at(1, Arc::new(RealFiles), directory.path(), &options).expect("opens");
    if !is_plain(&db) {
        return;
    }
    let syncs = || db.stats().journal.expect("a plain file has one").syncs;
    let mut session = db.session();
    let record = |number| (key(number), value(number, 1));
    // The first put takes a block.
    assert!(session.put(key(0), value(0, 1)).expect("put"));
    let before = syncs();
    let records: Vec<_> = (1..11).map(record).collect();
    for (key, value) in &records {
        session.put(key, value).expect("put");
    }
    assert_eq!(syncs() - before, 10);
    let records: Vec<_> = (11..21).map(record).collect();
    assert_eq!(session.multi_put(&records).expect("puts"), 10);
    assert_eq!(syncs() - before, 11);
    // More than the journal holds.
    let records: Vec<_> = (21..400).map(record).collect();
    assert_eq!(session.multi_put(&records).expect("puts"), 379);
    assert_eq!(contents(&db).len(), 400);
}
