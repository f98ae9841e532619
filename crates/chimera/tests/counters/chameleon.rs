//! Stores of ChameleonDB: one fence for each write, and of persistent memory no more lines than it must read.

use chimera::baselines::{FilterKind, UpperIndex};
use chimera::{ChameleonOptions, Db, EngineKind, Options, Session};
use chimera_pmem::Operation;

use super::lines::{Flushes, Once};
use super::variable::key;
use super::{Counted, assert_fences, assert_flushes, assert_untouched, counted, flushes};

/// Bytes of a record of a key of 16 bytes and a value of 200, and of its tombstone.
const RECORD: u64 = 24 + 16 + 200;
const TOMBSTONE: u64 = 24 + 16;
/// Where the first record of a run begins, in its first block.
const FIRST: u64 = 128;

fn open(change: impl FnOnce(ChameleonOptions) -> ChameleonOptions) -> Db<Counted> {
    super::open(Options::new().engine(EngineKind::Chameleon).chameleon(change))
}

fn put(session: &mut Session<Counted>, numbers: std::ops::Range<u64>, is_new: bool, byte: u8) {
    for number in numbers {
        assert_eq!(session.put(key(number, 16), [byte; 200]).unwrap(), is_new);
    }
}

/// The lines of so many records, one behind the other, each flushed by itself.
fn lines(at: u64, count: u64, bytes: u64) -> Flushes {
    let mut all = Flushes::default();
    for number in 0..count {
        all += Once::default().flush(at + number * bytes, bytes).flushes();
    }
    all
}

#[test]
fn each_write_costs_one_fence_and_the_lines_of_its_record() {
    const COUNT: u64 = 200;
    // Neither a MemTable nor a run of the log is full by that.
    let db = open(|chameleon| chameleon.shards(4));
    let mut session = db.session();
    put(&mut session, 0..1, true, 1);
    let mut at = FIRST + RECORD;
    let counters = counted(&db, Operation::Other, || put(&mut session, 1..COUNT, true, 1));
    let insert = counters.of(Operation::Insert);
    assert_fences(&counters, Operation::Insert, COUNT - 1, 1);
    assert_flushes(&insert, lines(at, COUNT - 1, RECORD));
    assert_eq!(insert.lines_read_demand, 0, "where there is no table nothing is read");
    at += (COUNT - 1) * RECORD;

    let counters = counted(&db, Operation::Other, || put(&mut session, 0..COUNT, false, 2));
    assert_fences(&counters, Operation::Overwrite, COUNT, 1);
    assert_flushes(&counters.of(Operation::Overwrite), lines(at, COUNT, RECORD));
    at += COUNT * RECORD;

    let counters = counted(&db, Operation::Other, || {
        for number in 0..COUNT {
            assert!(session.update(key(number, 16), |value| value[0] = 3).unwrap());
        }
    });
    assert_fences(&counters, Operation::Update, COUNT, 1);
    assert_flushes(&counters.of(Operation::Update), lines(at, COUNT, RECORD));
    at += COUNT * RECORD;

    let counters = counted(&db, Operation::Other, || {
        (0..COUNT).for_each(|number| assert!(session.delete(key(number, 16)).unwrap()));
    });
    assert_fences(&counters, Operation::Delete, COUNT, 1);
    assert_flushes(&counters.of(Operation::Delete), lines(at, COUNT, TOMBSTONE));
}

/// Of new keys, into a store whose shard has tables of all levels: a line is read of each place where the key could be, or
/// none at all.
#[test]
fn a_blind_put_reads_no_table() {
    const COUNT: u64 = 100;
    const KEYS: u64 = 30_000;
    let lines_read = |is_blind: bool| {
        let db = open(|chameleon| {
            let one = chameleon.shards(1).memtable_bytes(4096).load_factors(0.8..=0.8);
            one.blind_puts(is_blind)
        });
        let mut session = db.session();
        put(&mut session, 0..KEYS, true, 1);
        db.sync().unwrap();
        let memtable = db.stats().chameleon().expect("ChameleonDB").memtable_entries;
        // Until a MemTable is flushed, and then not until the next one is full.
        let until = KEYS + 256 - memtable;
        put(&mut session, KEYS..until, true, 1);
        let counters =
            counted(&db, Operation::Other, || put(&mut session, until..until + COUNT, true, 1));
        let insert = counters.of(Operation::Insert);
        assert_eq!((insert.operations, insert.fences), (COUNT, COUNT), "one fence each");
        insert.lines_read_demand + insert.lines_read_prefetched
    };
    assert_eq!(lines_read(true), 0);
    assert!(lines_read(false) >= COUNT);
}

