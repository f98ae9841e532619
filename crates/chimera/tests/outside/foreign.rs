//! Files of others in the place of a store's next segment.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use chimera::{Db, Error, ErrorKind};

use crate::tools::{self, SMALL, assert_fails, assert_sound, contents, fill, scratch, small};
use crate::{put_until_refused, segments};

/// Makes something in the place of a segment, and what that is.
type Maker<'a> = (&'static str, &'a dyn Fn(&Path));

/// A store of one segment, and where the next one will be.
fn store(path: &Path) -> (Db, PathBuf) {
    let db = tools::open(path, &small());
    fill(&mut db.session(), 0..10, 1);
    assert_eq!(segments(path), 1);
    (db, path.join("segment-000001"))
}

/// That the store grows over `next`, and has all its records.
fn assert_grows(db: Db, path: &Path) {
    fill(&mut db.session(), 10..400, 1);
    assert!(segments(path) > 1);
    db.close().expect("nobody else has it");
    let db = tools::open(path, &small());
    assert_eq!(contents(&db).len(), 400);
    assert_sound(&db);
}

#[test]
fn what_is_not_the_stores_is_never_removed() {
    let directory = scratch();
    let other = directory.path().join("other");
    tools::filled_store(&other, &small(), 10);
    let of_other = other.join("segment-000000");
    let makers: [Maker<'_>; 6] = [
        ("text", &|next| fs::write(next, "notes of the user").expect("written")),
        ("long", &|next| fs::write(next, vec![7; 100_000]).expect("written")),
        ("segment", &|next| {
            fs::copy(&of_other, next).expect("copied");
        }),
        ("directory", &|next| fs::create_dir(next).expect("made")),
        ("link", &|next| symlink("../other/segment-000000", next).expect("made")),
        ("nowhere", &|next| symlink("nowhere", next).expect("made")),
    ];
    for (name, make) in makers {
        let path = directory.path().join(name);
        let (db, next) = store(&path);
        make(&next);
        let before = fs::read(&next).ok();
        let (refused, error) = put_until_refused(&db, 10);
        assert!(matches!(&error, Error::InTheWay { path } if *path == next), "{name}: {error}");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_fails(Err::<(), _>(error), &["segment-000001", "in the way", "move it"]);
        assert!(fs::symlink_metadata(&next).is_ok(), "{name} was removed");
        assert_eq!(fs::read(&next).ok(), before, "{name}");
        // It goes on, and nothing is half-written; and again once there is room for it.
        assert_eq!(contents(&db).len() as u64, refused);
        fs::rename(&next, directory.path().join(format!("{name}-moved"))).expect("moved");
        assert_grows(db, &path);
    }
}

/// As a process leaves it that was killed while it made a segment, or removed some of a store that it closed.
#[test]
fn what_an_interrupted_step_of_the_store_left_is_replaced() {
    let directory = scratch();
    let length = SMALL.segment_bytes as usize;
    let grown = directory.path().join("grown");
    let path = directory.path().join("store");
    store(&path).0.close().expect("nobody else has it");
    // The same store, and another life of it in which it grew.
    tools::copy_store(&path, &grown);
    let db = tools::open(&grown, &small());
    fill(&mut db.session(), 10..400, 2);
    db.close().expect("nobody else has it");
    let used = fs::read(grown.join("segment-000001")).expect("it has two");
    for (name, orphan) in
        [("empty", vec![]), ("short", vec![0; 100]), ("blank", vec![0; length]), ("used", used)]
    {
        let copy = directory.path().join(name);
        tools::copy_store(&path, &copy);
        let db = tools::open(&copy, &small());
        fs::write(copy.join("segment-000001"), orphan).expect("written");
        assert_grows(db, &copy);
    }
}
