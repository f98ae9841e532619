//! Holes that space reclamation would fall into.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use chimera::{Db, Options, RecordLayout};

use crate::crashes::{Model, assert_atomic};
use crate::tools::crash::{self, Survives};
use crate::tools::{
    Chance, SMALL, assert_sound, contents, fill, key, open, scratch, small, small_any, small_with,
    value, value_of,
};

fn stores() -> [Options; 3] {
    [small(), small().layout(RecordLayout::Published), small_any()]
}

/// What is to be moved is collected first. Then all of it changes: the mover must not write what it would
/// have moved over what was put, added to or deleted since.
#[test]
fn hole_04_what_changes_while_a_block_is_emptied_is_not_lost() {
    const KEYS: u64 = 200;
    for options in stores() {
        // Of each record the key is read first, without any lock, then the value.
        for nth in [0, 4, 10, 24] {
            let directory = scratch();
            let db = crash::open(directory.path(), &options);
            fill(&mut db.session(), 0..KEYS, 1);
            let survivors: Vec<u64> = (0..KEYS).filter(|number| number % 5 < 2).collect();
            for number in (0..KEYS).filter(|number| number % 5 >= 2) {
                assert!(db.delete(&key(number)).expect("delete"));
            }
            let model: Arc<Mutex<Option<Model>>> = Arc::default();
            let (seen, stage) = (model.clone(), Mutex::new(Some((db.session(), survivors, nth))));
            db.pmem().set_hook(move |at| {
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
fn change(session: &mut chimera::Session<crash::CrashPmem>, survivors: &[u64]) -> Model {
    let mut model = Model::new();
    for number in survivors {
        let mut now = value(*number, 1);
        match number % 4 {
            0 => {
                now = value(*number, 2);
                assert!(!session.put(&key(*number), &now).expect("put"));
            }
            1 => {
                assert!(session.delete(&key(*number)).expect("delete"));
                continue;
            }
            2 => {
                let was = session.fetch_add_u64(&key(*number), 8, 5).expect("in place");
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
        let directory = scratch();
        let db = crash::open(directory.path(), &options);
        fill(&mut db.session(), 0..44, 1);
        for number in (0..44).filter(|number| number % 3 > 0) {
            db.delete(&key(number)).expect("delete");
        }
        db.fetch_add_u64(&key(3), 8, 1).expect("in place");
        let model = contents(&db);
        let images = db.pmem().photograph(|| {
            let stats = db.compact(1, None).expect("compaction");
            assert!(stats.moved_records > 0 && stats.blocks_given_back > 0, "{stats:?}");
        });
        assert!(images.len() > 40);
        assert_atomic(&images, &model, &model, &options);
    }
}

/// The prototype read 3 to 27 wrong values of two million, in every run.
#[test]
fn hole_12_one_session_beside_reclamation_reads_what_it_wrote() {
    for (is_any, options) in [(false, small()), (true, small_with(SMALL))] {
        let directory = scratch();
        let options = options.reclaim_percent(20).reclaim_bytes_per_second(u64::MAX);
        let db = open(directory.path(), &options);
        let model = beside_reclamation(&db, is_any);
        assert_eq!(contents(&db), model);
        assert_sound(&db);
        drop(db);
        let db = open(directory.path(), &options);
        assert_eq!(contents(&db), model);
    }
}

fn beside_reclamation(db: &Db, is_any: bool) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (mut session, mut chance, mut model) = (db.session(), Chance::new(5), BTreeMap::new());
    for version in 0..60_000 {
        let number = chance.below(2000);
        let key = key(number);
        match chance.below(4) {
            0 => {
                let was = session.delete(&key).expect("delete");
                assert_eq!(was, model.remove(&key).is_some(), "{number}");
            }
            1 => {
                let bytes = if is_any { chance.below(400) as usize } else { 24 };
                let value = value_of(number, version, bytes);
                session.put(&key, &value).expect("put");
                model.insert(key, value);
            }
            _ => assert_eq!(session.get(&key).expect("get").as_ref(), model.get(&key), "{number}"),
        }
        if version % 5000 == 0 {
            db.compact(20, None).expect("compaction");
        }
    }
    assert!(db.stats().reclaim.moved_records > 0);
    model
}

/// A record with chunks is seen to be replaced and its page is used again, and then a crash takes back that it
/// was: nothing leads to it, and its chunks must not count for ever.
#[test]
fn hole_12_chunks_of_a_record_whose_page_is_used_again_come_free() {
    let options = small_any();
    let directory = scratch();
    let db = crash::open(directory.path(), &options);
    // Has a block of its own.
    let mut session = db.session();
    session.put(&key(3), &[3; 16]).expect("room");
    let mut first = db.session();
    // The record lies lines behind the start of its page.
    fill(&mut first, 4..11, 1);
    first.put(&key(2), &[2; 6000]).expect("room");
    drop(first);
    for number in 4..11 {
        assert!(session.delete(&key(number)).expect("a delete"));
    }
    let (found, steps) = (Arc::new(Mutex::new(Vec::new())), AtomicU64::new(0));
    let (seen, beside) = (found.clone(), db.clone());
    db.pmem().set_hook(move |at| {
        // The word is stored, and not flushed yet.
        if at == "vpage.retire" && steps.fetch_add(1, Ordering::Relaxed) == 1 {
            let mut session = beside.session();
            for number in 20..50 {
                fill(&mut session, [number], 1);
                seen.lock().expect("alive").push(beside.pmem().image());
            }
        }
    });
    assert!(!session.put(&key(2), &[4; 16]).expect("room"));
    let images = std::mem::take(&mut *found.lock().expect("alive"));
    assert_eq!(images.len(), 30);
    for image in images {
        let crashed = scratch();
        image.write(crashed.path(), SMALL.segment_bytes, Survives::Fenced);
        let db = Db::open(crashed.path(), &options).expect("a store");
        let all = contents(&db);
        assert_eq!(all[&key(2)], [4; 16]);
        for key in all.keys() {
            assert!(db.delete(key).expect("a delete"));
        }
        db.compact(1, None).expect("compaction");
        assert_eq!(db.stats().blocks_used, 0, "{} records", all.len());
        assert_sound(&db);
    }
}
