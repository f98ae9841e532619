//! Blocks that are handed out, and the storage behind them: on files that are watched, and memory that loses what was not
//! written back.

mod crashes;
mod release;

use std::ops::Range;
use std::path::Path;

use chimera_pmem::environment::{FileProvider, MemoryFiles, OpenMode};
use chimera_pmem::{Environment, SteppedEnvironment};

use super::*;
use crate::pool::tests::media::{Asked, Media};
use crate::pool::tests::watched::{Deed, Watched};
use crate::pool::{PoolOptions, small};
use crate::types::durability::Durability;

const BLOCK_BYTES: u64 = 256;
const SEGMENT_BYTES: u64 = 8192;
/// Blocks of a segment: the rest is its header.
const PER_SEGMENT: u64 = 16;

/// So many blocks are kept ready ahead of use, and allocated at a time.
fn options(ahead_blocks: u64) -> PoolOptions {
    PoolOptions {
        durability: Durability::Process,
        populate_ahead_bytes: Some(ahead_blocks * BLOCK_BYTES),
        ..PoolOptions::default()
    }
}

fn limited(ahead_blocks: u64, blocks: u64) -> PoolOptions {
    PoolOptions { capacity_bytes: Some(blocks * BLOCK_BYTES), ..options(ahead_blocks) }
}

fn environment(files: &Watched) -> Arc<SteppedEnvironment> {
    Arc::new(SteppedEnvironment::with_files(1, Arc::new(files.clone())))
}

fn open_at(
    path: &str,
    environment: Arc<dyn Environment>,
    media: &Media,
    options: &PoolOptions,
) -> Arc<Pool<Media>> {
    let new = || Ok(small::new_pool(SEGMENT_BYTES, BLOCK_BYTES as u32));
    let opened = Pool::open(media.clone(), environment, Path::new(path), options, new);
    let (pool, opened) = opened.unwrap();
    assert!(opened.created);
    pool.mark_open().unwrap();
    Arc::new(pool)
}

fn open(files: &Watched, options: &PoolOptions) -> Arc<Pool<Media>> {
    open_at("/pool", environment(files), &Media::default(), options)
}

fn take(pool: &Pool<Media>) -> u64 {
    pool.take_block(Purpose::Put, |_| ()).unwrap()
}

fn assert_full<T>(done: Result<T>) {
    match done {
        Err(Error::PoolFull { .. }) => {}
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the pool has more than it may have"),
    }
}

fn allocated(segment: u64, bytes: Range<u64>) -> Deed {
    Deed::Allocated(format!("segment-{segment:06}"), bytes)
}

/// The storage that was asked for since the last call, and what was synced.
fn growth_of(files: &Watched) -> Vec<Deed> {
    files.take(|deed| matches!(deed, Deed::Allocated(..) | Deed::Synced(_)))
}

#[test]
fn blocks_that_are_held_are_handed_out_to_nobody_until_they_are_let_go_of() {
    let pool = open(&Watched::default(), &limited(0, 12));
    assert!(!pool.hold_fresh(4, 4), "four times as many are not left");
    assert_eq!(pool.fresh_blocks(), 12);
    assert!(pool.hold_fresh(4, 3) && !pool.hold_fresh(9, 1));
    assert_eq!((pool.fresh_blocks(), pool.blocks_max()), (8, 12));
    for _ in 0..8 {
        take(&pool);
    }
    let error = pool.take_block(Purpose::Merge, |_| ()).unwrap_err();
    assert!(error.to_string().contains("of the 12 that"), "{error}");
    pool.release_fresh(3);
    for _ in 0..3 {
        take(&pool);
    }
    pool.take_block(Purpose::Put, |_| ()).unwrap_err();
    pool.release_fresh(1);
    take(&pool);
    assert_eq!((pool.fresh_blocks(), pool.blocks_max()), (0, 12));
}

