//! HiKV: segments of the index that split, runs of items that come and go, items that move, and free space that is rebuilt,
//! beside puts, gets and deletes of the same keys.

use chimera::EngineKind;
use chimera::baselines::Consistency;

use super::*;

/// Segments of the index of 8 entries, and runs of items of a few.
fn tiny() -> Options {
    Options::new()
        .engine(EngineKind::Hikv)
        .segment_bytes(8192)
        .populate_ahead_bytes(0)
        .huge_pages(false)
        .verify_at_open(false)
        .hikv(|hikv| {
            hikv.partitions(2).index_segment_bytes(256).heap_run_bytes(512).walked_first(0)
        })
}

fn sessions(threads: u32, keys: u64, seed: u64) -> Workload {
    let abilities = Abilities { in_place: false, reclaim: false, ..Abilities::ALL };
    Workload { abilities, ..workload(threads, keys, seed) }
}

const SCHEDULINGS: [Scheduling; 3] =
    [Scheduling::Random, Scheduling::Priorities(8), Scheduling::Stalls(150)];

/// What the index and the heap have done.
fn happened(db: &Db<Yielding>) -> Vec<(&'static str, u64)> {
    let stats = db.stats();
    let hikv = stats.hikv().expect("that engine");
    vec![
        ("splits", hikv.index_segments.saturating_sub(hikv.partitions.into())),
        ("walked", hikv.space_segments_walked),
    ]
}

fn only_splits(db: &Db<Yielding>) -> Vec<(&'static str, u64)> {
    happened(db).into_iter().filter(|(name, _)| *name == "splits").collect()
}

#[test]
fn segments_split_beside_sessions() {
    for scheduling in SCHEDULINGS {
        all_lives_are_linearizable(1, sessions(4, 40, 31), scheduling, &tiny(), only_splits);
        all_lives_are_linearizable(1, sessions(3, 24, 32), scheduling, &tiny(), only_splits);
    }
}

/// Rooms of items are used again at once, where readers may still be.
#[test]
fn one_hot_key_whose_readers_stop_halfway() {
    let options = tiny().hikv(|hikv| hikv.partitions(1));
    let one = |db: &Db<Yielding>| {
        vec![("segments", db.stats().hikv().expect("that engine").index_segments)]
    };
    for keys in [1, 3] {
        let hot = Workload { writers: 1, operations_per_thread: 150, ..sessions(3, keys, 33) };
        all_lives_are_linearizable(1, hot, Scheduling::Stalls(40), &options, one);
    }
}

/// Items move out of sparse runs while their keys are written, read and deleted.
#[test]
fn items_move_beside_sessions() {
    let moved = |db: &Db<Yielding>| vec![("moved", db.stats().reclaim.moved_records)];
    for scheduling in SCHEDULINGS {
        let workload = sessions(4, 16, 37);
        let abilities = Abilities { reclaim: true, ..workload.abilities };
        let workload = Workload { abilities, ..workload };
        all_lives_are_linearizable(2, workload, scheduling, &tiny(), moved);
    }
}

/// The index is walked in the second and third life, while keys come and go and segments split.
#[test]
fn free_space_is_rebuilt_beside_sessions() {
    for scheduling in SCHEDULINGS {
        all_lives_are_linearizable(3, sessions(4, 24, 34), scheduling, &tiny(), happened);
    }
}

/// The pool is so small that whoever writes makes the steps of the walk.
#[test]
fn free_space_is_rebuilt_in_a_pool_that_is_nearly_full() {
    let options = tiny().capacity_bytes(256 * 24);
    for scheduling in SCHEDULINGS {
        all_lives_are_linearizable(3, sessions(4, 16, 35), scheduling, &options, happened);
    }
}

#[test]
fn ordered_and_with_a_log() {
    let ordered = tiny()
        .ordered(true)
        .order(|order| order.node_bytes(256).queues(2).queue_requests(2).part_keys(8));
    let logged = tiny().hikv(|hikv| {
        hikv.consistency(Consistency::WriteAheadLog).log_area_bytes(1024).heap_run_bytes(1024)
    });
    for options in [ordered, logged] {
        // A scan of so many keys is so many reads at once.
        let stalls = Scheduling::Stalls(150);
        all_lives_are_linearizable(2, sessions(3, 14, 36), stalls, &options, happened);
        let priorities = Scheduling::Priorities(8);
        all_lives_are_linearizable(2, sessions(3, 14, 37), priorities, &options, happened);
    }
}
