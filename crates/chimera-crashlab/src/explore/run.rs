//! Running a case: one store through its epochs.

use super::case::{Action, Case, Crash, Epoch};
use super::expectation::Expectation;
use super::lab::{Lab, Points, Sampling, Violation};
use super::model::Model;
use crate::chance::Chance;
use crate::durability::End;
use crate::subject::Subject;

/// Of so many epochs one begins with a process that is killed while it opens the store.
const KILLED_OPENING_ONE_IN: u64 = 4;

/// Explores one store through random epochs, each cut at the points that `sampling` takes. What they were, and the violation, if
/// there was one, in the last of them.
pub(crate) fn explore<S: Subject>(
    lab: &mut Lab<'_, S>,
    seed: u64,
    count: u32,
    sampling: Sampling,
) -> (Vec<Epoch>, Option<Violation>) {
    let mut chance = Chance::new(seed);
    let mut epochs = Vec::new();
    let mut expectation = start(lab.subject);
    for number in 0..count {
        let length = 3 + chance.below(18);
        let mut actions: Vec<_> =
            (0..length).map(|_| Action::random(&mut chance, lab.subject)).collect();
        if lab.subject.abilities().survives_kills && chance.below(KILLED_OPENING_ONE_IN) == 0 {
            actions.insert(0, Action::kill(&mut chance));
        }
        let crash = Crash {
            during_recovery: chance.below(4) == 0,
            point: chance.next() as u32,
            state: chance.next() as u32,
        };
        epochs.push(Epoch { actions: actions.clone(), crash });
        let seed = state_seed(seed, number);
        match lab.epoch(&expectation, &actions, crash, Points::Sampled(sampling), seed) {
            Ok(snapshot) => {
                lab.go_on(&snapshot);
                expectation = snapshot.expectation;
            }
            Err(violation) => return (epochs, Some(violation)),
        }
    }
    (epochs, None)
}

/// Runs a case. In its last epoch every crash is tried.
pub(crate) fn rerun<S: Subject>(lab: &mut Lab<'_, S>, case: &Case) -> Option<Violation> {
    let mut expectation = start(lab.subject);
    for (number, epoch) in case.epochs.iter().enumerate() {
        let is_last = number + 1 == case.epochs.len();
        let points = if is_last { Points::All } else { Points::None };
        let seed = state_seed(case.seed, number as u32);
        match lab.epoch(&expectation, &epoch.actions, epoch.crash, points, seed) {
            Ok(snapshot) => {
                lab.go_on(&snapshot);
                expectation = snapshot.expectation;
            }
            Err(violation) => return Some(violation),
        }
    }
    None
}

fn start<S: Subject>(subject: &S) -> Expectation {
    Expectation::certain(Model::new(subject.keys()), subject.loss(End::PowerLoss))
        .with_tails_of(subject.unchecked_tail())
}

fn state_seed(seed: u64, epoch: u32) -> u64 {
    Chance::new(seed ^ u64::from(epoch)).next()
}
