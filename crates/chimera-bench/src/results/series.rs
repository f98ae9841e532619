//! [`Results`]: what was measured of each kind of work, over all repetitions.

use hdrhistogram::Histogram;

use super::measured::{Measured, histogram};
use super::rows::{Counted, Facts, Latency, Row};
use super::statistics::{median, ratio, spread};

/// What was measured of one kind of work on one engine and one number of threads.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) engine: String,
    pub(crate) durability: String,
    pub(crate) operation: String,
    pub(crate) threads: usize,
    /// Operations per second of each throughput pass.
    pub(crate) throughputs: Vec<f64>,
    /// Nanoseconds, of all latency passes together.
    pub(crate) latencies: Histogram<u64>,
    pub(crate) counted: Option<Counted>,
}

impl Series {
    /// What a report says of it.
    pub(crate) fn row(&self) -> Row {
        let ops_per_second = median(&self.throughputs);
        let at = |percentile| self.latencies.value_at_percentile(percentile);
        Row {
            engine: self.engine.clone(),
            durability: self.durability.clone(),
            operation: self.operation.clone(),
            threads: self.threads,
            ops_per_second,
            latency_ns: Latency {
                mean: ratio(self.threads as f64 * 1e9, ops_per_second),
                p50: at(50.0),
                p99: at(99.0),
                p999: at(99.9),
                p9999: at(99.99),
            },
            repetitions: self.throughputs.len(),
            spread: spread(&self.throughputs),
            counters: self.counted.as_ref().map(|counted| counted.counters),
            dimm_spread: self.counted.as_ref().and_then(|counted| counted.dimm_spread),
        }
    }
}

/// All series, in the order in which they were first measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Results {
    pub(crate) series: Vec<Series>,
}

impl Results {
    /// Adds one measurement of the store that says `facts` of itself: a throughput, or latencies.
    pub(crate) fn add(
        &mut self,
        facts: &Facts,
        operation: &str,
        threads: usize,
        measured: Measured,
    ) {
        let is_it = |series: &Series| {
            series.engine == facts.engine
                && series.operation == operation
                && series.threads == threads
        };
        let index = self.series.iter().position(is_it).unwrap_or_else(|| {
            self.series.push(Series {
                engine: facts.engine.clone(),
                durability: facts.durability.clone(),
                operation: operation.to_owned(),
                threads,
                throughputs: Vec::new(),
                latencies: histogram(),
                counted: None,
            });
            self.series.len() - 1
        });
        let series = &mut self.series[index];
        match measured.histogram {
            None => series.throughputs.push(measured.ops_per_second()),
            Some(latencies) => {
                series.latencies.add(latencies).expect("both have the same bounds");
            }
        }
    }

    /// Enters what was counted of each kind of work on an engine, on whatever number of threads.
    pub(crate) fn enter_counted(&mut self, engine: &str, all: &[(String, Counted)]) {
        for (operation, counted) in all {
            let is_it =
                |series: &&mut Series| series.engine == engine && series.operation == *operation;
            for series in self.series.iter_mut().filter(is_it) {
                series.counted = Some(counted.clone());
            }
        }
    }

    /// The first of the series with this kind of work, on whichever engine.
    pub(crate) fn find(&self, operation: &str, threads: usize) -> Option<&Series> {
        self.series.iter().find(|one| one.operation == operation && one.threads == threads)
    }
}
