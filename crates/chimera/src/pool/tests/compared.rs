//! What a pool makes of a difference between what it held when it was closed and what is found, and of being incomplete.

use super::*;
use crate::pool::{Compared, Held, Sums, TOTALS_AT};

/// What a store holds with so many records.
fn holding(records: u64) -> Totals {
    let mut totals = Totals::default();
    (0..records).for_each(|record| totals.add(record + 1, 8 * record));
    totals
}

/// A pool that was closed with four records, opened again.
fn closed_with_four(directory: &Path, salvage: bool) -> Pool<Hardware> {
    let path = directory.join("pool");
    let (pool, _) = open(&path, &options()).unwrap();
    pool.mark_open().unwrap();
    pool.mark_recovered().unwrap();
    pool.close_with([0; 2], holding(4)).unwrap();
    drop(pool);
    open(&path, &PoolOptions { salvage, ..options() }).unwrap().0
}

fn compared(pool: &Pool<Hardware>, salvage: bool, found: u64) -> Result<Compared> {
    pool.compare_with_closing(salvage, Sums::Records, || holding(found))
}

#[test]
fn a_difference_is_an_error_unless_the_pool_is_salvaged() {
    let directory = tempfile::tempdir().unwrap();
    for salvage in [false, true] {
        let pool = closed_with_four(directory.path(), salvage);
        assert_eq!(compared(&pool, salvage, 4).unwrap().difference(), None);
        let words = "the store was closed with 4 records, and 3 were found";
        match compared(&pool, salvage, 3) {
            Ok(compared) => {
                assert_eq!((salvage, &*compared.difference().unwrap()), (true, words));
            }
            Err(Error::Corrupted { what, at }) => {
                assert_eq!((salvage, &*what, at), (false, words, TOTALS_AT));
            }
            Err(other) => panic!("{other}"),
        }
        drop(pool);
        std::fs::remove_dir_all(directory.path().join("pool")).unwrap();
    }
}

#[test]
fn what_other_places_do_not_explain_is_a_loss_of_its_own() {
    for (found, noted, expected) in [
        // Nothing differs, nothing is noted.
        (4, None, (0, None, false)),
        // Nothing else is left out: all of it is missing.
        (3, None, (1, Some(TOTALS_AT), false)),
        // A place that had a record or none explains one.
        (3, Some(Held::One), (1, Some(5000), true)),
        (2, Some(Held::One), (2, Some(TOTALS_AT.min(5000)), false)),
        // A place that had a record which is known.
        (3, Some(Held::Record { hash: 4, location: 24 }), (1, Some(5000), false)),
        // One that may have led to any number.
        (1, Some(Held::Unknown), (1, Some(5000), true)),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let pool = closed_with_four(directory.path(), true);
        if let Some(held) = noted {
            pool.note_loss_of(held, 5000, "something else");
        }
        pool.note_difference(compared(&pool, true, found).unwrap());
        let losses = pool.losses();
        let is = (losses.count, losses.first.map(|first| first.at), losses.may_be_more);
        assert_eq!(is, expected, "{found} found, {noted:?} noted");
    }
}

#[test]
fn a_pool_is_incomplete_until_it_is_said_to_be_complete() {
    for completes in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pool");
        let (pool, _) = open(&path, &PoolOptions { incomplete: true, ..options() }).unwrap();
        pool.mark_open().unwrap();
        pool.mark_recovered().unwrap();
        assert_eq!(pool.superblock().closing, Closing::Incomplete);
        if completes {
            pool.complete();
        }
        pool.close_with([0; 2], holding(4)).unwrap();
        let is_closed = pool.superblock().closing == Closing::Clean;
        assert_eq!(is_closed, completes);
    }
}
