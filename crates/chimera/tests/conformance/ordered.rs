//! Scans: records in the order of their keys, at rest and beside writers.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chimera::{
    Db, Error, ErrorKind, KeyRange, Options, OrderOptions, Result, Session, TreeUpdates,
};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{End, Records, assert_holds, at_once, come_and_go, number_of};
use crate::tools::{Chance, assert_fails, assert_sound, copy_store, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    scans_give_what_a_map_gives: needs ordered,
    the_same_with_a_tree_that_is_changed_at_once: needs ordered,
    the_same_without_a_background_thread: needs ordered,
    the_same_with_equal_ranges_of_several_trees: needs ordered,
    the_same_with_ranges_that_begin_at_keys: needs ordered,
    the_same_with_all_keys_in_one_of_several_ranges: needs ordered,
    a_prefix_may_lie_in_several_ranges: needs ordered,
    an_iterator_is_read_from_both_ends: needs ordered,
    prefixes_are_ranges: needs ordered,
    a_store_that_is_opened_has_all_keys: needs ordered,
    a_store_without_order_says_so: needs ordered,
    what_was_acknowledged_is_scanned: needs ordered,
    a_key_that_was_found_is_scanned: needs ordered,
    beside_writers_a_key_that_stays_is_scanned_exactly_once: needs ordered,
    the_same_where_scans_hold_writers_up: needs ordered,
    what_is_scanned_may_be_deleted_meanwhile: needs ordered,
    the_order_says_what_it_has: needs ordered,
    impossible_orders_are_refused: needs ordered,
    each_kind_of_range_says_what_it_means: needs ordered,
];

type Record = (Vec<u8>, Vec<u8>);

/// An order whose nodes and queues are full soon.
fn small_order(order: OrderOptions) -> OrderOptions {
    order.node_bytes(256).queues(2).queue_requests(8)
}

fn ordered(configuration: &Configuration) -> Options {
    configuration.options().ordered(true).order(small_order)
}

fn collected<'a>(scan: impl Iterator<Item = Result<Record>> + 'a) -> Vec<Record> {
    scan.collect::<Result<_>>().expect("no damage")
}

/// Whether ranges, from either end, cut short, and without copies, give what `records` has.
fn assert_scans(
    session: &mut Session,
    records: &Records,
    range: &(Bound<Vec<u8>>, Bound<Vec<u8>>),
) {
    let (from, to) = range;
    let is_empty = match (from, to) {
        (Bound::Excluded(from), Bound::Excluded(to)) => from >= to,
        (
            Bound::Included(from) | Bound::Excluded(from),
            Bound::Included(to) | Bound::Excluded(to),
        ) => from > to,
        _ => false,
    };
    let mut expected: Vec<Record> = Vec::new();
    if !is_empty {
        let found = records.range::<Vec<u8>, _>((from.as_ref(), to.as_ref()));
        expected.extend(found.map(|(key, value)| (key.clone(), value.clone())));
    }
    let found = collected(session.scan(range.clone()).expect("ordered"));
    assert!(found == expected, "{} instead of {} in {range:?}", found.len(), expected.len());
    for most in [0, 1, expected.len() / 2, expected.len() + 1] {
        let mut found = Vec::new();
        let take = |key: &[u8], value: &[u8]| {
            found.push((key.to_vec(), value.to_vec()));
            true
        };
        let count = session.scan_with(range.clone(), most, take).expect("ordered");
        assert_eq!(count, most.min(expected.len()));
        assert!(found == expected[..count]);
    }
    expected.reverse();
    let found = collected(session.scan(range.clone()).expect("ordered").rev());
    assert!(found == expected, "{} instead of {} back in {range:?}", found.len(), expected.len());
}

