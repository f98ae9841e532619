//! [`Machine`]: simulated memory and files, and the record of what was done to them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chimera_pmem::{Extent, Site};

use super::event::{Event, Mark, Order};
use super::mutation::{Mutation, Mutator};
use super::tree::{Change, FileChange, Inode, Tree};

/// What is remembered of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Memory {
    /// Nothing: the power is off, and what is stored is lost.
    Off,
    /// The words before them, to undo them.
    Undo,
    /// Every step, for finding out what crashes leave.
    Trace,
}

/// Called before every step of the seam with its name, which is that of its site where it has one; says which
/// thread makes it.
pub(crate) type Scheduler = Box<dyn Fn(&'static str) -> u8 + Send + Sync>;

/// Simulated memory and files.
pub(crate) struct Machine {
    /// What the processors see.
    words: Box<[AtomicU64]>,
    /// Bytes mapped.
    mapped: AtomicU64,
    memory: AtomicU8,
    /// Seam calls since the last start, and how many are too many: a run that goes on for ever ends.
    steps: AtomicU64,
    steps_max: AtomicU64,
    /// Steps that change something up to the one before which the process is killed; 0: it is not.
    kill_in: AtomicU64,
    state: Mutex<State>,
    scheduler: std::sync::OnceLock<Scheduler>,
}

/// What changes as a whole.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) events: Vec<Event>,
    /// What the numbers of [`FileChange`] stand for.
    pub(crate) changes: Vec<Change>,
    /// Files as the running process sees them.
    pub(crate) tree: Arc<Tree>,
    /// Open files of which nothing was mapped yet, by address.
    pub(crate) fresh: Vec<usize>,
    pub(crate) next_inode: Inode,
    /// Ranges that were touched ahead of use, in bytes.
    pub(crate) populated: Vec<Range<u64>>,
    /// Words and what was in them before.
    undo: Vec<(u32, u64)>,
    traces: bool,
    /// The power is off: changes of files are lost.
    is_off: bool,
    mutator: Mutator,
    /// The site of the last step that counts for a kill, if that was a store.
    last_store: Option<Site>,
    skipped: Option<&'static str>,
    /// Sites of the steps that were made, and of those that could have been skipped.
    pub(crate) seen: BTreeSet<(&'static str, &'static str)>,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("words", &self.words.len()).finish_non_exhaustive()
    }
}

/// What a machine panics with when a run makes too many steps.
pub(crate) const TOO_MANY_STEPS: &str = "the run makes more steps than its bound: it does not end";

/// What a machine panics with to end a process that is killed.
const KILLED: &str = "the process is killed";

