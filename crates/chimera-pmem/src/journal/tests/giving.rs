//! Pages that are given back, by whom and when, and what is seen of it.

use super::*;

const PAGE: u64 = 4096;

/// A pool of which pages may take so many bytes.
fn limited(limit: u64) -> Pool {
    let pool = Pool::create(GROUP);
    pool.journal().limit_pages(limit);
    pool
}

fn private(pool: &Pool) -> u64 {
    pool.journal().page_figures().private_bytes
}

/// Puts a word into each of so many pages.
fn put_pages(pool: &Pool, count: u64) {
    for page in 0..count {
        pool.put(page * PAGE, 1 + page);
    }
}

#[test]
fn a_checkpoint_gives_back_what_it_has_written_back() {
    let pool = limited(u64::MAX);
    pool.memory.store_u64(0, 1, SITE);
    pool.memory.store_u64(PAGE, 2, SITE);
    pool.memory.store_u64(2 * PAGE, 3, SITE);
    for page in 0..2 {
        pool.memory.flush(pool.memory.check(page * PAGE, 8).unwrap(), SITE);
    }
    pool.memory.fence(SITE);
    pool.journal().limit_pages(0);
    assert_eq!(private(&pool), 3 * PAGE);
    pool.journal().checkpoint().unwrap();
    let figures = pool.journal().page_figures();
    assert_eq!((figures.private_bytes, figures.given_back_bytes), (PAGE, 2 * PAGE));
    assert_eq!(figures.written_back_bytes, 128);
    for page in 0..3 {
        assert_eq!(pool.memory.load_u64(page * PAGE), page + 1);
    }
}

#[test]
fn nothing_is_given_back_while_less_than_half_is_used() {
    let pool = limited(8 * PAGE);
    put_pages(&pool, 4);
    pool.journal().checkpoint().unwrap();
    assert_eq!(private(&pool), 4 * PAGE);
    pool.put(4 * PAGE, 1);
    pool.journal().checkpoint().unwrap();
    assert_eq!(private(&pool), 4 * PAGE, "those of this checkpoint only");
}

#[test]
fn an_operation_waits_above_the_limit_until_an_eighth_is_free() {
    let pool = limited(8 * PAGE);
    put_pages(&pool, 8);
    pool.journal().settle().unwrap();
    assert_eq!(private(&pool), 8 * PAGE, "that many may be");
    pool.put(8 * PAGE, 1);
    pool.journal().settle().unwrap();
    let figures = pool.journal().page_figures();
    assert_eq!((figures.private_bytes, figures.waits), (0, 1), "all were written back");
    assert_eq!(pool.memory.load_u64(8 * PAGE), 1);
    assert_eq!(pool.journal().pending_bytes(), 0);
}

#[test]
fn pages_of_earlier_checkpoints_are_given_back_when_nothing_is_pending() {
    let pool = limited(8 * PAGE);
    put_pages(&pool, 4);
    pool.journal().checkpoint().unwrap();
    // Stored to and never flushed: what is stored is what the file has.
    for page in 4..9 {
        pool.memory.store_u64(page * PAGE, 0, SITE);
    }
    pool.journal().settle().unwrap();
    assert!(private(&pool) <= 7 * PAGE, "{}", private(&pool));
    assert_eq!(pool.memory.load_u64(0), 1);
}

#[test]
fn nobody_waits_again_for_pages_that_cannot_be_given_back() {
    let pool = limited(8 * PAGE);
    let dirty = |pages: std::ops::Range<u64>| {
        pages.for_each(|page| pool.memory.store_u64(page * PAGE, 1, SITE));
    };
    dirty(0..9);
    pool.journal().settle().unwrap();
    pool.journal().settle().unwrap();
    assert_eq!(pool.journal().page_figures().waits, 1);
    dirty(9..10);
    pool.journal().settle().unwrap();
    assert_eq!(pool.journal().page_figures().waits, 1, "an eighth more");
    dirty(10..11);
    pool.journal().settle().unwrap();
    assert_eq!(pool.journal().page_figures().waits, 2);
    assert_eq!(private(&pool), 11 * PAGE);
}

