//! Stores of records of any size: blocks that are handed out, fresh ones and those that were in use.

use chimera::Session;
use chimera_pmem::Operation;
use chimera_pmem::instrumented::OperationCounters;

use super::variable::{key, open};
use super::{Counted, assert_fences, assert_untouched, counted};

/// Records of 16 + 200 bytes that fill a block.
const FULL: u64 = 102;
const PAGES: u64 = 6;
const BLOCKS: u64 = 10;
/// Lines of a page.
const LINES: u64 = 64;

fn fill(session: &mut Session<Counted>, numbers: std::ops::Range<u64>) {
    for number in numbers {
        assert!(session.put(key(number, 16), [1; 200]).unwrap());
    }
}

fn empty(session: &mut Session<Counted>, numbers: std::ops::Range<u64>) {
    for number in numbers {
        assert!(session.delete(key(number, 16)).unwrap());
    }
}

/// Fills `BLOCKS` blocks that `prepare` has made ready, after one that is full; what that costs but for
/// the records.
fn refill(prepare: impl FnOnce(&mut Session<Counted>)) -> OperationCounters {
    let db = open();
    let mut session = db.session();
    prepare(&mut session);
    let used = db.stats().blocks_used;
    let counters =
        counted(&db, Operation::Other, || fill(&mut session, 5000..5000 + BLOCKS * FULL));
    // However a page came to be empty, records in it cost the same.
    assert_fences(&counters, Operation::Insert, BLOCKS * FULL, 2);
    let insert = counters.of(Operation::Insert);
    // As on fresh pages: see `variable`.
    let lines = insert.lines_flushed + insert.lines_reflushed;
    assert_eq!((lines * 1000).div_ceil(BLOCKS * FULL), 4706);
    let hand_out = counters.of(Operation::BlockHandOut);
    // One block left and one taken, with its first page; then the other pages.
    assert_eq!(hand_out.operations, BLOCKS * (2 + PAGES - 1));
    let is_fresh = db.stats().blocks_used - used;
    assert!(is_fresh == 0 || is_fresh == BLOCKS);
    assert_eq!(counters.of(Operation::Other).fences, 0);
    hand_out
}

fn flushed(hand_out: &OperationCounters) -> u64 {
    hand_out.lines_flushed + hand_out.lines_reflushed
}

#[test]
fn a_fresh_block_costs_three_fences_and_two_lines_for_each_page_and_three() {
    let hand_out = refill(|session| fill(session, 0..FULL));
    // Its pages are formatted, and sealed; both numbers of used blocks; marked as not owned any more.
    assert_eq!((hand_out.fences, flushed(&hand_out)), (3 * BLOCKS, (2 * PAGES + 3) * BLOCKS));
    assert_eq!(hand_out.lines_flushed_clean, 0);
    // Its pages are loaded ahead.
    let most = BLOCKS * (PAGES * LINES + 2 * PAGES);
    assert!(hand_out.lines_read() <= most, "{hand_out:?}");
}

#[test]
fn a_block_of_deleted_records_costs_a_fence_and_two_lines_for_each_page() {
    let hand_out = refill(|session| {
        fill(session, 0..(BLOCKS + 1) * FULL);
        empty(session, 0..BLOCKS * FULL);
    });
    assert_eq!(hand_out.fences, BLOCKS * (PAGES + 2));
    // The first line of a page: that it is empty, and where its log ends.
    assert_eq!(flushed(&hand_out), BLOCKS * (2 * PAGES + 2));
    assert_eq!(hand_out.lines_flushed_clean, 0);
}

#[test]
fn a_block_of_another_kind_costs_one_fence_more() {
    let hand_out = refill(|session| {
        fill(session, 0..FULL);
        // Two to a block.
        let records = 9000..9000 + 2 * (BLOCKS + 1);
        for number in records.clone() {
            session.put(key(number, 16), [1; 12_000]).unwrap();
        }
        empty(session, records);
        // The session leaves its own, and takes one of them.
        session.put(key(9999, 16), [1; 12_000]).unwrap();
    });
    assert_eq!(hand_out.fences, BLOCKS * (2 + 1 + 1));
    assert_eq!(flushed(&hand_out), BLOCKS * (PAGES + 1 + 1 + PAGES));
    assert_eq!(hand_out.lines_flushed_clean, 0);
}

#[test]
fn a_block_of_chunks_costs_one_line_for_each_and_one_fence_more() {
    let hand_out = refill(|session| {
        // One to a block, which it fills.
        let records = 9000..=9000 + BLOCKS;
        for number in records.clone() {
            session.put(key(number, 16), vec![1; 24_528]).unwrap();
        }
        records.for_each(|number| empty(session, number..number + 1));
        // The session leaves its own, and takes one of them.
        session.put(key(9999, 16), [1; 12_000]).unwrap();
        // Behind eleven descriptors their block has room for three records less.
        fill(session, 0..FULL - 3);
    });
    assert_eq!(hand_out.fences, BLOCKS * (1 + 2 + 1 + 1));
    // The words of the chunks' records are durable in truth; only those who retired them know.
    assert_eq!(hand_out.lines_flushed_clean, BLOCKS);
    assert_eq!(flushed(&hand_out), BLOCKS * (1 + PAGES + 1 + 1 + PAGES));
}

#[test]
fn a_block_with_room_behind_its_logs_costs_a_fence() {
    let db = open();
    fill(&mut db.session(), 0..FULL / 2);
    let mut session = db.session();
    let counters = counted(&db, Operation::Other, || fill(&mut session, 200..200 + FULL / 2));
    assert_fences(&counters, Operation::Insert, FULL / 2, 2);
    let hand_out = counters.of(Operation::BlockHandOut);
    // What lies behind the logs is left as it is. The pages that are left are sealed.
    assert_eq!((hand_out.fences, hand_out.lines_flushed), (1, 3));
    assert_eq!(db.stats().blocks_used, 1);
    let ended = counted(&db, Operation::Other, || drop(session));
    assert_eq!((ended.total().fences, ended.total().lines_flushed), (1, 2));
    let idle = counted(&db, Operation::Other, || drop(db.session()));
    assert_untouched(&idle.total());
}

#[test]
fn a_page_with_room_behind_its_log_costs_a_line_and_a_fence_more() {
    let db = open();
    fill(&mut db.session(), 0..1);
    let mut session = db.session();
    let counters = counted(&db, Operation::Other, || fill(&mut session, 200..200 + FULL - 1));
    assert_fences(&counters, Operation::Insert, FULL - 1, 2);
    assert_eq!(db.stats().blocks_used, 1);
    let hand_out = counters.of(Operation::BlockHandOut);
    // The block is marked, and the page with a record is opened again. All pages but the last one are sealed.
    assert_eq!((hand_out.fences, flushed(&hand_out)), (2, 2 + PAGES - 1));
}
