//! The ordered add-on: an index of all keys in their order, for engines whose own index has none.
//!
//! It is a B+-tree in DRAM ([`tree`]), one for the whole store unless [several](trees) are asked for, made anew whenever a
//! store is opened. It has keys only: what a scan finds in it, the engine reads as any get does. So overwrites, updates and
//! moved records are no matter of the tree, and a key of the tree whose record is gone is no error: it was deleted a moment
//! ago.
//!
//! # Protocol
//! A write that makes a key appear or disappear [tells](Order::changed) the order, under the key's lock and before it is
//! acknowledged. The change goes into one of several [queues](queue), which one depends on the key. It is applied to the
//! tree later: by a thread in the background, by a writer that finds the queue full, or by a scan.
//!
//! # A store that is opened
//! The tree is made while the store is used. What changes meanwhile is applied to an [overlay](overlay), and all keys of
//! the store are gathered beside writers, in parts, by threads in the background and by scans that come too early: see
//! [`rebuild`]. Then the tree is built, and the last change of each key is made to it.
//!
//! *Proof* that the tree has the right keys. The overlay is open before the first write. Of a key that is in the overlay
//! when it is closed the last change that was applied decides, whatever was gathered, and later ones are made to the tree.
//! A key that is not there had no change applied yet. If one is queued, it will be made to the tree, and decides. If none
//! is, the key has been there all the time, or never; a listing gives the first and not the second. ∎ A scan begins when
//! the overlay is closed, and catches up then, so it misses no acknowledged write either.
//!
//! # Scans
//! A scan begins by [catching up](Order::catch_up): it notes which tickets each queue has given out, and waits until these
//! were applied. It applies them itself where nobody else does. Then it reads the tree leaf by leaf. Writers go on
//! meanwhile, and wait for nothing.
//!
//! # Invariants
//! 1. Changes of a key are applied in the order in which they were made: they are queued under the key's lock, in one
//!    queue, and a queue is applied in its order by one thread at a time.
//! 2. Who applies changes takes no lock but the nodes' own, and that of the overlay, whose holder waits for nobody. So a
//!    writer that holds the lock of a key may apply them, and a full queue never waits for somebody who waits for the
//!    queue. (A thread that read the store's index to learn what
//!    a change was would need tickets that are taken before the lock.)
//! 3. A write that was acknowledged before a scan began is in the tree when the scan reads it.
//! 4. Nobody waits for a background thread to begin: whoever needs a change applied applies it, unless somebody is at
//!    it just then. So is the tree made.
//!
//! A scan is no snapshot. A key that is there from its beginning to its end comes exactly once, with a value that it
//! has meanwhile; one that comes or goes meanwhile may come or not.

mod adaption;
mod cursor;
mod options;
mod overlay;
#[cfg(feature = "baselines")]
mod published;
mod queue;
mod rebuild;
mod run;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "an engine that keeps positions beside keys needs it")
)]
mod tree;
mod trees;

use std::fmt;
use std::ops::{Bound, RangeInclusive};
use std::sync::{Arc, OnceLock};

use chimera_pmem::Environment;
use chimera_pmem::environment::{Task, TaskStep};

use adaption::Sampling;
#[cfg(feature = "baselines")]
pub use adaption::{SampledOperations, ThreadSplit};
pub(crate) use cursor::{Cursor, Direction};
pub use options::{OrderOptions, TreeUpdates};
pub(crate) use rebuild::RebuildStep;
pub(crate) use run::KeyRun;
pub(crate) use tree::Page;

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use crate::types::error::{Error, Result};
use crate::types::order::OrderStats;
use queue::{Change, Queue};
use rebuild::Rebuild;
use tree::TreeShape;
use trees::Trees;

/// Changes that a background thread applies before it looks whether it is to stop.
const BATCH: usize = 256;
/// Changes that a writer applies at a time where its queue is full.
const HELPED: usize = 8;

