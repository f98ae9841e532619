//! Operations in the middle of syncs and of writes to the data files: their entries are appended while it goes on, and it must
//! not count them.
//!
//! Two writers put keys of their own, each key once, in order. One runs everything. The other one puts while a sync or a
//! write waits for it. Before changes of files the disk is kept. Of each kept disk a power loss leaves, for each writer, as
//! many keys as were promised and perhaps the next ones.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use chimera::{Db, Durability};

use super::chance::Chance;
use super::files::{Doing, PlainFiles, Promise, Snapshot, WRITERS};
use super::life::{State, Store, open};
use super::plan::{Findings, Plan};

/// Ways in which the power fails at each moment.
const SURVIVORS: u64 = 3;
/// Most violations to collect.
const VIOLATIONS_MAX: usize = 5;
/// What the other writer leaves free of the journal: it must not wait for whoever waits for it.
const FREE_PERCENT_MIN: u64 = 25;
/// Bytes that it appends at most while one sync goes on, as a part of the journal.
const APPENDED_PARTS_MAX: u64 = 12;
/// What its put may append: of a journal that is still small that is more than the part that is left free.
const APPENDED_BYTES_MAX: u64 = 8 << 10;

/// What its put may make of pages with stores of their own, for the same reason.
const PUT_BYTES_MAX: u64 = 24 << 10;

/// Whoever has tried so often waits for a lock.
const LOCK_ATTEMPTS_MIN: u32 = 30;
/// How long it sleeps between two looks.
const REST: Duration = Duration::from_millis(5);

/// What was found, and what the other writer has done: how many puts in the middle of what.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// As in other explorations.
    pub findings: Findings,
    /// Puts in the middle of syncs of the journal.
    pub in_journal_syncs: u64,
    /// Puts in the middle of syncs of data files.
    pub in_home_syncs: u64,
    /// Puts in the middle of writes to data files.
    pub in_home_writes: u64,
    /// Puts in the middle of reads of data files: of pages that are about to be given back.
    pub in_home_reads: u64,
    /// Bytes of pages that were given back.
    pub given_back_bytes: u64,
}

/// The other writer.
struct Other {
    db: Db,
    files: Arc<PlainFiles>,
    plan: Plan,
    is_busy: AtomicBool,
    /// What may be interrupted: nothing but syncs of the journal while an operation goes on. What an operation does else, it
    /// may do with locks held.
    is_free: AtomicBool,
    next: AtomicU64,
    /// A put on a thread of its own waits for a lock, which whoever waits for it may hold.
    waits: AtomicBool,
    /// One that waits until it is acknowledged.
    waiting: Mutex<Vec<JoinHandle<()>>>,
    counts: [AtomicU64; 4],
    problem: Mutex<Option<String>>,
}

/// The key of a writer with this number, and its value.
fn record(plan: &Plan, writer: usize, number: usize) -> ([u8; 8], Vec<u8>) {
    let key = ((number * WRITERS + writer) as u64).to_le_bytes();
    (key, plan.value(key, number))
}

impl Other {
    /// Puts while somebody else is in the middle of something, where there is room.
    fn go_on(self: &Arc<Self>, doing: Doing) {
        // Whoever has created a file makes the pool larger, with locks held that a put may need.
        let grows = self.files.has_created();
        let is_at_end =
            self.plan.durability == Durability::Immediate && doing == Doing::SyncJournal;
        let may = self.is_free.load(Ordering::Acquire) || is_at_end;
        if grows || !may || self.is_busy.swap(true, Ordering::AcqRel) {
            return;
        }
        let figures = || self.db.stats().journal.expect("a plain file has one");
        let pages = || self.db.stats().pages.expect("a plain file has them");
        let before = figures();
        let has_room = |figures: chimera_pmem::journal::JournalFigures| {
            let free = figures.capacity_bytes - figures.pending_bytes;
            let appended = figures.appended_bytes - before.appended_bytes;
            // With an eighth free nobody makes room, and with less than a quarter to sync nobody waits for a sync.
            free * 100 > figures.capacity_bytes * FREE_PERCENT_MIN
                && free >= figures.capacity_bytes / 8 + APPENDED_BYTES_MAX
                && appended * APPENDED_PARTS_MAX < figures.capacity_bytes
                && figures.unsynced_bytes + APPENDED_BYTES_MAX < figures.capacity_bytes / 4
        };
        let has_pages = |pages: chimera_pmem::journal::PageFigures| {
            pages.private_bytes.saturating_add(PUT_BYTES_MAX) <= pages.limit_bytes
        };
        let number = self.next.load(Ordering::Acquire);
        // Not always, and at times twice.
        for _ in 0..(number + doing as u64) % 3 {
            if !has_room(figures()) || !has_pages(pages()) {
                break;
            }
            self.counts[doing as usize].fetch_add(1, Ordering::Relaxed);
            if self.plan.durability == Durability::Immediate {
                self.put_apart();
                break;
            }
            self.put();
        }
        // Puts that wait are busy until somebody has waited for them.
        if lock(&self.waiting).is_empty() {
            self.is_busy.store(false, Ordering::Release);
        }
    }

