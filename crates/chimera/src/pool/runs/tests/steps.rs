//! Single steps: what they find, and what a crash between them leaves.

use super::*;

#[test]
fn a_run_may_end_where_its_segment_does() {
    let pool = new_pool();
    let all = take(&pool, LOG, PER_SEGMENT as u32).unwrap();
    assert_eq!((all.first(), pool.used_blocks()), (0, PER_SEGMENT));
    let first = take(&pool, LOG, 9).unwrap();
    let second = take(&pool, LOG, 7).unwrap();
    assert_eq!((first.first(), second.first(), pool.used_blocks()), (16, 25, 32));
    assert_eq!(pool.free_runs.lock().unwrap().all(), []);
}

/// With nothing prepared as well.
#[test]
fn a_part_of_a_free_run_is_not_taken_before_the_rest_is_known_as_free() {
    let pool = new_pool();
    let [free, _last] = [9, 1].map(|blocks| take(&pool, LOG, blocks).unwrap());
    pool.free_run(free).unwrap();
    let word = |state: &[u64], block| {
        let at = pool.map.block_at(block);
        BlockWord::decode(state[(at / 8) as usize], at)
    };
    let (run, mut photos) = pool.pmem.photograph(|| pool.take_bare_run(TABLE, 4));
    photos.push(pool.pmem.photo());
    let taken = Some(BlockWord::run(TABLE.code(), 4));
    let mut seen = 0;
    for state in photos.iter().flat_map(|photo| photo.some_states(8, 1)) {
        if word(&state, 0) == taken {
            assert_eq!(word(&state, 4), Some(free_word(5)));
            seen += 1;
        } else {
            assert_eq!(word(&state, 0), Some(free_word(9)));
        }
    }
    assert!(seen > 0, "no crash finds the run taken");
    assert_eq!(run.unwrap().first(), 0);
    for state in pool.pmem.photo().some_states(8, 1) {
        assert_eq!(word(&state, 0), taken, "it is durable on return");
    }
    assert_eq!(pool.free_runs.lock().unwrap().all(), [(4, 5)]);
}

#[test]
fn runs_are_merged_up_to_the_longest_that_a_word_can_say() {
    let pool = new_pool();
    for (behind, is_merged) in [(3, true), (4, false)] {
        let run = (1, RUN_BLOCKS_MAX - 3);
        let behind = (1 + u64::from(run.1), behind);
        let mut free = FreeList::default();
        free.insert(behind);
        let merged = pool.free_neighbours(&free, run);
        assert_eq!(merged, [None, Some(behind).filter(|_| is_merged)]);
    }
}

#[test]
fn what_salvage_leaves_out_is_a_loss_at_its_place() {
    let pool = new_pool();
    let [_a, b] = [6, 7].map(|blocks| take(&pool, LOG, blocks).unwrap());
    let at = pool.map.block_at(b.first());
    pool.pmem.store_u64(at, 12345, media::ENGINE);
    let pool = open(&pool.pmem.image()).unwrap();
    assert!(pool.losses().is_empty());
    pool.recover_runs(&KINDS, true, |_| Ok(())).unwrap();
    let losses = pool.losses();
    assert_eq!((losses.count, losses.first.map(|first| first.at)), (1, Some(at)));
}

#[test]
fn all_bytes_of_a_freed_run_are_said_to_mean_nothing() {
    let pool = new_pool();
    let [_a, b, c] = [2, 3, 4].map(|blocks| take(&pool, LOG, blocks).unwrap());
    let bytes =
        [&b, &c].map(|run| (pool.map.block_at(run.first()), u64::from(run.blocks()) * BLOCK_BYTES));
    pool.free_run(b).unwrap();
    pool.free_run(c).unwrap();
    assert_eq!(pool.pmem.withdrawn_ranges(), bytes);
}
