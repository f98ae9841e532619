//! [`StallScheduler`]: threads that stop anywhere, and for long.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

/// A thread that runs goes on with all but one in so many of its turns.
const SWITCH_EVERY: u64 = 16;
/// Shortest and longest stall, as powers of two of turns.
const STALL_SHIFT: std::ops::Range<u64> = 5..13;
/// Yields in a row after which everybody is taken to wait for somebody who stalls.
const YIELDS_MAX: u32 = 64;

/// Chance decides who is next. In one of so many turns the thread that has just run stalls, wherever it
/// is, for as long as it takes others to do nothing or hundreds of operations. So most histories have
/// many threads that stop halfway through a protocol, where with priorities a history has a few.
#[derive(Debug)]
pub(super) struct StallScheduler {
    random: Xoshiro256PlusPlus,
    /// Histories still to begin.
    histories: usize,
    /// Turns from one stall to the next, on average.
    every: u64,
    turn: u64,
    /// Who stalls, and until which turn.
    stalled: Vec<(TaskId, u64)>,
    yields: u32,
}

impl StallScheduler {
    pub(super) fn new(seed: u64, histories: usize, every: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { random, histories, every, turn: 0, stalled: Vec::new(), yields: 0 }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.next_u64() % end
    }

    fn is_stalled(&self, task: TaskId) -> bool {
        self.stalled.iter().any(|(stalled, _)| *stalled == task)
    }

    fn stall(&mut self, task: TaskId) {
        let shift = STALL_SHIFT.start + self.below(STALL_SHIFT.end - STALL_SHIFT.start);
        self.stalled.push((task, self.turn + (1 << shift)));
    }
}

impl Scheduler for StallScheduler {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.histories = self.histories.checked_sub(1)?;
        self.stalled.clear();
        (self.turn, self.yields) = (0, 0);
        Some(Schedule::new(self.random.next_u64()))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        self.turn += 1;
        let turn = self.turn;
        self.stalled.retain(|(_, until)| *until > turn);
        self.yields = if is_yielding { self.yields + 1 } else { 0 };
        if self.yields > YIELDS_MAX {
            self.stalled.clear();
        }
        let current = current.filter(|current| runnable.iter().any(|task| task.id() == *current));
        if let Some(current) = current.filter(|_| !is_yielding) {
            if self.below(self.every) == 0 {
                self.stall(current);
            } else if self.below(SWITCH_EVERY) > 0 {
                return Some(current);
            }
        }
        let mut awake: Vec<TaskId> = runnable.iter().map(|task| task.id()).collect();
        awake.retain(|task| !self.is_stalled(*task));
        if awake.is_empty() {
            self.stalled.clear();
            awake.extend(runnable.iter().map(|task| task.id()));
        }
        let chosen = self.below(awake.len() as u64) as usize;
        Some(awake[chosen])
    }

    fn next_u64(&mut self) -> u64 {
        self.random.next_u64()
    }
}
