//! [`SteppedEnvironment`]: time, chance and background work under the caller's control.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use super::by_path::ByPath;
use super::random::{SplitMix, mix};
use super::{
    Directory, Environment, File, FileProvider, MemoryFiles, OpenMode, Origin, RealFiles, Task,
    TaskBody, TaskStep,
};

/// Attempts after which waiting for somebody else is taken to be for ever.
const PATIENCE: u32 = 1_000;

/// What the calendar says while the clock is 0, until it is set: 2001-01-01.
const UNIX_SECONDS_AT_START: u64 = 978_307_200;

/// Called by [`Environment::relax`] with the attempt, to let somebody else make progress.
type RelaxHook = Arc<dyn Fn(u32) + Send + Sync>;

/// An environment in which nothing happens by itself.
///
/// The clock stands until [`advance`](Self::advance), random numbers follow from the seed,
/// background tasks run in [`step_tasks`](Self::step_tasks) on the caller's thread, parallel work
/// runs one piece after the other. Two runs that do the same see the same.
pub struct SteppedEnvironment {
    now_ns: AtomicU64,
    random: SplitMix,
    boot_id: AtomicU64,
    /// What the calendar says while the clock is 0.
    unix_seconds_at_start: AtomicU64,
    /// In order of their start. Tasks whose handle is gone are dropped when next stepped.
    tasks: Mutex<Vec<Weak<SteppedTask>>>,
    files: Arc<dyn FileProvider>,
    relax_hook: Mutex<Option<RelaxHook>>,
    /// For environments in which a fork is staged.
    origin: OnceLock<&'static AtomicU32>,
}

impl SteppedEnvironment {
    /// With the operating system's files.
    pub fn new(seed: u64) -> Self {
        Self::with_files(seed, Arc::new(RealFiles))
    }

    /// With an empty file system in memory; see [`MemoryFiles`].
    pub fn in_memory(seed: u64) -> Self {
        Self::with_files(seed, Arc::new(MemoryFiles::new()))
    }

    /// With the files of `files`, which another environment may share or have shared.
    pub fn with_files(seed: u64, files: Arc<dyn FileProvider>) -> Self {
        Self {
            now_ns: AtomicU64::new(0),
            random: SplitMix::new(seed),
            boot_id: AtomicU64::new(mix(seed)),
            unix_seconds_at_start: AtomicU64::new(UNIX_SECONDS_AT_START),
            tasks: Mutex::new(Vec::new()),
            files,
            relax_hook: Mutex::new(None),
            origin: OnceLock::new(),
        }
    }

    /// Moves the clock on.
    pub fn advance(&self, ns: u64) {
        self.now_ns.fetch_add(ns, Ordering::AcqRel);
    }

    /// Moves the clock back, which no clock of an [`Environment`] does: to see that nobody hangs on it. Tasks that wait
    /// for time to pass wait no longer because of it.
    pub fn rewind(&self, ns: u64) {
        let back = |now: u64| Some(now.saturating_sub(ns));
        let before = self.now_ns.fetch_update(Ordering::AcqRel, Ordering::Acquire, back);
        let before = before.unwrap_or_else(|now| now);
        let ns = before - before.saturating_sub(ns);
        for task in lock(&self.tasks).iter().filter_map(Weak::upgrade) {
            let mut state = lock(&task.state);
            if let Next::At(at) = &mut state.next {
                *at = at.saturating_sub(ns);
            }
        }
    }

    /// Sets the calendar, to an earlier day or a later one. The clock goes on.
    pub fn set_unix_seconds(&self, unix_seconds: u64) {
        let at_start = unix_seconds.wrapping_sub(self.now_ns() / 1_000_000_000);
        self.unix_seconds_at_start.store(at_start, Ordering::Release);
    }

    /// Gives the machine a new boot id, as after a power loss.
    pub fn reboot(&self) {
        self.boot_id.fetch_add(1, Ordering::AcqRel);
    }

    /// Lets [`fork`](Self::fork) be staged for what is made from now on. Some bytes stay for ever.
    pub fn allow_fork(&self) {
        self.origin.get_or_init(|| Box::leak(Box::new(AtomicU32::new(1))));
    }

    /// From now on the process is a child of the one in which everything so far was made, if that was
    /// [allowed](Self::allow_fork).
    pub fn fork(&self) {
        if let Some(word) = self.origin.get() {
            word.store(0, Ordering::Release);
        }
    }

    /// Runs one step of each task that has something to do, in order of their start: new, woken, not
    /// finished with the last step, or waited for long enough. `false` when there was none.
    ///
    /// # Panics
    /// When a task does; the task is over then.
    pub fn step_tasks(&self) -> bool {
        let tasks: Vec<_> = {
            let mut tasks = lock(&self.tasks);
            tasks.retain(|task| task.strong_count() > 0);
            tasks.iter().filter_map(Weak::upgrade).collect()
        };
        // Every task is asked, also after one made progress.
        tasks.iter().fold(false, |progress, task| task.step(self.now_ns()) | progress)
    }

