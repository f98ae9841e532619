//! [`CrashPmem`]: mapped memory that can be photographed at every step, as a crash would find it.
//!
//! For one thread at a time: stores that run without a background task.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use chimera::pmem::environment::File;
use chimera::pmem::{
    CACHE_LINE, Environment, Extent, Hardware, Medium, Pmem, RealEnvironment, Site,
};
use chimera::{Db, Options};

use super::Chance;
use super::media::{SUPERBLOCK, SUPERBLOCK_BYTES};

/// What a crash leaves of what was stored.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Survives {
    /// Everything: the process was killed, the machine lives.
    Everything,
    /// Only what was flushed and fenced.
    Fenced,
    /// That, and of every other line what was stored up to some moment, by chance.
    Some(u64),
}

impl Survives {
    /// Both extremes and some mixtures.
    pub(crate) fn several() -> impl Iterator<Item = Self> {
        [Self::Everything, Self::Fenced].into_iter().chain((0..3).map(Self::Some))
    }
}

/// The memory of a store at one moment.
pub(crate) struct Image {
    /// What was about to happen, or the end.
    pub(crate) before: String,
    stored: Vec<u8>,
    durable: Vec<u8>,
    pending: Pending,
}

/// Stores that may be missing after a crash, by line, oldest first.
type Pending = BTreeMap<u64, Vec<Stores>>;

/// Words that were stored to a line, and their content: one, or several that may reach media in any order. They do
/// so after those that were stored to it before.
#[derive(Clone, Debug)]
struct Stores(Vec<(u64, u64)>);

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image").field("before", &self.before).finish_non_exhaustive()
    }
}

impl Image {
    /// What a crash at this moment leaves.
    pub(crate) fn after(&self, survives: Survives) -> Vec<u8> {
        match survives {
            Survives::Everything => self.stored.clone(),
            Survives::Fenced => self.durable.clone(),
            Survives::Some(seed) => {
                let mut chance = Chance::new(seed);
                let mut left = self.durable.clone();
                let mut set = |(at, value): (u64, u64)| {
                    left[at as usize..][..8].copy_from_slice(&value.to_le_bytes());
                };
                for stores in self.pending.values() {
                    let (whole, rest) =
                        stores.split_at(chance.below(stores.len() as u64 + 1) as usize);
                    whole.iter().flat_map(|stores| &stores.0).copied().for_each(&mut set);
                    // Several words that were stored at once: some of them.
                    let torn = rest.first().filter(|stores| stores.0.len() > 1);
                    let torn = torn.into_iter().flat_map(|stores| &stores.0);
                    torn.copied().filter(|_| chance.below(2) == 0).for_each(&mut set);
                }
                left
            }
        }
    }

