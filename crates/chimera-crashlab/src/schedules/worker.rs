//! What the threads do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use chimera::{Batch, Db, Error, Session, Swap};
use chimera_pmem::Pmem;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::{Recorder, ShuttleEnvironment};
use crate::histories::{Operation, Outcome, SwapOutcome};
use crate::subject::Abilities;

/// Puts store multiples of this, so that a value tells which put it comes from, however much is added.
const PUT_STEP: u64 = 1 << 32;
/// Added by an update that rewrites a record; smaller numbers are added in place.
const UPDATE_STEP: u64 = 1 << 16;
/// The readers that a scan stands for have numbers from here on.
const SCANNERS: u32 = 1 << 16;
/// The writers that a batch stands for have numbers from here on.
const BATCHERS: u32 = 1 << 20;
/// Keys of a batch, at most.
const BATCH_KEYS: u64 = 3;
/// Stands for a value that nobody can have written: torn, or of another key.
const FOREIGN: u64 = u64::MAX;

/// What threads do to a store.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Threads, each with a session.
    pub threads: u32,
    /// So many of them write; the others only read.
    pub writers: u32,
    /// Operations of each thread.
    pub operations_per_thread: u32,
    /// Keys that all threads share.
    pub keys: u64,
    /// What each thread does follows from it.
    pub seed: u64,
    /// What can be asked of the store.
    pub abilities: Abilities,
}

/// Runs the threads of a workload to their end, beside one that steps background tasks. Inside an
/// execution of `shuttle`. Keys are at least 8 bytes and values at least 16.
pub fn run_threads<P: Pmem>(
    db: &Db<P>,
    environment: &Arc<ShuttleEnvironment>,
    workload: &Workload,
    recorder: &Recorder,
) {
    let sizes = db.stats();
    let shared = Arc::new(Shared {
        key_bytes: sizes.key_bytes as usize,
        value_bytes: sizes.value_bytes as usize,
        next_value: AtomicU64::new(workload.seed % 1024),
        running: AtomicUsize::new(workload.threads as usize),
        is_ordered: sizes.order.is_some(),
    });
    let mut threads = Vec::new();
    for number in 0..workload.threads {
        let mut worker = Worker::new(number, db.clone(), *workload, &shared, recorder.clone());
        threads.push(shuttle::thread::spawn(move || worker.run()));
    }
    let environment = environment.clone();
    threads.push(shuttle::thread::spawn(move || {
        while shared.running.load(Ordering::Acquire) > 0 {
            environment.stepped().step_tasks();
            shuttle::thread::yield_now();
        }
    }));
    for thread in threads {
        if thread.join().is_err() {
            recorder.problem("a thread panicked".to_owned());
        }
    }
}

/// Reads every key of a workload, and verifies the store as a whole.
pub fn read_all<P: Pmem>(db: &Db<P>, keys: u64, recorder: &Recorder) {
    let sizes = db.stats();
    for key in 0..keys {
        recorder.invoke(0, key, Operation::Get);
        match db.get(key_of(key, sizes.key_bytes as usize)) {
            Ok(found) => {
                let found = found.map(|found| number_of(key, &found));
                recorder.returns(0, Outcome::Found(found));
            }
            Err(error) => {
                recorder.returns(0, Outcome::Refused);
                recorder.problem(format!("get of key {key}: {error}"));
            }
        }
    }
    check(db, recorder);
}

fn check<P: Pmem>(db: &Db<P>, recorder: &Recorder) {
    if let Some(damage) = db.check(None).first_damage {
        recorder.problem(format!("check: {damage:?}"));
    }
}

/// What the threads share.
struct Shared {
    key_bytes: usize,
    value_bytes: usize,
    next_value: AtomicU64,
    running: AtomicUsize,
    is_ordered: bool,
}

impl Shared {
    /// Bytes of a value with this number; where they may be any, from small ones to such as need two blocks.
    fn value_bytes_of(&self, number: u64) -> usize {
        const ANY: [usize; 8] = [16, 24, 24, 60, 150, 260, 24, 640];
        match self.value_bytes {
            0 => ANY[(number / PUT_STEP % ANY.len() as u64) as usize],
            fixed => fixed,
        }
    }
}

