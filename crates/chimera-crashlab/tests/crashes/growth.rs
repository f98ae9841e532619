//! Growing ahead of use.

use chimera::{Db, Options};
use chimera_crashlab::rig::{Rig, Simulated};
use chimera_pmem::Pmem;

use crate::tools::{fill, small, small_any};

const BLOCK_BYTES: u64 = 512;
const AHEAD_BLOCKS: u64 = 32;

fn open(options: &Options) -> (Rig, Db<Simulated>) {
    let rig = Rig::new(2 << 20);
    let db = rig.open(options).expect("a new store");
    (rig, db)
}

/// Bytes that were touched ahead of use so far.
fn populated_bytes(rig: &Rig) -> u64 {
    rig.populated().iter().map(|range| range.end - range.start).sum()
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
    let options = options.clone().populate_ahead_bytes(AHEAD_BLOCKS * BLOCK_BYTES);
    let (rig, db) = open(&options);
    assert_eq!(db.stats().blocks_ready, 0);
    while rig.environment().step_tasks() {}
    assert!(db.stats().blocks_ready >= AHEAD_BLOCKS, "{:?}", db.stats());
    let mut session = db.session();
    for round in 0..200 {
        let populated = populated_bytes(&rig);
        fill(&mut session, round * 50..round * 50 + 50, 1);
        assert_eq!(populated_bytes(&rig), populated, "a put had to make room itself");
        while rig.environment().step_tasks() {}
        let stats = db.stats();
        assert!(stats.blocks_ready + 1 >= AHEAD_BLOCKS / 2, "{stats:?}");
        assert!(stats.blocks_ready <= 2 * AHEAD_BLOCKS, "far too much is ready: {stats:?}");
    }
    // Every block that was handed out had been touched before.
    let used = db.stats().blocks_used;
    assert!(used >= 1000);
    let populated = rig.populated();
    for block in 0..used {
        let (segment, inside) = (block / 24, block % 24);
        let start = 8192 + segment * (16 << 10) + inside * BLOCK_BYTES;
        let is_populated = |at: u64| populated.iter().any(|range| range.contains(&at));
        assert!((start..start + BLOCK_BYTES).step_by(64).all(is_populated), "block {block}");
    }
}

/// Without the task, or when it has fallen behind, puts make room themselves.
#[test]
fn hole_13_puts_make_room_themselves_when_nobody_else_does() {
    for (ahead_blocks, options) in [(0, small()), (AHEAD_BLOCKS, small()), (0, small_any())] {
        let options = options.populate_ahead_bytes(ahead_blocks * BLOCK_BYTES);
        let (_rig, db) = open(&options);
        fill(&mut db.session(), 0..5000, 1);
        assert_eq!(db.stats().records, 5000);
        assert!(db.pmem().mapped() > 5000 * 48);
    }
}

#[test]
fn hole_13_everything_can_be_touched_at_open() {
    for options in [small(), small_any()] {
        let options = options.capacity_bytes(150 * BLOCK_BYTES).populate_at_open(true);
        let options = options.populate_ahead_bytes(4 * BLOCK_BYTES);
        let (rig, db) = open(&options);
        assert_eq!(db.stats().blocks_ready, 150);
        db.compact(1, None).expect("nothing to do");
        assert_eq!(db.stats().blocks_ready, 150);
        let populated = populated_bytes(&rig);
        fill(&mut db.session(), 0..1000, 1);
        assert_eq!(populated_bytes(&rig), populated);
    }
}
