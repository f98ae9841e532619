//! Power losses while a store is created: what is left is a store of that engine, or in the way of no other one.

use chimera::{EngineKind, Error, Options};
use chimera_crashlab::rig::Rig;

use crate::tools::{assert_sound, contents, fill, small, small_any};
use crate::{MEMORY_BYTES, quiet, recovered};

fn hikv() -> Options {
    Options::new()
        .engine(EngineKind::Hikv)
        .segment_bytes(8192)
        .hikv(|hikv| hikv.partitions(2).index_segment_bytes(512).heap_run_bytes(1024))
}

/// A crash at every step of a creation leaves a store of `first`, or nothing: then one of `second` is made.
fn crash_in_creation(first: &Options, second: &Options) {
    let rig = Rig::new(MEMORY_BYTES);
    let db = rig.open(&quiet(first)).expect("a new store");
    let (mut made, mut mismatches) = (0, 0);
    rig.crashes(|crash| {
        let db = match crash.open(&quiet(second)) {
            Err(Error::Mismatch { .. }) => {
                mismatches += 1;
                let db = recovered(crash, first);
                assert!(contents(&db).is_empty());
                db
            }
            opened => {
                assert!(!crash.is_at_the_end(), "a store that was opened is gone");
                made += 1;
                opened.unwrap_or_else(|error| panic!("before {}: {error}", crash.before()))
            }
        };
        fill(&mut db.session(), 0..2, 1);
        assert_eq!(contents(&db).len(), 2);
        assert_sound(&db);
    });
    assert!(made > 3 && mismatches > 2, "{made} made, {mismatches} of the first engine");
    drop(db);
}

#[test]
fn a_crash_in_creation_is_in_the_way_of_no_other_engine() {
    crash_in_creation(&small_any(), &hikv());
    crash_in_creation(&hikv(), &small());
    crash_in_creation(&small(), &hikv());
}

/// The second creation is interrupted, too.
#[test]
fn two_interrupted_creations_are_in_the_way_of_no_third_one() {
    let rig = Rig::new(MEMORY_BYTES);
    let _first = rig.open(&quiet(&small())).expect("a new store");
    let (mut number, mut made) = (0, 0);
    rig.crashes(|crash| {
        number += 1;
        if number % 97 > 0 {
            return;
        }
        let again = crash.rig();
        let Ok(_second) = again.open(&quiet(&hikv())) else { return };
        again.crashes(|crash| match crash.open(&quiet(&small_any())) {
            Err(Error::Mismatch { .. }) => drop(recovered(crash, &hikv())),
            opened => {
                made += 1;
                assert!(contents(&opened.expect("nothing is in the way")).is_empty());
            }
        });
    });
    assert!(made > 3, "only {made}");
}
