//! [`Workers`]: the background threads of a process, which the tasks of all its stores share.
//!
//! - `schedule`: which task's step is next. Plain data, without threads.
//! - `task`: the handle of a task.
//!
//! # Rules
//! 1. A task whose timer has come due begins its step at once.
//! 2. Any other begins while fewer steps run than the machine has processors (2 at least). Once it has waited for
//!    [`PATIENCE`] it begins in any case: what runs is blocked, by a slow disk for example.
//! 3. There are never more than [`EXTRA`] workers beside one for each processor.
//! 4. A task that says `Again` goes to the end of the queue.
//! 5. One worker at least is idle, unless there are as many as may be: it begins what the others cannot.
//! 6. An idle worker ends after [`LINGER`], where another one is idle or no task is left.
//!
//! A task never waits for another task's step, so that a bounded number of workers is enough: whatever a task needs and
//! finds undone, it does itself.
//!
//! # Thread safety
//! Everything that is not a step happens under one lock. `woken` of a task is set by [`Task::wake`](super::Task::wake)
//! before it takes the lock, and taken under the lock before each step; it is looked at under the lock after the step. So a
//! wake-up during a step causes another step, and none is lost. A process that was forked has workers of its own.

mod schedule;
mod task;

#[cfg(test)]
mod tests;

use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Origin, TaskBody};
use crate::mapping::no_thread;
use schedule::{Next, Schedule};
pub(super) use task::WorkerTask;

/// How long a task waits for a step of another one to end.
const PATIENCE: Duration = Duration::from_millis(10);
/// Workers beside one for each processor, for steps that are blocked.
const EXTRA: usize = 16;
/// How long a worker stays idle before it ends.
const LINGER: Duration = Duration::from_secs(1);

/// The workers of this process, or of one that it was forked from; null before the first.
static CURRENT: AtomicPtr<Workers> = AtomicPtr::new(std::ptr::null_mut());

/// The background threads of a process. Never freed.
#[derive(Debug)]
pub(super) struct Workers {
    origin: Origin,
    processors: usize,
    state: Mutex<State>,
    /// There is something new for an idle worker.
    changed: Condvar,
    /// A task is over that a thread waits for.
    ended: Condvar,
    /// Workers started so far: each has a number.
    started: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    schedule: Schedule,
    /// Those that are idle, too.
    workers: usize,
    /// Those that wait, or have just been started.
    idle: usize,
}

impl Workers {
    /// Those of this process.
    pub(super) fn current() -> &'static Self {
        let found = CURRENT.load(Ordering::Acquire);
        // SAFETY: null, or leaked below and only shared.
        let workers = unsafe { found.as_ref() };
        if let Some(workers) = workers.filter(|workers| workers.origin.is_here()) {
            return workers;
        }
        let made = Box::into_raw(Box::new(Self::new(processors())));
        match CURRENT.compare_exchange(found, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: made above, and leaked from now on.
            Ok(_) => unsafe { &*made },
            Err(faster) => {
                // SAFETY: made above, and nobody else has it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: another thread's, which it has leaked.
                unsafe { &*faster }
            }
        }
    }

    fn new(processors: usize) -> Self {
        Self {
            origin: Origin::current(),
            processors,
            state: Mutex::default(),
            changed: Condvar::new(),
            ended: Condvar::new(),
            started: AtomicU64::new(0),
        }
    }

    /// Starts a task.
    ///
    /// # Errors
    /// When there is no worker and none can be had.
    pub(super) fn spawn(&'static self, name: &str, body: TaskBody) -> io::Result<WorkerTask> {
        let mut state = self.lock();
        let (number, flags) = state.schedule.add(name, body, Instant::now());
        if let Err(error) = self.call_worker(&mut state)
            && state.workers == 0
        {
            let left = state.schedule.stop(number);
            drop(state);
            drop(left);
            return Err(no_thread(&error));
        }
        drop(state);
        Ok(WorkerTask::new(self, number, flags))
    }

    /// Begins the next step of a waiting task.
    fn wake(&'static self, number: u64) {
        let mut state = self.lock();
        if state.schedule.wake(number, Instant::now()) {
            self.look_after(&mut state);
        }
    }

    /// Ends a task and waits for the step that runs, unless this thread runs it.
    fn stop(&self, number: u64) {
        let mut state = self.lock();
        let body = state.schedule.stop(number);
        if body.is_some() {
            self.note_ended(&state);
        }
        while state.schedule.is_waited_for(number) {
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        // Not under the lock: what it owns may be tasks.
        drop(body);
    }

    /// What a worker does until it ends.
    fn work(&'static self) {
        let mut state = self.lock();
        state.idle -= 1;
        let mut last_step = Instant::now();
        loop {
            let now = Instant::now();
            match state.schedule.next(now, self.processors) {
                Next::Run(mut job) => {
                    self.look_after(&mut state);
                    drop(state);
                    let step = job.run();
                    state = self.lock();
                    last_step = Instant::now();
                    let earliest = state.schedule.earliest_timer();
                    if let Some(over) = state.schedule.finish(job, step, last_step) {
                        let number = over.number();
                        drop(state);
                        drop(over);
                        state = self.lock();
                        state.schedule.forget(number);
                        self.note_ended(&state);
                    } else if state.schedule.earliest_timer() != earliest && state.idle > 0 {
                        self.changed.notify_one();
                    }
                }
                Next::Wait(until) => {
                    let may_end = state.idle > 0 || state.schedule.is_empty();
                    let end = may_end.then(|| last_step + LINGER);
                    if end.is_some_and(|end| end <= now) {
                        state.workers -= 1;
                        // The one that stays may not look at the clock in time.
                        self.changed.notify_one();
                        return;
                    }
                    let until = [until, end].into_iter().flatten().min();
                    state.idle += 1;
                    state = self.wait(state, until.map(|until| until - now));
                    state.idle -= 1;
                }
            }
        }
    }

    fn wait<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        time: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        let Some(time) = time else {
            return self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Sees to it that a worker looks after what is queued, or may be soon.
    fn look_after(&'static self, state: &mut State) {
        let is_called_for = state.idle == 0 || state.schedule.has_queued();
        if is_called_for && let Err(error) = self.call_worker(state) {
            log::debug!("no more background threads: {error}");
        }
    }

    /// Wakes an idle worker, or starts one.
    fn call_worker(&'static self, state: &mut State) -> io::Result<()> {
        if state.idle > 0 {
            self.changed.notify_one();
            return Ok(());
        }
        if state.workers >= self.processors + EXTRA {
            return Ok(());
        }
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let thread = thread::Builder::new().name(format!("chimera-worker-{number}"));
        thread.spawn(|| self.work())?;
        state.workers += 1;
        state.idle += 1;
        Ok(())
    }

    fn note_ended(&self, state: &State) {
        self.ended.notify_all();
        if state.schedule.is_empty() {
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No step runs under the lock, so a panic has left nothing half-done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Steps that may run side by side.
fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from).max(2)
}
