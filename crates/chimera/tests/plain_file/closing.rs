//! Closing that fails: what is durable then, and what is left to do.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;

use chimera::{Error, ErrorKind};

use super::*;
use crate::tools::faults::{self, Faults};
use crate::tools::{assert_sound, contents, fill, key, open, scratch_on_disk};

/// Enough for three segments of 24 blocks of 10 records.
const RECORDS: u64 = 600;
/// What is left of them, in one segment.
const LEFT: u64 = 20;

/// An open store that has three segments, of which it needs one, and what it holds.
fn shrunken(
    faults: &Arc<Faults>,
    path: &Path,
    options: &Options,
) -> (Db, BTreeMap<Vec<u8>, Vec<u8>>) {
    let db = faults::open(faults, path, options).expect("opens");
    fill(&mut db.session(), 0..RECORDS, 1);
    for number in LEFT..RECORDS {
        assert!(db.delete(key(number)).expect("a sound store"));
    }
    db.compact(1, None).expect("a sound store");
    assert!(path.join("segment-000002").exists());
    let expected = contents(&db);
    (db, expected)
}

/// A segment that is not needed any more cannot be removed. The store is closed in order before, and whatever else can be
/// removed is.
#[test]
fn a_segment_that_cannot_be_removed_is_told_and_the_store_is_closed_in_order() {
    for durability in [GROUP, Durability::Process] {
        let (directory, faults) = (scratch_on_disk(), Arc::new(Faults::default()));
        let (path, options) = (directory.path(), options(durability));
        let (db, expected) = shrunken(&faults, path, &options);
        faults.kept.lock().expect("no panic").insert("segment-000001".into());
        let error = Error::from(db.close().expect_err("a file cannot be removed"));
        assert!(matches!(error, Error::AfterClosing { .. }), "{durability}: {error:?}");
        assert_eq!(error.kind(), ErrorKind::Io);
        let said = error.to_string();
        for words in ["is closed in order", "cannot remove", "segment-000001", "; nothing in that"]
        {
            assert!(said.contains(words), "{said}");
        }
        assert!(path.join("segment-000001").exists() && !path.join("segment-000002").exists());

        let db = open(path, &options.clone().read_only(true));
        assert!(db.stats().recovery.clean, "{durability}");
        assert!(contents(&db) == expected);
        drop(db);
        // The next growth replaces it.
        faults.kept.lock().expect("no panic").clear();
        let db = faults::open(&faults, path, &options).expect("opens");
        fill(&mut db.session(), 0..RECORDS, 2);
        assert_eq!(contents(&db).len() as u64, RECORDS);
        assert_sound(&db);
        db.close().expect("nobody else has it");
    }
}

/// The device fails at each of the syncs of closing in turn. Where closing says that the store is closed in order, it is; and
/// nothing is lost wherever it fails.
#[test]
fn closing_says_that_the_store_is_closed_in_order_if_it_is() {
    for durability in [Durability::Immediate, GROUP, Durability::Process] {
        let (mut before, mut after) = (0, 0);
        for syncs in 0.. {
            let (directory, faults) = (scratch_on_disk(), Arc::new(Faults::default()));
            let (path, options) = (directory.path(), options(durability));
            let db = faults::open(&faults, path, &options).expect("opens");
            if !is_plain(&db) {
                return;
            }
            fill(&mut db.session(), 0..LEFT, 1);
            let expected = contents(&db);
            db.sync().expect("a disk that works");
            faults.syncs.store(syncs, Ordering::Relaxed);
            let closed = db.close().map_err(Error::from);
            faults.syncs.store(i64::MAX, Ordering::Relaxed);
            let db = faults::open(&faults, path, &options).expect("the machine went on");
            assert!(contents(&db) == expected, "{durability}, {syncs} syncs: {closed:?}");
            let is_clean = db.stats().recovery.clean;
            match closed {
                Err(Error::AfterClosing { left, .. }) => {
                    assert!(is_clean, "{durability}, {syncs} syncs");
                    assert!(left.contains("opens it for writing next"), "{left}");
                    after += 1;
                }
                Err(error) => {
                    assert!(error.to_string().contains("the disk is broken"), "{error}");
                    before += 1;
                }
                Ok(()) => {
                    assert!(is_clean && syncs > 2, "{durability}, {syncs} syncs");
                    break;
                }
            }
        }
        assert!(before > 0 && after > 0, "{durability}: {before} before, {after} after");
    }
}
