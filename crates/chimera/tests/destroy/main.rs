//! Destroying a store: it is gone, nothing else is, and what was interrupted can be done again.

#[path = "../tools/mod.rs"]
mod tools;

mod device;
mod race;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chimera::{Db, Durability, Error, Options, Result};
use chimera_pmem::{Hardware, HardwareOptions};

use tools::faults::{self, Faults};
use tools::{assert_fails, bytes_of, contents, fill, filled_store, names, open, scratch, small};

/// Enough for three segments.
const RECORDS: u64 = 700;

fn hardware() -> Hardware {
    Hardware::new(HardwareOptions::default()).expect("address space")
}

fn destroy_with(faults: &Arc<Faults>, path: &Path) -> Result<()> {
    Db::destroy_on(&hardware(), &faults::environment(faults), path)
}

/// A store in a directory of its own, with every file that a store can have.
fn whole_store(path: &Path) {
    filled_store(path, &small(), RECORDS);
    for name in ["journal", "metrics", "metrics.new"] {
        fs::write(path.join(name), "left by a process that was killed").expect("written");
    }
}

#[test]
fn a_store_is_gone_with_its_directory() {
    let directory = scratch();
    let path = directory.path().join("store");
    whole_store(&path);
    assert!(path.join("segment-000002").is_file());
    Db::destroy(&path).expect("nobody has it");
    assert!(names(directory.path()).is_empty(), "{:?}", names(directory.path()));
    assert!(matches!(Db::destroy(&path), Err(Error::NotFound { .. })));
    filled_store(&path, &small(), 3);
}

#[test]
fn a_store_with_a_journal_is_gone() {
    let directory = tools::scratch_on_disk();
    let path = directory.path().join("store");
    let options = small().journal_bytes(1 << 20).durability(Durability::Immediate);
    let db = open(&path, &options);
    fill(&mut db.session(), 0..50, 1);
    // Not closed in order.
    let copy = directory.path().join("copy");
    tools::copy_store(&path, &copy);
    for path in [&path, &copy] {
        let has_journal = path.join("journal").is_file();
        assert_eq!(has_journal, db.stats().medium == chimera_pmem::Medium::File);
    }
    assert!(matches!(Db::destroy(&path), Err(Error::Locked { .. })));
    db.close().expect("nobody else has it");
    for path in [path, copy] {
        Db::destroy(&path).expect("nobody has it");
        assert!(!path.exists());
    }
}

#[test]
fn files_of_others_stay_and_so_does_the_directory() {
    let directory = scratch();
    let path = directory.path();
    whole_store(path);
    let foreign = ["segment-", "segment-1", "segment-000000.bak", "notes", "superblock.old"];
    for name in foreign {
        fs::write(path.join(name), name).expect("written");
    }
    Db::destroy(path).expect("nobody has it");
    let mut expected = foreign.map(PathBuf::from);
    expected.sort_unstable();
    assert_eq!(names(path), expected);
    assert!(matches!(Db::destroy(path), Err(Error::NotFound { .. })));
}

#[test]
fn a_store_in_use_is_left_alone() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), 20);
    for options in [small(), small().read_only(true)] {
        let db = open(path, &options);
        let before = bytes_of(path);
        assert!(matches!(Db::destroy(path), Err(Error::Locked { .. })));
        assert!(bytes_of(path) == before);
        assert_eq!(contents(&db).len(), 20);
    }
}

