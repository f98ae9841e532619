//! [`Worker`]: one thread's session, and the operations it does.

use std::hint::black_box;
use std::sync::Arc;

use super::setup::{Setup, Sizing};
use super::store::{Store, StoreSession};
use crate::error::{BenchError, Result};
use crate::workload::random::{Random, mix, reduce};
use crate::workload::{Keys, Values, Zipfian, values};

/// What all workers of a benchmark share: how records are made.
#[derive(Clone, Debug)]
pub struct Data {
    /// How keys are made.
    pub keys: Keys,
    pub(crate) values: Values,
    pub(crate) zipfian: Arc<Zipfian>,
    pub(crate) seed: u64,
    /// Puts know whether their key is new. Blind ones of ChameleonDB do not, and count some keys more than once.
    pub(crate) puts_know: bool,
}

impl Data {
    /// Keys and values of one size each, for stores whose puts know whether their key is new, or do not.
    pub fn fixed(key_bytes: usize, value_bytes: usize, seed: u64, puts_know: bool) -> Self {
        let (keys, values) = (Keys::new(key_bytes, seed), Values::new(value_bytes, seed));
        Self { keys, values, zipfian: Arc::new(Zipfian::new(1, 0.5)), seed, puts_know }
    }

    /// Records as the setup wants them, drawn without favourites.
    pub(crate) fn new(setup: &Setup) -> Self {
        let (key_bytes, value_bytes) = (setup.key_bytes as usize, setup.value_bytes as usize);
        let seed = setup.seed;
        let (keys, values) = match setup.sizing {
            Sizing::Mixed => (Keys::normal(key_bytes, seed), Values::normal(value_bytes, seed)),
            Sizing::Fixed | Sizing::Any => {
                (Keys::new(key_bytes, seed), Values::new(value_bytes, seed))
            }
        };
        let puts_know = setup.tuning.is_none_or(|tuning| !tuning.blind_puts);
        Self { keys, values, zipfian: Arc::new(Zipfian::new(1, 0.5)), seed, puts_know }
    }

    /// Bytes of a key and its value, on average.
    pub(crate) fn record_bytes(&self) -> f64 {
        self.keys.sizes().mean() + self.values.sizes().mean()
    }

    /// The same records, `records` of them drawn by Zipf's law with exponent `theta`.
    pub(crate) fn with_zipfian(self, records: u64, theta: f64) -> Self {
        Self { zipfian: Arc::new(Zipfian::new(records, theta)), ..self }
    }
}

/// One thread's session, buffers and random numbers.
pub(crate) struct Worker<'a, S: Store> {
    session: S::Session,
    data: &'a Data,
    key: Vec<u8>,
    value: Vec<u8>,
    batch: Vec<(Vec<u8>, Vec<u8>)>,
    counter_at: usize,
    version: u64,
    pub(crate) random: Random,
    /// The records this worker inserts: the first, the next, and where they end.
    pub(crate) first: u64,
    pub(crate) next: u64,
    pub(crate) end: u64,
}

impl<'a, S: Store> Worker<'a, S> {
    /// A worker that inserts records `inserts`. Its random numbers and versions follow from `stream`.
    pub(crate) fn new(
        store: &S,
        data: &'a Data,
        inserts: std::ops::Range<u64>,
        stream: u64,
    ) -> Self {
        Self {
            session: store.session(),
            data,
            key: vec![0; data.keys.sizes().max()],
            value: vec![0; data.values.sizes().max()],
            batch: Vec::new(),
            counter_at: data.values.counter_at().unwrap_or_default(),
            version: stream << 40,
            random: Random::new(data.seed, stream),
            first: inserts.start,
            next: inserts.start,
            end: inserts.end,
        }
    }

    /// Reads a record, every byte of it.
    #[inline]
    pub(crate) fn get(&mut self, number: u64) -> Result<u64> {
        self.data.keys.write(number, &mut self.key);
        match self.session.get_with(&self.key, values::fold)? {
            Some(word) => Ok(word),
            None => missing("a get", number),
        }
    }

    /// Writes the next record of this worker's own; `after` is zero.
    #[inline]
    pub(crate) fn insert(&mut self, after: u64) -> Result<u64> {
        let number = self.next + after;
        self.next += 1;
        match truth(self.put(number)?) {
            0 => wrong("an insert", number, "found it there already"),
            word => Ok(word),
        }
    }

    /// Overwrites a live record.
    #[inline]
    pub(crate) fn overwrite(&mut self, number: u64) -> Result<u64> {
        let is_new = self.put(number)? && self.data.puts_know;
        match truth(!is_new) {
            0 => missing("an overwrite", number),
            word => Ok(word),
        }
    }

