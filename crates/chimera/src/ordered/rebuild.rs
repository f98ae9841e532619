//! [`Rebuild`]: making the tree of a store that is open already, by as many threads as care to help.
//!
//! # Steps
//! 1. Positions of listings are divided into *parts* of equal size. Each part is claimed by one thread, which adds the
//!    part's keys to a run of its own and sorts runs that have become long.
//! 2. Whoever finds all parts gathered claims the rest: runs are merged, the tree is built, the
//!    [overlay](super::overlay) is closed.
//!
//! What a thread has claimed it does at once. So whoever needs the tree makes it, or waits for somebody who is at it.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use super::options::ProgressListener;
use super::overlay::Overlay;
use super::run::KeyRun;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use crate::types::error::{Error, Result};

/// Keys of a run, from which on it is sorted and another one is begun: a run is sorted in some 0.1 s.
const RUN_KEYS: usize = 1 << 20;
/// Most parts, as a power of two.
const PART_BITS_MAX: u32 = 20;

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RebuildStep {
    /// Something was done, and there may be more.
    Again,
    /// Others are at what is left.
    Busy,
    /// The tree is there, or is not to be made any more.
    Done,
}

/// What was gathered.
#[derive(Debug, Default)]
struct Runs {
    /// That more keys can be added to.
    begun: Vec<KeyRun>,
    sorted: Vec<KeyRun>,
}

/// How far the tree of a store is made.
#[derive(Debug)]
pub(super) struct Rebuild {
    pub(super) overlay: Overlay,
    /// log2 of the number of parts.
    part_bits: AtomicU64,
    /// Parts that were claimed, or more.
    claimed: AtomicU64,
    /// Parts that were gathered.
    gathered: AtomicU64,
    /// Keys that were gathered, and how many there were at first.
    keys: AtomicU64,
    expected: AtomicU64,
    runs: Mutex<Runs>,
    /// Bytes of memory of all runs; changed under their lock.
    run_bytes: AtomicU64,
    /// Somebody makes the tree.
    is_building: AtomicBool,
    is_stopped: AtomicBool,
    failure: OnceLock<Failure>,
    listener: ProgressListener,
}

/// Why there will be no tree of all keys.
#[derive(Debug)]
enum Failure {
    Damage {
        what: String,
        at: u64,
    },
    /// A thread that was at it has ended. Nobody else does what it had claimed.
    Panic,
}

impl Rebuild {
    pub(super) fn new(listener: ProgressListener) -> Self {
        Self {
            overlay: Overlay::new(),
            part_bits: AtomicU64::new(0),
            claimed: AtomicU64::new(0),
            gathered: AtomicU64::new(0),
            keys: AtomicU64::new(0),
            expected: AtomicU64::new(0),
            runs: Mutex::default(),
            run_bytes: AtomicU64::new(0),
            is_building: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            failure: OnceLock::new(),
            listener,
        }
    }

    /// Divides a store with so many keys into parts. Before anybody uses it.
    pub(super) fn begin(&self, keys: u64, part_keys: u64) {
        let parts = keys.div_ceil(part_keys.max(1)).clamp(1, 1 << PART_BITS_MAX);
        let bits = parts.next_power_of_two().trailing_zeros();
        self.part_bits.store(bits.into(), Ordering::Relaxed);
        self.expected.store(keys, Ordering::Relaxed);
    }

    /// Parts in all.
    pub(super) fn parts(&self) -> u64 {
        1 << self.part_bits.load(Ordering::Relaxed)
    }

