//! [`Reopening`]: how long it takes to open a store.

use std::path::Path;

use super::backend::{Backend, open};
use super::pass::cores;
use super::series::{median, ratio, spread};
use super::setup::Setup;
use crate::error::Result;
use crate::report::RecoveryRow;

/// Opens of one store, by the number of recovery threads.
#[derive(Debug, Default)]
pub(crate) struct Reopening {
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
    pub(crate) fn measure<B: Backend>(
        setup: &Setup,
        path: &Path,
        threads: &[usize],
        repetitions: usize,
    ) -> Result<Self> {
        let mut all = Self::default();
        for _ in 0..repetitions {
            for count in threads {
                // No background task: it would take a core from the recovery.
                let options = setup
                    .options_to_open()
                    .create(false)
                    .populate_ahead_bytes(0)
                    .recovery_threads(*count);
                let db = open::<B>(path, &options, setup.timed(), setup.seed)?;
                let recovery = db.stats().recovery;
                all.add(*count, recovery.records, recovery.duration_ns as f64);
                db.close()?;
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
