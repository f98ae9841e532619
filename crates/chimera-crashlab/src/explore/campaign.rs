//! [`Campaign`]: many stores on several threads, until enough states have been verified.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::case::Case;
use super::lab::{Counts, Lab, Sampling, Violation, Windows};
use super::run::{explore, rerun};
use crate::chance::Chance;
use crate::linter::Lint;
use crate::simulated::Mutation;
use crate::subject::{Shape, Subject, SubjectVisitor};

/// Epochs that a store lives.
const EPOCHS_PER_STORE: u32 = 25;

/// Points of an epoch that are tried, on average: fewer while the states are ahead of the epochs.
const SAMPLED_POINTS: u64 = 32;
const SAMPLED_POINTS_AHEAD: u64 = 4;

/// A window is rare while fewer points of it were tried than one in so many states of the campaign.
const STATES_PER_RARE_POINT: u64 = 10_000;

/// What to do, and how much of it.
pub(crate) struct Campaign<'a> {
    /// The shape of the next store.
    pub(crate) shape: &'a (dyn Fn(&mut Chance) -> Shape + Sync),
    pub(crate) seed: u64,
    /// At least so many states and epochs.
    pub(crate) states: u64,
    pub(crate) epochs: u64,
    pub(crate) threads: u64,
    /// One step to be made wrong.
    pub(crate) mutation: Option<Mutation>,
    /// Called now and then with the states so far.
    pub(crate) progress: &'a (dyn Fn(u64) + Sync),
}

/// A store that lost something, written down.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) case: Case,
    pub(crate) violation: Violation,
}

/// What was done and found.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) counts: Counts,
    /// Crash points by the stores that may be lost there.
    pub(crate) windows: Windows,
    /// Those while a process opened a store, by the steps of that.
    pub(crate) recovering: Windows,
    pub(crate) stores: u64,
    pub(crate) lints: BTreeSet<Lint>,
    /// Steps that were made: what, and its site.
    pub(crate) seen: BTreeSet<(&'static str, &'static str)>,
    pub(crate) found: Vec<Found>,
}

impl Campaign<'_> {
    /// Runs until there is enough, or something was found.
    pub(crate) fn run(&self) -> Summary {
        let summary = Mutex::new(Summary::default());
        let (states, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for thread in 0..self.threads {
                let worker = Worker { campaign: self, thread, states: &states, is_over: &is_over };
                let summary = &summary;
                scope.spawn(move || worker.run(summary));
            }
        });
        summary.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

struct Worker<'a> {
    campaign: &'a Campaign<'a>,
    thread: u64,
    /// Of all threads, for the progress.
    states: &'a AtomicU64,
    is_over: &'a AtomicBool,
}

impl Worker<'_> {
    /// Explores one store after the other; its share of the campaign follows from the seed alone.
    fn run(&self, summary: &Mutex<Summary>) {
        let campaign = self.campaign;
        let mut chance = Chance::new(campaign.seed ^ self.thread << 48);
        let (mut states, mut epochs) = (0, 0);
        let mut windows = Windows::new();
        let (states_min, epochs_min) = (
            campaign.states.div_ceil(campaign.threads),
            campaign.epochs.div_ceil(campaign.threads),
        );
        while states < states_min || epochs < epochs_min {
            if self.is_over.load(Ordering::Relaxed) {
                break;
            }
            let is_ahead = states * epochs_min > epochs * states_min;
            let sampling = Sampling {
                points: if is_ahead { SAMPLED_POINTS_AHEAD } else { SAMPLED_POINTS },
                rare_points: states_min / STATES_PER_RARE_POINT,
            };
            let shape = (campaign.shape)(&mut chance);
            let seed = chance.next();
            let windows = &mut windows;
            let store = One { worker: self, seed, shape: &shape, sampling, windows, summary };
            let counts = shape.with_subject(store);
            states += counts.states;
            epochs += counts.epochs;
            let all = self.states.fetch_add(counts.states, Ordering::Relaxed) + counts.states;
            (campaign.progress)(all);
        }
        let mut summary = summary.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for (name, points) in windows {
            *summary.windows.entry(name).or_default() += points;
        }
    }
}

/// One store of a campaign.
struct One<'a> {
    worker: &'a Worker<'a>,
    seed: u64,
    shape: &'a Shape,
    sampling: Sampling,
    /// Points that this worker tried so far.
    windows: &'a mut Windows,
    summary: &'a Mutex<Summary>,
}

impl SubjectVisitor for One<'_> {
    type Output = Counts;

    fn visit<S: Subject>(self, subject: &S) -> Counts {
        let mutation = self.worker.campaign.mutation;
        let mut lab = Lab::new(subject, self.seed, mutation);
        lab.windows = std::mem::take(self.windows);
        let (epochs, violation) = explore(&mut lab, self.seed, EPOCHS_PER_STORE, self.sampling);
        *self.windows = std::mem::take(&mut lab.windows);
        let mut summary = self.summary.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        summary.counts.add(lab.counts);
        summary.stores += 1;
        for (name, points) in &lab.recovering {
            *summary.recovering.entry(name).or_default() += points;
        }
        summary.lints.extend(lab.lints.iter().cloned());
        summary.seen.extend(lab.working.state().seen.iter());
        if let Some(violation) = violation {
            self.worker.is_over.store(true, Ordering::Relaxed);
            let case = Case { mutation, shape: self.shape.clone(), seed: self.seed, epochs };
            summary.found.push(Found { case, violation });
        }
        lab.counts
    }
}

/// Runs a case again.
pub(crate) fn replay(case: &Case) -> Option<Violation> {
    struct Again<'a>(&'a Case);
    impl SubjectVisitor for Again<'_> {
        type Output = Option<Violation>;
        fn visit<S: Subject>(self, subject: &S) -> Option<Violation> {
            rerun(&mut Lab::new(subject, self.0.seed, self.0.mutation), self.0)
        }
    }
    case.shape.with_subject(Again(case))
}