    /// Keys that were gathered, and how many there were at first.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.keys.load(Ordering::Relaxed), self.expected.load(Ordering::Relaxed))
    }

    /// Why there is no tree of all keys.
    pub(super) fn failure(&self) -> Option<Error> {
        self.failure.get().map(|failure| match failure {
            Failure::Damage { what, at } => Error::corrupted(what.clone(), *at),
            Failure::Panic => Error::OrderFailed,
        })
    }

    /// Nothing more is to be done.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// The positions of a part that nobody has claimed.
    pub(super) fn claim(&self) -> Option<RangeInclusive<u64>> {
        // Read first, so that those who wait do not count up for ever.
        if self.claimed.load(Ordering::Relaxed) >= self.parts() {
            return None;
        }
        let part = self.claimed.fetch_add(1, Ordering::Relaxed);
        if part >= self.parts() {
            return None;
        }
        let bits = self.part_bits.load(Ordering::Relaxed) as u32;
        let first = part.checked_shl(u64::BITS - bits).unwrap_or(0);
        Some(first..=first | u64::MAX.checked_shr(bits).unwrap_or(0))
    }

    /// Adds the keys that `gather` finds at the positions of a part that was claimed.
    ///
    /// # Errors
    /// As `gather`. There will be no tree then.
    pub(super) fn gather(
        &self,
        positions: RangeInclusive<u64>,
        gather: impl FnOnce(RangeInclusive<u64>, &mut KeyRun) -> Result<()>,
    ) -> Result<()> {
        let mut run = lock(&self.runs).begun.pop().unwrap_or_default();
        let (before, bytes_before) = (run.len(), run.bytes());
        gather(positions, &mut run).inspect_err(|error| self.fail(error))?;
        self.keys.fetch_add((run.len() - before) as u64, Ordering::Relaxed);
        // Before the part is done: the listener hears of nothing any more once the tree is there.
        self.listener.notify(self.progress());
        let is_long = run.len() >= RUN_KEYS;
        if is_long {
            run.sort();
        }
        let mut runs = lock(&self.runs);
        if self.failure.get().is_none() {
            self.run_bytes.fetch_add(run.bytes() - bytes_before, Ordering::Relaxed);
            if is_long { runs.sorted.push(run) } else { runs.begun.push(run) }
        }
        drop(runs);
        // Release: who counts all parts has all runs.
        self.gathered.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn fail(&self, error: &Error) {
        log::error!("the order of keys cannot be made, so scans are refused: {error}");
        let (what, at) = match error {
            Error::Corrupted { what, at } => (what.clone(), *at),
            other => (other.to_string(), 0),
        };
        self.give_up(Failure::Damage { what, at });
    }

    /// A thread that was at a step has panicked: there will be no tree.
    pub(super) fn fail_by_panic(&self) {
        log::error!("a thread that made the order of keys has panicked, so scans are refused");
        self.give_up(Failure::Panic);
    }

    fn give_up(&self, failure: Failure) {
        // The first one is told.
        let _ = self.failure.set(failure);
        // Nobody will ask for them.
        let mut runs = lock(&self.runs);
        *runs = Runs::default();
        self.run_bytes.store(0, Ordering::Relaxed);
    }

    /// Bytes of memory for what was gathered and what changed meanwhile, until the tree is made of both.
    pub(super) fn bytes(&self) -> u64 {
        self.run_bytes.load(Ordering::Relaxed) + self.overlay.bytes()
    }

    /// The runs that were claimed have served.
    pub(super) fn drop_runs(&self, runs: Vec<KeyRun>) {
        drop(runs);
        self.run_bytes.store(0, Ordering::Relaxed);
    }

    /// All keys, in sorted runs, where all parts were gathered and nobody else was told so.
    pub(super) fn claim_runs(&self) -> Option<Vec<KeyRun>> {
        if self.gathered.load(Ordering::Acquire) < self.parts()
            || self.is_building.swap(true, Ordering::AcqRel)
        {
            return None;
        }
        let Runs { mut begun, mut sorted } = std::mem::take(&mut *lock(&self.runs));
        begun.iter_mut().take_while(|_| !self.is_stopped()).for_each(KeyRun::sort);
        sorted.append(&mut begun);
        Some(sorted)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all_positions_without_a_gap() {
        for (keys, parts) in [(0, 1), (1, 1), (7, 1), (8, 2), (50, 8), (u64::MAX, 1 << 20)] {
            let rebuild = Rebuild::new(ProgressListener::default());
            rebuild.begin(keys, 7);
            assert_eq!(rebuild.parts(), parts, "{keys} keys");
            let mut next = Some(0);
            while let Some(part) = rebuild.claim() {
                assert_eq!(Some(*part.start()), next);
                next = part.end().checked_add(1);
            }
            assert_eq!((next, rebuild.claim()), (None, None));
        }
    }

    #[test]
    fn the_rest_is_claimed_once_and_after_all_parts() {
        let rebuild = Rebuild::new(ProgressListener::default());
        rebuild.begin(4, 1);
        for part in 0..4_u8 {
            assert!(rebuild.claim_runs().is_none());
            let positions = rebuild.claim().expect("a part");
            let gathered = rebuild.gather(positions, |_, keys| {
                keys.push(&[9 - part]);
                Ok(())
            });
            gathered.expect("no damage");
        }
        let runs = rebuild.claim_runs().expect("all parts");
        let keys: Vec<_> = super::super::run::merged(&runs).collect();
        assert_eq!((keys, rebuild.progress()), (vec![&[6][..], &[7], &[8], &[9]], (4, 4)));
        assert!(rebuild.claim_runs().is_none());
    }
}