    fn put(&self) {
        let number = self.next.fetch_add(1, Ordering::AcqRel) as usize;
        self.files.promise_of(1, |promise| promise.begun = number + 1);
        let (key, value) = record(&self.plan, 1, number);
        match self.db.put(key, &value) {
            Ok(_) => self.files.promise_of(1, |promise| {
                promise.acknowledged = number + 1;
                if self.plan.durability == Durability::Immediate {
                    promise.synced = number + 1;
                }
            }),
            Err(error) => *lock(&self.problem) = Some(format!("a put beside a sync: {error}")),
        }
    }

    /// Puts on a thread, which waits for the next sync, and returns when it has appended. Earlier if it waits for a lock.
    fn put_apart(self: &Arc<Self>) {
        let appended = || self.db.stats().journal.map(|figures| figures.appended_bytes);
        let before = appended();
        self.waits.store(false, Ordering::Release);
        let me = self.clone();
        let thread = std::thread::spawn(move || me.put());
        let waits = || self.waits.load(Ordering::Acquire);
        while appended() == before && !thread.is_finished() && !waits() {
            std::thread::yield_now();
        }
        lock(&self.waiting).push(thread);
    }

    /// Waits until everything is acknowledged. Not in the middle of a sync.
    fn join(&self) {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        for thread in waiting {
            if thread.join().is_err() {
                *lock(&self.problem) = Some("a put beside a sync panicked".to_owned());
            }
        }
        self.is_busy.store(false, Ordering::Release);
    }
}

/// Explores a plan with another writer in the middle of syncs and writes.
pub fn explore_beside(plan: &Plan) -> Beside {
    let mut found = Beside::default();
    let mut chance = Chance::new(plan.seed);
    let disk = super::disk::Disk::default();
    // All are kept until it is over, and take gigabytes of memory if there are many.
    let one_in = 4 + chance.below(8);
    let files = Arc::new(PlainFiles::new(disk, plan.lie, one_in, chance.word()));
    files.leave_out(plan.left_out);
    files.write_ahead(plan.writes_ahead());
    if plan.takes_new_blocks() {
        files.be_told_of_syncs();
    }
    if let Err(violation) = operate(plan, &files, &mut chance, &mut found) {
        found.findings.violations.push(format!("seed {}: {violation}", plan.seed));
        return found;
    }
    for snapshot in &files.take_snapshots() {
        found.findings.crash_points += 1;
        for _ in 0..SURVIVORS {
            found.findings.states += 1;
            if let Err(violation) = verify(plan, snapshot, &mut chance) {
                found.findings.violations.push(format!(
                    "seed {}: before `{}` with {:?} and {:?}: {violation}",
                    plan.seed, snapshot.before, snapshot.promise, snapshot.beside
                ));
            }
            if found.findings.violations.len() >= VIOLATIONS_MAX {
                return found;
            }
        }
    }
    found
}

