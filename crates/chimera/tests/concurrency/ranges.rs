//! Sessions that have ranges of keys of their own: nobody's work may disturb another's.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chimera::Error;
use chimera::baselines::RecordLayout;

use crate::tools::{Chance, assert_sound, contents, fill, key, open, scratch, value, version_of};
use crate::{at_once, options};

const RANGE: u64 = 1000;

/// Inserts, overwrites, updates and deletes in a range, verified against a map.
fn work_in_range(db: &chimera::Db, thread: u64, steps: u64) -> BTreeMap<u64, u64> {
    let mut session = db.session();
    let mut chance = Chance::new(thread);
    let mut model = BTreeMap::new();
    for version in 1..=steps {
        let number = thread * RANGE + chance.below(RANGE);
        match chance.below(8) {
            0..4 => {
                let is_new = session.put(key(number), value(number, version)).expect("put");
                assert_eq!(is_new, model.insert(number, version).is_none());
            }
            4 | 5 => {
                let was_there = session.delete(key(number)).expect("delete");
                assert_eq!(was_there, model.remove(&number).is_some());
            }
            6 => {
                let new = value(number, version);
                let updated = session.update(key(number), |value| value.copy_from_slice(&new));
                assert_eq!(updated.expect("update"), model.contains_key(&number));
                model.entry(number).and_modify(|old| *old = version);
            }
            _ => {
                let found = session.get(key(number)).expect("get");
                let expected = model.get(&number).map(|version| value(number, *version));
                assert_eq!(found, expected, "key {number}");
            }
        }
        if version % 500 == 0 {
            // Sessions come and go.
            session = db.session();
        }
    }
    model
}

/// Pool, index and tables grow under readers, who must never miss a key that is there.
#[test]
fn growth_under_readers() {
    let directory = scratch();
    let db = open(directory.path(), &options());
    let (writers, each) = (3, 30_000);
    let written: Vec<_> = (0..writers).map(|_| AtomicU64::new(0)).collect();
    let number_of = |writer: u64, count: u64| count * writers + writer;
    at_once(writers + 2, |thread| {
        let mut session = db.session();
        if thread < writers {
            for count in 0..each {
                let number = number_of(thread, count);
                assert!(session.put(key(number), value(number, 1)).expect("put"));
                written[thread as usize].store(count + 1, Ordering::Release);
            }
            return;
        }
        let mut chance = Chance::new(thread);
        loop {
            let counts: Vec<_> =
                written.iter().map(|written| written.load(Ordering::Acquire)).collect();
            for (writer, count) in (0..).zip(&counts) {
                for _ in 0..40 {
                    let number = number_of(writer, chance.below((*count).max(1)));
                    let found = session.get(key(number)).expect("get");
                    assert!(found.is_some() || *count == 0, "key {number} of {count} is missing");
                    found.inspect(|found| assert_eq!(version_of(number, found), 1));
                }
                let next = key(number_of(writer, each + 1));
                assert_eq!(session.get(&next).expect("get"), None);
            }
            if counts.iter().all(|count| *count == each) {
                return;
            }
        }
    });
    assert_eq!(db.stats().records, writers * each);
    assert!(db.stats().segments > 100, "the pool has not grown");
    assert_sound(&db);
}

/// Slots that are freed are used again, whoever frees them, and never twice at the same time.
#[test]
fn slots_are_used_again() {
    let directory = scratch();
    let db = open(directory.path(), &options());
    let (threads, live, rounds) = (4, 100, 150);
    at_once(threads, |thread| {
        let mut session = db.session();
        for round in 1..=rounds {
            fill(&mut session, thread * RANGE..thread * RANGE + live, round);
            for number in thread * RANGE..thread * RANGE + live {
                let found = session.get(key(number)).expect("get").expect("just written");
                assert_eq!(version_of(number, &found), round);
                assert!(session.delete(key(number)).expect("delete"));
            }
        }
    });
    assert!(contents(&db).is_empty());
    assert_sound(&db);
    // 400 records alive at once are 40 blocks; 60,000 were written.
    let blocks = db.stats().blocks_used;
    assert!(blocks <= 160, "{blocks} blocks for at most 400 records at a time");
}

/// Full, with all sessions wanting more: errors, no losses, no block in two hands.
#[test]
fn a_full_pool_shared_by_sessions() {
    let directory = scratch();
    let db = open(directory.path(), &options().capacity_bytes(60 * 512));
    let models = std::sync::Mutex::new(BTreeMap::new());
    let refusals = AtomicU64::new(0);
    at_once(4, |thread| {
        let mut session = db.session();
        let mut model = BTreeMap::new();
        for version in 1..20_000 {
            let number = thread * RANGE + version % 300;
            match session.put(key(number), value(number, version)) {
                Ok(_) => drop(model.insert(number, version)),
                Err(Error::PoolFull { .. }) => {
                    refusals.fetch_add(1, Ordering::Relaxed);
                    for number in model.keys().copied().collect::<Vec<_>>() {
                        assert!(session.delete(key(number)).expect("delete"));
                    }
                    model.clear();
                }
                Err(other) => panic!("{other}"),
            }
        }
        models.lock().expect("nobody panics").extend(model);
    });
    // The sessions want 1200 records, and there is room for 600.
    assert!(refusals.into_inner() > 0, "the pool was never full");
    let expected: BTreeMap<_, _> = models.into_inner().expect("nobody panics");
    let found = contents(&db);
    assert_eq!(found.len(), expected.len());
    for (number, version) in expected {
        assert_eq!(found.get(&key(number)), Some(&value(number, version)));
    }
    assert_sound(&db);
}

#[test]
fn verification_and_listing_beside_writers() {
    for layout in [RecordLayout::Checked, RecordLayout::Published] {
        let directory = scratch();
        let db = open(directory.path(), &options().viper(|viper| viper.layout(layout)));
        // Never touched: listed each time.
        fill(&mut db.session(), 50_000..50_500, 7);
        let done = AtomicBool::new(false);
        let writing = AtomicU64::new(3);
        at_once(5, |thread| match thread {
            0..3 => {
                work_in_range(&db, thread, 15_000);
                let mut session = db.session();
                for step in 0..3000 {
                    // In place, in blocks that are verified meanwhile.
                    let number = 50_000 + step % 500;
                    let found = session.fetch_add_u64(key(number), 8, 0).expect("in place");
                    assert!(found.is_some());
                }
                if writing.fetch_sub(1, Ordering::AcqRel) == 1 {
                    done.store(true, Ordering::Release);
                }
            }
            3 => {
                while !done.load(Ordering::Acquire) {
                    assert_sound(&db);
                }
            }
            _ => {
                while !done.load(Ordering::Acquire) {
                    let mut untouched = std::collections::BTreeSet::new();
                    let listing = db.for_each(|found_key, found| {
                        let number =
                            u64::from_le_bytes(found_key.try_into().expect("8 bytes of key"));
                        version_of(number, found);
                        if number >= 50_000 {
                            untouched.insert(number);
                        }
                        true
                    });
                    listing.expect("nothing is damaged");
                    assert_eq!(untouched.len(), 500, "a key that was there all the time");
                }
            }
        });
        assert_sound(&db);
    }
}
