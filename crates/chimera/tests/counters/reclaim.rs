//! Space reclamation: what a record that is moved costs, and a block that is freed or given back.

use chimera::{Db, Options, ReclaimStats};
use chimera_pmem::Operation;
use chimera_pmem::instrumented::Counters;

use super::variable::key;
use super::{Counted, assert_untouched, counted};

const RECORDS: u64 = 4080;

fn fill(db: &Db<Counted>, value: &[u8], records: u64) {
    let mut session = db.session();
    for number in 0..records {
        session.put(key(number, 16), value).unwrap();
    }
    for number in (0..records).filter(|number| number % 3 > 0) {
        session.delete(key(number, 16)).unwrap();
    }
}

fn compact(db: &Db<Counted>) -> (ReclaimStats, Counters) {
    let mut stats = None;
    let counters = counted(db, Operation::Reclaim, || stats = Some(db.compact(10, None).unwrap()));
    let stats = stats.unwrap();
    assert_eq!(counters.of(Operation::Other).fences, 0, "all is booked");
    (stats, counters)
}

/// Blocks that the mover leaves at the end of a part of a pass cost a fence each.
fn assert_left(fences: u64, known: u64) {
    assert!((known..=known + 2).contains(&fences), "{fences} fences, not {known}");
}

#[test]
fn a_record_is_moved_for_three_fences_and_a_block_freed_for_two() {
    for (options, is_fixed) in [(Options::new().fixed_size(16, 200), true), (Options::new(), false)]
    {
        let db = super::open(options);
        fill(&db, &[1; 200], RECORDS);
        let (stats, counters) = compact(&db);
        assert!(stats.moved_records >= RECORDS / 3 - 102, "{stats:?}");
        assert!(stats.blocks_freed >= 38 && stats.blocks_given_back >= 24, "{stats:?}");
        let totals = counters.of(Operation::Reclaim);
        let (freed, back) = (stats.blocks_freed, stats.blocks_given_back);
        assert_left(totals.fences, 3 * stats.moved_records + 2 * freed + back);
        // The pages of a block and its flags; the number of used blocks and the flags.
        let of_blocks = 7 * freed + 2 * back;
        let lines = totals.lines_flushed + totals.lines_reflushed - of_blocks;
        let each = lines as f64 / stats.moved_records as f64;
        // An overwrite.
        let usual = if is_fixed { 6.3..=6.6 } else { 5.6..=5.8 };
        assert!(usual.contains(&each), "{each}");
        // That slots are free is durable in truth; only those who freed them know.
        let clean = if is_fixed { 6 * freed } else { 0 };
        assert_eq!(totals.lines_flushed_clean, clean);
    }
}

#[test]
fn large_values_are_moved_for_three_fences_too() {
    let db = super::open(Options::new());
    fill(&db, &vec![1; 60_000], 300);
    let (stats, counters) = compact(&db);
    assert!(stats.moved_records >= 30 && stats.blocks_given_back >= 100, "{stats:?}");
    let totals = counters.of(Operation::Reclaim);
    let (freed, back) = (stats.blocks_freed, stats.blocks_given_back);
    // A block of chunks: that their records do not count, that it is empty as one page, and as six; its flags.
    let known = 3 * stats.moved_records + 4 * freed + back;
    // The block with all the records: that they do not count, for each of its pages.
    let of_records = totals.fences - known;
    assert!((1..=2 + 6).contains(&of_records), "{of_records}");
    // One for each chunk, and for each record in the block that has them.
    let of_words = totals.lines_flushed_clean;
    assert!((freed..=2 * freed + 300).contains(&of_words), "{of_words}");
    let of_blocks = 7 * freed + 2 * back + of_words;
    let lines = (totals.lines_flushed + totals.lines_reflushed - of_blocks) / stats.moved_records;
    // 938 of the value, up to 2 for each of its 3 or 4 chunks, 3 of the record and of the old one.
    assert!((940..=949).contains(&lines), "{lines}");
}

#[test]
fn what_is_compact_is_left_alone() {
    for options in [Options::new().fixed_size(16, 200), Options::new()] {
        let db = super::open(options);
        fill(&db, &[1; 200], RECORDS);
        compact(&db);
        let (first, counters) = compact(&db);
        assert_untouched(&counters.total());
        let (second, counters) = compact(&db);
        assert_untouched(&counters.total());
        assert_eq!(first.moved_records, second.moved_records);
        // Nor one that never held more than a few records, nor one that holds nothing.
        let few = super::open(Options::new());
        fill(&few, &[1; 200], 9);
        assert_untouched(&compact(&few).1.of(Operation::Reclaim));
    }
}
