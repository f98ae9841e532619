//! [`Measured`]: what was measured of one phase of one pass.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Longest latency that is told apart: a minute.
const LATENCY_NS_MAX: u64 = 60_000_000_000;
/// Significant decimal digits of latencies.
const LATENCY_DIGITS: u8 = 3;

/// What was measured of a phase.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Operations done.
    pub operations: u64,
    /// From the first thread's start to the last one's end.
    pub elapsed: Duration,
    /// Latencies in nanoseconds, if these were measured.
    pub histogram: Option<Histogram<u64>>,
}

impl Measured {
    /// Both, one after the other.
    pub fn and(mut self, other: Self) -> Self {
        self.operations += other.operations;
        self.elapsed += other.elapsed;
        self.histogram = match (self.histogram, other.histogram) {
            (Some(mut all), Some(more)) => {
                all.add(more).expect("both have the same bounds");
                Some(all)
            }
            (one, None) | (None, one) => one,
        };
        self
    }

    /// Operations per second of all threads together.
    pub fn ops_per_second(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// An empty histogram of latencies.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, LATENCY_DIGITS).expect("valid bounds")
}
