//! Stores on plain files keep their promise when the power fails; and the exploration notices when they
//! cannot.

use std::time::Duration;

use chimera::EngineKind;
use chimera_crashlab::plain_file::{
    Beside, Failing, Findings, Lie, Plan, explore, explore_beside, explore_failing,
};
use chimera_pmem::journal::steps;

/// Seeds for each test, unless told otherwise.
const SEEDS: u64 = 4;

fn seeds() -> u64 {
    let text = std::env::var("CHIMERA_TEST_PLAIN_FILE_SEEDS");
    text.ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS)
}

fn all(plan: impl Fn(u64) -> Plan) -> Findings {
    all_of(seeds(), plan)
}

fn all_of(seeds: u64, plan: impl Fn(u64) -> Plan) -> Findings {
    let mut sum = Findings::default();
    for seed in 0..seeds {
        sum.add(explore(&plan(seed)));
    }
    println!(
        "{} crash points, {} states, {} nested, {} epochs, {} bytes ahead of the journal",
        sum.crash_points, sum.states, sum.nested, sum.epochs, sum.direct_bytes
    );
    sum
}

fn assert_kept(found: &Findings) {
    assert!(found.violations.is_empty(), "{:#?}", found.violations);
    assert!(found.states > 500 && found.nested > 200 && found.epochs > 0, "{found:?}");
}

#[test]
fn group_keeps_its_promise() {
    assert_kept(&all(Plan::group));
}

#[test]
fn immediate_keeps_its_promise() {
    assert_kept(&all(Plan::immediate));
}

/// Values that lie where nothing was go to their place ahead of the journal.
#[test]
fn what_is_written_once_keeps_its_promise() {
    for plan in [Plan::group as fn(u64) -> Plan, Plan::immediate] {
        // A seed takes as long as ten of other tests.
        let found = all_of(seeds().div_ceil(2), |seed| {
            let engine = if seed % 2 == 0 { EngineKind::Hikv } else { EngineKind::Chameleon };
            // Two seeds have both engines and both sizes, four have each with each.
            let direct_bytes_min = Some(if seed.div_ceil(2) % 2 == 0 { 64 } else { 512 });
            Plan { engine, direct_bytes_min, ..plan(seed) }
        });
        assert_kept(&found);
    }
}

/// So do large values of `viper`, in blocks that are fresh or emptied.
#[test]
fn what_is_written_once_in_blocks_keeps_its_promise() {
    for plan in [Plan::group as fn(u64) -> Plan, Plan::immediate] {
        let found = all_of(seeds().div_ceil(4), |seed| {
            let direct_bytes_min = Some(if seed % 2 == 0 { 64 } else { 512 });
            Plan { direct_bytes_min, ..plan(seed).with_large_values() }
        });
        assert_kept(&found);
        assert!(found.direct_bytes > 16 << 10, "{found:?}");
    }
}

/// Each alone: that a place is written ahead only where no crash brings back what was there, that it is synced before the journal,
/// and that it is said to have been there before it changes. Of places that are taken: that they are taken back by a sync, and
/// synced. With the seed that noticed it when it was tried; where a change of the
/// engine makes that see nothing, others are looked at, which takes minutes.
#[test]
fn a_step_of_writing_once_that_is_left_out_is_noticed() {
    let cases = [
        (steps::EMPTIED, EngineKind::Viper, 6, false),
        (steps::EMPTIED, EngineKind::Hikv, 0, false),
        (steps::EMPTIED, EngineKind::Chameleon, 2, false),
        (steps::DIRECT_SYNC, EngineKind::Viper, 0, false),
        (steps::DIRECT_SYNC, EngineKind::Hikv, 1, false),
        (steps::DIRECT_SYNC, EngineKind::Chameleon, 0, false),
        // Records of ChameleonDB never change.
        (steps::PLACED, EngineKind::Hikv, 15, false),
        (steps::TAKEN_ENDS, EngineKind::Viper, 0, true),
        (steps::TAKEN_ENDS, EngineKind::Hikv, 0, true),
        (steps::TAKEN_ENDS, EngineKind::Chameleon, 0, true),
        (steps::DIRECT_SYNC, EngineKind::Viper, 0, true),
        (steps::DIRECT_SYNC, EngineKind::Hikv, 0, true),
        (steps::DIRECT_SYNC, EngineKind::Chameleon, 0, true),
    ];
    for (step, engine, seed, takes_places) in cases {
        let is_noticed = |seed: u64| {
            let (direct_bytes_min, left_out) = (Some(64), Some(step));
            let plan = match engine {
                EngineKind::Viper => Plan::group(seed).with_large_values(),
                _ => Plan::group(seed),
            };
            let plan = Plan { engine, direct_bytes_min, takes_places, left_out, ..plan };
            !explore(&plan).violations.is_empty()
        };
        assert!((seed..seed + 20).any(is_noticed), "{engine:?}, {step:?}, {takes_places}");
    }
}

