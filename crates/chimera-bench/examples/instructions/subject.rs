//! The child: a store, and operations on it between marks. Nothing happens here by itself: time stands still, no
//! task runs in the background, and every random number follows from the seed.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;

use chimera::{Db, Durability, Options, Session};
use chimera_bench::workload::{Keys, Values};
use chimera_pmem::environment::SteppedEnvironment;
use chimera_pmem::{Environment, Hardware};
use nix::sys::ptrace;
use nix::sys::signal::raise;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use crate::Failure;
use crate::estimate::{Described, Done, Told};
use crate::goals::{Layout, Operation, layout};
use crate::sampling::{Class, WINDOW_MAX, totals, windows};
use crate::stepper::{BEGIN, END, FORBIDDEN};

/// Records loaded, and inserted later: a power of two.
const RECORDS: u64 = 1 << 16;
/// Room for all that is written.
const POOL_BYTES: u64 = 128 << 20;
const SEED: u64 = 42;
/// Odd: deletes go through all records in steps of this.
const DELETE_STEP: u64 = 40_503;

/// What is counted, in this order, and how long the sequences are. Gets come before updates in place, which leave
/// marks that make gets cheaper. Inserts double the store, so that the index grows by a whole cycle.
const SEQUENCES: [(Operation, u64); 6] = [
    (Operation::Get, 1 << 13),
    (Operation::GetByEngine, 1 << 13),
    (Operation::Update, 1 << 13),
    (Operation::Insert, RECORDS),
    (Operation::Overwrite, 1 << 14),
    (Operation::Delete, 1 << 13),
];

/// Runs the child that is to be stepped.
pub(crate) fn run(name: &str) -> ExitCode {
    let Some(layout) = layout(name) else { return ExitCode::from(2) };
    if let Err(error) = ptrace::traceme() {
        println!("{error}");
        return ExitCode::from(FORBIDDEN);
    }
    match sequences(layout) {
        Ok(told) => {
            println!("{}", serde_json::to_string(&told).expect("plain data"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::from(2)
        }
    }
}

fn sequences(layout: Layout) -> Result<Told, Failure> {
    let mut told = Told { layout: layout.name.to_owned(), ..Told::default() };
    let (mut rehearsal, mut subject) = (Subject::new(layout)?, Subject::new(layout)?);
    for length in 1..=WINDOW_MAX {
        subject.numbers = (0..length as u64).collect();
        subject.window(Operation::Nothing)?;
        told.windows.push(Done { operation: Operation::Nothing, class: Class::Plain, length });
    }
    for (operation, count) in SEQUENCES {
        let numbers = numbers(operation, count);
        for store in [&mut rehearsal, &mut subject] {
            store.warm_up(operation)?;
        }
        let classes = rehearsal.rehearse(operation, &numbers)?;
        let mut windows = windows(&classes).into_iter().peekable();
        let mut at = 0;
        while at < numbers.len() {
            if let Some(window) = windows.next_if(|window| window.start == at) {
                subject.numbers = numbers[at..at + window.length].to_vec();
                subject.window(operation)?;
                at += window.length;
                let (class, length) = (window.class, window.length);
                told.windows.push(Done { operation, class, length });
            } else {
                subject.run(operation, numbers[at])?;
                at += 1;
            }
        }
        told.totals.push(Described { operation, classes: totals(&classes) });
    }
    Ok(told)
}

/// The records that a sequence of operations is about.
fn numbers(operation: Operation, count: u64) -> Vec<u64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let number = |at: u64| match operation {
        Operation::Insert => RECORDS + at,
        Operation::Delete => at.wrapping_mul(DELETE_STEP) % RECORDS,
        _ => random.next_u64() % RECORDS,
    };
    (0..count).map(number).collect()
}

/// What is done with a value that was got.
#[inline(always)]
fn look(value: &[u8]) {
    black_box(value);
}

/// What is seen of a store from outside that tells the class of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Grown {
    blocks: u64,
    index_bytes: u64,
    index_segments: u64,
}

/// A store.
struct Subject {
    db: Db,
    session: Session,
    keys: Keys,
    values: Values,
    counter_at: usize,
    version: u64,
    /// The records of the next window.
    numbers: Vec<u64>,
    window_keys: Vec<Vec<u8>>,
    window_values: Vec<Vec<u8>>,
}