/// An index of all keys in their order.
pub(crate) struct Order {
    tree: Trees,
    /// How the tree is made when the store is opened.
    rebuild: Rebuild,
    /// Those of a tree have its number modulo the number of trees.
    queues: Box<[Queue]>,
    environment: Arc<dyn Environment>,
    options: OrderOptions,
    /// Scans that hold up writers.
    barriers: AtomicU64,
    /// The tree lacks changes: there was no memory for them.
    is_incomplete: AtomicBool,
    /// The tree was made of a dump.
    is_loaded: AtomicBool,
    /// There was a dump that is damaged.
    dump_damaged: AtomicBool,
    backends: OnceLock<Box<[Backend]>>,
    /// Background threads that work; the others sleep.
    working: AtomicU64,
    sampling: Mutex<Sampling>,
    /// Changes that were applied by others than background threads.
    helped: AtomicU64,
}

/// Holds up writers until it is dropped.
struct Barrier<'a>(&'a AtomicU64);

impl<'a> Barrier<'a> {
    fn raise(barriers: &'a AtomicU64) -> Self {
        barriers.fetch_add(1, Ordering::AcqRel);
        Self(barriers)
    }
}

impl Drop for Barrier<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Dropped by a panic in a step of making the tree, which is not over then: whoever waits for the tree is told.
struct RebuildGuard<'a> {
    order: &'a Order,
    is_over: bool,
}

impl Drop for RebuildGuard<'_> {
    fn drop(&mut self) {
        let Self { order, is_over } = self;
        if *is_over {
            return;
        }
        order.rebuild.fail_by_panic();
        // The tree is of no use without all keys.
        order.rebuild.overlay.close(&*order.environment, |_, _| {});
    }
}

/// A background thread that applies changes.
struct Backend {
    task: Box<dyn Task>,
    is_parked: Arc<AtomicBool>,
}

impl Backend {
    fn is_awake(&self) -> bool {
        !self.is_parked.load(Ordering::Relaxed)
    }
}

impl Order {
    /// One that is still to be [made](Self::begin_rebuild). Applies nothing in the background until it is
    /// [started](Self::start).
    pub(crate) fn new(
        environment: Arc<dyn Environment>,
        options: OrderOptions,
        huge_pages: bool,
    ) -> Self {
        let shape = TreeShape {
            node_bytes: options.node_bytes,
            huge_pages,
            transactions: options.transactions,
        };
        let tree = Trees::new(shape, &options.ranges);
        let queues = match options.updates {
            TreeUpdates::Asynchronous => options.queues * tree.count(),
            TreeUpdates::Synchronous => 0,
        };
        let window = options.sampling_window.unwrap_or_default();
        let window_ns = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        Self {
            tree,
            rebuild: Rebuild::new(options.progress.clone()),
            queues: (0..queues).map(|_| Queue::new(options.queue_requests)).collect(),
            environment,
            barriers: AtomicU64::new(0),
            is_incomplete: AtomicBool::new(false),
            is_loaded: AtomicBool::new(false),
            dump_damaged: AtomicBool::new(false),
            backends: OnceLock::new(),
            working: AtomicU64::new(options.threads.min(queues).max(1) as u64),
            sampling: Mutex::new(Sampling::new(window_ns, options.threads.min(queues))),
            options,
            helped: AtomicU64::new(0),
        }
    }

    /// Starts the background threads.
    ///
    /// # Errors
    /// When no thread can be had.
    pub(crate) fn start(self: &Arc<Self>) -> std::io::Result<()> {
        let count = self.options.threads.min(self.queues.len());
        let mut backends = Vec::with_capacity(count);
        for number in 0..count {
            let order = Arc::downgrade(self);
            let is_parked = Arc::new(AtomicBool::new(false));
            let parked = is_parked.clone();
            let step = move || {
                let Some(order) = order.upgrade() else { return TaskStep::Done };
                order.backend_step(number, &parked)
            };
            let task = self.environment.spawn("chimera-order", Box::new(step))?;
            backends.push(Backend { task, is_parked });
        }
        // Only ever started once.
        self.backends.get_or_init(|| backends.into());
        Ok(())
    }

    /// Stops the background threads. Changes that wait stay in their queues.
    pub(crate) fn stop(&self) {
        for backend in self.backends() {
            backend.task.stop();
        }
    }

    fn backends(&self) -> &[Backend] {
        self.backends.get().map_or(&[], |backends| backends)
    }