#[test]
fn what_is_no_store_is_left_alone() {
    let refused = |files: &[(&str, &[u8])], words: &[&str]| {
        let directory = scratch();
        for (name, bytes) in files {
            fs::write(directory.path().join(name), bytes).expect("written");
        }
        let before = bytes_of(directory.path());
        let outcome = Db::destroy(directory.path());
        assert!(matches!(outcome, Err(Error::NotAStore { .. })), "{outcome:?}");
        assert_fails(outcome, words);
        assert!(bytes_of(directory.path()) == before, "{files:?}");
    };
    let zeros = [0; 8192];
    refused(&[("lock", b""), ("superblock", &zeros)], &["no copy", "magic number"]);
    refused(&[("lock", b""), ("superblock", b"text")], &["no copy", "magic number"]);
    refused(&[("lock", b"somebody else's lock"), ("data", b"")], &["no file `superblock`"]);
    refused(&[("lock", b""), ("segment-000000", b"")], &["`superblock` is missing"]);
    refused(&[("lock", b""), ("journal", b"")], &["`superblock` is missing"]);

    let directory = scratch();
    assert!(matches!(Db::destroy(directory.path()), Err(Error::NotFound { .. })));
    assert!(matches!(Db::destroy(directory.path().join("x")), Err(Error::NotFound { .. })));
    let file = directory.path().join("file");
    fs::write(&file, "text").expect("written");
    assert_fails(Db::destroy(&file), &["it is a file, not a directory"]);
    assert_fails(Db::destroy(directory.path()), &["there is no store"]);
    assert_eq!(fs::read(&file).expect("still there"), b"text");
}

#[test]
fn a_damaged_store_is_gone_too() {
    let damages: [&dyn Fn(&Path); 4] = [
        &|path| fs::write(path.join("superblock"), &b"CHIMERA1"[..]).expect("written"),
        &|path| {
            let mut bytes = fs::read(path.join("superblock")).expect("a file");
            bytes[..4096].fill(0xff);
            bytes[4200..].fill(0xff);
            fs::write(path.join("superblock"), bytes).expect("written");
        },
        &|path| fs::remove_file(path.join("segment-000000")).expect("a file"),
        &|path| fs::write(path.join("segment-000001"), "cut").expect("written"),
    ];
    for damage in damages {
        let directory = scratch();
        let path = directory.path().join("store");
        whole_store(&path);
        damage(&path);
        assert!(Db::open(&path, &small()).is_err());
        Db::destroy(&path).expect("nobody has it");
        assert!(!path.exists());
    }
}

/// Destroys stores with the removals and syncs that `limit` leaves possible, then again without limits.
fn interrupted(foreign: Option<&str>, limit: impl Fn(&Faults, i64) -> bool) {
    let mut refused = 0;
    for step in 0.. {
        let directory = scratch();
        let path = directory.path().join("store");
        whole_store(&path);
        if let Some(name) = foreign {
            fs::write(path.join(name), "text").expect("written");
        }
        let faults = Arc::new(Faults::default());
        if !limit(&faults, step) {
            break;
        }
        match destroy_with(&faults, &path) {
            Err(error) => {
                assert!(matches!(error, Error::Io { .. }), "{error}");
                refused += 1;
                let outcome = Db::open(&path, &small().create(false));
                let has_segment = path.join("segment-000000").is_file();
                assert_eq!(outcome.is_ok(), has_segment, "step {step}: {outcome:?}");
                drop(outcome);
                Db::destroy(&path).expect("what is left is removed");
            }
            // The store is gone, if not its directory.
            Ok(()) => assert!(matches!(Db::destroy(&path), Err(Error::NotFound { .. }))),
        }
        match foreign {
            Some(name) => assert_eq!(names(&path), [PathBuf::from(name)], "step {step}"),
            None => assert!(!path.exists() || names(&path).is_empty(), "step {step}"),
        }
        filled_store(&path, &Options::new().fixed_size(8, 24).segment_bytes(1 << 20), 3);
    }
    assert!(refused > 0);
}

#[test]
fn an_interrupted_destroy_is_done_again() {
    for foreign in [None, Some("notes")] {
        // Three segments, the journal, two files of metrics, superblock, lock; the directory.
        interrupted(foreign, |faults, step| {
            faults.removals.store(step, Ordering::Relaxed);
            step <= 9
        });
        interrupted(foreign, |faults, step| {
            faults.sync_fails.store(true, Ordering::Relaxed);
            step == 0
        });
    }
}
