//! What each call costs, in lines flushed and fences.

use super::*;

/// Lines flushed and fences of `work`.
fn cost<T>(pool: &Pool<Media>, work: impl FnOnce() -> T) -> (T, (u64, u64)) {
    let before = pool.pmem.counts();
    let done = work();
    let after = pool.pmem.counts();
    (done, (after.0 - before.0, after.1 - before.1))
}

/// A pool whose first segment is there and ready.
fn ready_pool() -> Pool<Media> {
    let pool = new_pool();
    while pool.ready_blocks() < PER_SEGMENT {
        pool.grow_beyond(pool.ready_blocks()).unwrap();
    }
    pool
}

/// As [`take`] does, without a line that is prepared.
fn take(pool: &Pool<Media>, kind: BlockKind, blocks: u32) -> Result<Run> {
    pool.take_run(kind, blocks, |_| ())
}

#[test]
fn fresh_blocks_cost_two_fences() {
    let pool = ready_pool();
    let (_run, costs) = cost(&pool, || take(&pool, LOG, 5).unwrap());
    assert_eq!(costs, (3, 2));
    let (_run, costs) = cost(&pool, || take(&pool, LOG, 1).unwrap());
    assert_eq!(costs, (3, 2));
    // The prepared line comes on top.
    let (_run, costs) = cost(&pool, || take_marked(&pool, LOG, 1, MARK).unwrap());
    assert_eq!(costs, (4, 2));
}

#[test]
fn the_rest_of_a_segment_costs_a_line_more() {
    let pool = ready_pool();
    let _first = take(&pool, LOG, 15).unwrap();
    while pool.ready_blocks() < 2 * PER_SEGMENT {
        pool.grow_beyond(pool.ready_blocks()).unwrap();
    }
    let (run, costs) = cost(&pool, || take(&pool, LOG, 2).unwrap());
    assert_eq!((run.first(), costs), (16, (4, 2)));
}

#[test]
fn each_segment_that_the_reserve_needs_costs_a_line_more() {
    let (pool, _runs) = pool_with_reserve();
    let (run, costs) = cost(&pool, || take(&pool, LOG, 2).unwrap());
    assert_eq!((run.first(), costs), (48, (5, 2)));
}

#[test]
fn a_free_run_costs_a_line_and_a_part_of_it_two() {
    let pool = ready_pool();
    let [a, b, _last] = [4, 3, 1].map(|blocks| take(&pool, LOG, blocks).unwrap());
    assert_eq!(cost(&pool, || pool.free_run(a).unwrap()).1, (1, 1));
    // With one neighbour.
    assert_eq!(cost(&pool, || pool.free_run(b).unwrap()).1, (1, 1));
    let (part, costs) = cost(&pool, || take(&pool, LOG, 2).unwrap());
    assert_eq!((part.first(), costs), (0, (2, 2)));
    let (whole, costs) = cost(&pool, || take(&pool, LOG, 5).unwrap());
    assert_eq!((whole.first(), costs), (2, (1, 2)));
}

#[test]
fn giving_back_costs_a_line_more_than_freeing() {
    let pool = ready_pool();
    let [a, b, c] = [4, 3, 1].map(|blocks| take(&pool, LOG, blocks).unwrap());
    for (run, lines) in [(c, 2), (a, 1), (b, 2)] {
        assert_eq!(cost(&pool, || pool.free_run(run).unwrap()).1, (lines, 1));
    }
    assert_eq!(pool.used_blocks(), 0);
}

#[test]
fn opening_costs_a_line_for_each_run_and_one_fence() {
    let pool = ready_pool();
    let [_a, b, _c] = [4, 3, 1].map(|blocks| take(&pool, LOG, blocks).unwrap());
    pool.free_run(b).unwrap();
    let pool = open(&pool.pmem.image()).unwrap();
    let (found, costs) = cost(&pool, || recover(&pool).unwrap());
    assert_eq!((found.len(), costs), (2, (3 + 2, 1)));
    let reader = PoolOptions { read_only: true, ..options() };
    let pool = open_with(&Media::default(), &pool.pmem.image(), &reader).unwrap();
    let (found, costs) = cost(&pool, || recover(&pool).unwrap());
    assert_eq!((found.len(), costs), (2, (0, 0)));
}
