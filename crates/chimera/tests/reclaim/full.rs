//! What puts leave to reclamation in a full pool.

use super::*;

const BLOCK_BYTES: u64 = 2048;

/// Puts new records until there is no room; how many there are then.
fn fill(db: &Db, first: u64) -> u64 {
    let mut session = db.session();
    let mut number = first;
    while !matches!(session.put(key(number), value(number, 1)), Err(Error::PoolFull { .. })) {
        number += 1;
    }
    number
}

/// Blocks that are fresh, or in which nothing is live.
fn free_blocks(db: &Db, blocks: u64) -> u64 {
    let inspected = db.inspect(None);
    let counts = &inspected.viper().expect("Viper").blocks;
    blocks - counts.used + counts.empty
}

/// Two blocks, and of a small pool one in 32. Slots need none: what is moved goes to those that are free.
#[test]
fn puts_leave_blocks_to_reclamation() {
    for (name, options) in both() {
        for (blocks, reserve) in [(31, 0), (32, 1), (63, 1), (64, 2), (300, 2)] {
            let reserve = if name == "fixed" { 0 } else { reserve };
            let directory = scratch();
            let options = options.clone().capacity_bytes(blocks * BLOCK_BYTES);
            let db = Db::open(directory.path(), &options).expect("a store");
            fill(&db, 0);
            assert_eq!(db.stats().blocks_used, blocks - reserve, "{name}, {blocks} blocks");
        }
    }
}

/// Reclamation may use the blocks that puts leave. Then puts leave as many of those that it has emptied.
#[test]
fn blocks_that_reclamation_has_emptied_take_the_place_of_those_it_has_filled() {
    const BLOCKS: u64 = 80;
    let directory = scratch();
    let options = options().capacity_bytes(BLOCKS * BLOCK_BYTES);
    let db = Db::open(directory.path(), &options).expect("a store");
    let mut next = 0;
    for round in 0..5 {
        next = fill(&db, next);
        assert_eq!(free_blocks(&db, BLOCKS), 2, "round {round}");
        // A third of eight blocks: what is moved needs a block of the reserve, and there is no room to give the last one back.
        for number in (128 * round..128 * (round + 1)).step_by(3) {
            assert!(db.delete(key(number)).expect("a delete"));
        }
        let (moved, model) = (db.stats().reclaim.moved_records, contents(&db));
        db.compact(10, None).expect("compaction");
        assert!(db.stats().reclaim.moved_records > moved + 50, "round {round}");
        assert!(db.stats().blocks_used > BLOCKS - 2, "round {round}: the reserve is not in use");
        assert!(free_blocks(&db, BLOCKS) >= 2, "round {round}");
        assert_eq!(contents(&db), model, "round {round}");
    }
    // Nor are blocks for puts that deletes alone have emptied, before they are as many.
    fill(&db, next);
    for first in [640, 641] {
        (first..800)
            .step_by(2)
            .for_each(|number| assert!(db.delete(key(number)).expect("a delete")));
    }
    fill(&db, 2 * next);
    assert_eq!(free_blocks(&db, BLOCKS), 2);
    assert_sound(&db);
}
