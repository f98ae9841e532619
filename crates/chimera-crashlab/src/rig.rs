//! [`Rig`]: a store on a simulated machine, for tests written by hand: every crash during a piece of work,
//! and something to be done before any step of the seam.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chimera::{Db, Error, Options};
use chimera_pmem::environment::FileProvider;
use chimera_pmem::{Environment, SteppedEnvironment};

use crate::chance::Chance;
use crate::media::{Media, Patch, States};
pub use crate::simulated::Simulated;
use crate::simulated::{Event, Machine, Memory, Order, SimulatedFiles, Tree};

/// Most states that are tried at one crash point: all, or so many by chance.
const STATES_MAX: usize = 48;
/// Where the store lies.
pub const STORE: &str = "store";
/// What the point after the last step is called.
const THE_END: &str = "the end";
/// How long somebody who waits for another thread sleeps between two looks.
const REST: Duration = Duration::from_millis(1);
/// Steps that a store may make after a crash.
const STEPS_MAX: u64 = 10_000_000;

/// Called before each step with its name: of its site, or "read", "load", "compare", "prefetch".
type Hook = Arc<dyn Fn(&'static str) + Send + Sync>;

/// A simulated machine, and what is durable of its memory and files.
///
/// A store on it opens, works and closes as on any machine; nothing runs in the background by itself. What it
/// does is recorded. [`crashes`](Self::crashes) goes through the record and hands out what power losses leave.
pub struct Rig {
    working: Arc<Machine>,
    environment: Arc<SteppedEnvironment>,
    /// The files, where they are not simulated.
    device: Option<Arc<dyn FileProvider>>,
    media: Mutex<Media>,
    hook: Arc<Mutex<Option<Hook>>>,
}

impl Rig {
    /// A machine with so many bytes of memory, all zeros, and no files.
    pub fn new(bytes: u64) -> Self {
        Self::of(Machine::new(bytes), None)
    }

    /// A machine with a device: its memory holds these words, its files are `files`, and a crash changes nothing
    /// about them.
    pub fn with_device(words: &[u64], files: Arc<dyn FileProvider>) -> Self {
        let machine = Machine::new(8 * words.len() as u64);
        for (number, word) in (0..).zip(words) {
            machine.poke(number, *word);
        }
        Self::of(machine, Some(files))
    }

    fn of(working: Arc<Machine>, device: Option<Arc<dyn FileProvider>>) -> Self {
        let durable = working.copy();
        let hook: Arc<Mutex<Option<Hook>>> = Arc::default();
        let called = hook.clone();
        working.set_scheduler(Box::new(move |step| {
            let hook = called.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(hook) = hook {
                hook(step);
            }
            0
        }));
        working.remember(Memory::Trace);
        let environment = environment(&working, device.as_ref());
        Self { working, environment, device, media: Mutex::new(Media::new(durable)), hook }
    }

    /// Clock, tasks and files of the machine.
    pub fn environment(&self) -> &Arc<SteppedEnvironment> {
        &self.environment
    }

    /// A process's view of the memory: nothing is mapped. The one before it must be gone.
    pub fn pmem(&self) -> Simulated {
        self.working.start(u64::MAX);
        Simulated::new(&self.working)
    }

    /// Opens the machine's store.
    ///
    /// # Errors
    /// What the store says.
    pub fn open(&self, options: &Options) -> Result<Db<Simulated>, Error> {
        let environment: Arc<dyn Environment> = self.environment.clone();
        Db::open_on(self.pmem(), &environment, STORE, options)
    }

    /// Calls `hook` before each step from now on. It may use the store, or wait for other threads.
    pub fn set_hook(&self, hook: impl Fn(&'static str) + Send + Sync + 'static) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(hook));
    }

    /// Ranges of bytes that were touched ahead of use since the store was opened.
    pub fn populated(&self) -> Vec<Range<u64>> {
        self.working.state().populated.clone()
    }

    /// Changes a word of the memory and of what is durable of it: damage.
    pub fn damage(&self, at: u64, change: impl FnOnce(u64) -> u64) {
        let word = (at / 8) as u32;
        let value = change(self.working.peek(word));
        self.working.poke(word, value);
        let media = self.media.lock().unwrap_or_else(PoisonError::into_inner);
        media.durable.poke(word, value);
    }

    /// Goes on without a look at the crashes of what was done so far.
    pub fn skip(&self) {
        self.advance(&mut |_, _, _| ());
    }

    /// Calls `visit` with every crash of what was done since the last time: before each step that changes what
    /// a crash can leave, and at the end. How many there were.
    pub fn crashes(&self, mut visit: impl FnMut(&Crash)) -> u64 {
        let mut count = 0;
        self.advance(&mut |media, before, number| {
            let environment = environment(&media.durable, self.device.as_ref());
            for patch in some_states(media, &mut Chance::new(number)) {
                let (durable, environment) = (media.durable.clone(), environment.clone());
                visit(&Crash::new(durable, environment, self.device.clone(), &patch, before));
                count += 1;
            }
        });
        count
    }

    /// Goes through what was recorded, and forgets it.
    fn advance(&self, point: &mut dyn FnMut(&Media, &'static str, u64)) {
        let mut media = self.media.lock().unwrap_or_else(PoisonError::into_inner);
        let (events, changes) = self.working.take_trace();
        for (number, event) in (0..).zip(&events) {
            if let Some(before) = name_of_point(event) {
                point(&media, before, number);
            }
            media.apply(event, &changes);
        }
        point(&media, THE_END, events.len() as u64);
    }
}

/// Time and tasks stand still; whoever waits for another thread sleeps.
fn environment(
    machine: &Arc<Machine>,
    device: Option<&Arc<dyn FileProvider>>,
) -> Arc<SteppedEnvironment> {
    let simulated = || Arc::new(SimulatedFiles(machine.clone())) as Arc<dyn FileProvider>;
    let files = device.cloned().unwrap_or_else(simulated);
    let environment = SteppedEnvironment::with_files(1, files);
    environment.set_relax_hook(|_| std::thread::sleep(REST));
    Arc::new(environment)
}

/// What a crash point is called. Between the words of a copy, and between flushes and their fence, there is
/// none: what a crash there leaves, it can leave before the next point as well.
fn name_of_point(event: &Event) -> Option<&'static str> {
    match event {
        Event::Store { order: Order::Ordered, site, .. } | Event::Fence { site, .. } => {
            Some(site.name())
        }
        Event::File(_) => Some("a change of files"),
        _ => None,
    }
}