/// A random bound: of a key that is there or not, or none.
fn bound(configuration: &Configuration, chance: &mut Chance, keys: u64) -> Bound<Vec<u8>> {
    let key = configuration.key(chance.below(2 * keys));
    match chance.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

/// Random writes and scans against a map, across reopening.
fn against_a_map(configuration: &Configuration, options: &Options) {
    const KEYS: u64 = 300;
    let directory = scratch();
    let mut records = Records::new();
    let mut chance = Chance::new(7);
    for round in 1..=4 {
        let db = open(directory.path(), options);
        let mut session = db.session();
        for step in 1..=1500 {
            let number = chance.below(KEYS);
            let (key, version) = (configuration.key(number), round * 10_000 + step);
            match chance.below(10) {
                0..=4 => {
                    let value = configuration.value(number, version);
                    session.put(&key, &value).expect("put");
                    records.insert(key, value);
                }
                5..=8 => {
                    let was_there = session.delete(&key).expect("delete");
                    assert_eq!(was_there, records.remove(&key).is_some());
                }
                _ => {
                    let from = bound(configuration, &mut chance, KEYS);
                    let to = bound(configuration, &mut chance, KEYS);
                    assert_scans(&mut session, &records, &(from, to));
                }
            }
        }
        assert_scans(&mut session, &records, &(Bound::Unbounded, Bound::Unbounded));
        drop(session);
        assert_holds(&db, &records);
    }
}

fn scans_give_what_a_map_gives(configuration: &Configuration) {
    against_a_map(configuration, &ordered(configuration));
}

fn the_same_with_a_tree_that_is_changed_at_once(configuration: &Configuration) {
    let options = ordered(configuration);
    let at_once = |order: OrderOptions| order.updates(TreeUpdates::Synchronous);
    against_a_map(configuration, &options.order(at_once));
}

fn the_same_without_a_background_thread(configuration: &Configuration) {
    against_a_map(configuration, &ordered(configuration).order(|order| order.threads(0)));
}

fn the_same_with_equal_ranges_of_several_trees(configuration: &Configuration) {
    let several = |order: OrderOptions| order.trees(5).threads(2);
    against_a_map(configuration, &ordered(configuration).order(several));
}

/// So that scans begin and end at borders, too.
fn the_same_with_ranges_that_begin_at_keys(configuration: &Configuration) {
    let mut begins: Vec<_> = [9, 40, 41, 130, 250, 299].map(|key| configuration.key(key)).into();
    begins.sort();
    let options = ordered(configuration).order(|order| order.tree_ranges(begins));
    against_a_map(configuration, &options);
}

fn the_same_with_all_keys_in_one_of_several_ranges(configuration: &Configuration) {
    for begins in [[vec![0], vec![0, 0]], [vec![0], vec![255; 40]], [vec![255; 40], vec![255; 41]]]
    {
        let options = ordered(configuration).order(|order| order.tree_ranges(begins.into()));
        against_a_map(configuration, &options);
    }
}

/// The borders have the prefix themselves.
fn a_prefix_may_lie_in_several_ranges(configuration: &Configuration) {
    let directory = scratch();
    let begins = vec![vec![7], vec![7, 0], vec![7, 2], vec![7, 2, 0, 0, 0, 0, 0, 0, 1]];
    let options = ordered(configuration).order(|order| order.tree_ranges(begins));
    let db = open(directory.path(), &options);
    configuration.fill(&mut db.session(), 0..1024, 1);
    let expected: Vec<Record> =
        configuration.records([7, 0x107, 0x207, 0x307], 1).into_iter().collect();
    assert!(collected(db.scan_prefix([7]).expect("ordered")) == expected);
    let mut back = collected(db.scan_prefix([7]).expect("ordered").rev());
    back.reverse();
    assert!(back == expected);
    let order = db.stats().order.expect("ordered");
    assert_eq!((order.trees, order.keys), (5, 1024));
}

fn an_iterator_is_read_from_both_ends(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &ordered(configuration));
    configuration.fill(&mut db.session(), 0..1000, 1);
    let expected: Vec<Record> = configuration.records(0..1000, 1).into_iter().collect();
    let mut chance = Chance::new(3);
    for _ in 0..20 {
        let mut scan = db.scan(..).expect("ordered");
        let (mut front, mut back) = (Vec::new(), Vec::new());
        let runs = 1 + chance.below(200);
        'scan: loop {
            let from_front = chance.below(2) == 0;
            for _ in 0..=chance.below(runs) {
                let next = if from_front { scan.next() } else { scan.next_back() };
                let Some(record) = next else { break 'scan };
                if from_front { &mut front } else { &mut back }.push(record.expect("no damage"));
            }
        }
        assert!(scan.next().is_none() && scan.next_back().is_none());
        back.reverse();
        front.append(&mut back);
        assert!(front == expected, "{} records", front.len());
    }
    for count in [0, 1, 15, 16, 17, 500, 2000] {
        let first = collected(db.scan_n(configuration.key(0), count).expect("ordered"));
        let key = configuration.key(0);
        let all = expected.iter().skip_while(|record| record.0 < key).take(count);
        assert!(first.iter().eq(all), "{count}");
    }
}