struct Worker<P: Pmem> {
    number: u32,
    db: Db<P>,
    workload: Workload,
    shared: Arc<Shared>,
    recorder: Recorder,
    random: Xoshiro256PlusPlus,
    /// The last value that this thread has seen, for swaps that may succeed.
    seen: u64,
}

impl<P: Pmem> Worker<P> {
    fn new(
        number: u32,
        db: Db<P>,
        workload: Workload,
        shared: &Arc<Shared>,
        recorder: Recorder,
    ) -> Self {
        let seed = workload.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(number);
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { number, db, workload, shared: shared.clone(), recorder, random, seen: 0 }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    fn run(&mut self) {
        let mut session = self.db.session();
        for _ in 0..self.workload.operations_per_thread {
            match self.below(100) {
                0 => check(&self.db, &self.recorder),
                // Sessions that end leave their blocks to others.
                1..4 => session = self.db.session(),
                4..6 if self.workload.abilities.reclaim => self.compact(),
                6..12 if self.shared.is_ordered => self.scan(&mut session),
                12..20
                    if self.number < self.workload.writers && self.workload.abilities.batches =>
                {
                    self.batch(&mut session);
                }
                _ => self.operate(&mut session),
            }
        }
        drop(session);
        self.shared.running.fetch_sub(1, Ordering::AcqRel);
    }

    fn compact(&mut self) {
        let percent = [1, 30, 50][self.below(3) as usize];
        if let Err(error) = self.db.compact(percent, None) {
            self.recorder.problem(format!("compaction: {error}"));
        }
    }

    /// Scans all keys: a read of each key, by a thread of its own, between the scan's beginning and its end.
    fn scan(&mut self, session: &mut Session<P>) {
        let keys = self.workload.keys;
        let reader = |key: u64| (u64::from(self.number + 1) * keys + key) as u32 + SCANNERS;
        for key in 0..keys {
            self.recorder.invoke(reader(key), key, Operation::Get);
        }
        let mut found = vec![None; keys as usize];
        let mut last = Vec::new();
        let mut problem = None;
        let scanned = session.scan_with(.., usize::MAX, |key, value| {
            let number = key.first_chunk().map_or(0, |number| u64::from_le_bytes(*number));
            if key <= last.as_slice() {
                problem = Some("a scan is out of order");
            }
            last = key.to_vec();
            match found.get_mut((number as usize).wrapping_sub(1)) {
                Some(found) => *found = Some(number_of(number - 1, value)),
                None => problem = Some("a scan gave a key that nobody wrote"),
            }
            true
        });
        if let Err(error) = &scanned {
            self.recorder.problem(format!("scan: {error}"));
        }
        if let Some(problem) = problem {
            self.recorder.problem(problem.to_owned());
        }
        for (key, found) in (0..).zip(found) {
            let outcome = if scanned.is_ok() { Outcome::Found(found) } else { Outcome::Refused };
            self.recorder.returns(reader(key), outcome);
        }
    }

    /// Puts to some keys in a row as one: a put to each, by a thread of its own, between the batch's beginning and its end.
    fn batch(&mut self, session: &mut Session<P>) {
        let first = self.below(self.workload.keys);
        let keys = first..(first + BATCH_KEYS).min(self.workload.keys);
        let mut batch = Batch::new();
        let writer = |key: u64| BATCHERS + self.number * BATCH_KEYS as u32 + (key - first) as u32;
        for key in keys.clone() {
            let new = self.fresh();
            self.recorder.invoke(writer(key), key, Operation::Put(new));
            let value = value_of(key, new, self.shared.value_bytes_of(new));
            batch.put(key_of(key, self.shared.key_bytes), value);
        }
        let outcome = match session.write(&batch) {
            Ok(()) => Outcome::Written,
            Err(Error::PoolFull { .. }) => Outcome::Refused,
            Err(error) => {
                self.recorder.problem(format!("a batch of keys from {first} on: {error}"));
                Outcome::Refused
            }
        };
        for key in keys {
            self.recorder.returns(writer(key), outcome);
        }
    }

    /// The number of a value that nobody has put before.
    fn fresh(&self) -> u64 {
        PUT_STEP * (1 + self.shared.next_value.fetch_add(1, Ordering::Relaxed))
    }

    fn operate(&mut self, session: &mut Session<P>) {
        let key = self.below(self.workload.keys);
        let operation = self.choose();
        let in_place = self.below(2) == 0 && self.workload.abilities.in_place;
        self.recorder.invoke(self.number, key, operation);
        let outcome = self.call(session, key, operation, in_place);
        let outcome = outcome.unwrap_or_else(|error| {
            if !matches!(error, Error::PoolFull { .. }) {
                self.recorder.problem(format!("{operation} of key {key}: {error}"));
            }
            Outcome::Refused
        });
        if let Outcome::Found(Some(found)) | Outcome::Previous(Some(found)) = outcome {
            self.seen = found;
        }
        self.recorder.returns(self.number, outcome);
    }

    fn choose(&mut self) -> Operation {
        if self.number >= self.workload.writers {
            return Operation::Get;
        }
        match self.random.next_u64() % 100 {
            0..35 => Operation::Put(self.fresh()),
            35..60 => Operation::Get,
            60..72 => Operation::Delete,
            72..80 => Operation::FetchAdd(1 + self.below(3)),
            80..88 => Operation::FetchAdd(UPDATE_STEP),
            _ => Operation::CompareAndSwap { expected: self.seen, new: self.fresh() },
        }
    }

    /// Does the operation, where there are two ways in the way that `in_place` says.
    fn call(
        &self,
        session: &mut Session<P>,
        key: u64,
        operation: Operation,
        in_place: bool,
    ) -> Result<Outcome, Error> {
        let shared = &self.shared;
        let bytes = key_of(key, shared.key_bytes);
        let value = |number| value_of(key, number, shared.value_bytes_of(number));
        Ok(match operation {
            Operation::Put(new) => match session.put(&bytes, value(new))? {
                true if !self.workload.abilities.knows_new => Outcome::Written,
                was_new => Outcome::WasNew(was_new),
            },
            Operation::Get => {
                Outcome::Found(session.get_with(&bytes, |found| number_of(key, found))?)
            }
            Operation::Delete => Outcome::WasThere(session.delete(&bytes)?),
            Operation::FetchAdd(delta) if delta < UPDATE_STEP && in_place => {
                Outcome::Previous(session.fetch_add_u64(&bytes, 0, delta)?)
            }
            Operation::FetchAdd(delta) => {
                let mut previous = FOREIGN;
                let found = session.update(&bytes, |found| {
                    previous = number_of(key, found);
                    *found = value(previous.wrapping_add(delta));
                })?;
                Outcome::Previous(found.then_some(previous))
            }
            Operation::CompareAndSwap { expected, new } => Outcome::Swap(
                match session.compare_and_swap(&bytes, value(expected), value(new))? {
                    Swap::Swapped => SwapOutcome::Swapped,
                    Swap::Different => SwapOutcome::Different,
                    Swap::Missing => SwapOutcome::Missing,
                },
            ),
        })
    }
}

/// The bytes of a key; of any length when `bytes` is 0.
fn key_of(key: u64, bytes: usize) -> Vec<u8> {
    let bytes = if bytes == 0 { 8 + key as usize % 5 * 7 } else { bytes };
    (key + 1).to_le_bytes().into_iter().chain(std::iter::repeat(0)).take(bytes).collect()
}

/// A value: the number, and then words that follow from the key and from the put it goes back to.
fn value_of(key: u64, number: u64, bytes: usize) -> Vec<u8> {
    let rest = (number / UPDATE_STEP).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ key;
    let words = std::iter::once(number).chain((0..).map(|word: u64| rest.wrapping_add(word)));
    words.flat_map(u64::to_le_bytes).take(bytes).collect()
}

/// The number of a value that is whole and belongs to the key.
fn number_of(key: u64, value: &[u8]) -> u64 {
    let Some(first) = value.first_chunk() else { return FOREIGN };
    let number = u64::from_le_bytes(*first);
    if value_of(key, number, value.len()) == value { number } else { FOREIGN }
}