/// The states that a crash can leave: all different ones, or some of them by chance, among them the least and
/// the most that can survive.
fn some_states(media: &Media, chance: &mut Chance) -> Vec<Patch> {
    let mut all: Vec<Patch> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    States::new(media).for_each(&mut chance.clone(), &mut |patch| {
        if seen.insert(patch.hash) {
            all.push(patch.clone());
        }
    });
    all.sort_by_key(|patch| patch.words.len());
    while all.len() > STATES_MAX {
        let inner = all.len() as u64 - 2;
        all.swap_remove(1 + chance.below(inner) as usize);
    }
    all
}

/// What a power loss at one moment leaves, in one of the ways it can. Whatever is done with it is taken back.
pub struct Crash {
    machine: Arc<Machine>,
    environment: Arc<SteppedEnvironment>,
    device: Option<Arc<dyn FileProvider>>,
    tree: Arc<Tree>,
    before: &'static str,
}

impl Crash {
    fn new(
        machine: Arc<Machine>,
        environment: Arc<SteppedEnvironment>,
        device: Option<Arc<dyn FileProvider>>,
        patch: &Patch,
        before: &'static str,
    ) -> Self {
        let tree = {
            let mut state = machine.state();
            for (word, value) in &patch.words {
                machine.patch(&mut state, *word, *value);
            }
            std::mem::replace(&mut state.tree, patch.tree.clone())
        };
        machine.remember(Memory::Undo);
        Self { machine, environment, device, tree, before }
    }

    /// The site of the step that the crash was before.
    pub fn before(&self) -> &'static str {
        self.before
    }

    /// Whether everything had been done.
    pub fn is_at_the_end(&self) -> bool {
        self.before == THE_END
    }

    /// Opens the store.
    ///
    /// # Errors
    /// What the store says.
    pub fn open(&self, options: &Options) -> Result<Db<Simulated>, Error> {
        self.machine.start(STEPS_MAX);
        let environment: Arc<dyn Environment> = self.environment.clone();
        Db::open_on(Simulated::new(&self.machine), &environment, STORE, options)
    }

    /// A machine of its own with what is left, on which steps are recorded, too.
    pub fn rig(&self) -> Rig {
        Rig::of(self.machine.copy(), self.device.clone())
    }
}

impl Drop for Crash {
    fn drop(&mut self) {
        self.machine.remember(Memory::Off);
        self.machine.undo();
        self.machine.state().tree = self.tree.clone();
    }
}