/// The disk is full, and the capacity has room: what is held keeps its storage for who lets go of it.
#[test]
fn storage_of_blocks_that_are_held_is_handed_out_to_nobody() {
    let files = Watched::default();
    let pool = open(&files, &limited(4, 64));
    let mut taken = 1 + take(&pool);
    assert!(pool.hold_fresh(3, 1) && pool.hold_fresh(5, 1));
    assert!(pool.ready_blocks() >= taken + 8);
    let is_growth = |deed: &Deed| matches!(deed, Deed::Allocated(..));
    files.refuse(move |deed| is_growth(deed).then_some(std::io::ErrorKind::StorageFull));
    while pool.take_block(Purpose::Put, |_| ()).is_ok() {
        taken += 1;
    }
    assert_eq!(pool.ready_blocks() - taken, 8, "of both");
    assert!(!pool.hold_fresh(1, 1), "there is no storage for more");
    pool.release_fresh(3);
    for _ in 0..3 {
        take(&pool);
    }
    assert_full(pool.take_block(Purpose::Merge, |_| ()));
    pool.release_fresh(5);
    assert_eq!(take(&pool), taken + 3);
}

#[test]
fn storage_is_there_and_touched_before_blocks_are_ready() {
    let (files, media) = (Watched::default(), Media::on_tmpfs());
    let pool = open_at("/pool", environment(&files), &media, &options(6));
    files.take(|_| false);
    media.take_populated();
    pool.grow_beyond(0).unwrap();
    assert_eq!(pool.ready_blocks(), 6);
    // The header of the segment, which is durable with its length; then the blocks.
    let header = allocated(0, 4096..8192);
    let synced = Deed::Synced("segment-000000".to_owned());
    assert_eq!(growth_of(&files), [header, synced, allocated(0, 0..1536)]);
    assert_eq!(media.take_populated(), [(8192, 4096)]);
    // There are more already.
    pool.grow_beyond(5).unwrap();
    assert_eq!((pool.ready_blocks(), growth_of(&files)), (6, vec![]));
    // From within a page to within a page.
    pool.grow_beyond(6).unwrap();
    assert_eq!(pool.ready_blocks(), 12);
    assert_eq!(growth_of(&files), [allocated(0, 1536..3072)]);
    assert_eq!(media.take_populated(), [(8192, 4096)]);
    // What is left of the segment.
    pool.grow_beyond(12).unwrap();
    assert_eq!((pool.ready_blocks(), growth_of(&files)), (16, vec![allocated(0, 3072..4096)]));
    pool.grow_beyond(16).unwrap();
    assert_eq!(pool.ready_blocks(), 22);
    assert_eq!(growth_of(&files).last(), Some(&allocated(1, 0..1536)));
    media.take_populated();
    pool.grow_beyond(22).unwrap();
    assert_eq!(growth_of(&files), [allocated(1, 1536..3072)]);
    assert_eq!(media.take_populated(), [(16384, 4096)]);
    assert_eq!((pool.pmem.mapped(), pool.superblock().segments), (24576, 2));
}

#[test]
fn a_pool_does_not_grow_beyond_its_capacity() {
    for (blocks, last) in [(20, 256..1024), (PER_SEGMENT, 3072..4096)] {
        let files = Watched::default();
        let pool = open(&files, &limited(6, blocks));
        pool.grow_to_capacity().unwrap();
        let segment = (blocks - 1) / PER_SEGMENT;
        let last = if segment == 1 { 0..1024 } else { last };
        assert_eq!(growth_of(&files).last(), Some(&allocated(segment, last)));
        assert_full(pool.grow_beyond(blocks));
        assert_eq!((pool.ready_blocks(), growth_of(&files)), (blocks, vec![]));
        assert_eq!(pool.superblock().segments, segment + 1);
        (0..blocks).for_each(|block| assert_eq!(take(&pool), block));
        assert_full(pool.take_block(Purpose::Put, |_| ()));
        assert_eq!(pool.used_blocks(), blocks);
    }
}

#[test]
fn the_background_task_is_woken_when_fewer_than_half_are_left() {
    let environment = environment(&Watched::default());
    let pool = open_at("/pool", environment.clone(), &Media::default(), &options(8));
    pool.start_background().unwrap();
    while environment.step_tasks() {}
    assert_eq!(pool.ready_blocks(), 8);
    for block in 0..5 {
        assert_eq!(take(&pool), block);
        assert!(!environment.step_tasks(), "it is woken by block {block}");
    }
    assert_eq!(take(&pool), 5);
    while environment.step_tasks() {}
    assert_eq!(pool.ready_blocks(), 16);
    pool.stop_background();
    (6..16).for_each(|block| assert_eq!(take(&pool), block));
    assert!(!environment.step_tasks(), "it goes on after it was stopped");
}

