//! What each purpose is refused, of single blocks and of runs.

use std::sync::Arc;

use chimera_pmem::{Hardware, SteppedEnvironment};

use super::*;
use crate::pool::BlockKind;
use crate::pool::runs::Run;
use crate::pool::small::small_pool;
use crate::types::error::{Error, Result};

const KIND: BlockKind = BlockKind::new(1, "kind");
const SEGMENT_BYTES: u64 = 8192;
/// Blocks of a segment: the rest is its header.
const PER_SEGMENT: u64 = 16;

fn pool(blocks: u64, reserve: [u32; 3]) -> Arc<Pool<Hardware>> {
    let pool = small_pool(Arc::new(SteppedEnvironment::in_memory(1)), SEGMENT_BYTES, blocks * 256);
    assert_eq!(pool.map.blocks_per_segment, PER_SEGMENT);
    pool.recover_runs(&[KIND], false, |_| Ok(())).unwrap();
    let [delete, reclaim, merge] = reserve;
    pool.set_reserve(Reserve { delete, reclaim, merge });
    pool
}

fn is_full<T>(taken: &Result<T>) -> bool {
    match taken {
        Ok(_) => false,
        Err(Error::PoolFull { .. }) => true,
        Err(error) => panic!("{error}"),
    }
}

fn take(pool: &Pool<Hardware>, purpose: Purpose, blocks: u32) -> Option<Run> {
    let taken = pool.take_bare_run_for(purpose, KIND, blocks);
    if is_full(&taken) { None } else { taken.ok() }
}

fn take_replaced(pool: &Pool<Hardware>, blocks: u32) -> Option<Run> {
    let taken = pool.take_replaced_run(Purpose::Put, KIND, blocks);
    if is_full(&taken) { None } else { taken.ok() }
}

/// A pool without fresh blocks, of which only runs of these lengths are free. The runs between them are in use.
fn pool_with_free(reserve: [u32; 3], lengths: &[u32]) -> (Arc<Pool<Hardware>>, Vec<Run>) {
    let pool = pool(lengths.iter().map(|blocks| u64::from(blocks + 1)).sum(), [0; 3]);
    let run = |blocks| take(&pool, Purpose::Put, blocks).expect("room");
    let pairs: Vec<_> = lengths.iter().map(|blocks| (run(*blocks), run(1))).collect();
    let (free, between): (Vec<_>, _) = pairs.into_iter().unzip();
    for run in free {
        pool.free_run(run).unwrap();
    }
    let [delete, reclaim, merge] = reserve;
    pool.set_reserve(Reserve { delete, reclaim, merge });
    (pool, between)
}

/// Takes runs of one block until they are refused.
fn take_all(pool: &Pool<Hardware>, purpose: Purpose) -> Vec<Run> {
    std::iter::from_fn(|| take(pool, purpose, 1)).collect()
}

#[test]
fn single_blocks_are_refused_at_exactly_the_reserve() {
    let pool = pool(20, [1, 2, 0]);
    let block = |purpose| pool.take_block(purpose, |_| ());
    (0..17).for_each(|number| assert_eq!(block(Purpose::Put).unwrap(), number));
    assert_eq!((pool.reserve_blocks(), pool.reserve_lacks()), (3, 0));
    assert!(is_full(&block(Purpose::Put)));
    assert_eq!(block(Purpose::Delete).unwrap(), 17);
    assert!(is_full(&block(Purpose::Delete)) && is_full(&block(Purpose::Put)));
    assert_eq!((block(Purpose::Reclaim).unwrap(), block(Purpose::Merge).unwrap()), (18, 19));
    assert!(is_full(&block(Purpose::Merge)));
    // What is given back refills the reserve first.
    for (number, lacks) in [(19, 2), (18, 1), (17, 0)] {
        assert!(pool.give_back(number, || Ok(())));
        assert_eq!(pool.reserve_lacks(), lacks);
        assert!(is_full(&block(Purpose::Put)));
    }
    assert!(pool.give_back(16, || Ok(())));
    assert_eq!(block(Purpose::Put).unwrap(), 16);
}