    /// Writes what a crash leaves as the files of a store.
    pub(crate) fn write(&self, path: &Path, segment_bytes: u64, survives: Survives) {
        let bytes = self.after(survives);
        fs::create_dir_all(path).expect("a directory");
        let (superblock, segments) = bytes.split_at(SUPERBLOCK_BYTES as usize);
        fs::write(path.join(SUPERBLOCK), superblock).expect("a file");
        for (number, segment) in segments.chunks(segment_bytes as usize).enumerate() {
            fs::write(path.join(format!("segment-{number:06}")), segment).expect("a file");
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// What is known to survive.
    durable: Vec<u8>,
    pending: Pending,
    /// Lines flushed since the last fence: as they were when flushed, and how many of their pending stores
    /// that covers.
    flushed: BTreeMap<u64, (Vec<u8>, usize)>,
    records: bool,
    images: Vec<Image>,
    populated: Vec<Range<u64>>,
}

/// Called before each step, with its site, on the thread that makes it.
type Hook = Arc<dyn Fn(&str) + Send + Sync>;

/// Mapped memory that can be photographed.
pub(crate) struct CrashPmem {
    inner: Hardware,
    state: Arc<Mutex<State>>,
    hook: Mutex<Option<Hook>>,
}

/// What is photographed of memory that somebody else has.
pub(crate) struct Film(Arc<Mutex<State>>);

impl Film {
    /// All of it so far.
    pub(crate) fn images(&self) -> Vec<Image> {
        std::mem::take(&mut self.0.lock().expect("no step panics").images)
    }
}

/// Opens a store whose steps can be photographed. Nothing runs in the background.
pub(crate) fn open(path: &Path, options: &Options) -> Db<CrashPmem> {
    open_with(&(Arc::new(RealEnvironment::with_seed(1)) as Arc<dyn Environment>), path, options)
}

/// As [`open`], in a given environment.
pub(crate) fn open_with(
    environment: &Arc<dyn Environment>,
    path: &Path,
    options: &Options,
) -> Db<CrashPmem> {
    let options = options.clone().populate_ahead_bytes(0).reclaim_percent(0).recovery_threads(1);
    Db::open_on(CrashPmem::new(&options), environment, path, &options).expect("the store opens")
}

impl CrashPmem {
    pub(crate) fn new(options: &Options) -> Self {
        let inner = Hardware::new(options.hardware_options()).expect("address space");
        Self { inner, state: Arc::default(), hook: Mutex::default() }
    }

    /// Calls `hook` before each step from now on, and with "prefetch" or "read" before each of these.
    /// It may use the store, or wait for other threads.
    pub(crate) fn set_hook(&self, hook: impl Fn(&str) + Send + Sync + 'static) {
        *self.hook.lock().expect("no step panics") = Some(Arc::new(hook));
    }

    fn call_hook(&self, before: &str) {
        let hook = self.hook.lock().expect("no step panics").clone();
        if let Some(hook) = hook {
            hook(before);
        }
    }

    /// Photographs every step of `work`, and the end.
    pub(crate) fn photograph(&self, work: impl FnOnce()) -> Vec<Image> {
        self.state().records = true;
        work();
        self.step("the end");
        let mut state = self.state();
        state.records = false;
        std::mem::take(&mut state.images)
    }

    /// The memory as it is now.
    pub(crate) fn image(&self) -> Image {
        self.photograph(|| {}).pop().expect("the end is photographed")
    }

    /// Whether a range was touched ahead of its use.
    pub(crate) fn is_populated(&self, range: &Range<u64>) -> bool {
        let state = self.state();
        range
            .clone()
            .step_by(CACHE_LINE as usize)
            .all(|at| state.populated.iter().any(|populated| populated.contains(&at)))
    }

    /// Bytes touched ahead of their use so far.
    pub(crate) fn populated_bytes(&self) -> u64 {
        self.state().populated.iter().map(|range| range.end - range.start).sum()
    }

    /// Photographs every step from now on, for who gives the memory away.
    pub(crate) fn film(&self) -> Film {
        self.start();
        Film(self.state.clone())
    }

    /// Starts photographing; for steps inside of an open that has no end in sight.
    pub(crate) fn start(&self) {
        self.state().records = true;
    }

    /// What was photographed so far.
    pub(crate) fn take_images(&self) -> Vec<Image> {
        std::mem::take(&mut self.state().images)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no step panics")
    }

    fn read_range(&self, at: u64, length: u64) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        if let Some(extent) = self.inner.check(at, length) {
            self.inner.read(extent, &mut bytes);
        }
        bytes
    }

    /// Photographs what is there before the next step.
    fn step(&self, before: &str) {
        self.call_hook(before);
        let mut state = self.state();
        if state.records {
            let stored = self.read_range(0, self.inner.mapped());
            let (durable, pending) = (state.durable.clone(), state.pending.clone());
            state.images.push(Image { before: before.to_owned(), stored, durable, pending });
        }
    }

    /// Words that were just stored, all at once.
    fn note_stored(&self, range: Extent) {
        let words = range.offset() / 8..range.end().div_ceil(8);
        let mut state = self.state();
        for line in range.lines() {
            let in_line = line * CACHE_LINE / 8..(line + 1) * CACHE_LINE / 8;
            let words = words.start.max(in_line.start)..words.end.min(in_line.end);
            let stores = words.map(|word| (8 * word, self.inner.load_u64(8 * word))).collect();
            state.pending.entry(line).or_default().push(Stores(stores));
        }
    }

    fn note_flushed(&self, range: Extent) {
        let mut state = self.state();
        for line in range.lines() {
            let covers = state.pending.get(&line).map_or(0, Vec::len);
            let content = self.read_range(line * CACHE_LINE, CACHE_LINE);
            state.flushed.insert(line, (content, covers));
        }
    }

    fn word(&self, at: u64) -> Extent {
        self.inner.check(at, 8).expect("a word of the pool")
    }
}

impl Pmem for CrashPmem {
    fn map(&self, at: u64, file: &Arc<dyn File>, file_offset: u64, length: u64) -> io::Result<()> {
        self.inner.map(at, file, file_offset, length)?;
        let bytes = self.read_range(at, length);
        self.state().durable.extend_from_slice(&bytes);
        Ok(())
    }