/// Whoever allocates storage may take long, and whoever gives storage back locks growth and then handing out.
#[test]
fn handing_out_is_not_locked_while_storage_is_allocated_or_given_back() {
    let files = Watched::default();
    let pool = open(&files, &options(1));
    let watched = Arc::downgrade(&pool);
    files.set_hook(move |_| {
        let Some(pool) = watched.upgrade() else { return };
        assert!(pool.hand_out.try_lock().is_ok(), "nobody is handed a block meanwhile");
    });
    (0..8).for_each(|block| assert_eq!(take(&pool), block));
    (2..8).rev().for_each(|block| assert!(pool.give_back(block, || Ok(()))));
    assert!(growth_of(&files).len() >= 8);
    pool.release_storage();
    assert_eq!(files.take(|deed| matches!(deed, Deed::Punched(..))).len(), 1);
}

#[test]
fn all_pages_of_blocks_in_use_are_touched_and_no_others() {
    let media = Media::on_tmpfs();
    let pool = open_at("/pool", environment(&Watched::default()), &media, &options(16));
    (0..33).for_each(|block| assert_eq!(take(&pool), block));
    media.take_populated();
    // The last one is the first of its segment, and of its page.
    pool.populate_blocks(2..17);
    assert_eq!(media.take_populated(), [(8192, 12288)]);
    // The last one is the last of its segment.
    pool.populate_blocks(0..16);
    assert_eq!(media.take_populated(), [(8192, 4096)]);
    pool.populate_blocks(5..5);
    assert_eq!(media.take_populated(), []);
    let (image, media) = (media.image(), Media::on_tmpfs());
    let reader = small::media_pool_opened(&media, &image, SEGMENT_BYTES, 64 * BLOCK_BYTES, true);
    media.take_populated();
    reader.populate_blocks(2..17);
    assert_eq!(media.take_populated(), []);
}

#[test]
fn a_pool_grows_into_a_segment_that_is_there_whatever_became_of_others() {
    let files = Watched::default();
    let pool = open(&files, &options(4));
    while pool.ready_blocks() < 20 {
        pool.grow_beyond(pool.ready_blocks()).unwrap();
    }
    files.files.remove(Path::new("/pool/segment-000000")).unwrap();
    pool.grow_beyond(20).unwrap();
    assert_eq!(pool.ready_blocks(), 24);
    pool.grow_beyond(24).unwrap();
    pool.grow_beyond(28).unwrap();
    // A new one is not added to a pool that lacks some.
    let removed = pool.grow_beyond(32).unwrap_err();
    assert!(matches!(removed, Error::Removed { .. }), "{removed}");
    assert_eq!(pool.superblock().segments, 2);
    files.files.remove(Path::new("/pool/segment-000001")).unwrap();
    let pool = open(&Watched::default(), &options(4));
    while pool.ready_blocks() < 12 {
        pool.grow_beyond(pool.ready_blocks()).unwrap();
    }
    assert_eq!(pool.ready_blocks(), 12);
}

/// What is made ready, and nothing else: what lies in blocks that are in use is read as usual.
#[test]
fn nothing_is_read_around_blocks_until_they_are_handed_out() {
    let media = Media::default();
    let mut pool = open_at("/pool", environment(&Watched::default()), &media, &options(4));
    Arc::get_mut(&mut pool).unwrap().is_journaled = true;
    let at = |block: u64| pool.map.block_at(block);
    let bytes = |blocks: u64| blocks * pool.map.block_bytes;
    let stores = |blocks: Range<u64>| {
        Asked::ExpectStores(at(blocks.start), bytes(blocks.end - blocks.start))
    };
    let loads =
        |blocks: Range<u64>| Asked::ExpectLoads(at(blocks.start), bytes(blocks.end - blocks.start));
    let asks_when_grown = |beyond: u64| {
        let ((), asked) = media.watch(|| pool.grow_beyond(beyond).unwrap());
        let is_of =
            |asked: &Asked| matches!(asked, Asked::ExpectStores(..) | Asked::ExpectLoads(..));
        asked.into_iter().filter(is_of).collect::<Vec<_>>()
    };
    assert_eq!(asks_when_grown(0), [stores(0..4)]);
    assert_eq!(asks_when_grown(4), [stores(4..8)], "none was handed out");
    (0..3).for_each(|_| _ = pool.take_block(Purpose::Put, |_| ()).unwrap());
    assert_eq!(asks_when_grown(8), [stores(8..12), loads(0..3)]);
    (0..9).for_each(|_| _ = pool.take_block(Purpose::Put, |_| ()).unwrap());
    assert_eq!(asks_when_grown(12), [stores(12..16), loads(3..12)]);
    let ((), asked) = media.watch(|| pool.grow_beyond(0).unwrap());
    assert_eq!(asked, [], "they are ready");
}

