//! Stores of HiKV: two fences for a put, whether its key is new or not, and one for a delete. With a write-ahead log three
//! and two.

use chimera::baselines::{Consistency, RecordLayout};
use chimera::{Db, EngineKind, Options, Session};
use chimera_pmem::Operation;

use super::variable::key;
use super::{Counted, assert_fences, assert_untouched, counted};

const RECORDS: u64 = 3_000;
const LAYOUTS: [RecordLayout; 2] = [RecordLayout::Checked, RecordLayout::Published];

fn open(layout: RecordLayout) -> Db<Counted> {
    open_with(layout, Consistency::OrderedWrite)
}

fn open_with(layout: RecordLayout, consistency: Consistency) -> Db<Counted> {
    let options = Options::new().engine(EngineKind::Hikv);
    super::open(options.hikv(|hikv| hikv.layout(layout).consistency(consistency)))
}

fn put(session: &mut Session<Counted>, numbers: std::ops::Range<u64>, is_new: bool, byte: u8) {
    for number in numbers {
        assert_eq!(session.put(key(number, 16), [byte; 200]).unwrap(), is_new);
    }
}

/// Records of 240 or 224 bytes of units of 32: four lines, or five.
fn assert_lines(flushes: u64) {
    let lines = flushes as f64 / RECORDS as f64;
    assert!((5.0..6.0).contains(&lines), "{lines} lines, that of the entry included");
}

#[test]
fn a_put_costs_two_fences_and_a_delete_one() {
    for layout in LAYOUTS {
        let db = open(layout);
        let mut session = db.session();
        let counters = counted(&db, Operation::Other, || put(&mut session, 0..RECORDS, true, 1));
        assert_fences(&counters, Operation::Insert, RECORDS, 2);
        let insert = counters.of(Operation::Insert);
        assert_lines(insert.lines_flushed + insert.lines_reflushed);
        // Growth is booked apart: segments of the index and runs of items.
        let growth = counters.of(Operation::BlockHandOut);
        assert!(growth.operations > 16 && growth.fences >= 2 * 16, "{growth:?}");
        assert_eq!(counters.of(Operation::Other).fences, 0);

        let counters = counted(&db, Operation::Other, || put(&mut session, 0..RECORDS, false, 2));
        assert_fences(&counters, Operation::Overwrite, RECORDS, 2);
        let overwrite = counters.of(Operation::Overwrite);
        assert_lines(overwrite.lines_flushed + overwrite.lines_reflushed);

        let counters = counted(&db, Operation::Other, || {
            for number in 0..RECORDS {
                assert!(session.update(key(number, 16), |value| value[0] = 3).unwrap());
            }
        });
        assert_fences(&counters, Operation::Update, RECORDS, 2);

        let counters = counted(&db, Operation::Other, || {
            (0..RECORDS).for_each(|number| assert!(session.delete(key(number, 16)).unwrap()));
        });
        assert_fences(&counters, Operation::Delete, RECORDS, 1);
        let delete = counters.of(Operation::Delete);
        // Each flushes the line of its entry.
        assert_eq!(delete.lines_flushed + delete.lines_reflushed, RECORDS);
    }
}

/// The record of the log, the item, the entry; for a delete the record and the entry.
#[test]
fn with_a_write_ahead_log_a_put_costs_three_fences_and_a_delete_two() {
    for layout in LAYOUTS {
        let db = open_with(layout, Consistency::WriteAheadLog);
        let mut session = db.session();
        let counters = counted(&db, Operation::Other, || put(&mut session, 0..RECORDS, true, 1));
        assert_fences(&counters, Operation::Insert, RECORDS, 3);
        assert_eq!(counters.of(Operation::Other).fences, 0);
        let insert = counters.of(Operation::Insert);
        // The log begins with a line, and its record has 240 bytes.
        let lines = (insert.lines_flushed + insert.lines_reflushed) as f64 / RECORDS as f64;
        assert!((9.0..10.0).contains(&lines), "{lines} lines, four of them of the log");

        let counters = counted(&db, Operation::Other, || put(&mut session, 0..RECORDS, false, 2));
        assert_fences(&counters, Operation::Overwrite, RECORDS, 3);
        let counters = counted(&db, Operation::Other, || {
            for number in 0..RECORDS {
                assert!(session.update(key(number, 16), |value| value[0] = 3).unwrap());
            }
        });
        assert_fences(&counters, Operation::Update, RECORDS, 3);
        let counters = counted(&db, Operation::Other, || {
            (0..RECORDS).for_each(|number| assert!(session.delete(key(number, 16)).unwrap()));
        });
        assert_fences(&counters, Operation::Delete, RECORDS, 2);
        let delete = counters.of(Operation::Delete);
        assert_eq!(delete.lines_flushed + delete.lines_reflushed, 2 * RECORDS);
    }
}

#[test]
fn what_changes_nothing_costs_nothing() {
    for (layout, consistency) in LAYOUTS.into_iter().flat_map(|layout| {
        [Consistency::OrderedWrite, Consistency::WriteAheadLog].map(|kind| (layout, kind))
    }) {
        let db = open_with(layout, consistency);
        let mut session = db.session();
        put(&mut session, 0..10, true, 1);
        let counters = counted(&db, Operation::Other, || {
            assert!(session.get(key(3, 16)).unwrap().is_some());
            assert!(session.get(key(99, 16)).unwrap().is_none());
            assert!(!session.delete(key(99, 16)).unwrap());
            assert!(session.update(key(3, 16), |_| ()).unwrap());
        });
        assert_untouched(&counters.total());
    }
}
