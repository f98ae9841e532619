//! [`Schedule`]: which task's step is next.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ThreadId};
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use super::PATIENCE;
use crate::environment::{TaskBody, TaskStep};

/// What a task's handle looks at without a lock.
#[derive(Debug, Default)]
pub(super) struct Flags {
    /// There was a wake-up since the last step began.
    pub(super) woken: AtomicBool,
    /// Processor time of all steps.
    pub(super) processor_ns: AtomicU64,
}

/// All tasks. A task is in one queue when it is `Queued`, and has a timer at most when it waits.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    tasks: HashMap<u64, Entry>,
    /// Tasks so far: each has a number.
    added: u64,
    running: usize,
    /// Tasks whose timer came due, in that order.
    due: VecDeque<u64>,
    /// All others that can run, and since when.
    ready: VecDeque<(u64, Instant)>,
    timers: BTreeSet<(Instant, u64)>,
    /// The last step was that of a task that was due.
    was_due: bool,
}

struct Entry {
    name: Arc<str>,
    flags: Arc<Flags>,
    /// Not there while a step runs.
    body: Option<TaskBody>,
    place: Place,
    is_stopped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Waiting(Option<Instant>),
    Queued,
    Running(ThreadId),
}

/// What a worker does next.
pub(super) enum Next {
    /// A step.
    Run(Job),
    /// Nothing, until something changes or this moment has come.
    Wait(Option<Instant>),
}

/// A task whose step runs.
pub(super) struct Job {
    number: u64,
    name: Arc<str>,
    flags: Arc<Flags>,
    body: TaskBody,
}

impl Job {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Runs a step; one that panics is the last.
    pub(super) fn run(&mut self) -> TaskStep {
        let before = processor_ns();
        // Whatever the body shares is poisoned or repaired by itself; here it is only dropped.
        let step = panic::catch_unwind(AssertUnwindSafe(&mut self.body));
        let used = processor_ns().saturating_sub(before);
        self.flags.processor_ns.fetch_add(used, Ordering::Relaxed);
        step.unwrap_or_else(|cause| {
            log::error!("background task {} panicked: {}", self.name, panic_text(&*cause));
            TaskStep::Done
        })
    }
}

impl Schedule {
    /// A new task, which is to run.
    pub(super) fn add(&mut self, name: &str, body: TaskBody, now: Instant) -> (u64, Arc<Flags>) {
        let number = self.added;
        self.added += 1;
        let flags = Arc::<Flags>::default();
        let entry = Entry {
            name: name.into(),
            flags: flags.clone(),
            body: Some(body),
            place: Place::Queued,
            is_stopped: false,
        };
        self.tasks.insert(number, entry);
        self.ready.push_back((number, now));
        (number, flags)
    }

    /// Whether no task is left.
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Whether a task could run.
    pub(super) fn has_queued(&self) -> bool {
        !self.due.is_empty() || !self.ready.is_empty()
    }

    pub(super) fn earliest_timer(&self) -> Option<Instant> {
        self.timers.first().map(|&(at, _)| at)
    }

    /// Queues a task that waits; `false` when it does not.
    pub(super) fn wake(&mut self, number: u64, now: Instant) -> bool {
        let Some(entry) = self.tasks.get_mut(&number) else { return false };
        let Place::Waiting(timer) = entry.place else { return false };
        entry.place = Place::Queued;
        if let Some(at) = timer {
            self.timers.remove(&(at, number));
        }
        self.ready.push_back((number, now));
        true
    }

    /// Ends a task: at once, if no step of it runs, and then the caller drops what is left of it.
    pub(super) fn stop(&mut self, number: u64) -> Option<TaskBody> {
        let entry = self.tasks.get_mut(&number)?;
        entry.is_stopped = true;
        match entry.place {
            Place::Running(_) => return None,
            Place::Waiting(None) => {}
            Place::Waiting(Some(at)) => _ = self.timers.remove(&(at, number)),
            Place::Queued => {
                self.due.retain(|&queued| queued != number);
                self.ready.retain(|&(queued, _)| queued != number);
            }
        }
        self.tasks.remove(&number)?.body
    }

    /// Whether a step of the task runs, on another thread.
    pub(super) fn is_waited_for(&self, number: u64) -> bool {
        let place = self.tasks.get(&number).map(|entry| entry.place);
        matches!(place, Some(Place::Running(thread)) if thread != thread::current().id())
    }

    /// The next step, if one may begin beside those that run.
    pub(super) fn next(&mut self, now: Instant, processors: usize) -> Next {
        while let Some(&(at, number)) = self.timers.first().filter(|&&(at, _)| at <= now) {
            self.timers.remove(&(at, number));
            if let Some(entry) = self.tasks.get_mut(&number) {
                entry.place = Place::Queued;
                self.due.push_back(number);
            }
        }
        let late_at = self.ready.front().map(|&(_, since)| since + PATIENCE);
        let is_late = late_at.is_some_and(|at| at <= now);
        let may_run = is_late || self.running < processors;
        // Of two steps in turn one is that of a task that has waited for long.
        let is_turn_of_ready = is_late && self.was_due;
        let due = if is_turn_of_ready { None } else { self.due.pop_front() };
        self.was_due = due.is_some();
        let from = if may_run { self.ready.front().copied() } else { None };
        let ready = from.filter(|_| due.is_none()).map(|(number, _)| number);
        if ready.is_some() {
            self.ready.pop_front();
        }
        let Some(number) = due.or(ready) else {
            return Next::Wait([late_at, self.earliest_timer()].into_iter().flatten().min());
        };
        self.begin(number).map_or(Next::Wait(Some(now)), Next::Run)
    }

    /// Takes the body of a queued task out, for a step.
    fn begin(&mut self, number: u64) -> Option<Job> {
        let entry = self.tasks.get_mut(&number)?;
        let body = entry.body.take()?;
        entry.place = Place::Running(thread::current().id());
        // Acquire: the step sees what was done before the wake-ups that it answers.
        entry.flags.woken.swap(false, Ordering::AcqRel);
        self.running += 1;
        Some(Job { number, name: entry.name.clone(), flags: entry.flags.clone(), body })
    }

    /// Puts a task back after its step. One that is over is returned: the caller drops it, and then
    /// [forgets](Self::forget) the task.
    pub(super) fn finish(&mut self, job: Job, step: TaskStep, now: Instant) -> Option<Job> {
        self.running -= 1;
        let number = job.number;
        let entry = self.tasks.get_mut(&number).filter(|entry| !entry.is_stopped);
        let Some(entry) = entry.filter(|_| step != TaskStep::Done) else { return Some(job) };
        entry.body = Some(job.body);
        let is_woken = entry.flags.woken.load(Ordering::Acquire);
        let timer = match step {
            TaskStep::WaitAtMost(time) => now.checked_add(time),
            _ => None,
        };
        if step == TaskStep::Again || is_woken {
            entry.place = Place::Queued;
            self.ready.push_back((number, now));
        } else {
            entry.place = Place::Waiting(timer);
            self.timers.extend(timer.map(|at| (at, number)));
        }
        None
    }

    /// A task that is over, and of which nothing is left.
    pub(super) fn forget(&mut self, number: u64) {
        self.tasks.remove(&number);
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("name", &self.name)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// Processor time of this thread.
fn processor_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What a panic said, where it said it in words.
fn panic_text(cause: &(dyn std::any::Any + Send)) -> &str {
    if let Some(text) = cause.downcast_ref::<&str>() {
        text
    } else if let Some(text) = cause.downcast_ref::<String>() {
        text
    } else {
        "no message"
    }
}
