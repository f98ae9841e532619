//! Storage of blocks that were given back.

use super::*;

fn punched(segment: u64, bytes: Range<u64>) -> Deed {
    Deed::Punched(format!("segment-{segment:06}"), bytes)
}

fn released(files: &Watched) -> Vec<Deed> {
    files.take(|deed| matches!(deed, Deed::Punched(..)))
}

/// Takes blocks until so many are in use, and gives back all but so many.
fn take_and_give_back<P: Pmem>(pool: &Pool<P>, taken: u64, left: u64) {
    while pool.used_blocks() < taken {
        pool.take_block(Purpose::Put, |_| ()).unwrap();
    }
    (left..taken).rev().for_each(|block| assert!(pool.give_back(block, || Ok(()))));
    assert_eq!(pool.used_blocks(), left);
}

#[test]
fn storage_goes_back_but_for_what_is_kept_ahead() {
    let files = Watched::default();
    let pool = open(&files, &options(4));
    take_and_give_back(&pool, 40, 5);
    assert_eq!((pool.ready_blocks(), released(&files)), (40, vec![]));
    pool.release_storage();
    // Blocks 9 to 39, and no header.
    let all = [punched(0, 2304..4096), punched(1, 0..4096), punched(2, 0..2048)];
    assert_eq!((pool.ready_blocks(), released(&files)), (9, all.to_vec()));
    // Nobody is handed a block without storage.
    (5..10).for_each(|block| assert_eq!(take(&pool), block));
    assert_eq!((pool.ready_blocks(), growth_of(&files)), (13, vec![allocated(0, 2304..3328)]));
}

/// A file system of persistent memory may take a hole back, too, when the power fails.
#[test]
fn on_fsdax_holes_are_durable_before_their_storage_is_used() {
    let files = Watched::default();
    let pool = open_at("/pool", environment(&files), &Media::on_dax(), &options(4));
    take_and_give_back(&pool, 40, 5);
    files.take(|_| false);
    pool.release_storage();
    let deeds = files.take(|deed| matches!(deed, Deed::Punched(..) | Deed::Synced(_)));
    let synced = (0..3).map(|segment| Deed::Synced(format!("segment-{segment:06}")));
    assert_eq!(deeds[..3].iter().filter(|deed| matches!(deed, Deed::Punched(..))).count(), 3);
    assert_eq!(deeds[3..], synced.collect::<Vec<_>>());

    take_and_give_back(&pool, 40, 5);
    files.refuse(|deed| matches!(deed, Deed::Synced(_)).then_some(std::io::ErrorKind::Other));
    pool.release_storage();
    files.refuse(|_| None);
    (5..9).for_each(|block| assert_eq!(take(&pool), block));
    let refused = pool.take_block(Purpose::Put, |_| ());
    assert!(matches!(refused, Err(Error::PoolFull { .. })), "what may come back is left alone");
}

/// As well as what is kept ahead.
#[test]
fn storage_of_blocks_that_are_held_stays() {
    let files = Watched::default();
    let pool = open(&files, &options(4));
    take_and_give_back(&pool, 40, 5);
    assert!(pool.hold_fresh(20, 1));
    pool.release_storage();
    assert_eq!(pool.ready_blocks(), 29);
    pool.release_ahead();
    assert!(pool.ready_blocks() >= 25);
    pool.release_fresh(20);
    pool.release_storage();
    assert_eq!(pool.ready_blocks(), 9);
}

#[test]
fn storage_goes_back_when_it_is_a_step_or_more() {
    let files = Watched::default();
    let pool = open(&files, &options(4));
    take_and_give_back(&pool, 16, 9);
    // 9 and 4 ahead: 3 are less than a step.
    pool.release_storage();
    assert_eq!((pool.ready_blocks(), released(&files)), (16, vec![]));
    take_and_give_back(&pool, 9, 8);
    pool.release_storage();
    assert_eq!((pool.ready_blocks(), released(&files)), (12, vec![punched(0, 3072..4096)]));
    pool.release_storage();
    assert_eq!((pool.ready_blocks(), released(&files)), (12, vec![]));
}

