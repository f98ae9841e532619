//! [`Mix`]: which operations a thread does, on which records.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Random;
use super::random::mixed;
use super::zipfian::Zipfian;

/// A mix of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// db_bench's readrandomwriterandom with readwritepercent=50 on an empty database: by turns 50 gets and 50 puts of uniformly
    /// drawn keys.
    ReadRandomWriteRandom,
    /// YCSB A: half gets, half updates, zipfian.
    YcsbA,
    /// YCSB B: 95 % gets, 5 % updates, zipfian.
    YcsbB,
    /// YCSB C: gets, zipfian.
    YcsbC,
    /// YCSB D: 95 % gets of late records, 5 % inserts.
    YcsbD,
}

/// An operation on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads it.
    Get(u64),
    /// Writes it.
    Put(u64),
}

impl Mix {
    /// Whether the database has records at the beginning.
    pub fn begins_loaded(self) -> bool {
        self != Self::ReadRandomWriteRandom
    }

    /// Whether any operation writes.
    pub fn writes(self) -> bool {
        self != Self::YcsbC
    }

    /// Gets out of 100 operations.
    fn gets(self) -> u64 {
        match self {
            Self::ReadRandomWriteRandom | Self::YcsbA => 50,
            Self::YcsbB | Self::YcsbD => 95,
            Self::YcsbC => 100,
        }
    }
}

/// What the threads of a run share.
#[derive(Debug)]
pub struct Shared {
    mix: Mix,
    zipfian: Option<Zipfian>,
    /// Records there are.
    records: AtomicU64,
}

impl Shared {
    /// A mix on `records` records.
    pub fn new(mix: Mix, records: u64) -> Self {
        let zipfian = mix.begins_loaded().then(|| Zipfian::new(records));
        Self { mix, zipfian, records: AtomicU64::new(records) }
    }
}

/// What one thread does next.
#[derive(Debug)]
pub struct Draw<'a> {
    shared: &'a Shared,
    random: Random,
    /// Operations so far.
    done: u64,
}

impl<'a> Draw<'a> {
    /// Operations of one thread.
    pub fn new(shared: &'a Shared, seed: u64, thread: u64) -> Self {
        Self { shared, random: Random::new(seed, thread), done: 0 }
    }

    /// The next operation.
    pub fn draw(&mut self) -> Operation {
        let mix = self.shared.mix;
        let is_get = match mix {
            // All gets of a hundred come before its puts.
            Mix::ReadRandomWriteRandom => self.done % 100 < mix.gets(),
            _ => self.random.below(100) < mix.gets(),
        };
        self.done += 1;
        match (mix, is_get) {
            (Mix::YcsbD, false) => {
                Operation::Put(self.shared.records.fetch_add(1, Ordering::Relaxed))
            }
            (_, true) => Operation::Get(self.record()),
            (_, false) => Operation::Put(self.record()),
        }
    }

    fn record(&mut self) -> u64 {
        let records = self.shared.records.load(Ordering::Relaxed).max(1);
        let Some(zipfian) = &self.shared.zipfian else { return self.random.below(records) };
        let rank = zipfian.rank(self.random.fraction());
        match self.shared.mix {
            Mix::YcsbD => records - 1 - rank.min(records - 1),
            _ => mixed(rank) % records,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(mix: Mix, count: usize) -> Vec<Operation> {
        let shared = Shared::new(mix, 1000);
        let mut draw = Draw::new(&shared, 7, 0);
        (0..count).map(|_| draw.draw()).collect()
    }

    #[test]
    fn the_published_load_reads_fifty_times_and_writes_fifty_times() {
        let operations = draw(Mix::ReadRandomWriteRandom, 400);
        for (at, operation) in operations.iter().enumerate() {
            assert_eq!(matches!(operation, Operation::Get(_)), at % 100 < 50, "{at}");
        }
    }

    #[test]
    fn shares_of_gets_are_those_of_ycsb() {
        for (mix, gets) in [(Mix::YcsbA, 50), (Mix::YcsbB, 95), (Mix::YcsbC, 100), (Mix::YcsbD, 95)]
        {
            let operations = draw(mix, 20_000);
            let found =
                operations.iter().filter(|operation| matches!(operation, Operation::Get(_)));
            assert!((found.count() as i64 - gets * 200).abs() < 300, "{mix:?}");
        }
    }

    #[test]
    fn inserts_are_new_records_and_gets_are_late_ones() {
        let mut most = 999;
        let mut late = 0;
        for operation in draw(Mix::YcsbD, 10_000) {
            match operation {
                Operation::Put(record) => {
                    assert_eq!(record, most + 1);
                    most = record;
                }
                Operation::Get(record) => {
                    assert!(record <= most);
                    late += u64::from(most - record < 100);
                }
            }
        }
        assert!(late > 5000, "{late}");
    }

    #[test]
    fn threads_and_seeds_differ() {
        let shared = Shared::new(Mix::YcsbC, 1 << 40 >> 20);
        let of = |seed, thread| {
            let mut draw = Draw::new(&shared, seed, thread);
            (0..10).map(|_| draw.draw()).collect::<Vec<_>>()
        };
        assert_eq!(of(1, 1), of(1, 1));
        assert_ne!(of(1, 1), of(1, 2));
        assert_ne!(of(1, 1), of(2, 1));
    }
}
