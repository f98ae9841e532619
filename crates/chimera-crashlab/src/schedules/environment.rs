//! [`ShuttleEnvironment`]: an environment whose threads are coroutines.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chimera_pmem::environment::{Directory, File, OpenMode, Task, TaskBody};
use chimera_pmem::{Environment, SteppedEnvironment};

/// A [`SteppedEnvironment`] in which waiting lets other threads of `shuttle` run, and parallel work is
/// done by such threads. To be used inside an execution of `shuttle` only.
#[derive(Debug)]
pub struct ShuttleEnvironment {
    stepped: Arc<SteppedEnvironment>,
    parallelism: usize,
}

impl ShuttleEnvironment {
    /// Clock, randomness, tasks and files of `stepped`; parallel work on `parallelism` threads.
    pub fn new(stepped: Arc<SteppedEnvironment>, parallelism: usize) -> Self {
        Self { stepped, parallelism }
    }

    /// The environment underneath.
    pub fn stepped(&self) -> &SteppedEnvironment {
        &self.stepped
    }
}

impl Environment for ShuttleEnvironment {
    fn now_ns(&self) -> u64 {
        self.stepped.now_ns()
    }

    fn unix_seconds(&self) -> u64 {
        self.stepped.unix_seconds()
    }

    fn random_u64(&self) -> u64 {
        self.stepped.random_u64()
    }

    fn boot_id(&self) -> u64 {
        self.stepped.boot_id()
    }

    fn process_id(&self) -> u32 {
        self.stepped.process_id()
    }

    fn parallelism(&self) -> usize {
        self.parallelism
    }

    fn spawn(&self, name: &str, body: TaskBody) -> io::Result<Box<dyn Task>> {
        self.stepped.spawn(name, body)
    }

    fn run_parallel(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        shuttle::thread::scope(|scope| {
            for number in 1..count {
                scope.spawn(move || work(number));
            }
            if count > 0 {
                work(0);
            }
        });
    }

    /// Without an end: `shuttle` itself stops a run in which nobody gets on.
    fn relax(&self, _attempt: u32) {
        shuttle::thread::yield_now();
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.stepped.open(path, mode)
    }

    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn Directory>> {
        self.stepped.open_directory(path)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.stepped.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.stepped.list(path)
    }

    fn is_directory(&self, path: &Path) -> io::Result<Option<bool>> {
        self.stepped.is_directory(path)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.stepped.real_path(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.stepped.remove(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.stepped.sync_directory(path)
    }
}
