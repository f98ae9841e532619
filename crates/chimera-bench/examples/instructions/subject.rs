//! A store, and operations on it between marks. Nothing happens here by itself: time stands still, no
//! task runs in the background, and every random number follows from the seed.

use std::hint::black_box;
use std::sync::Arc;

use chimera::{Db, Options, Session};
use chimera_bench::workload::{Keys, Values};
use chimera_pmem::environment::SteppedEnvironment;
use chimera_pmem::{Environment, Hardware};
use nix::sys::signal::raise;

use crate::Failure;
use crate::goals::{Layout, Operation};
use crate::sampling::Class;
use crate::stepper::{BEGIN, END};

/// Records loaded, and inserted later: a power of two.
pub(crate) const RECORDS: u64 = 1 << 16;
/// Room for all that is written.
const POOL_BYTES: u64 = 128 << 20;
pub(crate) const SEED: u64 = 42;
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
pub(crate) struct Subject {
    db: Db,
    session: Session,
    keys: Keys,
    values: Values,
    counter_at: usize,
    version: u64,
    /// Of the next operations.
    window_keys: Vec<Vec<u8>>,
    window_values: Vec<Vec<u8>>,
}

impl Subject {
    pub(crate) fn new(layout: Layout) -> Result<Self, Failure> {
        let options =
            Options::new().anonymous(POOL_BYTES).populate_at_open(true).reclaim_percent(0);
        let options = if layout.is_fixed {
            options.fixed_size(layout.key_bytes, layout.value_bytes)
        } else {
            options
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
            window_keys: Vec::new(),
            window_values: Vec::new(),
        };
        for number in 0..RECORDS {
            subject.run(Operation::Insert, number)?;
        }
        Ok(subject)
    }

    /// Brings about the steady state of an operation.
    pub(crate) fn warm_up(&mut self, operation: Operation) -> Result<(), Failure> {
        if operation == Operation::Update {
            // The first update in a block leaves a mark.
            for number in 0..RECORDS {
                self.run(operation, number)?;
            }
        }
        Ok(())
    }

    /// Does a whole sequence; tells the class of each operation.
    pub(crate) fn rehearse(
        &mut self,
        operation: Operation,
        numbers: &[u64],
    ) -> Result<Vec<Class>, Failure> {
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
    pub(crate) fn run(&mut self, operation: Operation, number: u64) -> Result<(), Failure> {
        self.prepare(&[number]);
        self.work(operation)
    }

    /// The operation on each of `numbers`, between marks.
    pub(crate) fn window(&mut self, operation: Operation, numbers: &[u64]) -> Result<(), Failure> {
        self.prepare(numbers);
        raise(BEGIN)?;
        let outcome = self.work(operation);
        raise(END)?;
        outcome
    }

    /// Makes keys and values ahead of the mark.
    fn prepare(&mut self, numbers: &[u64]) {
        self.window_keys.resize(numbers.len(), Vec::new());
        self.window_values.resize(numbers.len(), Vec::new());
        for (at, number) in numbers.iter().enumerate() {
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
        if done != keys.len() {
            return Err(format!("{} found the wrong records", operation.name()).into());
        }
        Ok(())
    }
}