#[test]
fn a_step_without_an_end_is_bounded_too() {
    let pool = limited(4 * PAGE);
    for page in 0..15 {
        pool.put(page * PAGE, 1);
        assert!(private(&pool) <= 6 * PAGE, "{} bytes at page {page}", private(&pool));
    }
}

/// A look at a time at which much cannot be given back is no reason to let so much stay once it can.
#[test]
fn what_may_stay_sinks_again_with_what_is_given_back() {
    let pool = limited(4 * PAGE);
    let dirty = |pages: std::ops::Range<u64>| {
        pages.for_each(|page| pool.memory.store_u64(page * PAGE, 1, SITE));
    };
    dirty(0..16);
    pool.journal().settle().unwrap();
    assert_eq!((private(&pool), pool.journal().page_figures().waits), (16 * PAGE, 1));
    let all = pool.memory.check(0, 16 * PAGE).unwrap();
    pool.memory.flush(all, SITE);
    pool.memory.fence(SITE);
    pool.journal().checkpoint().unwrap();
    assert_eq!(private(&pool), 0);
    dirty(0..5);
    pool.journal().settle().unwrap();
    assert_eq!(pool.journal().page_figures().waits, 2, "the limit holds again");
}

#[test]
fn a_limit_that_is_much_like_the_one_before_causes_no_look() {
    let pool = limited(8 * PAGE);
    for page in 0..9 {
        pool.memory.store_u64(page * PAGE, 1, SITE);
    }
    pool.journal().settle().unwrap();
    for limit in [8 * PAGE - 8, 8 * PAGE + 8, 8 * PAGE - 1000] {
        pool.journal().limit_pages(limit);
        pool.journal().settle().unwrap();
    }
    assert_eq!(pool.journal().page_figures().waits, 1);
    pool.journal().limit_pages(4 * PAGE);
    pool.journal().settle().unwrap();
    assert_eq!(pool.journal().page_figures().waits, 2);
}

#[test]
fn the_background_begins_at_half_of_the_limit() {
    let pool = limited(8 * PAGE);
    let journal = pool.journal();
    journal.start().unwrap();
    while pool.environment.step_tasks() {}
    put_pages(&pool, 4);
    journal.settle().unwrap();
    while pool.environment.step_tasks() {}
    assert_eq!(private(&pool), 4 * PAGE);
    pool.put(4 * PAGE, 1);
    journal.settle().unwrap();
    assert_eq!(private(&pool), 5 * PAGE, "the writer does not do it");
    while pool.environment.step_tasks() {}
    assert_eq!((private(&pool), journal.page_figures().waits), (0, 0));
}

#[test]
fn after_a_sync_that_failed_nothing_is_given_back() {
    use super::staged::stage;
    let stage = stage(GROUP);
    stage.pool.memory.store_u64(0, 1, SITE);
    stage.pool.memory.flush(stage.pool.memory.check(0, 8).unwrap(), SITE);
    stage.pool.memory.fence(SITE);
    stage.pool.journal().limit_pages(0);
    stage.data_file.in_next_sync(|| Err(io::Error::other("the device cannot write")));
    assert!(stage.pool.journal().checkpoint().is_err());
    assert_eq!(private(&stage.pool), PAGE);
    assert!(stage.pool.journal().settle().is_err());
    assert_eq!(private(&stage.pool), PAGE);
    assert_eq!(stage.pool.memory.load_u64(0), 1);
}

#[test]
fn a_punched_page_is_no_page_with_stores() {
    let pool = limited(u64::MAX);
    put_pages(&pool, 3);
    pool.memory.punch(pool.memory.check(PAGE, PAGE).unwrap(), SITE).unwrap();
    assert_eq!(private(&pool), 2 * PAGE);
    assert_eq!(pool.memory.load_u64(PAGE), 0);
}
