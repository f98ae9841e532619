//! The oracle by itself, a short campaign for each engine, and one that must find a planted fault.

use std::collections::BTreeSet;

use chimera::EngineKind;

use super::campaign::{CASES_PER_STORE, Campaign};
use super::harm::{Act, Harm, Kind, Unit};
use super::history::Contents;
use super::life::Subject;
use super::look::{Seen, Step, View, Way};
use super::tally::Tally;
use super::verdict::{Allowance, Verdict, judge};

/// Cases for each engine, unless told otherwise.
const CASES: u64 = 5 * CASES_PER_STORE;

fn campaign(engine: EngineKind, cases: u64, skipped: Option<&'static str>) -> Tally {
    let campaign =
        Campaign { engine, seed: 1, cases: 0..cases, threads: 1, skipped, progress: &|_| {} };
    campaign.run()
}

fn cases() -> u64 {
    let text = std::env::var("CHIMERA_TEST_DAMAGE_CASES");
    text.ok().and_then(|text| text.parse().ok()).unwrap_or(CASES)
}

/// Nothing is missing without a word.
fn assert_nothing_is_missing(engine: EngineKind) {
    let tally = campaign(engine, cases(), None);
    assert!(tally.violations.is_empty(), "{:#?}", tally.violations);
    let sum = tally.sum();
    let noticed: u64 = sum.noticed.values().sum();
    assert!(sum.unharmed > 0 && noticed > sum.cases / 4, "{sum:?}");
}

#[test]
fn nothing_is_missing_in_viper() {
    assert_nothing_is_missing(EngineKind::Viper);
}

#[test]
fn nothing_is_missing_in_hikv() {
    assert_nothing_is_missing(EngineKind::Hikv);
}

#[test]
fn nothing_is_missing_in_chameleon() {
    assert_nothing_is_missing(EngineKind::Chameleon);
}

#[test]
fn nothing_is_missing_in_pmem_hash() {
    assert_nothing_is_missing(EngineKind::PmemHash);
}

#[test]
fn nothing_is_missing_in_dram_hash() {
    assert_nothing_is_missing(EngineKind::DramHash);
}

#[test]
fn nothing_is_missing_in_the_teaching_engine() {
    assert_nothing_is_missing(EngineKind::Teaching);
}

/// Cases that were violations once: a slot that led to a tombstone in place of its record, and a line of slots that an
/// export took from a table which did not match its checksum.
#[test]
fn what_long_campaigns_found_is_noticed() {
    for case in [58_330, 52_489] {
        let engine = EngineKind::Chameleon;
        let cases = case..case + 1;
        let campaign =
            Campaign { engine, seed: 1, cases, threads: 1, skipped: None, progress: &|_| {} };
        let tally = campaign.run();
        assert!(tally.violations.is_empty(), "{:#?}", tally.violations);
        assert_eq!(tally.sum().cases, 1);
    }
}

/// A campaign finds a check that is left out.
#[test]
fn a_planted_fault_is_found() {
    let tally =
        campaign(EngineKind::Teaching, 40 * CASES_PER_STORE, Some("pool.step.used_blocks_check"));
    let structure = "superblock: used blocks";
    let is_found = tally.violations.iter().any(|violation| violation.structure == structure);
    assert!(is_found, "{:#?}", tally.violations);
}

/// What a case is follows from the seed and its number alone.
#[test]
fn a_case_comes_out_the_same_by_itself() {
    let all = campaign(EngineKind::Viper, CASES_PER_STORE, None);
    let mut again = Tally::default();
    for case in 0..CASES_PER_STORE {
        let range = case..case + 1;
        let engine = EngineKind::Viper;
        let one = Campaign {
            engine,
            seed: 1,
            cases: range,
            threads: 1,
            skipped: None,
            progress: &|_| {},
        };
        again.add(one.run());
    }
    assert_eq!(format!("{:?}", all.counts), format!("{:?}", again.counts));
    assert_eq!(all.violations, again.violations);
}

/// A store of this end whose history has a write; none of a word by itself.
fn subject(is_closed: bool) -> Subject {
    let mut subjects = (0..).map(|seed| Subject::new(EngineKind::Teaching, seed).expect("a store"));
    let is_wanted = |it: &Subject| {
        it.is_closed == is_closed && it.history.now.len() > 1 && !it.place.has_journal()
    };
    subjects.find(is_wanted).expect("one in four")
}

/// Judges a store that shows `found` in a step, with damage of a segment.
fn judged(subject: &Subject, step: Step, found: Contents, noticed: bool) -> Verdict {
    let kind = Kind { unit: Unit::Word, act: Act::Zeroed };
    let mut harm = Harm { kind, ..Harm::none(subject) };
    harm.image.files.get_mut("segment-000000").expect("a store with records")[0] ^= 1;
    let view = View { step, found, refused: BTreeSet::new(), twice: None };
    let noticed = noticed.then(|| (Step::Check, "damage".to_owned()));
    judge(subject, &harm, Way::Writing, &Seen { noticed, views: vec![view], ..Seen::default() })
}

#[test]
fn a_missing_record_is_a_violation_unless_something_says_so() {
    let subject = subject(true);
    let all = subject.history.now.clone();
    assert_eq!(judged(&subject, Step::List, all.clone(), false), Verdict::Unharmed);
    assert_eq!(judged(&subject, Step::List, all.clone(), true), Verdict::Noticed(Step::Check));
    let mut less = all.clone();
    less.pop_first();
    for step in [Step::Get, Step::List, Step::Scan, Step::Export] {
        let verdict = judged(&subject, step, less.clone(), false);
        assert!(matches!(&verdict, Verdict::Violation(what) if what.contains("is missing")));
    }
    assert_eq!(judged(&subject, Step::List, less.clone(), true), Verdict::Noticed(Step::Check));
    // An export that succeeds is taken for whole.
    assert!(matches!(judged(&subject, Step::Export, less, true), Verdict::Violation(_)));
}

#[test]
fn older_values_deleted_records_and_foreign_ones_are_violations() {
    let mut subject = subject(true);
    let now = subject.history.now.clone();
    let (key, value) = now.first_key_value().expect("two records");
    subject.history.write(99, key, Some(b"newer".to_vec()), None);
    let older = judged(&subject, Step::Get, now.clone(), false);
    assert!(matches!(older, Verdict::Violation(what) if what.contains("older value")));
    subject.history.write(99, key, None, None);
    let back = judged(&subject, Step::Get, now.clone(), false);
    assert!(matches!(back, Verdict::Violation(what) if what.contains("is back")));
    let mut foreign = subject.history.now.clone();
    foreign.insert(key.clone(), b"foreign".to_vec());
    let foreign = judged(&subject, Step::Get, foreign, false);
    assert!(matches!(foreign, Verdict::Violation(what) if what.contains("nobody wrote")));
    let _ = value;
}

#[test]
fn the_word_that_is_updated_in_place_may_be_anything_and_no_other() {
    let mut subject = subject(true);
    let (key, mut value) = subject.history.now.pop_first().expect("two records");
    subject.history.write(99, &key, Some(value.clone()), Some(1));
    value[8] ^= 1;
    let mut found = subject.history.now.clone();
    found.insert(key.clone(), value.clone());
    let verdict = judged(&subject, Step::Get, found.clone(), false);
    assert_eq!(verdict, Verdict::Allowed(Allowance::UncheckedWord));
    value[16] ^= 1;
    found.insert(key.clone(), value);
    assert!(matches!(judged(&subject, Step::Get, found, false), Verdict::Violation(_)));
}