#[test]
fn a_device_that_ignores_syncs_is_noticed() {
    for lie in [Lie::Journal, Lie::Homes, Lie::Directories] {
        for plan in [Plan::group as fn(u64) -> Plan, Plan::immediate] {
            let found = all(|seed| Plan { lie: Some(lie), ..plan(seed) });
            assert!(!found.violations.is_empty(), "{lie:?} is not noticed");
        }
    }
}

/// The engines whose stores on plain files are tested beside the default one.
const ENGINES: [EngineKind; 3] = [EngineKind::Viper, EngineKind::Hikv, EngineKind::Chameleon];

fn all_beside(plan: impl Fn(u64) -> Plan) -> Beside {
    let mut sum = Beside::default();
    for seed in 0..seeds() {
        for engine in ENGINES {
            let found = explore_beside(&Plan {
                engine,
                operations: 200,
                // It begins with 64 KiB: a quarter of that is more than what a put appends, so that none waits.
                journal_bytes: 16 << 20,
                checkpoint_interval: Duration::from_millis(if seed % 3 == 0 { 1000 } else { 200 }),
                page_limit: Some(if seed % 2 == 0 { 64 << 10 } else { 128 << 10 }),
                value_bytes_max: 1024,
                ..plan(seed)
            });
            sum.findings.add(found.findings);
            sum.in_journal_syncs += found.in_journal_syncs;
            sum.in_home_syncs += found.in_home_syncs;
            sum.in_home_writes += found.in_home_writes;
            sum.in_home_reads += found.in_home_reads;
            sum.given_back_bytes += found.given_back_bytes;
        }
    }
    let Beside { in_journal_syncs, in_home_syncs, in_home_writes, in_home_reads, .. } = sum;
    println!(
        "{in_journal_syncs}, {in_home_syncs}, {in_home_writes}, {in_home_reads} puts in the middle, \
         {} bytes given back",
        sum.given_back_bytes
    );
    sum
}

/// Entries that are appended while a sync or a checkpoint goes on are none of theirs.
/// A compaction of this seed gives storage back, and the next block there is stored to before anything else syncs its file.
#[test]
fn a_hole_that_is_not_synced_is_noticed() {
    let left_out = Some(steps::HOLES_SYNC);
    let found = explore(&Plan { left_out, ..Plan::immediate(502) });
    assert!(!found.violations.is_empty());
}

#[test]
fn what_is_appended_beside_syncs_and_checkpoints_is_not_counted_as_durable() {
    for (plan, syncs_homes) in [(Plan::group as fn(u64) -> Plan, true), (Plan::immediate, false)] {
        let found = all_beside(plan);
        assert!(found.findings.violations.is_empty(), "{:#?}", found.findings.violations);
        assert!(found.findings.states > 500, "{found:?}");
        let counts = [found.in_journal_syncs, found.in_home_syncs, found.in_home_writes];
        // With `Immediate` one put at a time waits, and the one in the middle of the writes is not done by the sync.
        assert!(counts[0] > 4 && counts[1] + counts[2] > 4, "{counts:?}");
        assert!(counts[1] > 4 || !syncs_homes, "{counts:?}");
        assert!(found.given_back_bytes > 64 << 10, "{found:?}");
        assert!(found.in_home_reads > 4 || !syncs_homes, "{found:?}");
    }
}

#[test]
fn a_device_that_ignores_syncs_is_noticed_beside_them_too() {
    let found = all_beside(|seed| Plan { lie: Some(Lie::Journal), ..Plan::immediate(seed) });
    assert!(!found.findings.violations.is_empty());
}

/// After a sync that fails nothing is said to be durable that is not, and everything is there that was.
#[test]
fn a_sync_that_fails_once_takes_nothing_that_was_acknowledged() {
    for plan in [Plan::group as fn(u64) -> Plan, Plan::immediate] {
        let mut sum = Failing::default();
        for engine in ENGINES {
            let found = explore_failing(&Plan { engine, takes_places: true, ..plan(7) });
            sum.failures += found.failures;
            sum.states += found.states;
            sum.violations.extend(found.violations);
            for (sum, refused) in sum.refused.iter_mut().zip(found.refused) {
                *sum += refused;
            }
        }
        println!(
            "{} failures, {:?} calls refused, {} states",
            sum.failures, sum.refused, sum.states
        );
        assert!(sum.violations.is_empty(), "{:#?}", sum.violations);
        assert!(sum.failures > 60 && sum.refused.iter().all(|count| *count > 2), "{sum:?}");
    }
}

/// A page is given back only if the file has its content. That no pending entry may name it is for the models and tests of
/// `chimera-pmem`: it needs a value that comes back between two fences of two threads.
#[test]
fn a_check_of_giving_pages_back_that_is_left_out_is_noticed() {
    let plans = (0..seeds()).flat_map(|seed| ENGINES.map(|engine| (seed, engine)));
    let is_noticed = |(seed, engine)| {
        let (page_limit, left_out) = (Some(0), Some(steps::COMPARE));
        let plan = Plan { engine, page_limit, left_out, ..Plan::group(seed) };
        !explore(&plan).violations.is_empty()
    };
    assert!(plans.into_iter().any(is_noticed));
}