#[test]
fn each_purpose_leaves_what_those_after_it_need() {
    let pool = pool(PER_SEGMENT, [2, 3, 5]);
    let puts = take_all(&pool, Purpose::Put);
    assert_eq!(puts.len(), 6);
    assert!(take(&pool, Purpose::Delete, 3).is_none());
    let tombstones = take(&pool, Purpose::Delete, 2).expect("of the reserve");
    assert!(take(&pool, Purpose::Delete, 1).is_none());
    assert!(take(&pool, Purpose::Reclaim, 4).is_none());
    let copies = take(&pool, Purpose::Reclaim, 3).expect("of the reserve");
    assert!(take(&pool, Purpose::Reclaim, 1).is_none());
    let table = take(&pool, Purpose::Merge, 5).expect("of the reserve");
    assert!(take(&pool, Purpose::Merge, 1).is_none());
    // What is freed refills the reserve first, wherever it lies.
    let mut puts = puts.into_iter();
    pool.free_run(puts.next().expect("six")).unwrap();
    pool.free_run(puts.next().expect("six")).unwrap();
    for run in [table, copies, tombstones] {
        assert_eq!(take(&pool, Purpose::Put, 1), None);
        pool.free_run(run).unwrap();
    }
    assert_eq!(take_all(&pool, Purpose::Put).len(), 2);
}

#[test]
fn what_is_free_in_pieces_is_no_reserve() {
    let pool = pool(PER_SEGMENT, [0, 0, 4]);
    let runs = take_all(&pool, Purpose::Put);
    assert_eq!(runs.len(), 12);
    let table = take(&pool, Purpose::Merge, 4).expect("of the reserve");
    // Every other one.
    let (others, mut runs): (Vec<_>, Vec<_>) =
        runs.into_iter().partition(|run| run.first().is_multiple_of(2));
    for run in others {
        pool.free_run(run).unwrap();
    }
    assert_eq!(take(&pool, Purpose::Put, 1), None, "six blocks are free, and no two in a row");
    // No run for a merge is left that it could take away.
    let tombstone = take(&pool, Purpose::Delete, 1).expect("a piece");
    pool.free_run(tombstone).unwrap();
    // Five in a row, and pieces, which are taken before these are cut.
    runs.drain(..2).for_each(|run| pool.free_run(run).unwrap());
    assert_eq!(take_all(&pool, Purpose::Put).len(), 4);
    assert_eq!(take_all(&pool, Purpose::Delete), [], "that would cut what a merge needs");
    pool.free_run(table).unwrap();
}

#[test]
fn a_reserve_does_not_cross_segments_and_may_lie_in_any() {
    // Four blocks of the second segment are too few for a merge: it has the last five of the first, and puts have these.
    let pool = pool(PER_SEGMENT + 4, [0, 0, 5]);
    assert_eq!(take_all(&pool, Purpose::Put).len(), 11 + 4);
    assert_eq!(take(&pool, Purpose::Merge, 5).expect("in a row").first(), 11);
    let pool = self::pool(PER_SEGMENT + 5, [0, 0, 5]);
    assert_eq!(take_all(&pool, Purpose::Put).len(), 16);
    let pool = self::pool(5 * PER_SEGMENT, [16, 16, 16]);
    assert_eq!(take_all(&pool, Purpose::Put).len(), 32);
}

#[test]
fn a_run_that_is_replaced_lengthens_the_reserve() {
    let pool = pool(PER_SEGMENT, [0, 0, 1]);
    assert!(is_full(&pool.take_replaced_run(Purpose::Put, KIND, 9)), "no room for another one");
    assert_eq!(pool.reserve_blocks(), 1);
    let table = pool.take_replaced_run(Purpose::Put, KIND, 5).unwrap();
    assert_eq!(pool.reserve_blocks(), 5);
    assert_eq!(take_all(&pool, Purpose::Put).len(), 6);
    let next = take(&pool, Purpose::Merge, 5).expect("the reserve");
    pool.free_run(table).unwrap();
    assert_eq!((take_all(&pool, Purpose::Put), pool.reserve_blocks()), (vec![], 5));
    pool.free_run(next).unwrap();
    assert_eq!(take_all(&pool, Purpose::Put).len(), 5);
}

