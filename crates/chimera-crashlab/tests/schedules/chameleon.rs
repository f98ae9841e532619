//! ChameleonDB: flushes, compactions, dumps and collections every few operations, beside puts, gets and deletes of the same
//! keys.

use std::time::Duration;

use chimera::EngineKind;
use chimera::baselines::{Compaction, FilterKind, UpperIndex};

use super::*;

/// Two shards of MemTables of 16 slots that are full with two or four entries.
fn tiny() -> Options {
    Options::new()
        .engine(EngineKind::Chameleon)
        .segment_bytes(16 << 10)
        .populate_ahead_bytes(0)
        .reclaim_percent(0)
        .huge_pages(false)
        .chameleon(|chameleon| {
            chameleon
                .shards(2)
                .memtable_bytes(256)
                .levels(3)
                .ratio(2)
                .log_run_bytes(1024)
                .load_factors(0.14..=0.28)
        })
}

/// Sessions on shared keys: no update in place.
fn sessions(threads: u32, keys: u64, seed: u64) -> Workload {
    let abilities = Abilities { in_place: false, ..Abilities::ALL };
    Workload { abilities, ..workload(threads, keys, seed) }
}

/// What has become of MemTables and of the log.
fn happened(db: &Db<Yielding>) -> Vec<(&'static str, u64)> {
    let stats = db.stats();
    let chameleon = stats.chameleon().expect("that engine");
    let written = &chameleon.written;
    vec![
        ("flushes", written.flushes.tables),
        ("compactions", written.upper.tables),
        ("last tables", written.last.tables),
        ("dumps", written.dumps.tables),
        ("absorbed", written.absorbed),
        ("collected", stats.reclaim.moved_records),
    ]
}

/// Only some of what can happen.
fn only(
    names: &'static [&'static str],
) -> impl Fn(&Db<Yielding>) -> Vec<(&'static str, u64)> + Send + Sync + 'static {
    move |db| happened(db).into_iter().filter(|(name, _)| names.contains(name)).collect()
}

const SCHEDULINGS: [Scheduling; 3] =
    [Scheduling::Random, Scheduling::Priorities(8), Scheduling::Stalls(150)];

#[test]
fn flushes_compactions_and_collections() {
    let names = &["flushes", "compactions", "last tables", "collected"];
    for scheduling in SCHEDULINGS {
        all_lives_are_linearizable(2, sessions(4, 6, 21), scheduling, &tiny(), only(names));
    }
    let level_by_level =
        tiny().chameleon(|chameleon| chameleon.compaction(Compaction::LevelByLevel));
    let stalls = Scheduling::Stalls(150);
    all_lives_are_linearizable(2, sessions(5, 9, 22), stalls, &level_by_level, only(names));
}

#[test]
fn write_intensive_mode() {
    let options = tiny().chameleon(|chameleon| chameleon.write_intensive(true));
    let names = &["absorbed", "last tables", "collected"];
    for scheduling in SCHEDULINGS {
        all_lives_are_linearizable(2, sessions(4, 8, 23), scheduling, &options, only(names));
    }
}

#[test]
fn get_protect_mode() {
    let options = tiny()
        .chameleon(|chameleon| chameleon.levels(2).get_protect(Some(Duration::ZERO)).dumps_max(1));
    let names = &["absorbed", "dumps", "last tables"];
    for scheduling in SCHEDULINGS {
        all_lives_are_linearizable(2, sessions(4, 12, 24), scheduling, &options, only(names));
    }
}

#[test]
fn hot_keys_whose_readers_stop_halfway() {
    // Two entries fill a MemTable, and three keys have one more.
    let options = tiny().chameleon(|chameleon| chameleon.shards(1).load_factors(0.14..=0.14));
    let hot = Workload { writers: 1, operations_per_thread: 150, ..sessions(3, 3, 25) };
    let names = &["flushes", "last tables"];
    all_lives_are_linearizable(1, hot, Scheduling::Stalls(40), &options, only(names));
}

#[test]
fn other_indexes_of_the_levels() {
    let others = [UpperIndex::Tables, UpperIndex::Filters(FilterKind::Blocked), UpperIndex::Pinned];
    for index in others {
        let options = tiny().chameleon(|chameleon| chameleon.upper_index(index));
        let workload = sessions(4, 6, 26);
        let abilities = Abilities { reclaim: false, ..workload.abilities };
        let workload = Workload { abilities, ..workload };
        let names = &["flushes", "compactions", "last tables"];
        all_lives_are_linearizable(2, workload, Scheduling::Stalls(150), &options, only(names));
    }
}

/// Bypass indexes are made beside the sessions, and a small bound of replay flushes MemTables that are not full.
#[test]
fn reopened_with_a_bound_of_replay_and_batches() {
    let options = tiny()
        .verify_at_open(false)
        .ordered(true)
        .order(|order| order.node_bytes(256).queues(2).queue_requests(2).part_keys(8))
        .chameleon(|chameleon| chameleon.replay_log_bytes_max(2 << 10).log_batch_bytes(128));
    let names = &["flushes", "last tables"];
    for scheduling in SCHEDULINGS {
        all_lives_are_linearizable(3, sessions(3, 7, 27), scheduling, &options, only(names));
    }
}