    #[inline]
    fn put(&mut self, number: u64) -> Result<bool> {
        self.data.keys.write(number, &mut self.key);
        self.version += 1;
        self.data.values.write(number, self.version, &mut self.value);
        self.session.put(&self.key, &self.value)
    }

    /// Overwrites live records together.
    pub(crate) fn put_batch(&mut self, numbers: Vec<u64>) -> Result<u64> {
        self.fill_batch(numbers);
        self.session.put_batch(&self.batch).map(|()| 1)
    }

    /// Overwrites live records, all or none.
    pub(crate) fn write_atomically(&mut self, numbers: Vec<u64>) -> Result<u64> {
        self.fill_batch(numbers);
        self.session.write_atomically(&self.batch).map(|()| 1)
    }

    fn fill_batch(&mut self, numbers: Vec<u64>) {
        self.batch.resize_with(numbers.len(), Default::default);
        for (number, (key, value)) in numbers.into_iter().zip(&mut self.batch) {
            self.version += 1;
            self.data.keys.write(number, key);
            self.data.values.write(number, self.version, value);
        }
    }

    /// Adds to the counter in a record's value, in place.
    #[inline]
    pub(crate) fn update(&mut self, number: u64) -> Result<u64> {
        self.add(number, 1)
    }

    /// Has the next [`update`](Self::update) of a record made in place.
    pub(crate) fn prepare_update(&mut self, number: u64) -> Result<u64> {
        self.add(number, 0)
    }

    #[inline]
    fn add(&mut self, number: u64, delta: u64) -> Result<u64> {
        self.data.keys.write(number, &mut self.key);
        match self.session.fetch_add_u64(&self.key, self.counter_at, delta)? {
            Some(previous) => Ok(previous),
            None => missing("an update", number),
        }
    }

    /// Reads a record and writes another version of it, as one step.
    #[inline]
    pub(crate) fn modify(&mut self, number: u64) -> Result<u64> {
        self.data.keys.write(number, &mut self.key);
        self.version += 1;
        let (values, version) = (&self.data.values, self.version);
        let change = |value: &mut Vec<u8>| values.write(number, version, value);
        match truth(self.session.update(&self.key, change)?) {
            0 => missing("a read-modify-write", number),
            word => Ok(word),
        }
    }

    /// Reads the records of 1 to `most` keys from that of a record on, every byte of them.
    #[inline]
    pub(crate) fn scan(&mut self, number: u64, most: u64) -> Result<u64> {
        let count = 1 + reduce(self.random.next(), most);
        self.scan_exactly(number, count as usize)
    }

    /// Reads the records of `count` keys from that of a record on, every byte of them.
    #[inline]
    pub(crate) fn scan_exactly(&mut self, number: u64, count: usize) -> Result<u64> {
        self.data.keys.write(number, &mut self.key);
        let mut word = 0;
        let fold = |value: &[u8]| word ^= values::fold(value);
        match self.session.scan(&self.key, count, fold)? {
            0 => missing("a scan", number),
            _ => Ok(word),
        }
    }

    /// Deletes a record.
    #[inline]
    pub(crate) fn delete(&mut self, number: u64) -> Result<u64> {
        self.data.keys.write(number, &mut self.key);
        match truth(self.session.delete(&self.key)?) {
            0 => missing("a delete", number),
            word => Ok(word),
        }
    }

    /// Whether a record is there and right; what is wrong with it if not. The mark of its key if it is.
    pub(crate) fn check(&mut self, number: u64) -> std::result::Result<u64, String> {
        self.data.keys.write(number, &mut self.key);
        let values = &self.data.values;
        match self.session.get_with(&self.key, |value| values.is_right(number, value)) {
            Ok(Some(true)) => Ok(key_mark(&self.key)),
            Ok(Some(false)) => Err("has a value that was never written to it".to_owned()),
            Ok(None) => Err("is missing".to_owned()),
            Err(error) => Err(format!("cannot be read: {error}")),
        }
    }
}

/// A word that tells a key from others; the sum of all says whether two sets of keys are the same.
pub(crate) fn key_mark(key: &[u8]) -> u64 {
    mix(values::fold(key))
}

/// A truth value as a word that the compiler does not know, for the chained shape.
#[inline(always)]
fn truth(value: bool) -> u64 {
    black_box(u64::from(value))
}

#[cold]
fn missing(operation: &'static str, number: u64) -> Result<u64> {
    wrong(operation, number, "did not find it")
}

#[cold]
fn wrong(operation: &'static str, number: u64, what: &'static str) -> Result<u64> {
    Err(BenchError::WrongAnswer { operation, number, what })
}
