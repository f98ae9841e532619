//! How long runs can be, what is allocated for them, and whom they make wait.

use super::*;
use crate::pool::tests::media::Asked;
use crate::pool::tests::watched::{Deed, Watched};

fn watched(ahead_blocks: u64) -> (Watched, Arc<SteppedEnvironment>, Arc<Pool<Media>>) {
    let files = Watched::default();
    let environment = Arc::new(SteppedEnvironment::with_files(1, Arc::new(files.clone())));
    let options =
        PoolOptions { populate_ahead_bytes: Some(ahead_blocks * BLOCK_BYTES), ..options() };
    let new = || Ok(new_pool_of_blocks());
    let opened =
        Pool::open(Media::default(), environment.clone(), Path::new("/pool"), &options, new);
    let pool = Arc::new(opened.unwrap().0);
    pool.mark_open().unwrap();
    (files, environment, pool)
}

fn take(pool: &Pool<Media>, blocks: u32) -> Result<Run> {
    pool.take_bare_run(LOG, blocks)
}

#[test]
fn a_run_is_at_most_as_long_as_a_segment() {
    let (_files, _environment, pool) = watched(0);
    assert_eq!(u64::from(pool.run_blocks_max()), PER_SEGMENT);
    let error = take(&pool, 17).unwrap_err();
    assert!(matches!(&error, Error::PoolFull { reason } if reason.contains("16")), "{error}");
    assert_eq!((pool.used_blocks(), pool.ready_blocks()), (0, 0));
    assert_eq!(take(&pool, 16).unwrap().blocks(), 16);
    // Behind a segment that is full, and the free rest of it.
    assert!(take(&pool, 17).is_err());
}

#[test]
fn storage_is_allocated_for_the_run_alone() {
    let (_files, _environment, pool) = watched(0);
    for blocks in [4, 1, 7] {
        let ready = pool.ready_blocks();
        let _run = take(&pool, blocks).unwrap();
        assert_eq!(pool.ready_blocks(), ready + u64::from(blocks));
    }
}

#[test]
fn free_runs_are_not_locked_while_storage_is_allocated() {
    let (files, _environment, pool) = watched(0);
    let weak = Arc::downgrade(&pool);
    files.set_hook(move |_| {
        let Some(pool) = weak.upgrade() else { return };
        assert!(pool.free_runs.try_lock().is_ok(), "nobody frees a run meanwhile");
    });
    let _run = take(&pool, 3).unwrap();
    assert!(!files.take(|deed| matches!(deed, Deed::Allocated(..))).is_empty());
}

#[test]
fn the_background_task_is_woken_by_runs_as_well() {
    let (_files, environment, pool) = watched(8);
    pool.start_background().unwrap();
    while environment.step_tasks() {}
    assert_eq!(pool.ready_blocks(), 8);
    let _run = take(&pool, 4).unwrap();
    assert!(!environment.step_tasks(), "half of it is left");
    let _run = take(&pool, 1).unwrap();
    while environment.step_tasks() {}
    assert_eq!(pool.ready_blocks(), 16);
    pool.stop_background();
}

#[test]
fn a_free_run_that_is_taken_as_a_whole_leaves_nothing() {
    let (_files, _environment, pool) = watched(0);
    let [first, second, _third] = [4, 3, 2].map(|blocks| take(&pool, blocks).unwrap());
    pool.free_run(first).unwrap();
    let free = |pool: &Pool<Media>| pool.free_runs.lock().unwrap().all();
    assert_eq!(free(&pool), [(0, 4)]);
    let (first, asked) = pool.pmem.watch(|| take(&pool, 4).unwrap());
    let at = pool.map.block_at(0);
    assert_eq!(asked, [Asked::Flush(at..at + 64), Asked::Fence], "nothing was prepared");
    assert_eq!((first.first(), free(&pool)), (0, vec![]));
    pool.free_run(first).unwrap();
    let _part = take(&pool, 3).unwrap();
    assert_eq!(free(&pool), [(3, 1)]);
    pool.free_run(second).unwrap();
    assert_eq!(free(&pool), [(3, 4)]);
}

/// A run is merged with both neighbours only if all of it can be said.
#[test]
fn free_neighbours_are_those_that_a_word_can_count_together() {
    let (_files, _environment, pool) = watched(0);
    let most = RUN_BLOCKS_MAX;
    let neighbours = |before: u32, blocks: u32, behind: u32| {
        let (start, mut free) = (1_u64, FreeList::default());
        let first = start + u64::from(before);
        free.insert((start, before));
        free.insert((first + u64::from(blocks), behind));
        let found = pool.free_neighbours(&free, (first, blocks));
        found.map(|neighbour| neighbour.map(|(_, blocks)| blocks))
    };
    // None of these borders is that of a segment.
    assert_eq!(neighbours(most - 20, 10, 10), [Some(most - 20), Some(10)]);
    assert_eq!(neighbours(most - 20, 10, 11), [Some(most - 20), None]);
    assert_eq!(neighbours(most - 9, 10, 10), [None, Some(10)]);
    assert_eq!(neighbours(most - 10, 10, 2), [Some(most - 10), None]);
}
