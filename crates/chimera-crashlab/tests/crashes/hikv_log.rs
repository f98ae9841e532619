//! The write-ahead log of HiKV: once the record of a change is durable, recovery makes the change.

use chimera::baselines::Consistency;
use chimera::{EngineKind, ErrorKind};

use super::*;

fn logged() -> Options {
    Options::new().engine(EngineKind::Hikv).segment_bytes(8192).hikv(|hikv| {
        hikv.consistency(Consistency::WriteAheadLog)
            .partitions(1)
            .index_segment_bytes(512)
            .heap_run_bytes(2048)
            .log_area_bytes(256)
    })
}

/// Steps that come when the record is durable.
const BEHIND_RECORD: [&str; 4] = ["heap.item", "hash.entry", "hash.remove", "the end"];

/// Every crash of `work` in a store with some records.
fn crash_in(work: Work<'_>) {
    let options = logged();
    let (rig, db) = rig(&options);
    let mut session = db.session();
    for number in 0..6_u8 {
        assert!(session.put([number; 9], [number; 30]).expect("put"));
    }
    let before = contents(&db);
    rig.skip();
    work(&mut session);
    let (after, mut redone) = (contents(&db), 0);
    assert_ne!(before, after);
    rig.crashes(|crash| {
        let db = recovered(crash, &options);
        let found = contents(&db);
        assert_sound(&db);
        if BEHIND_RECORD.contains(&crash.before()) {
            assert!(found == after, "before {}: the change was not made again", crash.before());
            redone += u32::from(crash.before() == "heap.item" || crash.before() == "hash.remove");
        } else {
            assert!(found == before || found == after, "before {}", crash.before());
        }
        // What is written next takes the place of the record.
        assert_eq!(db.put([3; 9], b"later").expect("put"), !found.contains_key(&[3; 9][..]));
        assert_eq!(db.get([3; 9]).expect("get").as_deref(), Some(&b"later"[..]));
    });
    assert!(redone > 3, "{redone} crashes between the record and its change");
}

#[test]
fn a_logged_change_is_made_again() {
    crash_in(&|session| assert!(session.put([7; 9], [8; 60]).expect("put")));
    crash_in(&|session| assert!(!session.put([3; 9], [9; 30]).expect("put")));
    crash_in(&|session| assert!(!session.put([3; 9], []).expect("put")));
    crash_in(&|session| assert!(session.update([2; 9], |value| value[0] = 77).expect("update")));
    crash_in(&|session| assert!(session.delete([3; 9]).expect("delete")));
}

/// The index cannot grow, while the heap has room: the record is there, and the put fails.
#[test]
fn a_change_that_failed_is_not_made_again() {
    let options = logged().capacity_bytes(256 * (2 + 8 + 2));
    let (rig, db) = rig(&options);
    let mut session = db.session();
    let mut number = 0_u64;
    let failed = loop {
        rig.skip();
        match session.put(number.to_le_bytes(), b"v") {
            Ok(is_new) => assert!(is_new),
            Err(error) => break error,
        }
        number += 1;
    };
    assert_eq!(failed.kind(), ErrorKind::Full, "{failed}");
    assert_eq!(db.stats().records, number);
    let (before, mut steps) = (contents(&db), std::collections::BTreeSet::new());
    rig.crashes(|crash| {
        let db = recovered(crash, &options);
        assert!(contents(&db) == before, "before {}", crash.before());
        steps.insert(crash.before());
    });
    assert!(steps.contains("redo.clear"), "{steps:?}");
}

/// A store that is made anew has a log, whenever its making was cut off.
#[test]
fn a_crash_while_the_log_is_made_leaves_a_store() {
    let options = logged();
    let rig = Rig::new(MEMORY_BYTES);
    drop(rig.open(&quiet(&options)).expect("the store opens"));
    rig.crashes(|crash| {
        let db = recovered(crash, &options);
        assert!(db.put(b"key", b"value").expect("put"));
        assert_sound(&db);
    });
}
