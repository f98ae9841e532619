//! Many histories of many kinds, on several threads of the operating system.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use chimera::EngineKind;

use super::crashes::{CrashPlan, Crashes, explore_crashes};
use super::{Abilities, Plan, Scheduling, Workload};
use crate::simulated::Mutation;

/// Histories of one kind at a time.
const BATCH: u64 = 50;
/// Operations in each history, of all threads together.
const OPERATIONS: u32 = 200;
/// Turns from one stall of a thread to the next: an operation has some fifty.
const STALL_EVERY: u64 = 300;
/// The same where a history is about threads that stop in the middle of a get.
const STALL_EVERY_HOT: u64 = 40;

/// What to do, and how much of it.
pub(crate) struct CrashCampaign<'a> {
    pub(crate) engine: EngineKind,
    pub(crate) seed: u64,
    pub(crate) histories: u64,
    pub(crate) threads: u64,
    pub(crate) mutation: Option<Mutation>,
    /// Called now and then with the histories so far.
    pub(crate) progress: &'a (dyn Fn(u64) + Sync),
}

impl CrashCampaign<'_> {
    /// Runs until there is enough, or something was found.
    pub(crate) fn run(&self) -> Crashes {
        let all = Mutex::new(Crashes::default());
        let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let batch = next.fetch_add(1, Ordering::Relaxed);
                        if batch * BATCH >= self.histories {
                            return;
                        }
                        let crashes = explore_crashes(&self.batch(batch));
                        is_over.fetch_or(crashes.problem.is_some(), Ordering::Relaxed);
                        all.lock().unwrap_or_else(PoisonError::into_inner).add(crashes);
                        (self.progress)(done.fetch_add(BATCH, Ordering::Relaxed) + BATCH);
                    }
                });
            }
        });
        all.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a batch does follows from its number and the seed: 4 to 8 threads, 1 to 8 keys; or one thread
    /// that writes a key again and again, and others that read it and often stop halfway.
    fn batch(&self, number: u64) -> CrashPlan {
        let threads = 4 + (number % 5) as u32;
        let workload = Workload {
            threads,
            writers: threads,
            operations_per_thread: OPERATIONS / threads,
            keys: 1 + number % 8,
            seed: self.seed.wrapping_add(number.wrapping_mul(1 << 32)),
            // Each history narrows it to those of its store.
            abilities: Abilities::ALL,
        };
        let hot_key = Workload {
            threads: 3,
            writers: 1,
            operations_per_thread: OPERATIONS,
            keys: 1,
            ..workload
        };
        let (workload, scheduling) = match number % 6 {
            0 => (workload, Scheduling::Random),
            1 => (workload, Scheduling::Priorities(3)),
            2 => (workload, Scheduling::Priorities(5)),
            3 => (hot_key, Scheduling::Stalls(STALL_EVERY_HOT)),
            _ => (workload, Scheduling::Stalls(STALL_EVERY)),
        };
        let histories = BATCH.min(self.histories - number * BATCH);
        let plan = Plan { workload, scheduling, histories };
        CrashPlan { engine: self.engine, plan, mutation: self.mutation }
    }
}
