//! `primitives`: the structures of the primitives study, crashed at every step.

use std::collections::BTreeSet;
use std::time::Instant;

use super::common::{Common, Outcome, progress_bar};
use crate::chance::Chance;
use crate::explore::{Campaign, Found, Summary, shrink};
use crate::report::Report;
use crate::simulated::{Mutation, MutationKind};
use crate::subject::{Primitive, Shape};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Crash states to verify of each structure
    #[arg(long, default_value_t = 20_000)]
    states: u64,
    /// Break each persistence step of each structure in turn, too
    #[arg(long)]
    mutate: bool,
    /// Only structures whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, common: &Common) -> Outcome {
    common.refuse_engine("the structures of the study are none")?;
    let started = Instant::now();
    let wanted = |primitive: &Primitive| {
        arguments.only.as_ref().is_none_or(|only| primitive.to_string().contains(only))
    };
    let all: Vec<_> = Primitive::all().into_iter().filter(wanted).collect();
    let bar = progress_bar(all.len() as u64);
    let mut report = Report::new();
    let (mut states, mut mutants, mut killed) = (0, 0, 0);
    let mut survivors = Vec::new();
    for primitive in &all {
        let sound = campaign(*primitive, common.seed(), arguments.states, None);
        states += sound.counts.states;
        for what in complaints(&sound) {
            report.problem(format!("{primitive}: {what}"));
        }
        if arguments.mutate {
            for mutation in mutations(&sound) {
                mutants += 1;
                if is_killed(*primitive, common.seed(), arguments.states, mutation) {
                    killed += 1;
                } else {
                    survivors.push(format!("{primitive}: {mutation}"));
                }
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    report.figure("seed", common.seed()).figure("structures", all.len()).figure("states", states);
    if arguments.mutate {
        report.figure("mutants", mutants).figure("killed", killed);
        report.figure("survivors", survivors);
    }
    let seconds = started.elapsed().as_secs_f64();
    report.figure("seconds", (seconds * 10.0).round() / 10.0);
    Ok(report)
}

fn campaign(primitive: Primitive, seed: u64, states: u64, mutation: Option<Mutation>) -> Summary {
    let campaign = Campaign {
        shape: &|_: &mut Chance| Shape::Primitive(primitive),
        seed,
        states,
        epochs: 0,
        threads: 1,
        mutation,
        progress: &|_| {},
    };
    campaign.run()
}

/// What is wrong: what crashes left, and rules that were broken.
fn complaints(summary: &Summary) -> Vec<String> {
    let found = summary.found.iter().map(|found| {
        let Found { case, violation } = shrink(found.clone());
        format!("{}\n{}", violation.what, serde_json::to_string(&case).unwrap_or_default())
    });
    let lints = summary.lints.iter();
    let lints = lints.map(|lint| format!("{} at {}: {}", lint.rule, lint.site, lint.what));
    found.chain(lints).collect()
}

/// Each step that was made, made wrong.
fn mutations(sound: &Summary) -> BTreeSet<Mutation> {
    let seen = sound.seen.iter();
    seen.flat_map(|(step, site)| {
        MutationKind::of_step(step).iter().map(|kind| Mutation { kind: *kind, site })
    })
    .collect()
}

fn is_killed(primitive: Primitive, seed: u64, states: u64, mutation: Mutation) -> bool {
    let summary = campaign(primitive, seed, states, Some(mutation));
    !summary.found.is_empty() || !summary.lints.is_empty()
}

#[cfg(test)]
mod tests {
    use chimera_primitives::atomicity::FailureAtomicity;
    use chimera_primitives::layout::LayoutKind;

    use super::*;

    /// Every failure-atomicity of every layout and way of merging, and the trees.
    #[test]
    fn structures_survive_crashes() {
        for primitive in Primitive::all() {
            let summary = campaign(primitive, 1, 2_500, None);
            assert!(summary.counts.states >= 2_500, "{primitive}");
            let wrong = complaints(&summary);
            assert!(wrong.is_empty(), "{primitive}: {}", wrong.join("\n"));
        }
    }

    /// The steps that each structure rests on, made wrong: the silence above means something. Others may be left out, because
    /// operations on nodes make themselves durable also where a transaction or a copy does so for them.
    #[test]
    fn steps_made_wrong_are_noticed() {
        let transactional = Primitive::Node(LayoutKind::Sorted, FailureAtomicity::Transactional);
        let no_fa = Primitive::Node(LayoutKind::Indirection, FailureAtomicity::NoFa);
        let individual = Primitive::Node(LayoutKind::Hashing, FailureAtomicity::Individual);
        let kinds: [(Primitive, &[&str]); 5] = [
            (transactional, &["undo.record", "undo.head"]),
            (no_fa, &["guarded.root"]),
            (individual, &["undo.head"]),
            (Primitive::FpTree, &["tree.commit"]),
            (Primitive::NvTree, &["tree.record", "tree.commit"]),
        ];
        let mut survivors = Vec::new();
        for (primitive, sites) in kinds {
            let mutations = mutations(&campaign(primitive, 1, 2_500, None));
            let drops = mutations.into_iter().filter(|mutation| {
                matches!(mutation.kind, MutationKind::DropFlush | MutationKind::DropFence)
                    && sites.iter().any(|site| mutation.site.ends_with(site))
            });
            let drops: Vec<_> = drops.collect();
            assert_eq!(drops.len(), 2 * sites.len(), "{primitive}: {drops:?}");
            for mutation in drops {
                if !is_killed(primitive, 1, 20_000, mutation) {
                    survivors.push(format!("{primitive}: {mutation}"));
                }
            }
        }
        assert!(survivors.is_empty(), "{}", survivors.join("\n"));
    }
}
