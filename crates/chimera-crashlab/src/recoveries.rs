//! Which steps of an engine's recovery random stores have interrupted: by a power loss, in recoveries that follow a power loss
//! or a kill, several in a row.

use std::collections::BTreeMap;

use chimera::EngineKind;

use crate::chance::Chance;
use crate::explore::Campaign;
use crate::subject::{EngineShape, Shape};

/// What was interrupted.
#[derive(Clone, Debug, Default)]
pub struct Interrupted {
    /// By site: crash points while a process opened a store that may lose a store of this step, or come before its fence.
    pub points: BTreeMap<&'static str, u64>,
    /// Epochs that were cut during recovery.
    pub epochs: u64,
    /// Most of these in a row.
    pub deepest: u64,
    /// Processes killed.
    pub kills: u64,
    /// Promises that were broken.
    pub violations: Vec<String>,
}

/// Explores random stores of an engine, with so many states and epochs at the least.
pub fn interrupted(engine: EngineKind, seed: u64, states: u64, epochs: u64) -> Interrupted {
    let shape = |chance: &mut Chance| Shape::Engine(EngineShape::random(engine, chance));
    let campaign = Campaign {
        shape: &shape,
        seed,
        states,
        epochs,
        threads: 1,
        mutation: None,
        progress: &|_| (),
    };
    let summary = campaign.run();
    Interrupted {
        points: summary.recovering,
        epochs: summary.counts.nested,
        deepest: summary.counts.nested_deepest,
        kills: summary.counts.kills,
        violations: summary.found.iter().map(|found| format!("{:?}", found.violation)).collect(),
    }
}