/// Not while it is opened, which reads all of it.
#[test]
fn a_pool_that_is_larger_than_memory_says_so() {
    let media = Media::default();
    let mut pool = open_at("/pool", environment(&Watched::default()), &media, &options(4));
    Arc::get_mut(&mut pool).unwrap().blocks_in_memory = 8;
    let says = |grown: u64| {
        let ((), asked) = media.watch(|| pool.grow_beyond(grown).unwrap());
        asked.contains(&Asked::ExpectMisses)
    };
    assert_eq!([0, 4, 8].map(says), [false, false, true], "at 4, 8 and 12 blocks");
    let ((), asked) = media.watch(|| pool.start_background().unwrap());
    assert!(asked.contains(&Asked::ExpectMisses), "{asked:?}");
    pool.stop_background();
    assert_eq!(blocks_in_memory(&*environment(&Watched::default()), 256), u64::MAX);
}

#[test]
fn growing_within_a_segment_stores_nothing_but_on_a_device_that_is_not_zero() {
    let media = Media::default();
    let pool = open_at("/pool", environment(&Watched::default()), &media, &options(4));
    pool.grow_beyond(0).unwrap();
    let ((), asked) = media.watch(|| pool.grow_beyond(4).unwrap());
    assert_eq!(asked, [Asked::Populate(8192, 4096)]);
    for is_zero in [false, true] {
        let files = Watched::of(MemoryFiles::new().on(Medium::DevDax));
        let file = files.files.open(Path::new("/device"), OpenMode::CreateNew).unwrap();
        file.allocate(0, 2 << 20).unwrap();
        let byte = if is_zero { 0 } else { 0xa5 };
        file.write_at(2 << 20, &vec![byte; 4 * SEGMENT_BYTES as usize]).unwrap();
        let media = Media::default();
        let pool = open_at("/device", environment(&files), &media, &options(4));
        pool.grow_beyond(0).unwrap();
        let ((), photos) = media.photograph(|| pool.grow_beyond(4).unwrap());
        // A store for each word, and the fence.
        assert_eq!(photos.len(), if is_zero { 1 } else { 4 * 256 / 8 + 1 });
    }
}

/// Blocks are given back while a segment is added: what was emptied later counts.
#[test]
fn fresh_blocks_are_as_empty_as_those_that_were_given_back_last() {
    let (pool, environment) = small::journaled_pool(SEGMENT_BYTES);
    let (waits, waiting) = std::sync::mpsc::channel();
    environment.set_relax_hook(move |_| {
        let _ = waits.send(());
        // The holder may be slow to come back: few attempts, not many.
        std::thread::sleep(std::time::Duration::from_millis(1));
    });
    let mut limits = pool.lock_hand_out();
    let growing = pool.clone();
    let thread = std::thread::spawn(move || growing.grow_beyond(0));
    waiting.recv().unwrap();
    assert_eq!(pool.superblock().segments, 1, "it waits for the lock alone");
    let before = pool.pmem.fenced();
    pool.pmem.flush(pool.extent(0, 64), sites::SEGMENT_HEADER);
    pool.pmem.fence(sites::SEGMENT_HEADER);
    limits.fresh_emptied = pool.pmem.fenced();
    assert!(before < limits.fresh_emptied);
    let given_back = limits.fresh_emptied;
    drop(limits);
    thread.join().unwrap().unwrap();
    assert!(pool.lock_hand_out().fresh_emptied >= given_back);
}