    /// Applies changes of the queues that fall to thread `number` of those that work; rests when none has many.
    fn backend_step(&self, number: usize, is_parked: &AtomicBool) -> TaskStep {
        is_parked.store(false, Ordering::Relaxed);
        let begun_ns = self.options.sampling_window.map(|_| self.environment.now_ns());
        let (mut done, working) = (0, self.working());
        if number < working {
            for queue in self.queues.iter().skip(number).step_by(working) {
                done += self.apply(queue, BATCH).unwrap_or(0);
            }
        } else {
            // What waits in the queues that it had falls to those that still work.
            (0..working).for_each(|number| self.wake_thread(number));
        }
        if done > 0 {
            if let Some(begun_ns) = begun_ns {
                self.sample(done, begun_ns);
            }
            return TaskStep::Again;
        }
        is_parked.store(true, Ordering::Relaxed);
        TaskStep::Wait
    }

    /// Applies changes of every `count`-th queue from `number` on, in the place of a background thread; how many.
    #[cfg(feature = "baselines")]
    pub(crate) fn apply_share(&self, number: usize, count: usize) -> u64 {
        let queues = self.queues.iter().skip(number).step_by(count.max(1));
        queues.map(|queue| self.apply(queue, BATCH).unwrap_or(0) as u64).sum()
    }

    /// How many background threads work: at least one, also where there are none.
    fn working(&self) -> usize {
        self.working.load(Ordering::Relaxed) as usize
    }

    /// Notes that a background thread has applied changes; at the end of a window decides how many of them work.
    fn sample(&self, applied: usize, begun_ns: u64) {
        let arrived = self.queues.iter().map(Queue::issued).sum();
        let now_ns = self.environment.now_ns();
        let chosen = lock(&self.sampling).note(applied as u64, arrived, begun_ns, now_ns);
        let Some(chosen) = chosen else { return };
        let before = self.working();
        self.working.store(chosen as u64, Ordering::Relaxed);
        // Those that are too many find out when they are woken next.
        (before..chosen).for_each(|number| self.wake_thread(number));
    }

    /// Says how many keys the store has, before anybody uses it: all are to be gathered. Where there are none, the tree is
    /// made.
    pub(crate) fn begin_rebuild(&self, keys: u64) {
        self.rebuild.begin(keys, self.options.part_keys);
        if keys == 0 {
            self.close_overlay();
        }
    }

    /// Makes the tree of keys in strictly ascending order, before anybody uses the store. `false` when there is no memory.
    pub(crate) fn load<K: AsRef<[u8]>>(&self, keys: impl Iterator<Item = K>) -> bool {
        let built = self.tree.build(&*self.environment, keys);
        if built.is_ok() {
            self.is_loaded.store(true, Ordering::Relaxed);
            self.close_overlay();
        }
        built.is_ok()
    }

    /// The dump that was to be loaded is damaged.
    pub(crate) fn refuse_dump(&self) {
        log::warn!("the order of keys that was written at closing is damaged; it is made anew");
        self.dump_damaged.store(true, Ordering::Relaxed);
    }

    /// Bytes of a run of blocks that keys are written to when the store is closed.
    pub(crate) fn dump_bytes(&self) -> u32 {
        self.options.dump_bytes
    }

    /// Whether the tree has all keys, once it has caught up.
    pub(crate) fn is_complete(&self) -> bool {
        let is_incomplete = self.is_incomplete.load(Ordering::Acquire);
        self.is_ready() && !is_incomplete && self.rebuild.failure().is_none()
    }

    /// Parts into which the keys are divided, to be gathered side by side.
    pub(crate) fn parts(&self) -> u64 {
        self.rebuild.parts()
    }

