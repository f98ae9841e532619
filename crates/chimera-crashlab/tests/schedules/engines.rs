//! The engines whose structures change beside their sessions: flushes, compactions, dumps and collection of ChameleonDB, and
//! segments of an index that are split, beside puts, gets and deletes of the same keys.

use std::time::Duration;

use chimera::{ChameleonOptions, Compaction, Consistency, EngineKind, FilterKind, Options};
use chimera::{HikvOptions, UpperIndex};
use chimera_crashlab::schedules::{Abilities, Plan, Scheduling, Workload, explore};

use super::{histories, open};

/// One of so many histories that other plans have: these take longer.
const PART: u64 = 6;

#[track_caller]
fn all_are_linearizable(workload: Workload, scheduling: Scheduling, options: &Options) {
    let plan = Plan { workload, scheduling, histories: histories().div_ceil(PART) };
    let found = explore(&plan, open(options.clone()));
    if let Some(problem) = found.problem {
        panic!("{plan:?}, history {}: {}", problem.number, problem.text);
    }
    assert_eq!(found.histories, plan.histories);
}

/// Few keys, which are changed again and again, and as many as make tables and segments grow. Schedules of each kind.
#[track_caller]
fn explore_all(options: &Options, reclaim: bool, seed: u64) {
    let kinds = [
        Scheduling::Random,
        Scheduling::Priorities(4),
        Scheduling::Priorities(20),
        Scheduling::Stalls(100),
    ];
    for (number, scheduling) in (0..).zip(kinds) {
        for keys in [1, 3, 24] {
            let (threads, operations) = (4, 240);
            let workload = Workload {
                threads,
                writers: threads,
                operations_per_thread: operations / threads,
                keys,
                seed: seed + 16 * number + keys,
                abilities: Abilities { in_place: false, reclaim, ..Abilities::ALL },
            };
            all_are_linearizable(workload, scheduling, options);
        }
    }
}

/// One shard, whose MemTable is flushed when it has one to four entries, two tables to a level.
fn chameleon(change: impl FnOnce(ChameleonOptions) -> ChameleonOptions) -> Options {
    let options = Options::new().engine(EngineKind::Chameleon).segment_bytes(16 << 10);
    options.anonymous(128 << 10).huge_pages(false).reclaim_percent(20).chameleon(|chameleon| {
        let chameleon = chameleon.shards(1).memtable_bytes(256).levels(3).ratio(2);
        change(chameleon.log_run_bytes(1024).load_factors(0.07..=0.28))
    })
}

/// Segments of the index of eight entries.
fn hikv(change: impl FnOnce(HikvOptions) -> HikvOptions) -> Options {
    let options = Options::new().engine(EngineKind::Hikv).segment_bytes(8192);
    options
        .anonymous(64 << 10)
        .huge_pages(false)
        .hikv(|hikv| change(hikv.partitions(1).index_segment_bytes(256).heap_run_bytes(512)))
}

#[test]
fn flushes_compactions_and_collection_of_chameleon() {
    explore_all(&chameleon(|chameleon| chameleon), true, 1000);
    explore_all(&chameleon(|it| it.compaction(Compaction::LevelByLevel)), true, 2000);
}

#[test]
fn memtables_of_chameleon_that_go_to_the_bypass_index() {
    explore_all(&chameleon(|chameleon| chameleon.write_intensive(true)), true, 3000);
    explore_all(&chameleon(|it| it.replay_log_bytes_max(2048)), true, 4000);
}

#[test]
fn dumps_of_chameleon() {
    let protected = |dumps| chameleon(|it| it.get_protect(Some(Duration::ZERO)).dumps_max(dumps));
    explore_all(&protected(1), true, 5000);
    explore_all(&protected(2), true, 6000);
}

#[test]
fn chameleon_without_a_bypass_index() {
    for (number, upper) in
        (0..).zip([UpperIndex::Tables, UpperIndex::Pinned, UpperIndex::Filters(FilterKind::Bloom)])
    {
        explore_all(&chameleon(|it| it.upper_index(upper)), false, 7000 + 1000 * number);
    }
}

#[test]
fn segments_of_hikv_that_are_split() {
    explore_all(&hikv(|hikv| hikv), false, 11_000);
    explore_all(&hikv(|hikv| hikv).ordered(true), false, 12_000);
    let logged = |it: HikvOptions| it.consistency(Consistency::WriteAheadLog).log_area_bytes(960);
    explore_all(&hikv(logged), false, 13_000);
}

#[test]
fn segments_of_pmem_hash_that_are_split() {
    let options = Options::new().engine(EngineKind::PmemHash).segment_bytes(16 << 10);
    let options = options.anonymous(256 << 10).huge_pages(false);
    let options = options.log_hash(|it| it.index_segment_bytes(256).log_run_bytes(2048));
    explore_all(&options, false, 14_000);
}
