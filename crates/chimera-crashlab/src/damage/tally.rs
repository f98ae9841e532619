//! [`Tally`]: what came of many cases.

use std::collections::BTreeMap;

use super::harm::Kind;
use super::look::Step;
use super::verdict::{Allowance, Verdict};

/// What came of the cases of one structure and one kind of damage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) cases: u64,
    pub(crate) unharmed: u64,
    pub(crate) noticed: BTreeMap<Step, u64>,
    pub(crate) allowed: BTreeMap<Allowance, u64>,
    pub(crate) violations: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.unharmed += other.unharmed;
        self.violations += other.violations;
        for (step, count) in &other.noticed {
            *self.noticed.entry(*step).or_default() += count;
        }
        for (allowance, count) in &other.allowed {
            *self.allowed.entry(*allowance).or_default() += count;
        }
    }
}

/// A case in which something is missing without a word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// Its number: with the seed, all that there is to know.
    pub(crate) case: u64,
    pub(crate) structure: &'static str,
    pub(crate) kind: Kind,
    /// Where the damage is, and what the store showed.
    pub(crate) text: String,
}

/// What came of many cases.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: BTreeMap<(&'static str, Kind), Counts>,
    /// In the order of their numbers.
    pub(crate) violations: Vec<Violation>,
    pub(crate) stores: u64,
    /// Cases in which no damage that was tried changed a byte.
    pub(crate) unchanged: u64,
}

impl Tally {
    /// Adds what came of one case.
    pub(super) fn note(&mut self, structure: &'static str, kind: Kind, verdict: &Verdict) {
        let counts = self.counts.entry((structure, kind)).or_default();
        counts.cases += 1;
        match verdict {
            Verdict::Unharmed => counts.unharmed += 1,
            Verdict::Noticed(step) => *counts.noticed.entry(*step).or_default() += 1,
            Verdict::Allowed(allowance) => *counts.allowed.entry(*allowance).or_default() += 1,
            Verdict::Violation(_) => counts.violations += 1,
        }
    }

    /// Adds what came of others.
    pub(super) fn add(&mut self, other: Self) {
        for (key, counts) in other.counts {
            self.counts.entry(key).or_default().add(&counts);
        }
        self.violations.extend(other.violations);
        self.violations.sort_unstable();
        self.stores += other.stores;
        self.unchanged += other.unchanged;
    }

    /// All cases.
    pub(crate) fn sum(&self) -> Counts {
        let mut sum = Counts::default();
        self.counts.values().for_each(|counts| sum.add(counts));
        sum
    }

    /// Cases by a part of what they are.
    pub(crate) fn by<K: Ord>(&self, part: impl Fn(&'static str, Kind) -> K) -> BTreeMap<K, Counts> {
        let mut all = BTreeMap::<K, Counts>::new();
        for ((structure, kind), counts) in &self.counts {
            all.entry(part(structure, *kind)).or_default().add(counts);
        }
        all
    }
}