    /// What [`Environment::relax`] does before it counts the attempt, for example stepping the
    /// tasks. Without a hook it only counts.
    pub fn set_relax_hook(&self, hook: impl Fn(u32) + Send + Sync + 'static) {
        *lock(&self.relax_hook) = Some(Arc::new(hook));
    }
}

impl fmt::Debug for SteppedEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SteppedEnvironment")
            .field("now_ns", &self.now_ns)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl Environment for SteppedEnvironment {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Acquire)
    }

    /// The clock's seconds, from the beginning of 2001 on or as the calendar was set.
    fn unix_seconds(&self) -> u64 {
        let at_start = self.unix_seconds_at_start.load(Ordering::Acquire);
        at_start.wrapping_add(self.now_ns() / 1_000_000_000)
    }

    fn random_u64(&self) -> u64 {
        self.random.next()
    }

    fn boot_id(&self) -> u64 {
        self.boot_id.load(Ordering::Acquire)
    }

    /// Always 1.
    fn process_id(&self) -> u32 {
        1
    }

    fn origin(&self) -> Origin {
        let staged = self.origin.get().map(|word| Origin::staged(word, self.process_id()));
        staged.unwrap_or_else(|| Origin::without_forks(self.process_id()))
    }

    /// Always 1.
    fn parallelism(&self) -> usize {
        1
    }

    fn spawn(&self, name: &str, body: TaskBody) -> io::Result<Box<dyn Task>> {
        let task = Arc::new(SteppedTask {
            name: name.to_owned(),
            state: Mutex::new(State { body: Some(body), next: Next::Now, stopped: false }),
        });
        lock(&self.tasks).push(Arc::downgrade(&task));
        Ok(Box::new(Handle(task)))
    }

    fn run_parallel(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(work);
    }

    /// # Panics
    /// After a thousand attempts: nobody else is running who could end the wait.
    fn relax(&self, attempt: u32) {
        let hook = lock(&self.relax_hook).clone();
        if let Some(hook) = hook {
            hook(attempt);
        }
        assert!(attempt < PATIENCE, "would wait for ever: nothing else runs in this environment");
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.files.open(path, mode)
    }

    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn Directory>> {
        match self.files.open_directory(path)? {
            Some(directory) => Ok(directory),
            None => Ok(Arc::new(ByPath::open(Arc::clone(&self.files), path)?)),
        }
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.files.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.files.list(path)
    }

    fn is_directory(&self, path: &Path) -> io::Result<Option<bool>> {
        self.files.is_directory(path)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.files.real_path(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.files.remove_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.files.sync_directory(path)
    }
}

/// When a task has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Now,
    /// When the clock reaches this.
    At(u64),
    WhenWoken,
}

struct State {
    /// `None` while it runs and when it is over.
    body: Option<TaskBody>,
    next: Next,
    stopped: bool,
}

struct SteppedTask {
    name: String,
    state: Mutex<State>,
}

impl SteppedTask {
    /// One step if there is something to do; whether there was.
    fn step(&self, now_ns: u64) -> bool {
        let body = {
            let mut state = lock(&self.state);
            let due = match state.next {
                Next::Now => true,
                Next::At(at) => at <= now_ns,
                Next::WhenWoken => false,
            };
            if !due {
                return false;
            }
            // A wake-up during the step sets it to `Now` again.
            state.next = Next::WhenWoken;
            state.body.take()
        };
        let Some(mut body) = body else { return false };
        // Nothing is locked meanwhile: the body may wake, start and stop tasks, itself too.
        let step = body();
        let mut state = lock(&self.state);
        if step == TaskStep::Done || state.stopped {
            drop(state);
            return true;
        }
        state.body = Some(body);
        let woken = state.next == Next::Now;
        state.next = match step {
            TaskStep::WaitAtMost(time) if !woken => Next::At(now_ns.saturating_add(ns(time))),
            TaskStep::Wait if !woken => Next::WhenWoken,
            _ => Next::Now,
        };
        true
    }
}

/// What [`Environment::spawn`] returns; the only strong owner of the task.
struct Handle(Arc<SteppedTask>);

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl Task for Handle {
    fn wake(&self) {
        lock(&self.0.state).next = Next::Now;
    }

    fn stop(&self) {
        let mut state = lock(&self.0.state);
        state.stopped = true;
        let body = state.body.take();
        // The body is dropped unlocked, because it may own handles of tasks.
        drop(state);
        drop(body);
    }

    fn processor_time(&self) -> Option<Duration> {
        None
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Locks a mutex, whether or not a thread panicked while holding it: these states are whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
