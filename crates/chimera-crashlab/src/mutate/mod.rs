//! The mutation matrix: every persistence step of an engine made wrong in turn, and who notices.
//!
//! A mutant is killed by the linter, which sees the broken rule in the trace, or by the crash oracles,
//! which see what a crash leaves; the two are told apart. What random states do not kill, the kept case of the mutant
//! may: some states are rare. A mutant that nobody kills is a hole in the
//! lab, or a step that is not needed: then its shape
//! names it as equivalent, with the reason.

use std::collections::BTreeSet;

use chimera::EngineKind;
use chimera_pmem::Site;
use serde::Serialize;

use crate::chance::Chance;
use crate::explore::{Campaign, Case, Found, Summary, replay};
use crate::schedules::{CrashCampaign, Crashes};
use crate::simulated::{Mutation, MutationKind};
use crate::subject::{EngineShape, Shape};

/// How to go through the matrix.
pub(crate) struct Matrix<'a> {
    pub(crate) engine: EngineKind,
    pub(crate) seed: u64,
    /// States to verify before a mutant counts as not killed by them.
    pub(crate) states: u64,
    /// Histories of several sessions for those that no state has killed.
    pub(crate) histories: u64,
    pub(crate) threads: u64,
    /// What is known already is not found out again: a kept case decides where there is one, and a mutant that is argued
    /// to make no difference is not run.
    pub(crate) is_short: bool,
    /// Only mutants whose name contains this.
    pub(crate) only: Option<&'a str>,
    /// Called with every mutant that a crash state killed.
    pub(crate) keep: &'a dyn Fn(&Found),
    /// Called with (mutants done, of how many).
    pub(crate) progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// What became of a mutant.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Mutant {
    pub(crate) mutation: String,
    /// The first rule that was broken.
    pub(crate) linter: Option<String>,
    /// What a crash left.
    pub(crate) oracle: Option<String>,
    /// Why it makes no difference.
    pub(crate) equivalent: Option<&'static str>,
    /// States verified until it was killed, or in all.
    pub(crate) states: u64,
}

impl Mutant {
    pub(crate) fn is_killed(&self) -> bool {
        self.linter.is_some() || self.oracle.is_some()
    }
}

/// What the matrix showed.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) mutants: Vec<Mutant>,
    /// Sites of the engine that no run executed.
    pub(crate) unexecuted: Vec<&'static str>,
    /// What the engine does wrong without any mutation.
    pub(crate) unmutated: Option<String>,
}

impl Matrix<'_> {
    /// Finds out which steps there are, and breaks each in turn.
    pub(crate) fn run(&self) -> Outcome {
        let sound = self.campaign(None);
        let unmutated = sound.found.first().map(|found| found.violation.what.clone());
        let executed: BTreeSet<&str> = sound.seen.iter().map(|(_, site)| *site).collect();
        let (steps, sites): (Vec<_>, Vec<_>) =
            chimera::sites(self.engine).into_iter().partition(|site| site.is_step());
        let names: Vec<_> = sites.into_iter().map(Site::name).collect();
        let unexecuted = names.iter().copied().filter(|site| !executed.contains(site)).collect();
        let of_sites = sound.seen.iter().flat_map(|(step, site)| {
            let kinds = if names.contains(site) { MutationKind::of_step(step) } else { &[] };
            kinds.iter().map(|kind| Mutation { kind: *kind, site })
        });
        let of_steps =
            steps.iter().map(|step| Mutation { kind: MutationKind::Skip, site: step.name() });
        let mutations: BTreeSet<Mutation> = of_sites.chain(of_steps).collect();
        let wanted =
            |mutation: &Mutation| self.only.is_none_or(|only| mutation.to_string().contains(only));
        let mutations: Vec<_> = mutations.into_iter().filter(wanted).collect();
        let count = mutations.len() as u64;
        let mut mutants = Vec::new();
        for mutation in mutations {
            mutants.push(self.mutant(mutation));
            (self.progress)(mutants.len() as u64, count);
        }
        Outcome { mutants, unexecuted, unmutated }
    }

    fn campaign(&self, mutation: Option<Mutation>) -> Summary {
        let engine = self.engine;
        let campaign = Campaign {
            shape: &|chance: &mut Chance| Shape::Engine(EngineShape::random(engine, chance)),
            seed: self.seed,
            states: self.states,
            epochs: 0,
            threads: self.threads,
            mutation,
            progress: &|_| {},
        };
        campaign.run()
    }

    fn histories(&self, mutation: Option<Mutation>) -> Crashes {
        let campaign = CrashCampaign {
            engine: self.engine,
            seed: self.seed,
            histories: self.histories,
            threads: self.threads,
            mutation,
            progress: &|_| {},
        };
        campaign.run()
    }

    /// What the case shows that noticed a mutation of this engine once.
    fn by_kept_case(&self, mutation: Mutation) -> Option<String> {
        let is_of_engine = |case: &Case| matches!(&case.shape, Shape::Engine(shape) if shape.kind() == self.engine);
        let mut cases = Case::kept(mutation, self.engine).filter(is_of_engine);
        let violation = cases.find_map(|case| replay(&case))?;
        Some(format!("a kept case: {}", violation.what))
    }

    fn mutant(&self, mutation: Mutation) -> Mutant {
        let known = self.is_short.then(|| self.known(mutation)).flatten();
        known.unwrap_or_else(|| self.tried(mutation))
    }

    /// A mutant of which is known what becomes of it.
    fn known(&self, mutation: Mutation) -> Option<Mutant> {
        let oracle = self.by_kept_case(mutation);
        let equivalent = EngineShape::equivalent(self.engine, mutation);
        let is_known = oracle.is_some() || equivalent.is_some();
        let mutation = mutation.to_string();
        is_known.then_some(Mutant { mutation, linter: None, oracle, equivalent, states: 0 })
    }

    /// A mutant that is run until somebody notices it.
    fn tried(&self, mutation: Mutation) -> Mutant {
        let summary = self.campaign(Some(mutation));
        let mut oracle = summary.found.first().map(|found| found.violation.what.clone());
        summary.found.first().map(self.keep);
        let mut lints = summary.lints;
        if oracle.is_none() {
            oracle = self.by_kept_case(mutation);
        }
        if oracle.is_none() {
            let crashes = self.histories(Some(mutation));
            lints.extend(crashes.lints);
            oracle = crashes.problem.map(|problem| problem.text);
        }
        // A5 would say that the mutation made an impossible trace.
        let lint = lints.iter().find(|lint| lint.rule != "A5");
        Mutant {
            mutation: mutation.to_string(),
            linter: lint.map(|lint| format!("{} at {}: {}", lint.rule, lint.site, lint.what)),
            oracle,
            equivalent: EngineShape::equivalent(self.engine, mutation),
            states: summary.counts.states,
        }
    }
}
