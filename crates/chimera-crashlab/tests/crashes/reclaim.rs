//! Holes that space reclamation would fall into: crashes, and changes beside it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use chimera::Session;
use chimera_crashlab::rig::Simulated;

use crate::tools::{assert_sound, contents, fill, key, small_any, value};
use crate::{Model, assert_atomic, recovered, rig, stores};

/// What is to be moved is collected first. Then all of it changes: the mover must not write what it would
/// have moved over what was put, added to or deleted since.
#[test]
fn hole_04_what_changes_while_a_block_is_emptied_is_not_lost() {
    const KEYS: u64 = 200;
    for options in stores() {
        // Of each record the key is read first, without any lock, then the value.
        for nth in [0, 4, 10, 24] {
            let (rig, db) = rig(&options);
            fill(&mut db.session(), 0..KEYS, 1);
            let survivors: Vec<u64> = (0..KEYS).filter(|number| number % 5 < 2).collect();
            for number in (0..KEYS).filter(|number| number % 5 >= 2) {
                assert!(db.delete(key(number)).expect("delete"));
            }
            let model: Arc<Mutex<Option<Model>>> = Arc::default();
            let (seen, stage) = (model.clone(), Mutex::new(Some((db.session(), survivors, nth))));
            rig.set_hook(move |at| {
                if at != "read" {
                    return;
                }
                let mut stage = stage.lock().expect("alive");
                if let Some((_, _, left @ 1..)) = &mut *stage {
                    *left -= 1;
                    return;
                }
                let staged = stage.take();
                drop(stage);
                if let Some((mut session, survivors, _)) = staged {
                    *seen.lock().expect("alive") = Some(change(&mut session, &survivors));
                }
            });
            db.compact(1, None).expect("compaction");
            let model = model.lock().expect("alive").take().expect("the records were changed");
            assert_eq!(contents(&db), model, "{nth}");
            assert_sound(&db);
        }
    }
}

/// Puts, deletes, adds to or leaves each; what is there then.
fn change(session: &mut Session<Simulated>, survivors: &[u64]) -> Model {
    let mut model = Model::new();
    for number in survivors {
        let mut now = value(*number, 1);
        match number % 4 {
            0 => {
                now = value(*number, 2);
                assert!(!session.put(key(*number), &now).expect("put"));
            }
            1 => {
                assert!(session.delete(key(*number)).expect("delete"));
                continue;
            }
            2 => {
                let was = session.fetch_add_u64(key(*number), 8, 5).expect("in place");
                let sum = was.expect("it is there").wrapping_add(5);
                now[8..16].copy_from_slice(&sum.to_le_bytes());
            }
            _ => {}
        }
        model.insert(key(*number), now);
    }
    model
}

/// A crash at any step of a compaction leaves every record.
#[test]
fn hole_04_a_crash_during_compaction_loses_nothing() {
    for options in stores() {
        let (rig, db) = rig(&options);
        fill(&mut db.session(), 0..44, 1);
        for number in (0..44).filter(|number| number % 3 > 0) {
            db.delete(key(number)).expect("delete");
        }
        db.fetch_add_u64(key(3), 8, 1).expect("in place");
        let model = contents(&db);
        rig.skip();
        let stats = db.compact(1, None).expect("compaction");
        assert!(stats.moved_records > 0 && stats.blocks_given_back > 0, "{stats:?}");
        assert_atomic(&rig, &model, &db, &options);
    }
}

/// A record with chunks is seen to be replaced and its page is used again, and then a crash takes back that it
/// was: nothing leads to it, and its chunks must not count for ever.
#[test]
fn hole_12_chunks_of_a_record_whose_page_is_used_again_come_free() {
    let options = small_any();
    let (rig, db) = rig(&options);
    // Has a block of its own.
    let mut session = db.session();
    session.put(key(3), [3; 16]).expect("room");
    let mut first = db.session();
    // The record lies lines behind the start of its page.
    fill(&mut first, 4..11, 1);
    first.put(key(2), [2; 6000]).expect("room");
    drop(first);
    for number in 4..11 {
        assert!(session.delete(key(number)).expect("a delete"));
    }
    let (steps, beside) = (AtomicU64::new(0), db.clone());
    rig.skip();
    rig.set_hook(move |at| {
        // The word is stored, and not flushed yet.
        if at == "vpage.retire" && steps.fetch_add(1, Ordering::Relaxed) == 1 {
            let mut session = beside.session();
            for number in 20..50 {
                fill(&mut session, [number], 1);
            }
        }
    });
    assert!(!session.put(key(2), [4; 16]).expect("room"));
    let mut reverted = 0;
    rig.crashes(|crash| {
        if crash.before() != "vpage.commit" {
            return;
        }
        let db = recovered(crash, &options);
        let all = contents(&db);
        reverted += u64::from(db.stats().recovery.duplicates_cleared > 0);
        assert!(all[&key(2)] == [4; 16] || all[&key(2)] == [2; 6000] && all.len() == 2);
        for key in all.keys() {
            assert!(db.delete(key).expect("a delete"));
        }
        db.compact(1, None).expect("compaction");
        assert_eq!(db.stats().blocks_used, 0, "{} records", all.len());
        assert_sound(&db);
    });
    assert!(reverted > 0, "no crash has left two copies");
}