#[test]
fn a_run_that_is_taken_of_a_free_one_lengthens_the_reserve_too() {
    let (pool, _between) = pool_with_free([0, 0, 1], &[4, 6]);
    assert_eq!(
        (take_replaced(&pool, 5), pool.reserve_blocks()),
        (None, 1),
        "no room for another one"
    );
    let table = take_replaced(&pool, 4).expect("another one has room beside it");
    assert_eq!((table.blocks(), pool.reserve_blocks()), (4, 4));
    // A shorter one is replaced by a run of the reserve as well.
    let _shorter = take_replaced(&pool, 2).expect("four blocks are left");
    assert_eq!(pool.reserve_blocks(), 4);
    assert_eq!(take(&pool, Purpose::Put, 1), None);
}

/// A run is found room for in the shortest free one, so that long ones are left to others.
#[test]
fn each_run_of_the_reserve_has_the_shortest_free_one() {
    let (pool, _between) = pool_with_free([0, 4, 2], &[1, 2, 4]);
    assert_eq!(take_all(&pool, Purpose::Put).len(), 1);
}

/// That one run can be found afterwards is no reason to take away another one.
#[test]
fn a_step_does_not_take_the_run_of_another_in_exchange_for_a_shorter_one() {
    let pool = pool(PER_SEGMENT, [2, 2, 6]);
    assert_eq!(take_all(&pool, Purpose::Put).len(), 6);
    let _tombstones = take(&pool, Purpose::Delete, 2).expect("of the reserve");
    let _copies = take(&pool, Purpose::Reclaim, 2).expect("of the reserve");
    // A merge finds the last six blocks in a row. With one less only reclamation would find its run in them.
    assert_eq!(take(&pool, Purpose::Delete, 1), None, "a merge needs it");
    assert_eq!(take(&pool, Purpose::Reclaim, 1), None, "a merge needs it");
    assert!(take(&pool, Purpose::Merge, 6).is_some());
}

/// What is left of a free run is free once: it does not count beside the run that it is of.
#[test]
fn a_step_may_take_what_no_run_of_the_reserve_needs() {
    let (pool, _between) = pool_with_free([0, 4, 4], &[5]);
    assert_eq!(take(&pool, Purpose::Put, 1), None, "reclamation has no run");
    assert!(take(&pool, Purpose::Delete, 1).is_some(), "and a merge needs four of five blocks");
    assert_eq!(take(&pool, Purpose::Delete, 1), None);
}

/// Where a run does not fit what is left of a segment, that stays free.
#[test]
fn the_rest_of_a_segment_may_be_of_the_reserve() {
    let pool = pool(PER_SEGMENT + 6, [0, 0, 4]);
    let _first = take(&pool, Purpose::Put, 12).expect("room");
    let _second = take(&pool, Purpose::Put, 6).expect("a merge has the four blocks before it");
    assert_eq!(take(&pool, Purpose::Put, 1), None);
    assert!(take(&pool, Purpose::Merge, 4).is_some());
}

/// The first fresh blocks are for a merge: they stay free where another run lies behind them.
#[test]
fn a_step_takes_a_later_segment_where_the_reserve_needs_the_rest_of_one() {
    let pool = pool(PER_SEGMENT + 6, [3, 2, 8]);
    assert!(take(&pool, Purpose::Put, 8).is_some());
    assert_eq!(take(&pool, Purpose::Put, 2), None);
    let next = take(&pool, Purpose::Put, 1).expect("the first of the six blocks");
    assert_eq!(next.first(), PER_SEGMENT);
    assert_eq!(take(&pool, Purpose::Put, 1), None);
    let tombstones = take(&pool, Purpose::Delete, 3).expect("behind that");
    assert_eq!(tombstones.first(), PER_SEGMENT + 1);
    assert_eq!(take(&pool, Purpose::Merge, 8).expect("the rest of the first segment").first(), 8);
}

