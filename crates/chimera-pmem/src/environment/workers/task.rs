//! [`WorkerTask`]: the handle of a task that workers run.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Workers;
use super::schedule::Flags;
use crate::environment::Task;

/// A task that the process's workers run.
#[derive(Debug)]
pub(in crate::environment) struct WorkerTask {
    workers: &'static Workers,
    number: u64,
    flags: Arc<Flags>,
}

impl WorkerTask {
    pub(super) fn new(workers: &'static Workers, number: u64, flags: Arc<Flags>) -> Self {
        Self { workers, number, flags }
    }
}

impl Task for WorkerTask {
    fn wake(&self) {
        // A child that was forked has no threads of its parent.
        if self.workers.origin.is_here() && !self.flags.woken.swap(true, Ordering::AcqRel) {
            self.workers.wake(self.number);
        }
    }

    /// A task may stop itself; it ends after its step then.
    fn stop(&self) {
        if self.workers.origin.is_here() {
            self.workers.stop(self.number);
        }
    }

    /// As of the end of the task's last step.
    fn processor_time(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.flags.processor_ns.load(Ordering::Relaxed)))
    }
}

impl Drop for WorkerTask {
    fn drop(&mut self) {
        self.stop();
    }
}
