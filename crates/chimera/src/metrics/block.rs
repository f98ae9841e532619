//! [`Block`]: the words that one session counts in; [`Totals`]: what several have counted together.

use std::fmt;
use std::sync::OnceLock;

use super::histogram::{Distribution, Histogram};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::types::operations::{Count, Counts, Latencies, OperationStats, Timed};

/// The words of one session, on cache lines of their own: two together, because processors load lines in
/// pairs.
#[repr(align(128))]
pub(super) struct Block {
    pub(super) number: u32,
    pub(super) counts: [AtomicU64; Count::COUNT],
    /// Made when the first operation of a kind is timed.
    pub(super) latencies: [OnceLock<Box<Histogram>>; Timed::ALL.len()],
}

impl Block {
    pub(super) fn new(number: u32) -> Self {
        Self {
            number,
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            latencies: std::array::from_fn(|_| OnceLock::new()),
        }
    }

    /// Adds what is counted by now.
    pub(super) fn add_to(&self, totals: &mut Totals) {
        for (to, from) in totals.counts.0.iter_mut().zip(&self.counts) {
            *to += from.load(Ordering::Relaxed);
        }
        for (to, from) in totals.latencies.iter_mut().zip(&self.latencies) {
            if let Some(histogram) = from.get() {
                to.add(histogram);
            }
        }
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("number", &self.number).finish_non_exhaustive()
    }
}

/// What several sessions have counted together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) counts: Counts,
    /// In order of [`Timed::ALL`].
    pub(crate) latencies: [Distribution; Timed::ALL.len()],
}

impl Totals {
    /// What users see of it.
    pub(crate) fn stats(&self) -> OperationStats {
        let latency = Latencies::new(|timed| self.latencies[timed as usize].stats());
        OperationStats::new(&self.counts.0, latency)
    }
}
