//! Who is told of changes of the index is told of each, in order, under the key's lock, before the
//! acknowledgement.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use chimera::baselines::{KeyChange, TellChange};
use chimera::{Db, Result, Swap};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::at_once;
use crate::tools::{Chance, assert_sound, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    each_change_is_told_before_its_call_returns,
    what_is_replayed_of_concurrent_writers_is_the_final_key_set,
    a_key_is_told_of_by_one_writer_at_a_time,
    moved_records_leave_the_key_set_as_it_is: needs reclaim,
];

/// What was told, in order.
#[derive(Default)]
struct Told(Mutex<Vec<(Vec<u8>, KeyChange)>>);

impl TellChange for Told {
    fn changed(&self, key: &[u8], change: KeyChange) {
        self.0.lock().expect("nobody panics").push((key.to_vec(), change));
    }
}

impl Told {
    fn take(&self) -> Vec<(Vec<u8>, KeyChange)> {
        std::mem::take(&mut self.0.lock().expect("nobody panics"))
    }

    /// The last change of a key.
    fn last_of(&self, key: &[u8]) -> Option<KeyChange> {
        let told = self.0.lock().expect("nobody panics");
        told.iter().rev().find(|(of, _)| of == key).map(|(_, change)| *change)
    }
}

/// The keys that there are, from what was told of the changes of an empty store.
///
/// # Panics
/// When a change cannot be: an insert of a key that is there, say.
fn replayed(told: &[(Vec<u8>, KeyChange)]) -> BTreeSet<Vec<u8>> {
    let mut keys = BTreeSet::new();
    for (key, change) in told {
        match change {
            KeyChange::Inserted => assert!(keys.insert(key.clone()), "inserted twice"),
            KeyChange::Replaced => assert!(keys.contains(key), "replaced, and is not there"),
            KeyChange::Removed => assert!(keys.remove(key), "removed, and is not there"),
        }
    }
    keys
}

fn store(configuration: &Configuration, path: &std::path::Path, told: &Arc<Told>) -> Db {
    open(path, &configuration.options().tell_changes(told.clone()))
}

fn each_change_is_told_before_its_call_returns(configuration: &Configuration) {
    use KeyChange::{Inserted, Removed, Replaced};
    let directory = scratch();
    let told = Arc::new(Told::default());
    let db = store(configuration, directory.path(), &told);
    let mut session = db.session();
    let (key, absent) = (configuration.key(1), configuration.key(2));
    let value = |version| configuration.value(1, version);
    let one = |change| vec![(key.clone(), change)];

    session.put(&key, value(1)).expect("put");
    assert_eq!(told.take(), one(Inserted));
    session.put(&key, value(2)).expect("put");
    assert_eq!(told.take(), one(Replaced));
    assert!(session.update(&key, |it| it.clone_from(&value(3))).expect("update"));
    assert_eq!(told.take(), one(Replaced));
    let swap = session.compare_and_swap(&key, value(3), value(4)).expect("swap");
    assert_eq!((swap, told.take()), (Swap::Swapped, one(Replaced)));
    // In place the index stays as it is; otherwise the key has another record.
    for at in [8, 3] {
        session.fetch_add_u64(&key, at, 1).expect("fetch_add_u64");
        let told = told.take();
        assert!(told.is_empty() || told == one(Replaced), "{told:?}");
    }
    // What changes nothing.
    session.get(&key).expect("get");
    session.delete(&absent).expect("delete");
    session.update(&absent, |_| ()).expect("update");
    session.fetch_add_u64(&absent, 0, 1).expect("fetch_add_u64");
    let swap = session.compare_and_swap(&key, value(9), value(1)).expect("swap");
    assert_eq!(swap, Swap::Different);
    session.put([], value(1)).expect_err("no key");
    assert_eq!(told.take(), []);
    session.delete(&key).expect("delete");
    assert_eq!(told.take(), one(Removed));
    session.put(&key, value(5)).expect("put");
    assert_eq!(told.take(), one(Inserted));
    drop(session);
    drop(db);
    // What is found at open has not changed.
    let db = store(configuration, directory.path(), &told);
    assert_eq!(told.take(), []);
    db.put(&key, value(6)).expect("put");
    assert_eq!(told.take(), one(Replaced));
}

