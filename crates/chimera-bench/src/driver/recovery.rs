//! [`Reopening`]: how long it takes to open a store.

use std::path::Path;

use super::setup::Setup;
use super::store::{Recovered, Reopen};
use crate::error::Result;
use crate::results::machine::cores;
use crate::results::rows::RecoveryRow;
use crate::results::statistics::{median, ratio, spread};

/// Opens of one store, by the number of recovery threads.
#[derive(Debug)]
pub(crate) struct Reopening {
    engine: String,
    /// Threads, records, and a duration in nanoseconds for each repetition.
    series: Vec<(usize, u64, Vec<f64>)>,
}

impl Reopening {
    /// One thread, and all cores.
    pub(crate) fn standard_threads() -> Vec<usize> {
        let mut threads = vec![1, cores()];
        threads.dedup();
        threads
    }

    /// Opens the store at `path` with each number of threads in turn, `repetitions` times, and closes
    /// it again.
    pub(crate) fn measure<S: Reopen>(
        setup: &Setup,
        path: &Path,
        threads: &[usize],
        repetitions: usize,
    ) -> Result<Self> {
        let mut all = Self { engine: setup.name(), series: Vec::new() };
        for _ in 0..repetitions {
            for count in threads {
                let (store, recovered) = S::recover(setup, path, *count)?;
                let Recovered { records, duration_ns } = recovered;
                all.add(*count, records, duration_ns as f64);
                store.close()?;
            }
        }
        Ok(all)
    }

    fn add(&mut self, threads: usize, records: u64, duration_ns: f64) {
        match self.series.iter_mut().find(|one| (one.0, one.1) == (threads, records)) {
            Some(one) => one.2.push(duration_ns),
            None => self.series.push((threads, records, vec![duration_ns])),
        }
    }

    /// A row for each number of threads.
    pub(crate) fn rows(&self) -> Vec<RecoveryRow> {
        let row = |(threads, records, durations): &(usize, u64, Vec<f64>)| {
            let duration_ns = median(durations);
            RecoveryRow {
                engine: self.engine.clone(),
                threads: *threads,
                records: *records,
                duration_ns,
                records_per_second: ratio(*records as f64 * 1e9, duration_ns),
                repetitions: durations.len(),
                spread: spread(durations),
            }
        };
        self.series.iter().map(row).collect()
    }
}
