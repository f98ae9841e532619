//! What a store says it is made of.

use chimera::{Db, Options, ViperInspect};

use crate::tools::{fill, key, open, scratch, small};
use crate::{any_size, store_of};

/// Asserts what is true of every report.
fn consistent(db: &Db) -> ViperInspect {
    let common = db.inspect(None);
    let report = common.viper().expect("Viper").clone();
    assert_eq!(report.records, common.records);
    assert_eq!(report.blocks.used, common.blocks_used);
    let blocks = &report.blocks;
    assert_eq!(blocks.used, blocks.paged + blocks.large + blocks.damaged);
    let of_records = blocks.paged + blocks.large;
    assert_eq!(of_records, blocks.owned + blocks.queued + blocks.resting);
    assert_eq!(of_records, report.fill.empty + report.fill.tenths.iter().sum::<u64>());
    assert_eq!(blocks.empty, report.fill.empty);
    let bytes = &report.bytes;
    assert_eq!(
        of_records * common.block_bytes,
        bytes.live + bytes.dead + bytes.room + bytes.overhead
    );
    assert_eq!(report.index.entries, report.records);
    assert!(report.index.slots >= report.index.entries && report.index.bytes > 0);
    assert_eq!(blocks.used, db.stats().blocks_used);
    report
}

#[test]
fn blocks_of_fixed_records_are_counted() {
    let directory = scratch();
    let db = open(directory.path(), &small());
    assert_eq!(consistent(&db).blocks.used, 0);
    let mut session = db.session();
    fill(&mut session, 0..100, 1);
    let report = consistent(&db);
    assert_eq!((report.records, report.blocks.owned), (100, 1));
    // 16 bytes of header, 8 of key, 24 of value.
    assert_eq!((report.bytes.live, report.bytes.dead), (4800, 0));
    assert_eq!(report.pages.pages, 2 * report.blocks.used);
    assert_eq!(report.pages.damaged, 0);
    for number in 0..100 {
        session.delete(key(number)).expect("it is there");
    }
    drop(session);
    let report = consistent(&db);
    assert_eq!((report.records, report.bytes.live, report.pages.filled), (0, 0, 0));
    assert_eq!((report.blocks.empty, report.blocks.owned), (report.blocks.used, 0));
    assert_eq!(report.blocks.queued, report.blocks.used);
}

#[test]
fn deleted_records_of_a_log_are_dead_until_the_page_is_empty() {
    let directory = scratch();
    let db = open(directory.path(), &any_size());
    let mut session = db.session();
    fill(&mut session, 0..40, 1);
    let before = consistent(&db);
    assert_eq!(before.bytes.dead, 0);
    // 24 bytes of lengths and header, 8 of key, 24 of value.
    assert_eq!(before.bytes.live, 40 * 56);
    for number in (0..40).step_by(2) {
        session.delete(key(number)).expect("it is there");
    }
    let after = consistent(&db);
    assert_eq!(after.bytes.live, 20 * 56);
    assert!(after.bytes.dead > 0 && after.bytes.dead + after.bytes.live <= 40 * 56);
    for number in (1..40).step_by(2) {
        session.delete(key(number)).expect("it is there");
    }
    let empty = consistent(&db);
    assert_eq!((empty.bytes.live, empty.bytes.dead), (0, 0), "pages without records are room");
}

#[test]
fn large_values_are_in_blocks_of_one_page() {
    let directory = scratch();
    let options = Options::new().segment_bytes(32 << 20);
    let (db, _) = store_of(directory.path(), &options, &[10, 5000, 1 << 20]);
    let report = consistent(&db);
    assert!(report.blocks.large > 40 && report.blocks.paged >= 1, "{report:?}");
    assert!(report.bytes.live > 5000 + (1 << 20));
    assert!(report.fill.tenths[9] > 40, "{report:?}");
}

#[test]
fn the_index_says_how_it_has_grown() {
    let directory = scratch();
    let db = open(directory.path(), &small());
    fill(&mut db.session(), 0..5000, 1);
    let index = consistent(&db).index;
    assert!(index.segments > 50 && index.directory_depth >= 6, "{index:?}");
    assert_eq!(index.slots, 64 * index.segments);
    assert!((0.4..=1.0).contains(&index.load), "{index:?}");
    assert_eq!(index.overflow, 0);
}
