//! [`Results`]: what was measured of each kind of work, over all repetitions.

use hdrhistogram::Histogram;

use super::clock::{self, Measured};
use super::counting::Counted;

/// What was measured of one kind of work on one number of threads.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) operation: String,
    pub(crate) threads: usize,
    /// Operations per second of each throughput pass.
    pub(crate) throughputs: Vec<f64>,
    /// Nanoseconds, of all latency passes together.
    pub(crate) latencies: Histogram<u64>,
    pub(crate) counted: Option<Counted>,
}

/// All series, in the order in which they were first measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Results {
    pub(crate) series: Vec<Series>,
}

impl Results {
    /// Adds one measurement: a throughput, or latencies.
    pub(crate) fn add(&mut self, operation: &str, threads: usize, measured: Measured) {
        let is_it = |series: &Series| series.operation == operation && series.threads == threads;
        let index = self.series.iter().position(is_it).unwrap_or_else(|| {
            self.series.push(Series {
                operation: operation.to_owned(),
                threads,
                throughputs: Vec::new(),
                latencies: clock::histogram(),
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

    /// Enters what was counted of each kind of work, on whatever number of threads.
    pub(crate) fn enter_counted(&mut self, all: &[(String, Counted)]) {
        for (operation, counted) in all {
            for series in self.series.iter_mut().filter(|series| series.operation == *operation) {
                series.counted = Some(counted.clone());
            }
        }
    }

    /// One of the series.
    pub(crate) fn find(&self, operation: &str, threads: usize) -> Option<&Series> {
        self.series.iter().find(|one| one.operation == operation && one.threads == threads)
    }
}

/// The middle of some numbers; between two, their mean; 0 of none.
pub(crate) fn median(numbers: &[f64]) -> f64 {
    let mut numbers = numbers.to_vec();
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => 0.0,
        length if length % 2 == 1 => numbers[middle],
        _ => f64::midpoint(numbers[middle - 1], numbers[middle]),
    }
}

/// The smallest and the largest of some numbers; zeros of none.
pub(crate) fn range(numbers: &[f64]) -> (f64, f64) {
    let min = numbers.iter().copied().min_by(f64::total_cmp);
    let max = numbers.iter().copied().max_by(f64::total_cmp);
    min.zip(max).unwrap_or_default()
}

/// (max - min) / median.
pub(crate) fn spread(numbers: &[f64]) -> f64 {
    let (min, max) = range(numbers);
    ratio(max - min, median(numbers))
}

/// `a / b`, 0 when `b` is 0.
pub(crate) fn ratio(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { a / b }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn medians_and_spreads() {
        assert!(close(median(&[3.0, 1.0, 2.0]), 2.0));
        assert!(close(median(&[4.0, 1.0, 2.0, 3.0]), 2.5));
        assert!(close(median(&[]), 0.0));
        assert!(close(spread(&[8.0, 10.0, 11.0]), 0.3));
        assert!(close(spread(&[]), 0.0));
    }
}
