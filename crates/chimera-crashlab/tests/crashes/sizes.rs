//! Crashes at every step of operations on records of any size.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chimera::Session;
use chimera_crashlab::rig::{Rig, Simulated};

use crate::tools::{assert_sound, contents, key, small_any, value_of};
use crate::{assert_atomic, quiet, rig};

/// Bytes of a value: empty, short, with an odd end, as long as a page, as a block, and in chunks. A page has
/// 256 bytes, a block 512.
const LENGTHS: [usize; 8] = [0, 7, 24, 150, 224, 280, 700, 2000];

fn put_all(session: &mut Session<Simulated>, version: u64) {
    for (number, length) in (0..).zip(LENGTHS) {
        session.put(key(number), value_of(number, version, length)).expect("room");
    }
}

#[test]
fn hole_06_records_of_any_size_are_recovered_after_a_crash() {
    let options = small_any();
    let (rig, db) = rig(&options);
    let mut session = db.session();
    put_all(&mut session, 1);
    for (number, length) in (0..).zip(LENGTHS) {
        let before = contents(&db);
        rig.skip();
        session.put(key(number), value_of(number, 2, length)).expect("room");
        assert!(assert_atomic(&rig, &before, &db, &options) > 0, "{length}");
    }
    for (number, length) in (0..).zip(LENGTHS) {
        let before = contents(&db);
        assert!(session.delete(key(number)).expect("delete"), "{length}");
        assert_atomic(&rig, &before, &db, &options);
    }
}

/// Counts the steps at a site from now on.
fn counted(rig: &Rig, site: &'static str) -> Arc<AtomicU64> {
    let count: Arc<AtomicU64> = Arc::default();
    let into = count.clone();
    rig.set_hook(move |step| {
        if step == site {
            into.fetch_add(1, Ordering::Relaxed);
        }
    });
    count
}

/// Every aligned word of every value, in chunks, too; and before and after it there is none.
#[test]
fn hole_06_every_word_of_a_value_of_any_size_is_updated_in_place() {
    let options = small_any();
    let (rig, db) = rig(&options);
    let mut session = db.session();
    put_all(&mut session, 1);
    for (number, length) in (0..).zip(LENGTHS) {
        let mut expected = value_of(number, 1, length);
        for at in (0..length).step_by(8) {
            // The first time the record is written anew.
            for is_in_place in [false, true] {
                let before = contents(&db);
                rig.skip();
                let in_place = counted(&rig, "vpage.value_word");
                let outcome = session.fetch_add_u64(key(number), at, 1 << 33);
                let Some(field) = expected.get_mut(at..at + 8) else {
                    assert!(outcome.is_err(), "{at} of {length}");
                    continue;
                };
                let was = u64::from_le_bytes((&*field).try_into().expect("8 bytes"));
                assert_eq!(outcome.expect("sound"), Some(was));
                field.copy_from_slice(&was.wrapping_add(1 << 33).to_le_bytes());
                assert_eq!(session.get(key(number)).expect("get").as_ref(), Some(&expected));
                assert_eq!(in_place.load(Ordering::Relaxed) > 0, is_in_place, "{at} of {length}");
                if at % 128 == 0 || at + 16 > length {
                    assert_atomic(&rig, &before, &db, &options);
                }
            }
        }
    }
    // A word of each value is in no checksum, and yet all are read and listed.
    let all = contents(&db);
    drop(session);
    db.close().expect("nobody else has it");
    let db = rig.open(&quiet(&options)).expect("the store opens");
    assert_eq!(contents(&db), all);
    assert_sound(&db);
}
