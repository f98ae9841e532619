//! [`Reopening`]: how long it takes to open a store.

use std::path::Path;

use super::setup::{OrderChoice, Setup};
use super::store::{Recovered, Reopen};
use crate::error::Result;
use crate::results::machine::cores;
use crate::results::rows::RecoveryRow;
use crate::results::statistics::{median, ratio, spread};

/// Opens of one store, by the number of recovery threads.
#[derive(Debug)]
pub(crate) struct Reopening {
    engine: String,
    series: Vec<Series>,
}

/// Repetitions that were alike.
#[derive(Debug)]
struct Series {
    /// What was made, by how many threads, of how many records.
    about: (&'static str, usize, u64),
    durations_ns: Vec<f64>,
}

/// What opening a store makes.
const STORE: &str = "recovery";
const LOADED: &str = "order, loaded";
const GATHERED: &str = "order, gathered";

impl Reopening {
    /// One thread, and all cores.
    pub(crate) fn standard_threads() -> Vec<usize> {
        let mut threads = vec![1, cores()];
        threads.dedup();
        threads
    }

    /// Opens the store at `path` with each number of threads in turn, `repetitions` times, and closes
    /// it again. Where the order of keys was loaded, also once with that order gone.
    pub(crate) fn measure<S: Reopen>(
        setup: &Setup,
        path: &Path,
        threads: &[usize],
        repetitions: usize,
    ) -> Result<Self> {
        let mut all = Self { engine: setup.name(), series: Vec::new() };
        for _ in 0..repetitions {
            for count in threads {
                if all.open::<S>(setup, path, *count)? {
                    let unordered = Setup { order: OrderChoice::None, ..setup.clone() };
                    S::reopen(&unordered, path)?.close()?;
                    all.open::<S>(setup, path, *count)?;
                }
            }
        }
        Ok(all)
    }

    /// Whether the order was loaded.
    fn open<S: Reopen>(&mut self, setup: &Setup, path: &Path, threads: usize) -> Result<bool> {
        let (store, recovered) = S::recover(setup, path, threads)?;
        let Recovered { records, duration_ns, order } = recovered;
        self.add((STORE, threads, records), duration_ns);
        if let Some(order) = &order {
            let made = if order.is_loaded { LOADED } else { GATHERED };
            self.add((made, threads, records), order.duration_ns);
        }
        store.close()?;
        Ok(order.is_some_and(|order| order.is_loaded))
    }

    fn add(&mut self, about: (&'static str, usize, u64), duration_ns: u64) {
        match self.series.iter_mut().find(|one| one.about == about) {
            Some(one) => one.durations_ns.push(duration_ns as f64),
            None => self.series.push(Series { about, durations_ns: vec![duration_ns as f64] }),
        }
    }

    /// A row for each number of threads.
    pub(crate) fn rows(&self) -> Vec<RecoveryRow> {
        let row = |Series { about: (made, threads, records), durations_ns }: &Series| {
            let duration_ns = median(durations_ns);
            RecoveryRow {
                engine: self.engine.clone(),
                made: (*made).to_owned(),
                threads: *threads,
                records: *records,
                duration_ns,
                records_per_second: ratio(*records as f64 * 1e9, duration_ns),
                repetitions: durations_ns.len(),
                spread: spread(durations_ns),
            }
        };
        self.series.iter().map(row).collect()
    }
}
