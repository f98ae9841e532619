//! Sessions on shared keys of a store in anonymous memory, under schedules that follow from seeds:
//! every history must be linearizable.

mod chameleon;
mod hikv;
mod pmem_hash;
mod yielding;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use chimera::baselines::RecordLayout;
use chimera::{Db, Error, Geometry, Options};
use chimera_crashlab::schedules::{
    Abilities, Plan, Scheduling, ShuttleEnvironment, Workload, explore, explore_lives, run_history,
};
use chimera_pmem::Environment;

use yielding::Yielding;

/// Blocks of one page of five records: writers are soon back at blocks that others have freed.
const SMALL: Geometry =
    Geometry { page_bytes: 256, pages_per_block: 1, block_shift_bytes: 0, segment_bytes: 8 << 10 };

fn small() -> Options {
    Options::new()
        .viper(|viper| viper.geometry(SMALL))
        .fixed_size(8, 24)
        .anonymous(16 << 10)
        .populate_ahead_bytes(512)
        .huge_pages(false)
        .viper(|viper| viper.index_segment_slots(8))
}

fn open(
    options: Options,
) -> impl Fn(&Arc<ShuttleEnvironment>, u64) -> Result<Db<Yielding>, Error> + Send + Sync + 'static {
    move |environment, _| {
        let environment: Arc<dyn Environment> = environment.clone();
        Db::open_on(Yielding::new(), &environment, "/store", &options)
    }
}

/// Histories of each plan: `CHIMERA_TEST_HISTORIES` or this many, 12,000 in all.
const HISTORIES: u64 = 750;

fn histories() -> u64 {
    let number = std::env::var("CHIMERA_TEST_HISTORIES").ok();
    number.map_or(HISTORIES, |text| text.parse().expect("CHIMERA_TEST_HISTORIES is a number"))
}

#[track_caller]
fn all_are_linearizable(workload: Workload, scheduling: Scheduling, options: &Options) {
    let plan = Plan { workload, scheduling, histories: histories() };
    let found = explore(&plan, open(options.clone()));
    if let Some(problem) = found.problem {
        panic!("{plan:?}, history {}: {}", problem.number, problem.text);
    }
    assert_eq!(found.histories, plan.histories);
    assert!(found.operations > plan.histories * 50, "only {} operations", found.operations);
}

/// What happened in all histories of a plan, by name.
type Seen = Arc<Mutex<BTreeMap<&'static str, u64>>>;

fn count(seen: &Seen, counts: &[(&'static str, u64)]) {
    let mut seen = seen.lock().expect("nobody panics with it");
    for (name, count) in counts {
        *seen.entry(*name).or_default() += count;
    }
}

/// Plans of an engine whose histories are longer and whose stores live several times: so fewer histories.
const ENGINE_PLANS_HISTORIES_PERCENT: u64 = 12;

/// As [`all_are_linearizable`], in stores of other engines, which are opened again between two lives. `see` says what has
/// happened in a life, and each of it must have happened in some.
#[track_caller]
fn all_lives_are_linearizable(
    lives: u32,
    workload: Workload,
    scheduling: Scheduling,
    options: &Options,
    see: impl Fn(&Db<Yielding>) -> Vec<(&'static str, u64)> + Send + Sync + 'static,
) -> BTreeMap<&'static str, u64> {
    let histories = (histories() * ENGINE_PLANS_HISTORIES_PERCENT / 100).max(1);
    let plan = Plan { workload, scheduling, histories };
    let seen = Seen::default();
    let into = seen.clone();
    let see = move |db: &Db<Yielding>| count(&into, &see(db));
    let found = explore_lives(&plan, lives, open(options.clone()), see);
    if let Some(problem) = found.problem {
        panic!("{plan:?}, history {}: {}", problem.number, problem.text);
    }
    assert_eq!(found.histories, plan.histories);
    let seen = seen.lock().expect("nobody panics with it").clone();
    println!("{scheduling:?}: {} operations, {seen:?}", found.operations);
    for (name, count) in &seen {
        assert!(*count > 0, "{name} has never happened: {plan:?}");
    }
    seen
}

fn workload(threads: u32, keys: u64, seed: u64) -> Workload {
    Workload {
        threads,
        writers: threads,
        operations_per_thread: 120 / threads,
        keys,
        seed,
        abilities: Abilities::ALL,
    }
}

#[test]
fn random_turns() {
    all_are_linearizable(workload(4, 3, 1), Scheduling::Random, &small());
    all_are_linearizable(workload(8, 12, 2), Scheduling::Random, &small());
}

#[test]
fn priorities() {
    for depth in [3, 30] {
        let scheduling = Scheduling::Priorities(depth);
        all_are_linearizable(workload(4, 3, 3), scheduling, &small());
        all_are_linearizable(workload(8, 12, 4), scheduling, &small());
    }
}

#[test]
fn the_published_layout() {
    let options = small().viper(|viper| viper.layout(RecordLayout::Published));
    all_are_linearizable(workload(4, 3, 5), Scheduling::Random, &options);
    all_are_linearizable(workload(6, 12, 6), Scheduling::Priorities(20), &options);
}

#[test]
fn a_store_that_is_nearly_full() {
    let options = small().anonymous(8 << 10).capacity_bytes(5 * 256);
    all_are_linearizable(workload(4, 20, 9), Scheduling::Random, &options);
    all_are_linearizable(workload(4, 20, 10), Scheduling::Priorities(20), &options);
}

#[test]
fn one_hot_key_in_few_slots() {
    // Its records are soon written again where readers still look for older ones.
    let options = small().anonymous(8 << 10).capacity_bytes(4 * 256);
    for depth in [4, 12] {
        all_are_linearizable(workload(3, 1, 13), Scheduling::Priorities(depth), &options);
        all_are_linearizable(workload(3, 2, 14), Scheduling::Priorities(depth), &options);
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for scheduling in [Scheduling::Random, Scheduling::Priorities(5)] {
        let plan = Plan { workload: workload(4, 3, 11), scheduling, histories: 1 };
        let first = run_history(&plan, open(small())).expect("a history");
        let second = run_history(&plan, open(small())).expect("a history");
        assert_eq!(first.events(), second.events());
        let other = Plan { workload: workload(4, 3, 12), ..plan };
        let other = run_history(&other, open(small())).expect("a history");
        assert_ne!(first.events(), other.events());
    }
}
