//! Runs on memory that can be photographed, and lose what was not written back.

mod bounds;
mod costs;
mod crashes;
mod damage;
mod model;
mod steps;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use chimera_pmem::environment::OpenMode;
use chimera_pmem::{Environment, Hardware, HardwareOptions, RealEnvironment, SteppedEnvironment};

use super::*;
use crate::pool::open::Opened;
use crate::pool::superblock::FILE_BYTES;
use crate::pool::tests::media::{self, Media};
use crate::pool::{NewPool, PoolOptions, small};
use crate::types::durability::Durability;

const LOG: BlockKind = BlockKind::new(1, "log");
const TABLE: BlockKind = BlockKind::new(2, "table");
const KINDS: [BlockKind; 2] = [LOG, TABLE];

const BLOCK_BYTES: u64 = 256;
const SEGMENT_BYTES: u64 = 8192;
/// Blocks of a segment: the rest is its header.
const PER_SEGMENT: u64 = 16;

/// What [`take`] prepares in a run.
const MARK: u64 = 7;

/// Runs in use by their first block: length, kind, and what was prepared in them.
type Held = BTreeMap<u64, (u32, u8, u64)>;

fn options() -> PoolOptions {
    PoolOptions {
        durability: Durability::Process,
        populate_ahead_bytes: Some(0),
        capacity_bytes: Some(64 * BLOCK_BYTES),
        ..PoolOptions::default()
    }
}

fn new_pool_of_blocks() -> NewPool {
    small::new_pool(SEGMENT_BYTES, BLOCK_BYTES as u32)
}

/// Opens the pool whose files hold `image`; a new one where that is empty.
fn open_with(media: &Media, image: &[u8], options: &PoolOptions) -> Result<Pool<Media>> {
    let environment = SteppedEnvironment::in_memory(1);
    let directory = Path::new("pool");
    environment.create_directory(directory).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let file = environment.open(&directory.join(name), OpenMode::CreateNew).unwrap();
        file.write_at(0, bytes).unwrap();
    };
    if !image.is_empty() {
        let (superblock, segments) = image.split_at(FILE_BYTES as usize);
        write("lock", &[]);
        write("superblock", superblock);
        for (number, segment) in segments.chunks(SEGMENT_BYTES as usize).enumerate() {
            write(&format!("segment-{number:06}"), segment);
        }
    }
    let environment = Arc::new(environment);
    let (pool, opened) =
        Pool::open(media.clone(), environment, directory, options, || Ok(new_pool_of_blocks()))?;
    assert_eq!(opened, Opened { created: image.is_empty(), clean: false, journal_loss: None });
    assert_eq!(pool.map.blocks_per_segment, PER_SEGMENT);
    if opened.created {
        pool.mark_open()?;
    }
    Ok(pool)
}

fn open(image: &[u8]) -> Result<Pool<Media>> {
    open_with(&Media::default(), image, &options())
}

/// A pool without a run.
fn new_pool() -> Pool<Media> {
    new_pool_with(&options())
}

fn new_pool_with(options: &PoolOptions) -> Pool<Media> {
    let pool = open_with(&Media::default(), &[], options).unwrap();
    assert_eq!(recover(&pool).unwrap(), []);
    pool
}

/// A pool in which the next run of two blocks is taken at block 48: the reserve needs the last three blocks of the second
/// segment, and all of the third. The runs in use begin at blocks 0 and 16. All storage is ready.
fn pool_with_reserve() -> (Pool<Media>, [Run; 2]) {
    const BLOCKS: u64 = 3 * PER_SEGMENT + 5;
    let options = PoolOptions { capacity_bytes: Some(BLOCKS * BLOCK_BYTES), ..options() };
    let pool = new_pool_with(&options);
    while pool.ready_blocks() < BLOCKS {
        pool.grow_beyond(pool.ready_blocks()).unwrap();
    }
    let runs = [16, 13].map(|blocks| take(&pool, LOG, blocks).unwrap());
    pool.set_reserve(Reserve { delete: 3, reclaim: 3, merge: 16 });
    (pool, runs)
}

