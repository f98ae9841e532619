//! Fills a store with records of any size, overwrites all of them twice in another order, compacts, exports,
//! imports into another store, and compares the two record by record; at the end both are verified.
//!
//! `cargo run --release -p chimera-bench --example round_trip -- DIRECTORY [RECORDS] [STREAM]`
//!
//! Keys have 16 bytes on average and values 200, distributed normally. STREAM is the file of the export, in
//! DIRECTORY unless said. What is made is removed at the end.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use chimera::{Db, ExportOptions, ImportOptions, Options, StreamReader};
use chimera_bench::workload::{Keys, Values};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const SEED: u64 = 42;
/// Odd and larger than any number of records here: multiples of it reach them all in another order.
const STRIDE: u64 = 6_700_417;
/// Versions of each record that are written, one after the other.
const VERSIONS: u64 = 3;

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("give a directory")?);
    let records: u64 = arguments.next().map_or(Ok(200_000), |text| text.parse())?;
    let stream = arguments.next().map_or_else(|| directory.join("stream"), PathBuf::from);
    if records == 0 || records.is_multiple_of(STRIDE) {
        return Err(format!("the number of records must be no multiple of {STRIDE}").into());
    }
    let (first, second) = (directory.join("first"), directory.join("second"));
    if first.exists() || second.exists() || stream.exists() {
        return Err("there is something already: give a new directory".into());
    }
    let work = Work { keys: Keys::normal(16, SEED), values: Values::normal(200, SEED), records };
    let outcome = work.run(&first, &second, &stream);
    for path in [&first, &second] {
        // What is not there need not be removed.
        let _ = std::fs::remove_dir_all(path);
    }
    let _ = std::fs::remove_file(&stream);
    outcome
}

struct Work {
    keys: Keys,
    values: Values,
    records: u64,
}

impl Work {
    fn run(&self, first: &Path, second: &Path, stream: &Path) -> Outcome {
        std::fs::create_dir_all(first)?;
        std::fs::create_dir_all(second)?;
        let db = Db::open(first, &Options::new())?;
        timed("fill", || self.write(&db, 0))?;
        let filled_bytes = print_space(&db);
        for version in 1..VERSIONS {
            timed("overwrite", || self.write(&db, version))?;
            print_space(&db);
        }
        timed("compact", || Ok(db.compact(1, None).map(drop)?))?;
        if print_space(&db) > filled_bytes / 20 * 21 {
            return Err("compaction left more than 1.05 times the space of the fill".into());
        }
        timed("reopen", || Ok(db.close()?))?;
        let db = Db::open(first, &Options::new())?;
        let exported = timed("export", || {
            let mut file = BufWriter::new(File::create(stream)?);
            let report = db.export(&mut file, &ExportOptions::new())?;
            file.flush()?;
            Ok(report.records)
        })?;
        let copy = Db::open(second, &Options::new())?;
        let imported = timed("import", || {
            let mut reader = StreamReader::new(BufReader::new(File::open(stream)?))?;
            Ok(copy.import(&mut reader, &ImportOptions::new())?.records)
        })?;
        let equal = timed("compare", || self.compare(&db, &copy))?;
        for db in [&db, &copy] {
            let damage = timed("check", || Ok(db.check(None).first_damage))?;
            if let Some(damage) = damage {
                return Err(format!("{damage:?}").into());
            }
        }
        if [exported, imported, equal] != [self.records; 3] {
            let found = format!("{exported} exported, {imported} imported, {equal} equal");
            return Err(format!("{found} of {} records", self.records).into());
        }
        println!("{equal} records equal in both stores, each with its last value");
        Ok(())
    }

    /// Writes a version of every record, on all processors.
    fn write(&self, db: &Db, version: u64) -> Outcome {
        self.on_all_processors(|numbers| {
            let mut session = db.session();
            let (mut key, mut value) = (Vec::new(), Vec::new());
            for number in numbers {
                // The first in order, the others in another one.
                let number = if version == 0 { number } else { self.other(number, version) };
                self.keys.write(number, &mut key);
                self.values.write(number, version, &mut value);
                if session.put(&key, &value)? != (version == 0) {
                    return Err(format!("record {number} was there, or was not").into());
                }
            }
            Ok(0)
        })
        .map(drop)
    }

    fn other(&self, number: u64, version: u64) -> u64 {
        ((number + version) * STRIDE) % self.records
    }

    /// How many records have the same, last, value in both stores.
    fn compare(&self, db: &Db, copy: &Db) -> Outcome<u64> {
        if db.stats().records != copy.stats().records {
            return Err("the stores have different numbers of records".into());
        }
        self.on_all_processors(|numbers| {
            let (mut one, mut other) = (db.session(), copy.session());
            let (mut key, mut expected) = (Vec::new(), Vec::new());
            let mut equal = 0;
            for number in numbers {
                self.keys.write(number, &mut key);
                self.values.write(number, VERSIONS - 1, &mut expected);
                let is_it = |value: &[u8]| value == expected;
                if (one.get_with(&key, is_it)?, other.get_with(&key, is_it)?)
                    != (Some(true), Some(true))
                {
                    return Err(format!("record {number} is not in both stores as written").into());
                }
                equal += 1;
            }
            Ok(equal)
        })
    }

    /// Runs `work` on parts of the numbers of all records; the sum of what it returns.
    fn on_all_processors(
        &self,
        work: impl Fn(std::ops::Range<u64>) -> Outcome<u64> + Sync,
    ) -> Outcome<u64> {
        let threads = std::thread::available_parallelism()?.get() as u64;
        std::thread::scope(|scope| {
            let start = |part: u64| part * self.records / threads;
            let handles: Vec<_> = (0..threads)
                .map(|part| {
                    let work = &work;
                    scope.spawn(move || work(start(part)..start(part + 1)))
                })
                .collect();
            let parts = handles.into_iter().map(|handle| handle.join().map_err(|_| "a panic")?);
            parts.sum()
        })
    }
}

fn timed<T>(name: &str, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let begun = Instant::now();
    let outcome = work()?;
    println!("{name:<10} {:>8.1} s", begun.elapsed().as_secs_f64());
    Ok(outcome)
}

/// Prints and returns the bytes of blocks in use.
fn print_space(db: &Db) -> u64 {
    let stats = db.stats();
    let per_record = stats.pmem_bytes as f64 / stats.records.max(1) as f64;
    let mib = stats.pmem_bytes >> 20;
    println!("           {mib} MiB in use, {per_record:.0} bytes per record");
    stats.pmem_bytes
}