impl Machine {
    /// Memory of `bytes`, all zeros, without files.
    pub(crate) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            words: (0..bytes / 8).map(|_| AtomicU64::new(0)).collect(),
            mapped: AtomicU64::new(0),
            memory: AtomicU8::new(Memory::Off as u8),
            steps: AtomicU64::new(0),
            steps_max: AtomicU64::new(u64::MAX),
            kill_in: AtomicU64::new(0),
            state: Mutex::default(),
            scheduler: std::sync::OnceLock::new(),
        })
    }

    /// Calls `scheduler` at every step from now on.
    pub(crate) fn set_scheduler(&self, scheduler: Scheduler) {
        assert!(self.scheduler.set(scheduler).is_ok(), "one scheduler for a machine");
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panic of the store under test leaves this as it was between two steps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of words.
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// Switches what is remembered.
    pub(crate) fn remember(&self, memory: Memory) {
        let mut state = self.state();
        state.traces = memory == Memory::Trace;
        state.is_off = memory == Memory::Off;
        self.memory.store(memory as u8, Ordering::Relaxed);
    }

    /// Starts a process on the machine: nothing is mapped, no file is open. It may make `steps_max`
    /// steps.
    pub(crate) fn start(&self, steps_max: u64) {
        self.mapped.store(0, Ordering::Relaxed);
        self.steps.store(0, Ordering::Relaxed);
        self.steps_max.store(steps_max, Ordering::Relaxed);
        let mut state = self.state();
        state.fresh.clear();
        state.populated.clear();
    }

    /// Lets the running process make so many more steps that change memory or files. Before the next one it is
    /// killed, by a panic.
    pub(crate) fn kill_after(&self, changes: u64) {
        self.state().last_store = None;
        self.kill_in.store(changes + 1, Ordering::Relaxed);
    }

    /// Kills the running process: nothing that it still does changes memory or files, or is recorded. What it
    /// did stays, and nothing is durable because of it.
    pub(crate) fn kill(&self) {
        self.kill_in.store(0, Ordering::Relaxed);
        self.remember(Memory::Off);
        self.state().mutator.clear();
    }

    /// Whether the running process was killed, or the power is off.
    pub(crate) fn is_off(&self) -> bool {
        self.memory() == Memory::Off as u8
    }

    /// Makes the machine's memory that of `other`.
    pub(crate) fn copy_from(&self, other: &Self) {
        for (to, from) in self.words.iter().zip(&other.words) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// The word number `word`, whoever may read it.
    #[inline]
    pub(crate) fn peek(&self, word: u32) -> u64 {
        self.words[word as usize].load(Ordering::Relaxed)
    }

    /// Changes a word without a trace, but so that it is undone.
    #[inline]
    pub(crate) fn poke(&self, word: u32, value: u64) {
        self.words[word as usize].store(value, Ordering::Relaxed);
    }

    /// Another machine with the same memory and files.
    pub(crate) fn copy(&self) -> Arc<Self> {
        let copy = Self::new(8 * self.words.len() as u64);
        copy.copy_from(self);
        copy.state().tree = self.state().tree.clone();
        copy
    }

    /// The trace so far, which begins anew.
    pub(crate) fn take_trace(&self) -> (Vec<Event>, Vec<Change>) {
        let mut state = self.state();
        (std::mem::take(&mut state.events), std::mem::take(&mut state.changes))
    }

    /// Begins an empty trace.
    pub(crate) fn clear_trace(&self) {
        let mut state = self.state();
        state.events.clear();
        state.changes.clear();
        state.mutator.clear();
    }

    /// Breaks one persistence step from now on, or none.
    pub(crate) fn set_mutation(&self, mutation: Option<Mutation>) {
        let mut state = self.state();
        state.skipped = mutation.and_then(Mutation::skipped_step);
        state.mutator = Mutator::new(mutation);
    }

    // ---- what the seam does --------------------------------------------------------------------

    /// Counts a step with this name; which thread makes it.
    #[inline]
    pub(crate) fn step(&self, name: &'static str) -> u8 {
        let steps = self.steps.load(Ordering::Relaxed) + 1;
        self.steps.store(steps, Ordering::Relaxed);
        // What is dropped because of a panic makes its last steps.
        let is_over = steps > self.steps_max.load(Ordering::Relaxed);
        assert!(!is_over || std::thread::panicking(), "{TOO_MANY_STEPS}");
        self.scheduler.get().map_or(0, |scheduler| scheduler(name))
    }

    /// Called before each step that changes files or makes a change durable: the process may be killed here.
    #[inline]
    pub(crate) fn before_change(&self) {
        let left = self.kill_in.load(Ordering::Relaxed);
        if left > 0 {
            self.count_down(left, None);
        }
    }

    /// As [`before_change`](Self::before_change), before a store. Stores in a row at one site count as one step.
    #[inline]
    pub(crate) fn before_store(&self, site: Site) {
        let left = self.kill_in.load(Ordering::Relaxed);
        if left > 0 {
            self.count_down(left, Some(site));
        }
    }

    #[cold]
    fn count_down(&self, left: u64, store: Option<Site>) {
        let before = std::mem::replace(&mut self.state().last_store, store);
        if store.is_some() && before == store {
            return;
        }
        self.kill_in.store(left - 1, Ordering::Relaxed);
        if left == 1 && !std::thread::panicking() {
            self.kill();
            // As a panic, but without a word.
            std::panic::resume_unwind(Box::new(KILLED));
        }
    }

    #[inline]
    pub(crate) fn mapped(&self) -> u64 {
        self.mapped.load(Ordering::Relaxed)
    }

    pub(crate) fn set_mapped(&self, bytes: u64) {
        self.mapped.store(bytes, Ordering::Relaxed);
    }

    /// The words of a mapped range.
    #[inline]
    pub(crate) fn range(&self, at: u64, length: u64) -> &[AtomicU64] {
        assert!(
            at.is_multiple_of(8) && at + length <= self.mapped(),
            "access of {length} bytes at offset {at}: not mapped or not a multiple of 8"
        );
        let first = (at / 8) as usize;
        &self.words[first..first + length.div_ceil(8) as usize]
    }

    #[inline]
    fn memory(&self) -> u8 {
        self.memory.load(Ordering::Relaxed)
    }

    /// Whether reads are to be told of: of several threads.
    #[inline]
    pub(crate) fn records_reads(&self) -> bool {
        self.memory() == Memory::Trace as u8 && self.scheduler.get().is_some()
    }

    /// Stores a word.
    #[inline]
    pub(crate) fn store(&self, at: u64, value: u64, order: Order, thread: u8, site: Site) {
        let place = &self.range(at, 8)[0];
        if self.is_off() {
            return;
        }
        let word = (at / 8) as u32;
        let old = place.load(Ordering::Relaxed);
        self.state().note_store(word, old, value, order, thread, site);
        place.store(value, Ordering::Release);
    }

    /// Compares and swaps words that lie side by side; what they held.
    pub(crate) fn swap<const N: usize>(
        &self,
        at: u64,
        current: [u64; N],
        new: [u64; N],
        thread: u8,
        site: Site,
    ) -> [u64; N] {
        let places = self.range(at, 8 * N as u64);
        // Held from looking to storing: others may be running.
        let mut state = self.state();
        // Each half of a wide one may reach media without the other.
        let order = if N == 1 { Order::Ordered } else { Order::Unordered };
        let found = std::array::from_fn(|number| places[number].load(Ordering::Relaxed));
        if found == current && !self.is_off() {
            for (number, place) in places.iter().enumerate() {
                let word = (at / 8) as u32 + number as u32;
                state.note_store(word, found[number], new[number], order, thread, site);
                place.store(new[number], Ordering::Relaxed);
            }
        }
        found
    }

    /// Flushes the lines of a range.
    pub(crate) fn flush(&self, range: Extent, thread: u8, site: Site) {
        if self.memory() == Memory::Trace as u8 {
            let mut state = self.state();
            let lines = range.lines();
            if lines.end - lines.start > 1 {
                state.see("flush of several lines", site);
            }
            for line in state.mutator.lines(lines, site) {
                state.push(Event::Flush { line: line as u32, thread, site });
            }
        }
    }

    /// Notes something else than a store.
    pub(crate) fn note(&self, event: Event) {
        if self.memory() == Memory::Trace as u8 {
            self.state().push(event);
        }
    }

    /// Notes a place between two operations of the test.
    pub(crate) fn mark(&self, mark: Mark) {
        self.note(Event::Mark(mark));
    }

    /// Whether a mutation leaves out this step.
    pub(crate) fn skips(&self, step: Site) -> bool {
        if self.memory() != Memory::Trace as u8 && self.memory() != Memory::Undo as u8 {
            return false;
        }
        let mut state = self.state();
        if state.traces {
            state.seen.insert(("skip", step.name()));
        }
        state.skipped == Some(step.name())
    }

    // ---- undoing -------------------------------------------------------------------------------

    /// Stores a word so that [`undo`](Self::undo) takes it back.
    #[inline]
    pub(crate) fn patch(&self, state: &mut State, word: u32, value: u64) {
        state.undo.push((word, self.peek(word)));
        self.poke(word, value);
    }

    /// Takes back every change since the last time.
    pub(crate) fn undo(&self) {
        let mut state = self.state();
        while let Some((word, old)) = state.undo.pop() {
            self.poke(word, old);
        }
    }
}

impl State {
    #[inline]
    fn note_store(
        &mut self,
        word: u32,
        old: u64,
        value: u64,
        order: Order,
        thread: u8,
        site: Site,
    ) {
        if self.traces {
            self.push(Event::Store { word, value, order, thread, site });
        } else {
            self.undo.push((word, old));
        }
    }

    /// Appends to the trace, as the mutation has it.
    pub(crate) fn push(&mut self, event: Event) {
        if !self.traces {
            return;
        }
        match event {
            Event::Store { site, .. } => self.see("store", site),
            Event::Publish { site, .. } => self.see("publish", site),
            Event::Flush { site, .. } => self.see("flush", site),
            Event::Fence { site, .. } => self.see("fence", site),
            _ => {}
        }
        self.mutator.push(&mut self.events, event);
    }

    pub(crate) fn see(&mut self, what: &'static str, site: Site) {
        self.seen.insert((what, site.name()));
    }

    /// Changes the files.
    pub(crate) fn change(&mut self, change: Change) {
        if self.is_off {
            return;
        }
        change.apply(Arc::make_mut(&mut self.tree));
        self.note_change(change, FileChange::Made);
    }

    pub(crate) fn sync_directory(&mut self, name: &std::path::Path) {
        self.note_change(Change::Sync(name.into()), FileChange::DirectorySynced);
    }

    fn note_change(&mut self, change: Change, event: fn(u32) -> FileChange) {
        if self.traces {
            let number = self.changes.len() as u32;
            self.changes.push(change);
            self.push(Event::File(event(number)));
        }
    }
}