/// Whole segments too stay free for a run that needs all of one.
#[test]
fn a_step_may_leave_segments_that_others_need() {
    let pool = pool(3 * PER_SEGMENT, [2, 16, 16]);
    let tombstones = take(&pool, Purpose::Delete, 2).expect("a segment");
    assert_eq!(tombstones.first(), 0, "two more are free");
    assert_eq!(take(&pool, Purpose::Put, 13), None);
    let pool = self::pool(2 * PER_SEGMENT + 3, [1, 16, 16]);
    assert_eq!(take(&pool, Purpose::Put, 2).expect("behind two segments").first(), 2 * PER_SEGMENT);
    assert_eq!(take(&pool, Purpose::Put, 1), None);
    assert!(take(&pool, Purpose::Delete, 1).is_some());
    assert!(
        take(&pool, Purpose::Reclaim, 16).is_some() && take(&pool, Purpose::Merge, 16).is_some()
    );
}

/// Of free runs, the shortest is for a merge: another step takes a longer one.
#[test]
fn a_step_takes_a_longer_free_run_where_the_reserve_needs_the_shortest() {
    let (pool, _between) = pool_with_free([4, 2, 5], &[5, 6]);
    let tombstones = take(&pool, Purpose::Delete, 4).expect("of the longer one");
    assert_eq!(tombstones.first(), 6);
    assert!(take(&pool, Purpose::Reclaim, 2).is_some() && take(&pool, Purpose::Merge, 5).is_some());
}

#[test]
fn without_a_reserve_all_blocks_are_for_puts() {
    let pool = pool(PER_SEGMENT, [0; 3]);
    assert_eq!(take_all(&pool, Purpose::Put).len(), 16);
}

/// How many of these runs find room in pieces, in the best of all ways.
fn most_that_fit(pieces: &[u64], runs: &[u32]) -> usize {
    let Some((&run, rest)) = runs.split_first() else { return 0 };
    let with = (0..pieces.len()).filter(|&at| pieces[at] >= u64::from(run)).map(|at| {
        let mut pieces = pieces.to_vec();
        pieces[at] -= u64::from(run);
        1 + most_that_fit(&pieces, rest)
    });
    with.chain([most_that_fit(pieces, rest)]).max().unwrap_or(0)
}

/// Each step that makes room finds its run in turn, whatever lies where.
fn check_steps(pool: &Pool<Hardware>, lengths: [u32; 3]) {
    let purposes = [Purpose::Delete, Purpose::Reclaim, Purpose::Merge];
    let steps = purposes.into_iter().zip(lengths).filter(|(_, blocks)| *blocks > 0);
    let runs: Vec<_> = steps
        .map(|(purpose, blocks)| take(pool, purpose, blocks).expect("a run of the reserve"))
        .collect();
    for run in runs {
        pool.free_run(run).unwrap();
    }
}

/// Runs of any length, taken for any purpose and freed: after a put each run of the reserve finds room.
#[test]
fn whatever_is_taken_and_freed_a_put_leaves_the_reserve() {
    let mut state = 7_u64;
    let mut below = |below: u64| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) % below
    };
    let purposes = [Purpose::Put, Purpose::Delete, Purpose::Reclaim, Purpose::Merge];
    let (mut put, mut refused) = (0, 0);
    for _ in 0..40 {
        let reserve = [0; 3].map(|_| below(7) as u32);
        let pool = pool(20 + below(60), reserve);
        let mut held = Vec::new();
        for _ in 0..300 {
            if below(3) == 0 && !held.is_empty() {
                pool.free_run(held.swap_remove(below(held.len() as u64) as usize)).unwrap();
                continue;
            }
            let purpose = purposes[(below(8) as usize).saturating_sub(4)];
            let Some(run) = take(&pool, purpose, 1 + below(6) as u32) else {
                refused += 1;
                continue;
            };
            held.push(run);
            if purpose == Purpose::Put {
                put += 1;
                let (free, blocks_max) = (pool.free_runs.lock().unwrap(), pool.blocks_max());
                let used_blocks = pool.used_blocks();
                let left = Left { without: None, rests: &[], used_blocks };
                let pieces = pool.pieces(&free, blocks_max, left);
                let most = most_that_fit(&pieces, &reserve);
                assert_eq!(most, KINDS, "{reserve:?} in {pieces:?}");
                drop(free);
                check_steps(&pool, reserve);
            }
        }
    }
    assert!(put > 500 && refused > 500, "{put} {refused}");
}
