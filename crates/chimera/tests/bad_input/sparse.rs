//! Stores that were copied with holes to a disk that is full: what would be a SIGBUS at some store
//! later is an error at open.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chimera::{Db, Error, Geometry, Options};

use crate::tools::faults::{self, Faults};
use crate::tools::{assert_fails, bytes_of, contents, fill, key, names, open, scratch, value};

/// Pages of the operating system: what a hole consists of.
const SYSTEM_PAGE: usize = 4096;

/// Pages of three of the operating system's, so that a block with one record has some of zeros: only the first one has
/// the words of its page. Nothing is reclaimed: reclamation would gather the records in one block, and give the storage
/// of the others back.
fn options() -> Options {
    let geometry = Geometry {
        page_bytes: 3 * SYSTEM_PAGE as u32,
        pages_per_block: 2,
        segment_bytes: 1 << 20,
        ..Geometry::default()
    };
    let options = Options::new().fixed_size(8, 24).viper(|viper| viper.geometry(geometry));
    options.populate_ahead_bytes(0).reclaim_percent(0)
}

/// A store with a record in each of some blocks.
fn store(path: &Path) {
    let db = open(path, &options());
    let mut sessions: Vec<_> = (0..8).map(|_| db.session()).collect();
    for (number, session) in sessions.iter_mut().enumerate() {
        fill(session, [number as u64], 1);
    }
    drop(sessions);
    db.close().expect("nobody else has it");
}

/// Copies a store without the pages that are all zeros.
fn copy_with_holes(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory for the copy");
    for name in names(from) {
        let bytes = std::fs::read(from.join(&name)).expect("a file of the store");
        let file = File::create(to.join(&name)).expect("a file of the copy");
        file.set_len(bytes.len() as u64).expect("a length");
        for (number, page) in bytes.chunks(SYSTEM_PAGE).enumerate() {
            if page.iter().any(|byte| *byte != 0) {
                file.write_all_at(page, (number * SYSTEM_PAGE) as u64).expect("a page");
            }
        }
    }
}

const WORDS: [&str; 3] = ["no space left for", "a copy made with holes", "segment-000000"];

#[test]
fn holes_on_a_full_disk_are_an_error_at_open() {
    let directory = scratch();
    let path = directory.path();
    store(path);
    let before = bytes_of(path);
    let faults = Arc::new(Faults::default());
    // The superblock's file, the segment's header, and a part of its blocks.
    faults.space.store(20_000, Ordering::Relaxed);
    let outcome = faults::open(&faults, path, &options());
    assert!(matches!(outcome, Err(Error::PoolFull { .. })), "{outcome:?}");
    assert_fails(outcome, &WORDS);
    assert_eq!(bytes_of(path), before, "a refused open changes nothing");
    // Reading needs no storage of its own.
    let db = faults::open(&faults, path, &options().read_only(true)).expect("to read");
    assert_eq!(contents(&db).len(), 8);
    drop(db);
    faults.space.store(1 << 20, Ordering::Relaxed);
    let db = faults::open(&faults, path, &options()).expect("there is room now");
    assert_eq!(contents(&db).len(), 8);
}

/// A file system in memory of its own, as far as this user may mount one.
struct Mount(PathBuf);

impl Mount {
    fn new(at: &Path, kibibytes: u64) -> Option<Self> {
        std::fs::create_dir_all(at).expect("a directory to mount at");
        let size = format!("size={kibibytes}k");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "chimera-test"])
            .arg(at)
            .stderr(Stdio::null())
            .status();
        mounted.is_ok_and(|status| status.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("cannot unmount {}", self.0.display());
        }
    }
}

/// Leaves no free page.
fn fill_file_system(path: &Path) {
    let mut file = File::create(path).expect("a file");
    let error = loop {
        if let Err(error) = file.write_all(&[1; SYSTEM_PAGE]) {
            break error;
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn a_sparse_copy_on_a_really_full_disk_is_an_error_at_open() {
    let directory = scratch();
    let original = directory.path().join("original");
    store(&original);
    let Some(mount) = Mount::new(&directory.path().join("small"), 1024) else {
        eprintln!("skipped: this user may not mount a file system");
        return;
    };
    let copy = mount.0.join("store");
    copy_with_holes(&original, &copy);
    let filler = mount.0.join("filler");
    fill_file_system(&filler);
    let storage = |name| std::fs::metadata(copy.join(name)).expect("a file").blocks() * 512;
    let sparse = storage("segment-000000");

    assert_fails(Db::open(&copy, &options()), &WORDS);
    assert_eq!(storage("segment-000000"), sparse, "a refused open takes no storage");
    // On this file system even a load from a hole takes storage.
    assert_fails(Db::open(&copy, &options().read_only(true)), &WORDS);
    std::fs::remove_file(filler).expect("a file");
    let db = open(&copy, &options().read_only(true));
    assert_eq!(contents(&db).len(), 8);
    drop(db);
    let db = open(&copy, &options());
    assert_eq!(db.stats().blocks_used, 8, "a block for each session that wrote");
    assert!(storage("segment-000000") >= 8 * 24 * 1024, "every used block has storage");
    fill_file_system(&mount.0.join("filler"));
    // What the blocks in use have room for needs no more of the disk.
    fill(&mut db.session(), 8..400, 1);
    assert_eq!(contents(&db).len(), 400);
    assert_eq!(db.get(key(399)).expect("there"), Some(value(399, 1)));
}
