//! Holes that space reclamation would fall into.

use std::collections::BTreeMap;

use chimera::Db;

use crate::tools::{
    Chance, SMALL, assert_sound, contents, key, open, scratch, small, small_with, value_of,
};

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
