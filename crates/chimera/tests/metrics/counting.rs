//! Counters: exact for a script, over sessions that are open and that have ended.

use chimera::{Error, OperationStats, Swap};

use super::stepped;
use super::tools::{VALUE_BYTES, key, small, value};

/// Does one of everything; what is then counted.
fn script(session: &mut chimera::Session) -> OperationStats {
    assert!(session.put(key(1), value(1, 1)).unwrap());
    assert!(session.put(key(2), value(2, 1)).unwrap());
    assert!(!session.put(key(1), value(1, 2)).unwrap());
    assert!(session.get(key(1)).unwrap().is_some());
    assert!(session.get(key(9)).unwrap().is_none());
    assert_eq!(session.multi_get(&[key(1), key(9), key(2)]).unwrap().len(), 3);
    // Anew the first time; then in place, by a word, and by a call for words.
    assert!(session.fetch_add_u64(key(1), 0, 5).unwrap().is_some());
    assert!(session.update(key(1), |value| value[3] ^= 1).unwrap());
    assert!(session.fetch_add_u64(key(1), 0, 5).unwrap().is_some());
    assert!(session.update(key(1), |_| {}).unwrap());
    assert!(session.update(key(1), |value| value.fill(7)).unwrap());
    assert!(session.fetch_add_u64(key(1), 7, 0x0505).unwrap().is_some());
    assert!(!session.update(key(9), |_| {}).unwrap());
    assert!(session.fetch_add_u64(key(9), 0, 1).unwrap().is_none());
    let swap = session.compare_and_swap(key(1), value(1, 1), value(1, 3)).unwrap();
    assert_eq!(swap, Swap::Different);
    let now = session.get(key(1)).unwrap().unwrap();
    let swap = session.compare_and_swap(key(1), &now, value(1, 4)).unwrap();
    assert_eq!(swap, Swap::Swapped);
    let missing = session.compare_and_swap(key(9), &now, &now).unwrap();
    assert_eq!(missing, Swap::Missing);
    let found = u64::from_le_bytes(value(1, 4)[..8].try_into().unwrap());
    assert_eq!(session.compare_and_swap_u64(key(1), 0, found + 1, 0).unwrap(), Some(found));
    assert!(session.delete(key(2)).unwrap());
    assert!(!session.delete(key(2)).unwrap());
    assert!(matches!(session.put(b"short", value(1, 1)), Err(Error::KeySize { .. })));
    assert!(matches!(session.get(b"short"), Err(Error::KeySize { .. })));
    let far = session.fetch_add_u64(key(1), VALUE_BYTES, 1);
    assert!(matches!(far, Err(Error::FieldOutOfRange { .. })));
    // One key is there, and one comes twice.
    let records = [(key(1), value(1, 5)), (key(2), value(2, 5)), (key(2), value(2, 6))];
    assert_eq!(session.multi_put(&records).unwrap(), 1);
    assert!(session.delete(key(2)).unwrap());
    assert!(session.delete(key(1)).unwrap());
    session.stats()
}

/// Asserts what `times` runs of the script come to.
#[track_caller]
fn assert_script(stats: &OperationStats, times: u64) {
    let bytes = VALUE_BYTES as u64;
    let counted = [
        ("get hits", stats.get_hits, 2),
        ("get misses", stats.get_misses, 1),
        ("multi gets", stats.multi_gets, 1),
        ("multi get hits", stats.multi_get_hits, 2),
        ("multi get misses", stats.multi_get_misses, 1),
        ("multi puts", stats.multi_puts, 1),
        ("inserts", stats.inserts, 3),
        ("overwrites", stats.overwrites, 3),
        ("updates in place", stats.updates_in_place, 2),
        ("updates", stats.updates, 4),
        ("updates unchanged", stats.updates_unchanged, 2),
        ("update misses", stats.update_misses, 3),
        ("swaps refused", stats.swaps_refused, 1),
        ("deletes", stats.deletes, 3),
        ("delete misses", stats.delete_misses, 1),
        ("listings", stats.listings, 0),
        ("bytes read", stats.value_bytes_read, 4 * bytes),
        ("bytes written", stats.value_bytes_written, (3 + 3 + 4) * bytes + 2 * 8),
        ("argument errors", stats.errors_argument, 3),
        ("errors", stats.errors(), 3),
    ];
    for (name, found, each) in counted {
        assert_eq!(found, each * times, "{name}: {stats:?}");
    }
}

#[test]
fn counts_are_exact_over_sessions_that_are_open_and_that_have_ended() {
    let (db, _) = stepped(&small().latency_sampling(1));
    assert_eq!(db.stats().operations, OperationStats::default());
    let mut first = db.session();
    assert_script(&script(&mut first), 1);
    let mut second = db.session();
    assert_script(&script(&mut second), 1);
    assert_script(&script(&mut second), 2);
    assert_script(&first.stats(), 1);
    assert_script(&db.stats().operations, 3);
    assert_eq!(db.session_stats().len(), 2);
    drop(second);
    assert_script(&db.stats().operations, 3);
    let open = db.session_stats();
    assert_eq!((open.len(), open[0].number), (1, first.number()));
    assert_script(&open[0].operations, 1);
    drop(first);
    assert_script(&db.stats().operations, 3);
    let latency = db.stats().operations.latency;
    let samples = [
        (latency.get.samples, 3),
        (latency.multi_get.samples, 1),
        (latency.insert.samples, 2),
        (latency.overwrite.samples, 1),
        (latency.update_in_place.samples, 2),
        (latency.update.samples, 10),
        (latency.delete.samples, 4),
        (latency.multi_put.samples, 1),
    ];
    assert!(samples.iter().all(|(found, each)| *found == each * 3), "{latency:?}");
}

#[test]
fn operations_of_the_store_itself_and_errors_are_counted() {
    let (db, _) = stepped(&small());
    for number in 0..5 {
        db.put(key(number), value(number, 1)).unwrap();
    }
    let mut listed = 0;
    db.for_each(|_, _| {
        listed += 1;
        true
    })
    .unwrap();
    let stats = db.stats().operations;
    assert_eq!((stats.inserts, stats.listings, stats.records_listed), (5, 1, listed));
    assert_eq!(stats.value_bytes_read, 5 * VALUE_BYTES as u64);
    let full = (5..100_000).find_map(|number| db.put(key(number), value(number, 1)).err());
    assert!(matches!(full, Some(Error::PoolFull { .. })), "{full:?}");
    assert_eq!(db.stats().operations.errors_pool_full, 1);
}

#[test]
fn what_threads_do_is_counted_while_others_look() {
    const EACH: u64 = 5000;
    let (db, _) = stepped(&small().latency_sampling(2));
    db.put(key(1), value(1, 1)).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut session = db.session();
                for number in 0..EACH {
                    assert!(session.get(key(1)).unwrap().is_some());
                    assert!(session.get(key(2 + number)).unwrap().is_none());
                }
                assert_eq!(session.stats().get_hits, EACH);
            });
        }
        let mut last = 0;
        while last < 2 * EACH {
            let stats = db.stats().operations;
            assert!(stats.get_hits >= last && stats.get_hits <= 2 * EACH, "{stats:?}");
            assert!(stats.latency.get.samples <= 4 * EACH);
            last = stats.get_hits;
        }
    });
    assert_eq!(db.stats().operations.get_misses, 2 * EACH);
    assert_eq!(db.stats().operations.value_bytes_read, 2 * EACH * VALUE_BYTES as u64);
}
