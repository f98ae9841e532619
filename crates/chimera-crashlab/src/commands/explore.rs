//! `explore`.

use super::{Common, Outcome};
use crate::chance::Chance;
use crate::explore::{Lab, Plan, explore};
use crate::report::Report;
use crate::subject::{Engine, EngineShape};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Crash states to verify, at least
    #[arg(long, default_value_t = 100_000)]
    states: u64,
}

pub(crate) fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let started = std::time::Instant::now();
    let mut chance = Chance::new(common.seed);
    let mut report = Report::new();
    let (mut states, mut epochs, mut points) = (0, 0, 0);
    let mut lints = Vec::new();
    while states < arguments.states {
        let shape = EngineShape::random(common.engine, &mut chance);
        let engine = Engine::new(&shape)?;
        let seed = chance.next();
        let mut lab = Lab::new(&engine, seed);
        let plan = Plan { epochs: 50, full_one_in: 10 };
        let (_, violation) = explore(&mut lab, seed, plan, &mut |_| true);
        states += lab.counts.states;
        epochs += lab.counts.epochs;
        points += lab.counts.points;
        for l in lab.lints { if !lints.contains(&l) { lints.push(l); } }
        if let Some(violation) = violation {
            report.problem(format!("{shape:?} {violation:#?}"));
            break;
        }
    }
    for l in lints { report.problem(format!("{l:?}")); }
    let secs = started.elapsed().as_secs_f64();
    report.figure("distinct_states", states).figure("epochs", epochs).figure("points", points).figure("states_per_second", states as f64 / secs);
    Ok(report)
}