#[test]
fn with_batches_a_fence_serves_many_writes() {
    const COUNT: u64 = 180;
    let db = open(|chameleon| chameleon.shards(4).log_batch_bytes(4096));
    let mut session = db.session();
    put(&mut session, 0..1, true, 1);
    db.sync().unwrap();
    let counters = counted(&db, Operation::Other, || put(&mut session, 1..COUNT + 1, true, 1));
    // 18 records are the first that have 4096 bytes.
    assert_eq!(counters.of(Operation::Insert).fences, COUNT / 18);
    let counters = counted(&db, Operation::Other, || put(&mut session, 1000..1005, true, 1));
    assert_untouched_media(&counters);
    let counters = counted(&db, Operation::Other, || drop(session));
    assert_eq!(counters.total().fences, 1, "what is pending");
}

fn assert_untouched_media(counters: &chimera_pmem::instrumented::Counters) {
    let total = counters.total();
    assert_eq!((total.fences, flushes(&total)), (0, Flushes::default()));
}

/// One shard of small tables: most keys are in the last one, some above it, some in the MemTable.
fn with_tables() -> Db<Counted> {
    with_tables_and(UpperIndex::Bypass)
}

fn with_tables_and(upper_index: UpperIndex) -> Db<Counted> {
    let db = open(|chameleon| {
        let shape = chameleon.shards(1).memtable_bytes(4096).levels(3).ratio(4);
        shape.load_factors(0.75..=0.75).upper_index(upper_index)
    });
    put(&mut db.session(), 0..8_000, true, 1);
    let stats = db.stats();
    let chameleon = stats.chameleon().unwrap();
    let has_upper = chameleon.level_tables.iter().all(|tables| *tables > 0);
    assert!(chameleon.last_tables == 1 && has_upper, "{chameleon:?}");
    db
}

#[test]
fn a_put_of_a_new_key_reads_what_a_get_of_it_reads_and_no_record() {
    let db = with_tables();
    let mut session = db.session();
    let numbers = 100_000..100_050;
    let counters = counted(&db, Operation::Other, || {
        for number in numbers.clone() {
            assert!(session.get(key(number, 16)).unwrap().is_none());
        }
    });
    let missed = counters.of(Operation::Get).lines_read_demand;
    // Chains of 8.5 slots on average, 4 to a line, in the last table alone.
    assert!((50..50 * 5).contains(&missed), "{missed} lines of the last table");
    let counters = counted(&db, Operation::Other, || put(&mut session, numbers.clone(), true, 1));
    assert_eq!(counters.of(Operation::Insert).lines_read_demand, missed);
    assert_eq!(counters.of(Operation::BlockHandOut).fences, 0, "the MemTable was not flushed");
}

#[test]
fn a_get_looks_in_at_most_three_places() {
    let db = with_tables();
    let mut session = db.session();
    let mut read = |numbers: std::ops::Range<u64>| {
        let count = numbers.end - numbers.start;
        let counters = counted(&db, Operation::Other, || {
            for number in numbers {
                assert!(session.get(key(number, 16)).unwrap().is_some());
            }
        });
        assert_untouched(&counters.total());
        let get = counters.of(Operation::Get);
        (get.lines_read_demand + get.lines_read_prefetched) as f64 / count as f64
    };
    // 240 bytes are 4 or 5 lines. What is in the MemTable or above the last table is found in DRAM.
    let recent = read(7_900..8_000);
    assert!((4.0..=5.0).contains(&recent), "{recent} lines");
    // With 2.5 slots of the last table.
    let old = read(0..100);
    assert!((5.0..=6.5).contains(&old), "{old} lines");
}