fn what_is_replayed_of_concurrent_writers_is_the_final_key_set(configuration: &Configuration) {
    const SHARED: u64 = 30;
    let directory = scratch();
    let told = Arc::new(Told::default());
    let db = store(configuration, directory.path(), &told);
    at_once(4, |thread| {
        let (mut session, mut chance) = (db.session(), Chance::new(thread));
        let own = configuration.key(1000 + thread);
        for step in 0..1500 {
            let number = chance.below(SHARED);
            let key = configuration.key(number);
            let value = configuration.value(number, step);
            match chance.below(6) {
                0 | 1 => drop(session.put(&key, &value).expect("put")),
                2 | 3 => drop(session.delete(&key).expect("delete")),
                4 => drop(session.update(&key, |it| it.clone_from(&value)).expect("update")),
                _ => drop(session.fetch_add_u64(&key, 8, 1).expect("fetch_add_u64")),
            }
            if step % 100 == 0 {
                // Nobody else writes this key: what was told of it last is what was just done.
                let is_new = session.put(&own, configuration.value(1000 + thread, step));
                let is_new = is_new.expect("put");
                let change = if is_new { KeyChange::Inserted } else { KeyChange::Replaced };
                assert_eq!(told.last_of(&own), Some(change));
                if step % 200 == 0 {
                    assert!(session.delete(&own).expect("delete"));
                    assert_eq!(told.last_of(&own), Some(KeyChange::Removed));
                }
            }
        }
    });
    let keys: BTreeSet<_> = db.keys().collect::<Result<_>>().expect("no damage");
    assert!(replayed(&told.take()) == keys, "what was told is not what is there");
    assert_sound(&db);
}

/// Is inside of `changed` for a key.
struct Inside {
    keys: BTreeMap<Vec<u8>, AtomicBool>,
    twice: AtomicBool,
}

impl TellChange for Inside {
    fn changed(&self, key: &[u8], _: KeyChange) {
        let Some(is_inside) = self.keys.get(key) else { return };
        if is_inside.swap(true, Ordering::AcqRel) {
            self.twice.store(true, Ordering::Release);
        }
        // Time for another writer to come in, if it can.
        (0..3).for_each(|_| std::thread::yield_now());
        is_inside.store(false, Ordering::Release);
    }
}

fn a_key_is_told_of_by_one_writer_at_a_time(configuration: &Configuration) {
    const KEYS: u64 = 2;
    let directory = scratch();
    let keys = (0..KEYS).map(|number| (configuration.key(number), AtomicBool::new(false)));
    let inside = Arc::new(Inside { keys: keys.collect(), twice: AtomicBool::new(false) });
    let options = configuration.options().tell_changes(inside.clone());
    let db = open(directory.path(), &options);
    at_once(4, |thread| {
        let (mut session, mut chance) = (db.session(), Chance::new(thread));
        for step in 0..1500 {
            let number = chance.below(KEYS);
            let key = configuration.key(number);
            match chance.below(3) {
                0 => drop(session.delete(&key).expect("delete")),
                _ => drop(session.put(&key, configuration.value(number, step)).expect("put")),
            }
        }
    });
    assert!(!inside.twice.load(Ordering::Acquire), "two writers were inside for one key");
}

fn moved_records_leave_the_key_set_as_it_is(configuration: &Configuration) {
    let directory = scratch();
    let told = Arc::new(Told::default());
    let db = store(configuration, directory.path(), &told);
    configuration.fill(&mut db.session(), 0..600, 1);
    for number in (0..600).filter(|number| number % 4 != 0) {
        assert!(db.delete(configuration.key(number)).expect("delete"));
    }
    let mut all = told.take();
    db.compact(1, None).expect("compaction");
    let moved = told.take();
    assert!(moved.iter().all(|(_, change)| *change == KeyChange::Replaced));
    all.extend(moved);
    let keys: BTreeSet<_> = db.keys().collect::<Result<_>>().expect("no damage");
    assert!(replayed(&all) == keys);
}
