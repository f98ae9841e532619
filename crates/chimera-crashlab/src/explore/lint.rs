//! The linter alone: one store, some operations, no crash.

use std::sync::Arc;

use chimera_pmem::{Environment, SteppedEnvironment};

use super::case::Action;
use super::expectation::Expectation;
use super::model::Model;
use super::record::record;
use crate::chance::Chance;
use crate::durability::End;
use crate::linter::{Lint, Linter};
use crate::media::Media;
use crate::simulated::{Machine, SimulatedFiles};
use crate::subject::Subject;

/// Operations of the store.
const ACTIONS: usize = 200;

/// What the linter says of random operations; without A4, which loses nothing.
pub(crate) fn lint<S: Subject>(subject: &S, seed: u64) -> Vec<Lint> {
    let machine = Machine::new(subject.image_bytes());
    let files = Arc::new(SimulatedFiles(machine.clone()));
    let environment: Arc<dyn Environment> = Arc::new(SteppedEnvironment::with_files(seed, files));
    let nothing = Expectation::certain(Model::new(subject.keys()), subject.loss(End::PowerLoss));
    let mut chance = Chance::new(seed);
    let actions: Vec<_> = (0..ACTIONS).map(|_| Action::random(&mut chance, subject)).collect();
    record(subject, &machine, &environment, &nothing, &actions, &|| ());
    let mut media = Media::new(Machine::new(subject.image_bytes()));
    let mut linter = Linter::new(false);
    let trace = machine.state();
    for event in &trace.events {
        linter.step(event, &media);
        media.apply(event, &trace.changes);
    }
    linter.into_found()
}