/// Takes a run and prepares `mark` in it.
fn take_marked(pool: &Pool<Media>, kind: BlockKind, blocks: u32, mark: u64) -> Result<Run> {
    pool.take_run(kind, blocks, |bytes| {
        pool.pmem.store_u64(bytes.offset(), mark, media::ENGINE);
        pool.pmem.flush(pool.extent(bytes.offset(), 8), media::ENGINE);
    })
}

fn take(pool: &Pool<Media>, kind: BlockKind, blocks: u32) -> Result<Run> {
    take_marked(pool, kind, blocks, MARK)
}

/// The runs in use, found after opening, and what was prepared in them.
fn recover(pool: &Pool<Media>) -> Result<Vec<(Run, u64)>> {
    let mut found = Vec::new();
    pool.recover_runs(&KINDS, false, |run| {
        match run {
            FoundRun::InUse(run) => {
                let mark = pool.pmem.load_u64(pool.run_bytes(&run).offset());
                found.push((run, mark));
            }
            FoundRun::Damaged(blocks) => panic!("{blocks:?} are damaged"),
        }
        Ok(())
    })?;
    Ok(found)
}

fn held(runs: &[(Run, u64)]) -> Held {
    runs.iter().map(|(run, mark)| (run.first, (run.blocks, run.code, *mark))).collect()
}

/// Checks that the free runs are what the runs in use leave, as few as possible, and none behind the last
/// run in use; and that media say the same.
fn check_free(pool: &Pool<Media>, held: &Held) -> Result<(), String> {
    let free = pool.free_runs.lock().unwrap().all();
    let mut expected = Vec::new();
    let mut next = 0;
    let ends = held.iter().map(|(&first, &(blocks, ..))| (first, first + u64::from(blocks)));
    for (first, end) in ends {
        if first < next {
            return Err(format!("runs overlap at {first}: {held:?}"));
        }
        if first / PER_SEGMENT != (end - 1) / PER_SEGMENT {
            return Err(format!("a run from {first} to {end} crosses the end of a segment"));
        }
        // Free blocks are divided by the ends of segments only.
        while next < first {
            let cut = first.min((next / PER_SEGMENT + 1) * PER_SEGMENT);
            expected.push((next, (cut - next) as u32));
            next = cut;
        }
        next = end;
    }
    if free != expected || pool.used_blocks() != next {
        let used = pool.used_blocks();
        return Err(format!("{free:?} of {used} blocks are free beside {held:?}"));
    }
    for &(first, blocks) in &free {
        let at = pool.map.block_at(first);
        let word = BlockWord::decode(pool.pmem.load_u64(at), at);
        if word != Some(free_word(blocks)) {
            return Err(format!("the word of the free run at {first} is {word:?}"));
        }
    }
    Ok(())
}

/// Fills the engine's bytes of a run, but for the prepared word, with what is no word of a block.
fn fill(pool: &Pool<Media>, run: &Run) {
    let bytes = pool.run_bytes(run);
    let bytes = pool.extent(bytes.offset() + 8, bytes.length() - 8);
    pool.pmem.copy(bytes, &vec![0xa5; bytes.length() as usize], media::ENGINE);
    pool.pmem.flush(bytes, media::ENGINE);
    pool.pmem.fence(media::ENGINE);
}

#[test]
fn runs_are_consecutive_and_stay_in_their_segment() {
    let pool = new_pool();
    let a = take(&pool, LOG, 10).unwrap();
    let b = take(&pool, TABLE, 10).unwrap();
    let c = take(&pool, LOG, 6).unwrap();
    assert_eq!((a.first(), b.first(), c.first()), (0, 16, 10));
    assert_eq!((a.blocks(), a.is(LOG), a.is(TABLE)), (10, true, false));
    let bytes = pool.run_bytes(&b);
    assert_eq!(bytes.offset(), pool.map.block_at(16) + CACHE_LINE);
    assert_eq!(bytes.end(), pool.map.block_at(25) + BLOCK_BYTES);
}