#[test]
fn gets_of_many_keys_start_loading_what_each_get_reads() {
    let db = with_tables();
    let mut session = db.session();
    let mut read = |numbers: std::ops::Range<u64>| {
        let keys: Vec<_> = numbers.map(|number| key(number, 16)).collect();
        let one_by_one = counted(&db, Operation::Other, || {
            for key in &keys {
                assert!(session.get(key).unwrap().is_some());
            }
        });
        let together = counted(&db, Operation::Other, || {
            assert!(session.multi_get(&keys).unwrap().iter().all(Option::is_some));
        });
        assert_untouched(&together.total());
        [one_by_one, together].map(|counters| counters.total())
    };
    // The entry is in DRAM: the first 64 bytes of the record are loaded ahead, one line or two, and nothing else.
    let [get, recent] = read(7_900..8_000);
    assert_eq!(get.lines_read_prefetched, 0);
    assert!((100..=200).contains(&recent.lines_read_prefetched), "{recent:?}");
    assert_eq!(recent.lines_missed, get.lines_missed);
    // A line of the last table besides. Keys may share one.
    let [get, old] = read(0..100);
    assert!(old.lines_read_prefetched >= recent.lines_read_prefetched + 80, "{old:?}");
    assert!(old.lines_missed <= get.lines_missed, "{old:?} {get:?}");
}

/// Lines of persistent memory that 100 gets of such keys read, and tables above the last level.
fn lines_read(upper_index: UpperIndex, numbers: std::ops::Range<u64>) -> (u64, u64) {
    let db = with_tables_and(upper_index);
    let mut session = db.session();
    let is_there = numbers.start < 8_000;
    assert_eq!(numbers.end - numbers.start, 100);
    let counters = counted(&db, Operation::Other, || {
        for number in numbers {
            assert_eq!(session.get(key(number, 16)).unwrap().is_some(), is_there);
        }
    });
    assert_untouched(&counters.total());
    let get = counters.of(Operation::Get);
    let tables = db.stats().chameleon().unwrap().level_tables.iter().sum();
    (get.lines_read_demand + get.lines_read_prefetched, tables)
}

#[test]
fn without_a_bypass_index_a_get_reads_every_table_or_copies_or_what_filters_leave() {
    let filters = [FilterKind::Bloom, FilterKind::Blocked].map(UpperIndex::Filters);
    // Keys that are not there: the last table alone is read, and without anything else all of them.
    let (last, tables) = lines_read(UpperIndex::Bypass, 100_000..100_100);
    assert!(tables >= 3, "{tables}");
    let (all, same) = lines_read(UpperIndex::Tables, 100_000..100_100);
    assert_eq!(tables, same);
    let uppers = (all - last) as f64 / (100 * tables) as f64;
    assert!((1.2..1.7).contains(&uppers), "{uppers} lines of each table: chains of 2.5 slots");
    assert_eq!(lines_read(UpperIndex::Pinned, 100_000..100_100), (last, tables));
    for upper_index in filters {
        assert!(lines_read(upper_index, 100_000..100_100).0 <= 10);
    }
    // Keys of the oldest records, which the last table has: 4 or 5 lines, and with the chain of its table 5 to 7. Tables that
    // are merged one after the other have the oldest keys further from their homes.
    let (bypassed, _) = lines_read(UpperIndex::Bypass, 0..100);
    let (one, _) = lines_read(UpperIndex::Pinned, 0..100);
    assert!(bypassed < one + 100 && one < 700, "{bypassed} {one}");
    let (all, _) = lines_read(UpperIndex::Tables, 0..100);
    assert!(all > one + 100 * tables, "{all} {one}");
    for upper_index in filters {
        let (found, _) = lines_read(upper_index, 0..100);
        assert!(one <= found && found <= one + 10, "{found} {one}");
    }
}

#[test]
fn what_changes_nothing_costs_nothing() {
    let db = open(|chameleon| chameleon.shards(4));
    let mut session = db.session();
    put(&mut session, 0..10, true, 1);
    let counters = counted(&db, Operation::Other, || {
        assert!(session.get(key(3, 16)).unwrap().is_some());
        assert!(!session.delete(key(99, 16)).unwrap());
        assert!(session.update(key(3, 16), |_| ()).unwrap());
    });
    assert_untouched(&counters.total());
}
