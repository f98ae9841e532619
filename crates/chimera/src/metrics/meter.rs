//! [`Meter`]: what one session counts, and which of its operations are timed.
//!
//! # Sampling
//! One operation in `every` is timed, on average: after each the next one is drawn between 1 and
//! `2 * every - 1` operations ahead, so that no rhythm of the program falls in with it. The drawing
//! follows from the session's number alone and takes nothing from the environment, so a run in a stepped
//! environment is the same with and without it.

use std::sync::Arc;

use chimera_pmem::environment::Origin;

use super::block::{Block, Totals};
use super::histogram::{Histogram, add};
use super::registry::Registry;
use crate::types::error::Error;
use crate::types::operations::{Count, Timed};

/// When an operation began, if it is timed.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct Started(Option<u64>);

/// Counts the operations of one session. What it has counted stays in the store's totals when it is
/// dropped.
#[derive(Debug)]
pub(crate) struct Meter {
    block: Arc<Block>,
    registry: Arc<Registry>,
    /// Operations until one is timed, that one included: at least 1.
    left: u32,
    /// State of the drawing.
    random: u64,
}

impl Meter {
    /// Of session `number`.
    pub(crate) fn new(registry: Arc<Registry>, number: u32) -> Self {
        let block = Arc::new(Block::new(number));
        let random = u64::from(number).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut meter = Self { block, registry, left: 1, random };
        meter.registry.enter(meter.block.clone());
        meter.left = meter.draw();
        meter
    }

    /// The process that the store is open in.
    pub(crate) fn origin(&self) -> &Origin {
        self.registry.origin()
    }

    /// What it has counted.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.block.add_to(&mut totals);
        totals
    }

    /// An operation begins.
    #[inline(always)]
    pub(crate) fn begin(&mut self) -> Started {
        self.left -= 1;
        if self.left > 0 { Started(None) } else { self.begin_timed() }
    }

    #[cold]
    fn begin_timed(&mut self) -> Started {
        self.left = self.draw();
        let is_on = self.registry.every > 0;
        Started(is_on.then(|| self.registry.environment.now_ns()))
    }

    /// The operation that began as `started` ends. One that failed is not ended.
    #[inline(always)]
    pub(crate) fn end(&self, started: Started, timed: Timed) {
        if let Some(started_ns) = started.0 {
            self.end_timed(started_ns, timed);
        }
    }

    #[cold]
    fn end_timed(&self, started_ns: u64, timed: Timed) {
        let ns = self.registry.environment.now_ns().saturating_sub(started_ns);
        let made = || Box::new(Histogram::new());
        self.block.latencies[timed as usize].get_or_init(made).record(ns);
    }

    /// Counts one more.
    #[inline(always)]
    pub(crate) fn count(&self, count: Count) {
        self.count_many(count, 1);
    }

    /// Counts several more.
    #[inline(always)]
    pub(crate) fn count_many(&self, count: Count, more: u64) {
        add(&self.block.counts[count as usize], more);
    }

    /// Counts an operation that failed.
    #[cold]
    pub(crate) fn failed(&self, error: &Error) {
        self.count(match error {
            Error::KeySize { .. }
            | Error::ValueSize { .. }
            | Error::KeyLength { .. }
            | Error::ValueLength { .. }
            | Error::BatchSize { .. }
            | Error::FieldOutOfRange { .. } => Count::ErrorsArgument,
            Error::PoolFull { .. } => Count::ErrorsPoolFull,
            Error::Corrupted { .. } => Count::ErrorsCorrupted,
            Error::ReadOnly => Count::ErrorsReadOnly,
            Error::Poisoned { .. } => Count::ErrorsPoisoned,
            _ => Count::ErrorsOther,
        });
    }

    /// Operations until the next one that is timed: `every` on average.
    fn draw(&mut self) -> u32 {
        let every = match self.registry.every {
            // Nothing is timed; the count still ends somewhere.
            0 => return u32::MAX,
            1 => return 1,
            every => u64::from(every),
        };
        // Xorshift; never 0.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let drawn = 1 + (self.random >> 16) % (2 * every - 1);
        u32::try_from(drawn).unwrap_or(u32::MAX)
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.registry.leave(&self.block);
    }
}