impl Subject {
    fn new(layout: Layout) -> Result<Self, Failure> {
        let options = Options::new()
            .anonymous(POOL_BYTES)
            .durability(Durability::Auto)
            .populate_at_open(true)
            .reclaim_percent(0);
        let options = match layout.is_fixed {
            true => options.fixed_size(layout.key_bytes, layout.value_bytes),
            false => options,
        };
        let environment: Arc<dyn Environment> = Arc::new(SteppedEnvironment::new(SEED));
        let pmem = Hardware::new(options.hardware_options())?;
        let db = Db::open_on(pmem, &environment, "", &options)?;
        let values = Values::new(layout.value_bytes as usize, SEED);
        let mut subject = Self {
            session: db.session(),
            db,
            keys: Keys::new(layout.key_bytes as usize, SEED),
            counter_at: values.counter_at().ok_or("values without room for a counter")?,
            values,
            version: 0,
            numbers: Vec::new(),
            window_keys: Vec::new(),
            window_values: Vec::new(),
        };
        for number in 0..RECORDS {
            subject.run(Operation::Insert, number)?;
        }
        Ok(subject)
    }

    /// Brings about the steady state of an operation.
    fn warm_up(&mut self, operation: Operation) -> Result<(), Failure> {
        if operation == Operation::Update {
            // The first update in a block leaves a mark.
            for number in 0..RECORDS {
                self.run(operation, number)?;
            }
        }
        Ok(())
    }

    /// Does a whole sequence; tells the class of each operation.
    fn rehearse(&mut self, operation: Operation, numbers: &[u64]) -> Result<Vec<Class>, Failure> {
        let mut before = self.grown();
        let mut classes = Vec::with_capacity(numbers.len());
        for number in numbers {
            self.run(operation, *number)?;
            let after = self.grown();
            classes.push(if after.index_segments != before.index_segments {
                Class::IndexSplit
            } else if after.index_bytes != before.index_bytes {
                Class::IndexMemory
            } else if after.blocks != before.blocks {
                Class::Block
            } else {
                Class::Plain
            });
            before = after;
        }
        Ok(classes)
    }

    fn grown(&self) -> Grown {
        let stats = self.db.stats();
        Grown {
            blocks: stats.blocks_used,
            index_bytes: stats.dram_index_bytes,
            index_segments: stats.viper().map_or(0, |viper| viper.index_segments),
        }
    }

    /// One operation that is not stepped.
    fn run(&mut self, operation: Operation, number: u64) -> Result<(), Failure> {
        self.numbers = vec![number];
        self.prepare();
        self.work(operation)
    }

    /// The operations on `numbers`, between marks.
    fn window(&mut self, operation: Operation) -> Result<(), Failure> {
        self.prepare();
        raise(BEGIN)?;
        let outcome = self.work(operation);
        raise(END)?;
        outcome
    }

    /// Makes keys and values ahead of the mark.
    fn prepare(&mut self) {
        self.window_keys.resize(self.numbers.len(), Vec::new());
        self.window_values.resize(self.numbers.len(), Vec::new());
        for (at, number) in self.numbers.iter().enumerate() {
            self.version += 1;
            self.keys.write(*number, &mut self.window_keys[at]);
            self.values.write(*number, self.version, &mut self.window_values[at]);
        }
    }

    /// The operations, and little else.
    #[inline(never)]
    fn work(&mut self, operation: Operation) -> Result<(), Failure> {
        let Self { session, window_keys: keys, window_values: values, .. } = self;
        let records = keys.iter().zip(&*values);
        let mut done = 0;
        match operation {
            Operation::Nothing => {
                for (key, value) in records {
                    black_box((key, value));
                    done += 1;
                }
            }
            Operation::Get => {
                for key in &*keys {
                    done += usize::from(session.get_with(key, look)?.is_some());
                }
            }
            Operation::GetByEngine => {
                done = session.get_by_engine(keys, look)?;
            }
            Operation::Update => {
                let at = self.counter_at;
                for key in &*keys {
                    done += usize::from(session.fetch_add_u64(key, at, 1)?.is_some());
                }
            }
            Operation::Insert => {
                for (key, value) in records {
                    done += usize::from(session.put(key, value)?);
                }
            }
            Operation::Overwrite => {
                for (key, value) in records {
                    done += usize::from(!session.put(key, value)?);
                }
            }
            Operation::Delete => {
                for key in &*keys {
                    done += usize::from(session.delete(key)?);
                }
            }
        }
        match done == keys.len() {
            true => Ok(()),
            false => Err(format!("{} found the wrong records", operation.name()).into()),
        }
    }
}
