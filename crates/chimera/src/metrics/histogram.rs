//! Latencies in log-linear buckets: 32 to each power of two, so that a bucket's ends differ by at most
//! 1/32.
//!
//! Times are whole nanoseconds, rounded down. Those below 32 ns have a bucket each; those of an hour and
//! more share the last ones.

use std::ops::RangeInclusive;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::types::operations::LatencyStats;

/// Buckets of each power of two, as a power of two.
const SUB_BITS: u32 = 5;
const SUB: usize = 1 << SUB_BITS;
/// The highest power of two that is told apart: 2^42 ns are 73 minutes.
const EXPONENT_MAX: u32 = 41;
/// Buckets.
pub(crate) const BUCKETS: usize = SUB + SUB * (EXPONENT_MAX - SUB_BITS + 1) as usize;

/// The bucket of a time.
#[inline]
pub(crate) fn bucket_of(ns: u64) -> usize {
    if ns < SUB as u64 {
        return ns as usize;
    }
    let exponent = ns.ilog2();
    if exponent > EXPONENT_MAX {
        return BUCKETS - 1;
    }
    let sub = (ns >> (exponent - SUB_BITS)) as usize % SUB;
    SUB * (exponent - SUB_BITS + 1) as usize + sub
}

/// The times that a bucket is for.
pub(crate) fn bounds_of(bucket: usize) -> RangeInclusive<u64> {
    let at = bucket as u64;
    if bucket < SUB {
        return at..=at;
    }
    let shift = (bucket / SUB - 1) as u32;
    let first = (SUB as u64 + at % SUB as u64) << shift;
    let last = if bucket == BUCKETS - 1 { u64::MAX } else { first + (1 << shift) - 1 };
    first..=last
}

/// Latencies that one thread records and any thread reads.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            sum_ns: AtomicU64::new(0),
            max_ns: AtomicU64::new(0),
        }
    }

    /// Records a time. Only ever called by one thread at a time.
    pub(crate) fn record(&self, ns: u64) {
        add(&self.buckets[bucket_of(ns)], 1);
        add(&self.sum_ns, ns);
        if ns > self.max_ns.load(Ordering::Relaxed) {
            self.max_ns.store(ns, Ordering::Relaxed);
        }
    }
}

/// Adds to a word that no other thread writes.
#[inline(always)]
pub(super) fn add(word: &AtomicU64, more: u64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

/// Latencies that are added up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distribution {
    /// Empty where nothing was recorded.
    buckets: Vec<u64>,
    sum_ns: u64,
    max_ns: u64,
}

impl Distribution {
    /// Adds what a histogram holds now.
    pub(crate) fn add(&mut self, histogram: &Histogram) {
        self.buckets.resize(BUCKETS, 0);
        for (to, from) in self.buckets.iter_mut().zip(&histogram.buckets) {
            *to += from.load(Ordering::Relaxed);
        }
        self.sum_ns = self.sum_ns.wrapping_add(histogram.sum_ns.load(Ordering::Relaxed));
        self.max_ns = self.max_ns.max(histogram.max_ns.load(Ordering::Relaxed));
    }

    /// Operations that were timed.
    pub(crate) fn samples(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Their time together.
    pub(crate) fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Operations that took less than `ns`, which is where a bucket begins.
    pub(crate) fn below(&self, ns: u64) -> u64 {
        debug_assert_eq!(*bounds_of(bucket_of(ns)).start(), ns, "inside of a bucket");
        self.buckets.iter().take(bucket_of(ns)).sum()
    }

    /// The time that `quantile` of the operations did not exceed: at most 1/32 above the true one, never
    /// below it. 0 where nothing was timed.
    pub(crate) fn quantile_ns(&self, quantile: f64) -> u64 {
        let samples = self.samples();
        let rank = ((samples as f64 * quantile).ceil() as u64).clamp(1, samples.max(1));
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                // While a session records, the maximum may lag behind the buckets.
                return (*bounds_of(bucket).end()).min(self.max_ns.max(*bounds_of(bucket).start()));
            }
        }
        0
    }

    /// What users see of it.
    pub(crate) fn stats(&self) -> LatencyStats {
        LatencyStats {
            samples: self.samples(),
            sum_ns: self.sum_ns,
            p50_ns: self.quantile_ns(0.5),
            p90_ns: self.quantile_ns(0.9),
            p99_ns: self.quantile_ns(0.99),
            p99_9_ns: self.quantile_ns(0.999),
            max_ns: self.max_ns,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let mut next = 0;
        for bucket in 0..BUCKETS {
            let bounds = bounds_of(bucket);
            assert_eq!(*bounds.start(), next, "bucket {bucket}");
            assert_eq!((bucket_of(*bounds.start()), bucket_of(*bounds.end())), (bucket, bucket));
            next = bounds.end().wrapping_add(1);
        }
        assert_eq!(next, 0, "the last one has no end");
        assert!(*bounds_of(BUCKETS - 1).start() > 3_600_000_000_000, "an hour is told apart");
    }

    /// Times of all magnitudes.
    fn times() -> impl Strategy<Value = u64> {
        (0_u32..64, any::<u64>()).prop_map(|(shift, number)| number >> shift)
    }

    proptest! {
        #[test]
        fn a_time_lies_in_its_bucket_and_the_bucket_is_narrow(ns in times()) {
            let bounds = bounds_of(bucket_of(ns));
            prop_assert!(bounds.contains(&ns));
            if bucket_of(ns) < BUCKETS - 1 {
                prop_assert!((bounds.end() - bounds.start()) * 32 <= ns);
            }
        }

        #[test]
        fn a_quantile_is_never_below_the_true_one_and_little_above(
            mut values in prop::collection::vec(0_u64..3_600_000_000_000, 1..300),
            quantile in 0.0..1.0_f64,
        ) {
            let histogram = Histogram::new();
            for ns in &values {
                histogram.record(*ns);
            }
            let mut distribution = Distribution::default();
            distribution.add(&histogram);
            values.sort_unstable();
            let rank = (values.len() as f64 * quantile).ceil().max(1.0) as usize;
            let (exact, found) = (values[rank - 1], distribution.quantile_ns(quantile));
            prop_assert!(found >= exact && found - exact <= exact / 32, "{exact} {found}");
            prop_assert_eq!(distribution.quantile_ns(1.0), values[values.len() - 1]);
            prop_assert_eq!(distribution.samples(), values.len() as u64);
            prop_assert_eq!(distribution.sum_ns(), values.iter().sum::<u64>());
            let below = values.iter().filter(|ns| **ns < 1 << 20).count() as u64;
            prop_assert_eq!(distribution.below(1 << 20), below);
        }
    }

    #[test]
    fn nothing_recorded_is_all_zeros() {
        let mut distribution = Distribution::default();
        assert_eq!(distribution.stats(), LatencyStats::default());
        distribution.add(&Histogram::new());
        assert_eq!(distribution.stats(), LatencyStats::default());
        assert_eq!(distribution.below(64), 0);
    }
}