fn prefixes_are_ranges(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &ordered(configuration));
    // The first byte of a key is the lowest one of its number.
    configuration.fill(&mut db.session(), 0..1024, 1);
    for first in [0, 1, 127, 254, 255] {
        let found = collected(db.scan_prefix([first]).expect("ordered"));
        let numbers: BTreeSet<u64> = found.iter().map(|record| number_of(&record.0)).collect();
        assert!(numbers.iter().eq(&[
            first.into(),
            0x100 + u64::from(first),
            0x200 + u64::from(first),
            0x300 + u64::from(first)
        ]));
        let found = collected(db.session().scan_prefix([first, 2]).expect("ordered"));
        assert_eq!(found.len(), 1);
    }
    assert_eq!(db.scan_prefix([]).expect("ordered").count(), 1024);
    assert_eq!(db.scan_prefix([255; 8]).expect("ordered").count(), 0);
    let (low, high) = (configuration.key(1), configuration.key(2));
    assert_eq!(db.scan(&high..&low).expect("ordered").count(), 0, "from after to");
    assert_eq!(db.scan(&low..&low).expect("ordered").count(), 0);
    assert_eq!(db.scan(&low..=&low).expect("ordered").count(), 1);
}

fn a_store_that_is_opened_has_all_keys(configuration: &Configuration) {
    let (directory, copy) = (scratch(), scratch());
    let records = configuration.filled_store(directory.path(), 500);
    let expected: Vec<Record> = records.clone().into_iter().collect();
    let reading = ordered(configuration).read_only(true);
    let db = open(directory.path(), &reading);
    assert!(collected(db.scan(..).expect("ordered")) == expected);
    drop(db);
    let db = open(directory.path(), &ordered(configuration).populate_ahead_bytes(0));
    assert!(db.delete(&expected[7].0).expect("delete"));
    // As a kill leaves it.
    copy_store(directory.path(), copy.path());
    let db = open(copy.path(), &ordered(configuration));
    let found = collected(db.scan(..).expect("ordered"));
    assert!(
        found.len() == 499 && found.iter().all(|record| records.get(&record.0) == Some(&record.1))
    );
}

fn a_store_without_order_says_so(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &configuration.options().ordered(false));
    configuration.fill(&mut db.session(), 0..5, 1);
    assert_eq!(db.stats().order, None);
    assert!(matches!(db.scan(..).map(drop), Err(Error::NotOrdered)));
    assert_fails(db.session().scan_n([0], 1).map(drop), &["not kept in order", "ordered(true)"]);
    let error = db.session().scan_with(.., 1, |_, _| true).expect_err("not ordered");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

/// Each thread scans for what it has just written, in a queue that is full most of the time.
fn what_was_acknowledged_is_scanned(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &ordered(configuration));
    let (threads, each) = (3, 400);
    at_once(threads, |thread| {
        let mut session = db.session();
        for number in thread * each..(thread + 1) * each {
            let (key, value) = (configuration.key(number), configuration.value(number, 1));
            assert!(session.put(&key, &value).expect("put"));
            let found = collected(session.scan_n(&key, 1).expect("ordered"));
            assert!(found == [(key.clone(), value)], "an acknowledged key is not scanned");
            if number % 3 == 0 {
                assert!(session.delete(&key).expect("delete"));
                assert_eq!(session.scan(&key..=&key).expect("ordered").count(), 0);
            }
        }
    });
    let left: Vec<u64> = (0..threads * each).filter(|number| number % 3 != 0).collect();
    let expected: Vec<Record> = configuration.records(left, 1).into_iter().collect();
    assert!(collected(db.scan(..).expect("ordered")) == expected);
}

