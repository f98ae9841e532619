//! Process kill: a writer process is killed at random moments, and what it acknowledged must be there.
//!
//! The writer is this program once more. It prints an acknowledgement for the beginning and for the end
//! of every operation; whatever has begun and not ended at the kill may be done or not, everything else
//! is certain. The same store lives through many kills, also while it is created, opened, recovered and
//! closed; now and then a new one begins.
//!
//! This proves nothing about power loss: the machine lives on, with all that the process has stored.
//!
//! - `pipe`: acknowledgements as bytes.
//! - `operations`: what a session does; follows from a seed, so both processes know.
//! - `writer`: the process that is killed.
//! - `model`: what must be in the store.
//! - `life`: one store and its kills.

mod life;
mod model;
mod operations;
mod pipe;
pub mod writer;

use std::io;
use std::path::{Path, PathBuf};

use chimera::pmem::{Environment, RealEnvironment};

use life::Life;

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many times a writer is killed.
    pub cycles: u64,
    /// Directories to make stores in.
    pub places: Vec<PathBuf>,
    /// The moments of kills, as far as these can be chosen, and all operations follow from it.
    pub seed: u64,
    /// This program.
    pub program: PathBuf,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Kills.
    pub cycles: u64,
    /// Stores that these kills were shared by.
    pub stores: u64,
    /// Operations that the writers acknowledged before they were killed.
    pub acknowledged: u64,
    /// Operations that had begun and not ended.
    pub in_flight: u64,
    /// Of these, how many were found done.
    pub in_flight_done: u64,
    /// Kills before the writer had its store open.
    pub kills_during_open: u64,
    /// Kills after the writer had begun to close it.
    pub kills_during_close: u64,
    /// Stores that had not been closed in order when they were opened to be verified.
    pub recoveries: u64,
    /// Media the stores lay on, as the stores say.
    pub media: Vec<String>,
    /// What is wrong, with what is needed to look at it.
    pub violations: Vec<String>,
}

/// Repeatable chance.
#[derive(Debug)]
pub(crate) struct Chance(RealEnvironment);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(RealEnvironment::with_seed(seed))
    }

    /// A number below `limit`.
    pub(crate) fn below(&self, limit: u64) -> u64 {
        self.0.random_u64() % limit
    }
}

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
            lives[which] = Some(begin(&plan.places[which], &chance, outcome.stores)?);
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

fn begin(place: &Path, chance: &Chance, number: u64) -> io::Result<Life> {
    std::fs::create_dir_all(place)?;
    let directory = tempfile::Builder::new().prefix("chimera-kill9-").tempdir_in(place)?;
    Ok(Life::new(directory, chance, number))
}
