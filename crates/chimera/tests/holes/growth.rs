//! Growing ahead of use.

use std::sync::Arc;

use chimera::pmem::{Environment, Pmem, SteppedEnvironment};
use chimera::{Db, Options};

use crate::tools::crash::CrashPmem;
use crate::tools::{fill, scratch, small, small_any};

const BLOCK_BYTES: u64 = 512;
const AHEAD_BLOCKS: u64 = 32;

fn open(
    environment: &Arc<SteppedEnvironment>,
    options: &Options,
) -> (tempfile::TempDir, Db<CrashPmem>) {
    let directory = scratch();
    let environment: Arc<dyn Environment> = environment.clone();
    let db = Db::open_on(CrashPmem::new(options), &environment, directory.path(), options);
    (directory, db.expect("a new store"))
}

/// Blocks are made ready, and their memory touched, by the background task: while it keeps up, no put
/// has to.
#[test]
fn hole_13_the_pool_grows_and_is_touched_ahead_of_use() {
    for options in [small(), small_any()] {
        grows_ahead_of_use(&options);
    }
}

fn grows_ahead_of_use(options: &Options) {
    let environment = Arc::new(SteppedEnvironment::new(1));
    let options = options.clone().populate_ahead_bytes(AHEAD_BLOCKS * BLOCK_BYTES);
    let (_directory, db) = open(&environment, &options);
    assert_eq!(db.stats().blocks_ready, 0);
    while environment.step_tasks() {}
    assert!(db.stats().blocks_ready >= AHEAD_BLOCKS, "{:?}", db.stats());
    let mut session = db.session();
    for round in 0..200 {
        let populated = db.pmem().populated_bytes();
        fill(&mut session, round * 50..round * 50 + 50, 1);
        assert_eq!(db.pmem().populated_bytes(), populated, "a put had to make room itself");
        while environment.step_tasks() {}
        let stats = db.stats();
        assert!(stats.blocks_ready + 1 >= AHEAD_BLOCKS / 2, "{stats:?}");
        assert!(stats.blocks_ready <= 2 * AHEAD_BLOCKS, "far too much is ready: {stats:?}");
    }
    // Every block that was handed out had been touched before.
    let used = db.stats().blocks_used;
    assert!(used >= 1000);
    for block in 0..used {
        let (segment, inside) = (block / 24, block % 24);
        let start = 8192 + segment * (16 << 10) + inside * BLOCK_BYTES;
        assert!(db.pmem().is_populated(&(start..start + BLOCK_BYTES)), "block {block}");
    }
}

/// Without the task, or when it has fallen behind, puts make room themselves.
#[test]
fn hole_13_puts_make_room_themselves_when_nobody_else_does() {
    for (ahead_blocks, options) in [(0, small()), (AHEAD_BLOCKS, small()), (0, small_any())] {
        let environment = Arc::new(SteppedEnvironment::new(1));
        let options = options.populate_ahead_bytes(ahead_blocks * BLOCK_BYTES);
        let (_directory, db) = open(&environment, &options);
        fill(&mut db.session(), 0..5000, 1);
        assert_eq!(db.stats().records, 5000);
        assert!(db.pmem().mapped() > 5000 * 48);
    }
}

#[test]
fn hole_13_everything_can_be_touched_at_open() {
    for options in [small(), small_any()] {
        let environment = Arc::new(SteppedEnvironment::new(1));
        let options = options.capacity_bytes(150 * BLOCK_BYTES).populate_at_open(true);
        let options = options.populate_ahead_bytes(4 * BLOCK_BYTES);
        let (_directory, db) = open(&environment, &options);
        assert_eq!(db.stats().blocks_ready, 150);
        db.compact(1, None).expect("nothing to do");
        assert_eq!(db.stats().blocks_ready, 150);
        let populated = db.pmem().populated_bytes();
        fill(&mut db.session(), 0..1000, 1);
        assert_eq!(db.pmem().populated_bytes(), populated);
    }
}