/// A key that somebody finds, while its put goes on, is in every scan that begins afterwards.
fn a_key_that_was_found_is_scanned(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &ordered(configuration));
    let count = 3000;
    at_once(3, |thread| {
        let mut session = db.session();
        for number in 0..count {
            let (key, value) = (configuration.key(number), configuration.value(number, 1));
            if thread == 0 {
                session.put(&key, &value).expect("put");
                continue;
            }
            while session.get(&key).expect("no damage").is_none() {
                std::hint::spin_loop();
            }
            let count =
                session.scan_with(&key..=&key, 1, |_, found| found == value).expect("ordered");
            assert_eq!(count, 1, "key {number} was found and is not scanned");
        }
    });
}

/// Keys that nobody changes; that are overwritten; that come and go.
const STILL: u64 = 300;
const HOT: std::ops::Range<u64> = STILL..STILL + 50;
const COMING: std::ops::Range<u64> = STILL + 50..STILL + 150;

fn check(configuration: &Configuration, scanned: &[Record], first: u64, last: u64) {
    assert!(scanned.is_sorted_by(|one, next| one.0 < next.0), "out of order, or twice");
    let scanned: Records = scanned.iter().cloned().collect();
    for number in 0..STILL {
        let found = scanned.get(&configuration.key(number));
        let found = found.unwrap_or_else(|| panic!("key {number} was there all the time"));
        assert_eq!(configuration.version(number, found), 1);
    }
    for number in HOT {
        let found = scanned.get(&configuration.key(number)).expect("it is there all the time");
        let version = configuration.version(number, found);
        assert!((first..=last).contains(&version), "{version} is not from {first} to {last}");
    }
    assert!(scanned.keys().all(|key| number_of(key) < COMING.end), "nobody wrote it");
}

fn beside_writers(configuration: &Configuration, db: &Db) {
    configuration.fill(&mut db.session(), 0..STILL, 1);
    configuration.fill(&mut db.session(), HOT, 1);
    let (is_over, version) = (AtomicBool::new(false), AtomicU64::new(1));
    at_once(3, |thread| match thread {
        0 => {
            let mut session = db.session();
            while !is_over.load(Ordering::Acquire) {
                let next = version.load(Ordering::Relaxed) + 1;
                configuration.fill(&mut session, HOT, next);
                version.store(next, Ordering::Release);
            }
        }
        1 => come_and_go(configuration, db, COMING, &is_over),
        _ => {
            let ends = End(&is_over);
            for round in 0..60 {
                let first = version.load(Ordering::Acquire);
                let mut scanned = match round % 2 {
                    0 => collected(db.scan(..).expect("ordered")),
                    _ => collected(db.scan(..).expect("ordered").rev()),
                };
                if round % 2 == 1 {
                    scanned.reverse();
                }
                check(configuration, &scanned, first, version.load(Ordering::Acquire) + 1);
            }
            drop(ends);
        }
    });
    assert_sound(db);
}

fn beside_writers_a_key_that_stays_is_scanned_exactly_once(configuration: &Configuration) {
    let directory = scratch();
    let options = ordered(configuration).reclaim_percent(20).reclaim_bytes_per_second(u64::MAX);
    beside_writers(configuration, &open(directory.path(), &options));
}

fn the_same_where_scans_hold_writers_up(configuration: &Configuration) {
    let directory = scratch();
    let options = ordered(configuration).order(|order| order.barrier(true));
    beside_writers(configuration, &open(directory.path(), &options));
}

fn what_is_scanned_may_be_deleted_meanwhile(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &ordered(configuration));
    configuration.fill(&mut db.session(), 0..700, 1);
    let mut deleted = 0;
    for record in db.scan(..).expect("ordered") {
        assert!(db.delete(&record.expect("no damage").0).expect("delete"), "a key comes twice");
        deleted += 1;
    }
    assert_eq!((deleted, db.len()), (700, 0));
    assert_eq!(db.scan(..).expect("ordered").count(), 0);
    assert_sound(&db);
}

