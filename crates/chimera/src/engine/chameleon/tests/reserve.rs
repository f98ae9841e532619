//! What a store states as the reserve of its pool, and what each kind of step leaves of it.

use super::*;
use crate::engine::chameleon::runs::{TABLE, blocks_for};
use crate::engine::chameleon::space::Need;
use crate::index::probing_table::TABLE_ALIGN;
use crate::records::storage_log::NewRecord;
use crate::types::error::Error;

/// Longer than last tables of 80 entries, which have 10 blocks, and than levels.
const LONG_RUN_BLOCKS: u32 = 16;
/// What such a run has room for, in tombstones of 8-byte keys.
const TOMBSTONES: usize = (16 * 256 - 128) / 32;

fn assert_full<T: std::fmt::Debug>(outcome: &Result<T>) {
    assert!(matches!(outcome, Err(Error::PoolFull { .. })), "{outcome:?}");
}

impl Store {
    /// Blocks of the reserve that are not for runs of the log.
    fn reserve_for_merge(&self) -> u64 {
        self.engine.core().pool.reserve_blocks() - 2 * u64::from(LOG_RUN_BLOCKS)
    }

    /// Blocks of the longest last table.
    fn longest_blocks(&self) -> u64 {
        let lasts = (0..2).filter_map(|shard| self.tables(shard).last);
        let longest = lasts.map(|last| last.bytes).max().unwrap_or(0);
        blocks_for(&self.engine.core().pool, longest + TABLE_ALIGN).into()
    }
}

#[test]
fn the_reserve_is_two_runs_of_the_log_and_one_for_the_longest_last_table() {
    let mut store = Store::new(&normal());
    // The first last table of a shard may have all entries of its bypass index and of its MemTable.
    assert_eq!(store.reserve_for_merge(), 10);
    let mut keys = 0..4000;
    while store.longest_blocks() <= 12 {
        assert_eq!(store.reserve_for_merge(), store.longest_blocks().max(10));
        store.put(keys.next().expect("last tables become longer"), 1).expect("room");
    }
    let longest = store.longest_blocks();
    assert_eq!(store.reserve_for_merge(), longest);
    let store = store.reopen(&normal());
    assert_eq!((store.reserve_for_merge(), store.longest_blocks()), (longest, longest));
}

/// A store whose pool has nothing but its reserve, in one piece.
fn full_store() -> Store {
    let options = normal().segment_bytes(256 << 10);
    let store = Store::open_with(LONG_RUN_BLOCKS, &[], &options, None).expect("a new store");
    while store.engine.core().pool.take_bare_run(TABLE, 1).is_ok() {}
    assert_eq!(store.engine.core().pool.reserve_blocks(), 2 * 16 + 10);
    store
}

#[test]
fn tables_for_more_keys_leave_the_reserve() {
    let store = full_store();
    let space = store.engine.flusher().tables().space();
    assert_full(&space.take_level(0));
    assert_full(&space.take_dump(256));
    assert_full(&space.room_for_last(80, None, Need::Growth));
    // A table that makes room may use what is for tombstones. It leaves the rest.
    let room = space.room_for_last(80, None, Need::Upkeep).expect("room").expect("entries");
    assert!(!room.is_borrowed);
    assert_full(&space.room_for_last(80, None, Need::Upkeep));
    // One that may stay in the reserve takes the last run.
    let last = space.room_for_last(80, None, Need::Delete).expect("room").expect("entries");
    assert!(!last.is_borrowed);
}

#[test]
fn tombstones_leave_a_run_to_copies_and_both_leave_one_to_merges() {
    let mut store = full_store();
    let record = NewRecord { hash: 1, version: 1, key: &[0; 8], value: None };
    let (index, session) = (store.engine.index(), &mut store.client.appender);
    assert_full(&index.log().append(session, &record));
    let records = index.records();
    let mut count = 0;
    while records.append_tombstone(session, &record).is_ok() {
        count += 1;
    }
    assert_eq!(count, TOMBSTONES);
    let mut count = 0;
    while records.append_copy(&record).is_ok() {
        count += 1;
    }
    assert_eq!(count, TOMBSTONES);
    let space = store.engine.flusher().tables().space();
    assert!(space.room_for_last(80, None, Need::Delete).expect("room").is_some());
}