    fn mapped(&self) -> u64 {
        self.inner.mapped()
    }

    fn populate(&self, at: u64, length: u64) -> io::Result<()> {
        self.state().populated.push(at..at + length);
        self.inner.populate(at, length)
    }

    fn medium(&self) -> Medium {
        self.inner.medium()
    }

    fn load_u64(&self, at: u64) -> u64 {
        self.inner.load_u64(at)
    }

    fn store_u64(&self, at: u64, value: u64, site: Site) {
        self.step(site.name());
        self.inner.store_u64(at, value, site);
        self.note_stored(self.word(at));
    }

    fn cas_u64(&self, at: u64, current: u64, new: u64, site: Site) -> Result<u64, u64> {
        self.step(site.name());
        let swapped = self.inner.cas_u64(at, current, new, site);
        if swapped.is_ok() {
            self.note_stored(self.word(at));
        }
        swapped
    }

    fn cas_u128(&self, at: u64, current: u128, new: u128, site: Site) -> Result<u128, u128> {
        self.step(site.name());
        let swapped = self.inner.cas_u128(at, current, new, site);
        if swapped.is_ok() {
            self.note_stored(self.inner.check(at, 16).expect("two words of the pool"));
        }
        swapped
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        self.call_hook("read");
        self.inner.read(from, into);
    }

    fn compare(&self, with: Extent, bytes: &[u8]) -> bool {
        self.inner.compare(with, bytes)
    }

    fn prefetch(&self, range: Extent) {
        self.call_hook("prefetch");
        self.inner.prefetch(range);
    }

    fn prefetch_write(&self, range: Extent) {
        self.inner.prefetch_write(range);
    }

    fn copy(&self, to: Extent, bytes: &[u8], site: Site) {
        self.step(site.name());
        self.inner.copy(to, bytes, site);
        self.note_stored(to);
    }

    fn copy_nt(&self, to: Extent, bytes: &[u8], site: Site) {
        self.step(site.name());
        self.inner.copy_nt(to, bytes, site);
        self.note_stored(to);
        self.note_flushed(to);
    }

    fn zero(&self, range: Extent, site: Site) {
        self.step(site.name());
        self.inner.zero(range, site);
        self.note_stored(range);
    }

    fn flush(&self, range: Extent, site: Site) {
        self.step(site.name());
        self.inner.flush(range, site);
        self.note_flushed(range);
    }

    fn fence(&self, site: Site) {
        self.step(site.name());
        self.inner.fence(site);
        let mut state = self.state();
        let flushed = std::mem::take(&mut state.flushed);
        for (line, (content, covers)) in flushed {
            let at = (line * CACHE_LINE) as usize;
            state.durable[at..at + content.len()].copy_from_slice(&content);
            if let Some(stores) = state.pending.get_mut(&line) {
                stores.drain(..covers);
            }
        }
        state.pending.retain(|_, stores| !stores.is_empty());
    }

    fn punch(&self, range: Extent, site: Site) -> io::Result<()> {
        self.inner.punch(range, site)
    }

    fn sync(&self, site: Site) -> io::Result<()> {
        self.step(site.name());
        self.inner.sync(site)?;
        let stored = self.read_range(0, self.inner.mapped());
        let mut state = self.state();
        (state.durable, state.pending) = (stored, Pending::new());
        state.flushed.clear();
        Ok(())
    }
}
