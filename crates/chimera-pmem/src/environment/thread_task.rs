//! [`ThreadTask`]: a background task with a thread of its own.

use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::{Origin, Task, TaskBody, TaskStep};

/// A task that a thread runs.
///
/// # Protocol
/// `woken` is set by `wake` and taken by the thread before each step, so a wake-up during a step
/// causes another step. The thread looks at `woken` and `stopped` again under `sleeping` before it
/// waits, and both are set before `sleeping` is taken to notify: no wake-up is lost.
#[derive(Debug)]
pub(super) struct ThreadTask {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    origin: Origin,
}

#[derive(Debug, Default)]
struct Shared {
    woken: AtomicBool,
    stopped: AtomicBool,
    sleeping: Mutex<()>,
    condition: Condvar,
    /// Processor time at the end of the last step.
    processor_ns: AtomicU64,
}

impl ThreadTask {
    pub(super) fn start(name: &str, body: TaskBody) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let its_own = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name(name.to_owned()).spawn(move || its_own.run(body))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)), origin: Origin::current() })
    }
}

impl Task for ThreadTask {
    fn wake(&self) {
        // A child that was forked has no threads of its parent.
        if self.origin.is_here() && !self.shared.woken.swap(true, Ordering::AcqRel) {
            self.shared.notify();
        }
    }

    fn stop(&self) {
        if !self.origin.is_here() {
            return;
        }
        self.shared.stopped.store(true, Ordering::Release);
        self.shared.notify();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        // A task may drop its own handle; it ends after its step then.
        if thread.thread().id() != thread::current().id() && thread.join().is_err() {
            log::error!("a background task died outside of its body");
        }
    }

    /// As of the end of the task's last step.
    fn processor_time(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.shared.processor_ns.load(Ordering::Relaxed)))
    }
}

impl Drop for ThreadTask {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn run(&self, mut body: TaskBody) {
        while !self.stopped.load(Ordering::Acquire) {
            self.woken.swap(false, Ordering::AcqRel);
            // Whatever the body shares is poisoned or repaired by itself; here it is only dropped.
            let step = panic::catch_unwind(AssertUnwindSafe(&mut body));
            self.note_processor_time();
            match step {
                Ok(TaskStep::Again) => {}
                Ok(TaskStep::Wait) => self.wait(None),
                Ok(TaskStep::WaitAtMost(time)) => self.wait(Instant::now().checked_add(time)),
                Ok(TaskStep::Done) => return,
                Err(cause) => {
                    let thread = thread::current();
                    let name = thread.name().unwrap_or("unnamed");
                    log::error!("background task {name} panicked: {}", panic_text(&*cause));
                    return;
                }
            }
        }
    }

    fn wait(&self, until: Option<Instant>) {
        let mut sleeping = self.lock();
        while !self.woken.load(Ordering::Acquire) && !self.stopped.load(Ordering::Acquire) {
            let Some(until) = until else {
                sleeping = self.condition.wait(sleeping).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let woken = self.condition.wait_timeout(sleeping, left);
            sleeping = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn notify(&self) {
        drop(self.lock());
        self.condition.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.sleeping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_processor_time(&self) {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        self.processor_ns.store(ns, Ordering::Relaxed);
    }
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