/// After a compaction. What is handed out afterwards brings back what is kept otherwise.
#[test]
fn next_to_nothing_is_kept_ahead_until_more_is_handed_out() {
    let (files, options) =
        (Watched::default(), PoolOptions { populate_ahead_bytes: None, ..options(0) });
    let environment = environment(&files);
    let pool = open_at("/pool", environment.clone(), &Media::default(), &options);
    pool.start_background().unwrap();
    let take_all = |used: u64| {
        while pool.used_blocks() < used {
            take(&pool);
        }
    };
    let step = || while environment.step_tasks() {};
    // At least 512 blocks, and a sixteenth of those in use.
    take_all(16_384);
    step();
    let ready = pool.ready_blocks();
    assert!(ready >= 16_384 + 1024, "{ready}");
    released(&files);
    pool.release_ahead();
    assert_eq!(pool.ready_blocks(), 16_384 + 512);
    assert!(!released(&files).is_empty());
    step();
    assert_eq!(pool.ready_blocks(), 16_384 + 512, "no block was handed out");
    pool.release_ahead();
    assert_eq!(released(&files), []);
    take_all(16_386);
    step();
    assert!(pool.ready_blocks() >= 16_386 + 1024, "{}", pool.ready_blocks());
    pool.stop_background();
}

#[test]
fn storage_that_was_asked_for_as_a_whole_stays() {
    let files = Watched::default();
    let kept = PoolOptions { populate_at_open: true, ..limited(4, 64) };
    let pool = open(&files, &kept);
    take_and_give_back(&pool, 40, 0);
    pool.release_storage();
    assert_eq!((pool.ready_blocks(), released(&files)), (40, vec![]));
}

#[test]
fn storage_of_anonymous_memory_stays() {
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    let pool = small::small_pool(environment, SEGMENT_BYTES, 64 * BLOCK_BYTES);
    take_and_give_back(&pool, 40, 0);
    pool.release_storage();
    assert_eq!(pool.ready_blocks(), 40);
}

/// A device of four segments, all of which was used before.
fn device() -> Watched {
    let files = Watched::of(MemoryFiles::new().on(Medium::DevDax));
    let file = files.files.open(Path::new("/device"), OpenMode::CreateNew).unwrap();
    file.allocate(0, 2 << 20).unwrap();
    file.write_at(2 << 20, &vec![0xa5; 4 * SEGMENT_BYTES as usize]).unwrap();
    files
}

#[test]
fn on_a_device_nothing_is_allocated_nor_given_back() {
    let files = device();
    let pool = open_at("/device", environment(&files), &Media::default(), &options(4));
    take_and_give_back(&pool, 40, 0);
    pool.release_storage();
    assert_eq!(pool.ready_blocks(), 40);
    let deeds = files.take(|deed| !matches!(deed, Deed::Opened(_)));
    assert_eq!(deeds, []);
}

#[test]
fn blocks_of_a_device_are_zero_when_they_are_ready() {
    let files = device();
    let pool = open_at("/device", environment(&files), &Media::default(), &options(4));
    for segment in 0..2 {
        let first = segment * PER_SEGMENT;
        while pool.ready_blocks() <= first {
            pool.grow_beyond(pool.ready_blocks()).unwrap();
        }
        assert_eq!(pool.ready_blocks(), first + 4);
        let words = |block: u64| (pool.map.block_at(block) / 8) as usize;
        for state in pool.pmem.photo().some_states(8, 1) {
            let ready = &state[words(first)..words(first + 4)];
            assert!(ready.iter().all(|word| *word == 0), "segment {segment}");
            assert_ne!(state[words(first + 4)], 0, "segment {segment}");
        }
    }
}
