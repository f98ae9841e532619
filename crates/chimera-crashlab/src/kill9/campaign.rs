//! All kills, one after the other.

use std::io;
use std::path::Path;

use super::life::Life;
use super::plan::{Chance, Outcome, Plan};
use crate::subject::EngineShape;

/// Kills writers as planned; `progress` is told after each.
///
/// # Errors
/// When a process or a directory cannot be had. What is wrong about a store is part of the outcome.
pub fn run(plan: &Plan, mut progress: impl FnMut()) -> io::Result<Outcome> {
    let chance = Chance::new(plan.seed);
    let mut outcome = Outcome::default();
    let mut lives: Vec<Option<Life>> = plan.places.iter().map(|_| None).collect();
    for cycle in 0..plan.cycles {
        let which = (cycle % plan.places.len() as u64) as usize;
        if lives[which].is_none() || chance.below(16) == 0 {
            lives[which] = Some(begin(plan, &plan.places[which], &chance, outcome.stores)?);
            outcome.stores += 1;
        }
        let Some(life) = &mut lives[which] else { continue };
        let text = life.cycle(plan, cycle, &chance, &mut outcome)?.err();
        outcome.cycles += 1;
        progress();
        if let Some(text) = text {
            // What is left of the store is evidence.
            let path = lives[which].take().map(Life::keep).unwrap_or_default();
            let seed = plan.seed;
            outcome.violations.push(format!(
                "cycle {cycle} with seed {seed}: {text}; the store is kept in `{}`",
                path.display()
            ));
        }
    }
    Ok(outcome)
}

fn begin(plan: &Plan, place: &Path, chance: &Chance, number: u64) -> io::Result<Life> {
    std::fs::create_dir_all(place)?;
    let directory = tempfile::Builder::new().prefix("chimera-kill9-").tempdir_in(place)?;
    Ok(Life::new(directory, EngineShape::for_files(plan.engine, number), chance))
}
