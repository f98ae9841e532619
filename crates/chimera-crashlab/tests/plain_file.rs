//! Stores on plain files keep their promise when the power fails; and the exploration notices when they
//! cannot.

use chimera_crashlab::plain_file::{Findings, Lie, Plan, explore};

/// Seeds for each test, unless told otherwise.
const SEEDS: u64 = 4;

fn seeds() -> u64 {
    let text = std::env::var("CHIMERA_TEST_PLAIN_FILE_SEEDS");
    text.ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS)
}

fn all(plan: impl Fn(u64) -> Plan) -> Findings {
    let mut sum = Findings::default();
    for seed in 0..seeds() {
        sum.add(explore(&plan(seed)));
    }
    println!(
        "{} crash points, {} states, {} nested, {} epochs",
        sum.crash_points, sum.states, sum.nested, sum.epochs
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

#[test]
fn a_device_that_ignores_syncs_is_noticed() {
    for lie in [Lie::Journal, Lie::Homes, Lie::Directories] {
        for plan in [Plan::group as fn(u64) -> Plan, Plan::immediate] {
            let found = all(|seed| Plan { lie: Some(lie), ..plan(seed) });
            assert!(!found.violations.is_empty(), "{lie:?} is not noticed");
        }
    }
}