fn operate(
    plan: &Plan,
    files: &Arc<PlainFiles>,
    chance: &mut Chance,
    found: &mut Beside,
) -> Result<(), String> {
    let store = open(files, &plan.options(), chance.word())?;
    let other = Arc::new(Other {
        db: store.db.clone(),
        files: files.clone(),
        plan: plan.clone(),
        is_busy: AtomicBool::new(false),
        is_free: AtomicBool::new(false),
        next: AtomicU64::new(0),
        waits: AtomicBool::new(false),
        waiting: Mutex::default(),
        counts: Default::default(),
        problem: Mutex::default(),
    });
    let waiting = Arc::downgrade(&other);
    store.environment.set_relax_hook(move |attempt| {
        // A sync that others may share lets them go first, and tries less often.
        if attempt < LOCK_ATTEMPTS_MIN {
            return std::thread::yield_now();
        }
        if let Some(other) = waiting.upgrade() {
            other.waits.store(true, Ordering::Release);
        }
        std::thread::sleep(REST);
    });
    let hooked = other.clone();
    files.set_hook(Some(Arc::new(move |doing| hooked.go_on(doing))));
    let outcome = run(plan, &store, files, &other, chance);
    files.set_hook(None);
    other.join();
    let [in_journal_syncs, in_home_syncs, in_home_writes, in_home_reads] =
        [0, 1, 2, 3].map(|doing: usize| other.counts[doing].load(Ordering::Relaxed));
    let given_back_bytes = store.db.stats().pages.map_or(0, |pages| pages.given_back_bytes);
    let findings = Findings::default();
    *found = Beside {
        findings,
        in_journal_syncs,
        in_home_syncs,
        in_home_writes,
        in_home_reads,
        given_back_bytes,
    };
    outcome?;
    if let Some(problem) = lock(&other.problem).take() {
        return Err(problem);
    }
    let puts = [plan.operations, other.next.load(Ordering::Acquire) as usize];
    let [first, second] =
        puts.map(|puts| Promise { begun: puts, acknowledged: puts, synced: puts });
    expect(plan, &store.verified()?, [first, second])
}

fn run(
    plan: &Plan,
    store: &Store,
    files: &PlainFiles,
    other: &Other,
    chance: &mut Chance,
) -> Result<(), String> {
    let text = |error: chimera::Error| error.to_string();
    let mut session = store.db.session();
    for number in 0..plan.operations {
        files.promise(|promise| promise.begun = number + 1);
        let (key, value) = record(plan, 0, number);
        session.put(key, &value).map_err(text)?;
        files.promise(|promise| {
            promise.acknowledged = number + 1;
            if plan.durability == Durability::Immediate {
                promise.synced = number + 1;
            }
        });
        other.join();
        files.nothing_is_created();
        other.is_free.store(true, Ordering::Release);
        match chance.below(7) {
            0 => {
                // The other one may have gone on meanwhile.
                let mut acknowledged = 0;
                files.promise_of(1, |promise| acknowledged = promise.acknowledged);
                store.db.sync().map_err(text)?;
                files.promise(|promise| promise.synced = number + 1);
                files.promise_of(1, |promise| promise.synced = promise.synced.max(acknowledged));
            }
            1..5 => store.environment.advance(chance.below(30_000_000)),
            _ => {}
        }
        if chance.one_in(2) {
            store.environment.step_tasks();
        }
        other.join();
        other.is_free.store(false, Ordering::Release);
    }
    Ok(())
}

/// Recovers what a power loss left, and compares it with what was promised.
fn verify(plan: &Plan, snapshot: &Snapshot, chance: &mut Chance) -> Result<(), String> {
    let left = snapshot.disk.survivor(chance);
    let files = Arc::new(PlainFiles::new(left, None, 0, 0));
    let store = open(&files, &plan.options(), chance.word())?;
    expect(plan, &store.verified()?, [snapshot.promise, snapshot.beside])
}

/// Checks that of each writer the first keys are there: as many as were synced, and no more than were begun.
fn expect(plan: &Plan, found: &State, promises: [Promise; WRITERS]) -> Result<(), String> {
    let mut all = 0;
    for (writer, promise) in promises.into_iter().enumerate() {
        let is_there = |number: &usize| {
            let (key, value) = record(plan, writer, *number);
            found.get(&key[..]) == Some(&value)
        };
        let count = (0..promise.begun).take_while(is_there).count();
        if count < promise.synced {
            let synced = promise.synced;
            return Err(format!("writer {writer} has {count} records, and {synced} were durable"));
        }
        all += count;
    }
    if found.len() != all {
        return Err(format!("{} records, where the first ones of each are {all}", found.len()));
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