fn the_order_says_what_it_has(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &ordered(configuration));
    configuration.fill(&mut db.session(), 0..200, 1);
    for number in 0..50 {
        assert!(db.delete(configuration.key(number)).expect("delete"));
    }
    let before = db.stats().operations;
    assert_eq!(db.scan(..).expect("ordered").count(), 150);
    let stats = db.stats();
    let order = stats.order.expect("ordered");
    assert_eq!((order.keys, order.waiting, order.changes), (150, 0, 250));
    assert!(order.dram_bytes > 0 && order.dram_bytes <= stats.dram_table_bytes);
    assert!(order.leaves > 1 && order.height > 1 && order.inner_nodes > 0);
    assert_eq!(stats.operations.records_scanned - before.records_scanned, 150);
    assert!(stats.operations.scans > before.scans);
    // Overwrites are no matter of the order.
    configuration.fill(&mut db.session(), 50..200, 2);
    assert_eq!(db.stats().order.expect("ordered").changes, 250);
    assert!(db.metrics_text().contains("chimera_order_keys 150"));
    let order = db.stats().order.expect("ordered");
    assert!(!order.transactions && order.transactions_aborted == 0);
    drop(db);
    let with = ordered(configuration).order(|order| order.hardware_transactions(true));
    let db = open(directory.path(), &with);
    let commits = chimera_pmem::transactions_commit();
    assert_eq!(db.stats().order.expect("ordered").transactions, commits);
}

fn impossible_orders_are_refused(configuration: &Configuration) {
    let directory = scratch();
    let refused = |change: fn(OrderOptions) -> OrderOptions, words: &[&str]| {
        let options = ordered(configuration).order(change);
        assert_fails(Db::open(directory.path(), &options), words);
    };
    refused(|order| order.queues(0), &["1 to 64 queues", "not 0"]);
    refused(|order| order.queue_requests(12), &["power of two", "not 12"]);
    refused(|order| order.threads(65), &["65 threads", "queues"]);
    refused(|order| order.trees(0), &["1 to 64 trees", "not 0"]);
    refused(|order| order.trees(usize::MAX), &["1 to 64 trees"]);
    refused(|order| order.trees(64).queues(5), &["64 trees with 5 queues", "256"]);
    let ranges = ["1 to 4096 bytes in ascending order"];
    refused(|order| order.tree_ranges(vec![vec![]]), &ranges);
    refused(|order| order.tree_ranges(vec![vec![1], vec![1]]), &ranges);
    refused(|order| order.tree_ranges(vec![vec![2], vec![1, 1]]), &ranges);
    refused(|order| order.tree_ranges(vec![vec![7; 4097]]), &ranges);
}

/// Ranges of all kinds say what they mean.
fn each_kind_of_range_says_what_it_means(configuration: &Configuration) {
    fn count(db: &Db, range: impl KeyRange) -> usize {
        db.scan(range).expect("ordered").count()
    }
    let directory = scratch();
    let db = open(directory.path(), &ordered(configuration));
    configuration.fill(&mut db.session(), 0..40, 1);
    let keys: Vec<_> = configuration.records(0..40, 1).into_keys().collect();
    let (low, high) = (&keys[10], &keys[30]);
    assert_eq!(count(&db, ..), 40);
    assert_eq!(count(&db, low..high), 20);
    assert_eq!(count(&db, low..=high), 21);
    assert_eq!(count(&db, low.clone()..), 30);
    assert_eq!(count(&db, ..high.as_slice()), 30);
    assert_eq!(count(&db, ..=high), 31);
    assert_eq!(count(&db, (Bound::Excluded(low), Bound::Included(high))), 20);
    assert_eq!(count(&db, high..low), 0);
    assert_eq!(count(&db, low..low), 0);
    assert_eq!(count(&db, low..=low), 1);
    assert_eq!(count(&db, "".."~~~") + count(&db, "~~~"..), 40);
}