    /// Whether the tree was made: then scans may begin, or are refused for good.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        !self.rebuild.overlay.is_open()
    }

    /// # Errors
    /// `NotYetOrdered` when the tree is not made, and scans are not to wait for it.
    pub(crate) fn check_ready(&self) -> Result<()> {
        if self.options.wait || self.is_ready() {
            return Ok(());
        }
        let (done, total) = self.rebuild.progress();
        Err(Error::NotYetOrdered { done, total })
    }

    /// One step of making the tree: a part of the keys, which `gather` finds at these positions; or the tree, of all
    /// keys. Others may do the same, and may write.
    ///
    /// # Errors
    /// As `gather`; scans are refused from then on.
    ///
    /// # Panics
    /// As `gather`; scans are refused from then on.
    pub(crate) fn rebuild_step(
        &self,
        gather: impl FnOnce(RangeInclusive<u64>, &mut KeyRun) -> Result<()>,
    ) -> Result<RebuildStep> {
        if self.is_ready() || self.rebuild.is_stopped() {
            return Ok(RebuildStep::Done);
        }
        let mut watch = RebuildGuard { order: self, is_over: false };
        let step = self.rebuild_claimed(gather);
        watch.is_over = true;
        step
    }

    /// A step, of what nobody else has claimed.
    fn rebuild_claimed(
        &self,
        gather: impl FnOnce(RangeInclusive<u64>, &mut KeyRun) -> Result<()>,
    ) -> Result<RebuildStep> {
        let rebuild = &self.rebuild;
        if let Some(part) = rebuild.claim() {
            // Without all keys there is nothing to wait for.
            rebuild.gather(part, gather).inspect_err(|_| self.close_overlay())?;
            return Ok(RebuildStep::Again);
        }
        let Some(runs) = rebuild.claim_runs() else { return Ok(RebuildStep::Busy) };
        let keys = run::merged(&runs).take_while(|_| !rebuild.is_stopped());
        let built = self.tree.build(&*self.environment, keys);
        rebuild.drop_runs(runs);
        if rebuild.is_stopped() {
            return Ok(RebuildStep::Done);
        }
        if let Err(error) = built {
            self.lacks_memory(&error);
        }
        self.close_overlay();
        Ok(RebuildStep::Done)
    }

    /// From here on changes are made to the tree.
    fn close_overlay(&self) {
        let make = |key: &[u8], change| self.change_tree(key, change);
        self.rebuild.overlay.close(&*self.environment, make);
    }

    /// The tree is not made any more, if it is not yet; scans would wait for ever.
    pub(crate) fn stop_rebuild(&self) {
        self.rebuild.stop();
    }

    /// Queues that `key` has come or gone. The caller holds the key's lock.
    ///
    /// # Cost
    /// A compare-exchange and two lines of the queue; where the queue is full, a change of the tree. No allocation for
    /// keys of up to 40 bytes.
    pub(crate) fn changed(&self, key: &[u8], is_there: bool) {
        let change = if is_there { Change::Present } else { Change::Absent };
        if self.queues.is_empty() {
            return self.make(key, change);
        }
        self.pass_barrier();
        let number = self.queue_of(key);
        let queue = &self.queues[number];
        let mut attempt = 0;
        let ticket = loop {
            match queue.push(key, change) {
                Some(ticket) => break ticket,
                // A few: the caller holds locks.
                None => self.help(queue, HELPED, &mut attempt),
            }
        };
        // Now and then: who applies writes the line that is read here.
        let quarter = self.options.queue_requests as u64 / 4;
        if ticket.is_multiple_of(quarter.clamp(1, 64)) && queue.waiting() >= quarter {
            self.wake(number);
        }
    }

    /// The queue of a key, which is one of its tree.
    fn queue_of(&self, key: &[u8]) -> usize {
        let of_tree = (xxhash_rust::xxh3::xxh3_64(key) % self.options.queues as u64) as usize;
        of_tree * self.tree.count() + self.tree.number_of(key)
    }

    /// Wakes the thread that applies the changes of a queue, if it sleeps.
    fn wake(&self, queue: usize) {
        self.wake_thread(queue % self.working());
    }

    /// Wakes a background thread, if it sleeps.
    fn wake_thread(&self, number: usize) {
        if let Some(backend) = self.backends().get(number) {
            // Read first: the line stays shared while the thread is at work.
            if backend.is_parked.load(Ordering::Relaxed)
                && backend.is_parked.swap(false, Ordering::Relaxed)
            {
                backend.task.wake();
            }
        }
    }

    /// Waits while a scan holds up writers.
    fn pass_barrier(&self) {
        let mut attempt = 0;
        while self.barriers.load(Ordering::Acquire) > 0 {
            self.environment.relax(attempt);
            attempt = attempt.saturating_add(1);
        }
    }

    /// Waits until everything that was queued before is in the tree, which was made; applies it where nobody else does.
    ///
    /// # Errors
    /// When there was no memory for all keys, some could not be read, or a thread that made the tree has panicked.
    pub(crate) fn catch_up(&self) -> Result<()> {
        let barrier = self.options.barrier.then(|| Barrier::raise(&self.barriers));
        for queue in &self.queues {
            let until = queue.issued();
            let mut attempt = 0;
            loop {
                let left = until.saturating_sub(queue.applied());
                if left == 0 {
                    break;
                }
                self.help(queue, left.min(BATCH as u64) as usize, &mut attempt);
            }
        }
        drop(barrier);
        if let Some(failure) = self.rebuild.failure() {
            return Err(failure);
        }
        let is_incomplete = self.is_incomplete.load(Ordering::Acquire);
        if is_incomplete { Err(Error::OrderIncomplete) } else { Ok(()) }
    }

    /// Applies changes in the place of a background thread, or waits while somebody else does.
    fn help(&self, queue: &Queue, most: usize, attempt: &mut u32) {
        match self.apply(queue, most) {
            Some(done) if done > 0 => {
                self.helped.fetch_add(done as u64, Ordering::Relaxed);
                *attempt = 0;
            }
            // Somebody applies, or is about to fill a slot.
            _ => {
                self.environment.relax(*attempt);
                *attempt = attempt.saturating_add(1);
            }
        }
    }

    fn apply(&self, queue: &Queue, most: usize) -> Option<usize> {
        queue.apply(most, |key, change| self.make(key, change))
    }

    /// Makes a change to the tree, or keeps it until there is one.
    fn make(&self, key: &[u8], change: Change) {
        if !self.rebuild.overlay.keep(&*self.environment, key, change) {
            self.change_tree(key, change);
        }
    }

    fn change_tree(&self, key: &[u8], change: Change) {
        match change {
            Change::Present => {
                if let Err(error) = self.tree.insert(&*self.environment, key) {
                    self.lacks_memory(&error);
                }
            }
            Change::Absent => {
                self.tree.remove(&*self.environment, key);
            }
        }
    }

    fn lacks_memory(&self, error: &std::io::Error) {
        if !self.is_incomplete.swap(true, Ordering::AcqRel) {
            log::error!("no memory for the order of keys, so scans are refused: {error}");
        }
    }

    /// Reads keys of one leaf from `from` on, ascending, `most` at the most.
    pub(crate) fn read_ascending(&self, from: Bound<&[u8]>, most: usize, page: &mut Page) {
        self.tree.read_ascending(&*self.environment, from, most, page);
    }

    /// Reads keys of one leaf up to `to`, descending, `most` at the most.
    pub(crate) fn read_descending(&self, to: Bound<&[u8]>, most: usize, page: &mut Page) {
        self.tree.read_descending(&*self.environment, to, most, page);
    }

    /// What there is to say of it.
    pub(crate) fn stats(&self) -> OrderStats {
        let (tree, threads) = (self.tree.figures(), self.backends().len());
        let sampling = lock(&self.sampling);
        OrderStats {
            is_ready: self.is_complete(),
            is_loaded: self.is_loaded.load(Ordering::Relaxed),
            dump_damaged: self.dump_damaged.load(Ordering::Relaxed),
            keys_gathered: self.rebuild.progress().0,
            trees: self.tree.count(),
            keys: tree.keys,
            height: tree.height,
            leaves: tree.leaves,
            inner_nodes: tree.inner_nodes,
            dram_bytes: tree.bytes
                + self.queues.iter().map(Queue::bytes).sum::<u64>()
                + self.rebuild.bytes(),
            changes: self.queues.iter().map(Queue::issued).sum(),
            waiting: self.queues.iter().map(Queue::waiting).sum(),
            helped: self.helped.load(Ordering::Relaxed),
            queues: self.queues.len(),
            threads,
            threads_working: self.working().min(threads),
            threads_awake: self.backends().iter().filter(|backend| backend.is_awake()).count(),
            decisions: sampling.decisions,
            last_window: sampling.last,
            transactions: tree.transactions,
            transactions_aborted: tree.transactions_aborted,
        }
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Order").field("options", &self.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