#[test]
fn freed_runs_are_merged_used_again_and_given_back() {
    let pool = new_pool();
    let [a, b, c, d] = [2, 3, 4, 1].map(|blocks| take(&pool, LOG, blocks).unwrap());
    pool.free_run(a).unwrap();
    pool.free_run(c).unwrap();
    assert_eq!(pool.free_runs.lock().unwrap().all(), [(0, 2), (5, 4)]);
    pool.free_run(b).unwrap();
    assert_eq!(pool.free_runs.lock().unwrap().all(), [(0, 9)]);
    let part = take(&pool, TABLE, 5).unwrap();
    assert_eq!((part.first(), pool.used_blocks()), (0, 10));
    pool.free_run(d).unwrap();
    assert_eq!(pool.used_blocks(), 5);
    pool.free_run(part).unwrap();
    assert_eq!(pool.used_blocks(), 0);
}

#[test]
fn the_shortest_run_that_is_long_enough_is_taken() {
    let pool = new_pool();
    let runs = [5, 1, 2, 1, 3, 1].map(|blocks| take(&pool, LOG, blocks).unwrap());
    let [five, _one, two, _other, three, _last] = runs;
    for run in [five, two, three] {
        pool.free_run(run).unwrap();
    }
    assert_eq!(take(&pool, LOG, 2).unwrap().first(), 6);
    assert_eq!(take(&pool, LOG, 2).unwrap().first(), 9);
    assert_eq!(take(&pool, LOG, 2).unwrap().first(), 0);
}

#[test]
fn a_full_pool_says_so_and_changes_nothing() {
    let pool = new_pool();
    let runs: Vec<_> = (0..4).map(|_| take(&pool, LOG, 15).unwrap()).collect();
    assert_eq!(runs.last().map(Run::first), Some(48));
    // One block is left in each segment.
    let before = pool.free_runs.lock().unwrap().all();
    let counts = pool.count_runs(&KINDS);
    let error = take(&pool, LOG, 2).unwrap_err();
    assert!(matches!(error, Error::PoolFull { .. }), "{error}");
    assert_eq!(pool.free_runs.lock().unwrap().all(), before);
    assert_eq!(pool.count_runs(&KINDS), counts);
    for first in [15, 31, 47, 63] {
        assert_eq!(take(&pool, LOG, 1).unwrap().first(), first);
    }
    assert!(matches!(take(&pool, LOG, 1), Err(Error::PoolFull { .. })));
    assert!(matches!(take(&pool, LOG, 17), Err(Error::PoolFull { .. })));
}

#[test]
fn runs_are_counted_by_kind() {
    let pool = new_pool();
    let a = take(&pool, LOG, 4).unwrap();
    let _b = take(&pool, TABLE, 9).unwrap();
    let _c = take(&pool, TABLE, 16).unwrap();
    pool.free_run(a).unwrap();
    let counts = pool.count_runs(&KINDS);
    let kinds: Vec<_> = counts.kinds.iter().map(|of| (of.kind, of.runs, of.blocks)).collect();
    assert_eq!(kinds, [("log", 0, 0), ("table", 2, 25)]);
    // And the rest of the first segment.
    assert_eq!((counts.free_runs, counts.free_blocks, counts.longest_free_blocks), (2, 7, 4));
    assert_eq!(counts.damaged_blocks, 0);
}

#[test]
fn threads_are_handed_different_blocks() {
    let options = PoolOptions { anonymous_bytes: Some(64 * BLOCK_BYTES), ..options() };
    let hardware = Hardware::new(HardwareOptions::default()).unwrap();
    let environment = Arc::new(RealEnvironment::new());
    let new = || Ok(new_pool_of_blocks());
    let (pool, _) = Pool::open(hardware, environment, Path::new(""), &options, new).unwrap();
    pool.recover_runs(&KINDS, false, |_| Ok(())).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..500 {
                    let run = pool.take_run(LOG, 1 + (thread + round) % 5, |_| ()).unwrap();
                    let bytes = pool.run_bytes(&run);
                    let mark = vec![thread as u8 + 1; bytes.length() as usize];
                    pool.pmem.copy(bytes, &mark, media::ENGINE);
                    let other = pool.take_run(TABLE, 2, |_| ()).unwrap();
                    assert!(pool.pmem.compare(bytes, &mark), "somebody else wrote to {run:?}");
                    pool.free_run(run).unwrap();
                    pool.free_run(other).unwrap();
                }
            });
        }
    });
    assert_eq!(pool.used_blocks(), 0);
}
