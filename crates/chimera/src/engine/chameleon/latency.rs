//! [`GetProtect`]: whether the tail latency of gets is above a threshold (ChameleonDB, section 2.4).
//!
//! Each session times one get in [`SAMPLED_ONE_IN`], by the environment's clock, and hands what it has seen to the store now and
//! then. Of each *window* of at least [`WINDOW_SAMPLES`] gets the store asks one thing: whether the 99th percentile is above
//! the threshold. It is if more than one get in a hundred took longer, so nothing is kept but counts.
//!
//! The mode begins when a window is above the threshold, and ends when one is below [`CALM_PERCENT`] of it, so that it does not
//! come and go; or when there was no window for [`STALE_NS`], because nobody gets anything that could be protected. Above a
//! threshold of nothing is everything: the mode is always on then, and no get is timed.

use chimera_pmem::Environment;

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, lock};

/// One get in so many is timed.
pub(super) const SAMPLED_ONE_IN: u32 = 64;
/// A session hands over so many timed gets at a time.
const HANDED_OVER: u64 = 32;
/// Timed gets of a window, at least.
const WINDOW_SAMPLES: u64 = 1000;
/// The 99th percentile: one in so many gets may take longer.
const ONE_IN: u64 = 100;
/// The mode ends below this part of the threshold.
const CALM_PERCENT: u64 = 80;
/// It ends after so long without a window.
const STALE_NS: u64 = 10_000_000_000;
/// Switches that are remembered.
const SWITCHES_MAX: usize = 32;

/// Timed gets, and those of them that took too long.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    samples: u64,
    /// Longer than the threshold.
    slow: u64,
    /// Longer than the part of it below which the mode ends.
    uncalm: u64,
}

/// What a session has timed.
#[derive(Debug)]
pub(super) struct Sampler {
    /// Gets before the next one that is timed.
    left: u32,
    counts: Counts,
}

/// A change of the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct ProtectSwitch {
    /// Milliseconds since the store was opened.
    pub at_ms: u64,
    /// Whether the mode began.
    pub is_on: bool,
}

/// Whether gets are protected.
#[derive(Debug)]
pub(super) struct GetProtect {
    /// Without end where gets are never protected, 0 where they always are.
    threshold_ns: u64,
    is_on: AtomicU32,
    watch: Mutex<Watch>,
}

/// What the store has been told.
#[derive(Debug, Default)]
struct Watch {
    opened_ns: u64,
    window: Counts,
    /// When the last window ended.
    judged_ns: u64,
    count: u64,
    /// The last ones.
    switches: Vec<ProtectSwitch>,
}

impl Sampler {
    /// Whether the next get is to be timed.
    #[inline(always)]
    pub(super) fn is_turn(&mut self) -> bool {
        let is_turn = self.left == 0;
        self.left = if is_turn { SAMPLED_ONE_IN } else { self.left } - 1;
        is_turn
    }
}

impl GetProtect {
    pub(super) fn new(threshold_ns: Option<u64>, opened_ns: u64) -> Self {
        let switches = Vec::with_capacity(SWITCHES_MAX);
        let watch = Watch { opened_ns, judged_ns: opened_ns, switches, ..Watch::default() };
        Self {
            threshold_ns: threshold_ns.unwrap_or(u64::MAX),
            is_on: AtomicU32::new((threshold_ns == Some(0)).into()),
            watch: Mutex::new(watch),
        }
    }

    /// What a new session times with. Where gets are never protected, or always, it times hardly any.
    pub(super) fn sampler(&self) -> Sampler {
        let left = if matches!(self.threshold_ns, 0 | u64::MAX) { u32::MAX } else { 0 };
        Sampler { left, counts: Counts::default() }
    }

    /// A session's get took so long, and ended at `now_ns`.
    pub(super) fn note(&self, sampler: &mut Sampler, took_ns: u64, now_ns: u64) {
        if self.threshold_ns == 0 {
            return;
        }
        let calm_ns = self.threshold_ns / 100 * CALM_PERCENT;
        let counts = &mut sampler.counts;
        counts.samples += 1;
        counts.slow += u64::from(took_ns > self.threshold_ns);
        counts.uncalm += u64::from(took_ns > calm_ns);
        if counts.samples < HANDED_OVER {
            return;
        }
        let counts = std::mem::take(counts);
        let mut watch = lock(&self.watch);
        let window = &mut watch.window;
        window.samples += counts.samples;
        window.slow += counts.slow;
        window.uncalm += counts.uncalm;
        if window.samples < WINDOW_SAMPLES {
            return;
        }
        let window = std::mem::take(window);
        watch.judged_ns = now_ns;
        let is_above = |slow: u64| slow * ONE_IN > window.samples;
        match self.is_on() {
            false if is_above(window.slow) => self.switch(&mut watch, true, now_ns),
            true if !is_above(window.uncalm) => self.switch(&mut watch, false, now_ns),
            _ => {}
        }
    }

    /// Whether gets are protected now.
    ///
    /// # Cost
    /// A load; a look at the clock while they are.
    pub(super) fn protects(&self, environment: &dyn Environment) -> bool {
        if !self.is_on() || self.threshold_ns == 0 {
            return self.is_on();
        }
        let now_ns = environment.now_ns();
        let mut watch = lock(&self.watch);
        // After a clock that went back the time begins anew, so that the mode ends.
        watch.judged_ns = watch.judged_ns.min(now_ns);
        if self.is_on() && now_ns - watch.judged_ns > STALE_NS {
            self.switch(&mut watch, false, now_ns);
        }
        self.is_on()
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed) != 0
    }

    /// How often the mode began or ended, and when it did last.
    pub(super) fn switches(&self) -> (u64, Vec<ProtectSwitch>) {
        let watch = lock(&self.watch);
        (watch.count, watch.switches.clone())
    }

    fn switch(&self, watch: &mut Watch, is_on: bool, now_ns: u64) {
        self.is_on.store(is_on.into(), Ordering::Relaxed);
        watch.count += 1;
        if watch.switches.len() == SWITCHES_MAX {
            watch.switches.remove(0);
        }
        let at_ms = now_ns.saturating_sub(watch.opened_ns) / 1_000_000;
        watch.switches.push(ProtectSwitch { at_ms, is_on });
    }
}

#[cfg(test)]
mod tests {
    use chimera_pmem::SteppedEnvironment;

    use super::*;

    const THRESHOLD_NS: u64 = 2000;

    /// Times so many gets, of which one in so many takes that long, and the others nothing.
    fn feed(protect: &GetProtect, sampler: &mut Sampler, gets: u64, (one_in, ns): (u64, u64)) {
        for get in 0..gets {
            let took = if get % one_in == 0 { ns } else { 0 };
            protect.note(sampler, took, 7_000_000);
        }
    }

    #[test]
    fn one_get_in_so_many_is_timed_and_none_where_gets_are_not_protected() {
        let mut sampler = GetProtect::new(Some(THRESHOLD_NS), 0).sampler();
        let timed = (0..6400).filter(|_| sampler.is_turn()).count();
        assert_eq!(timed, 100);
        let mut sampler = GetProtect::new(None, 0).sampler();
        assert!((0..6400).all(|_| !sampler.is_turn()));
    }

    #[test]
    fn the_mode_follows_the_99th_percentile_of_whole_windows() {
        let protect = GetProtect::new(Some(THRESHOLD_NS), 1_000_000);
        let mut sampler = protect.sampler();
        feed(&protect, &mut sampler, 3072, (200, 9000));
        assert!(!protect.is_on(), "fewer than one in a hundred");
        feed(&protect, &mut sampler, 900, (1, 9000));
        assert!(!protect.is_on(), "no window yet");
        feed(&protect, &mut sampler, 3072, (50, 2001));
        assert!(protect.is_on());
        // Between the two thresholds it stays as it is.
        feed(&protect, &mut sampler, 6144, (1, 1900));
        assert!(protect.is_on());
        feed(&protect, &mut sampler, 4096, (200, 9000));
        assert!(!protect.is_on());
        feed(&protect, &mut sampler, 6144, (1, 1900));
        assert!(!protect.is_on());
        let (count, switches) = protect.switches();
        let expected = [true, false].map(|is_on| ProtectSwitch { at_ms: 6, is_on });
        assert_eq!((count, &switches[..]), (2, &expected[..]));
    }

    #[test]
    fn sessions_make_a_window_together() {
        let protect = GetProtect::new(Some(THRESHOLD_NS), 0);
        let mut samplers: Vec<_> = (0..32).map(|_| protect.sampler()).collect();
        for sampler in &mut samplers[..31] {
            feed(&protect, sampler, 32, (1, 9000));
        }
        assert!(!protect.is_on());
        feed(&protect, &mut samplers[31], 32, (1, 0));
        assert!(protect.is_on());
    }

    #[test]
    fn with_a_threshold_of_nothing_the_mode_is_always_on() {
        let environment = SteppedEnvironment::in_memory(1);
        let protect = GetProtect::new(Some(0), 0);
        let mut sampler = protect.sampler();
        assert!((0..6400).all(|_| !sampler.is_turn()));
        feed(&protect, &mut sampler, 6144, (1, 0));
        environment.advance(2 * STALE_NS);
        assert!(protect.protects(&environment) && protect.is_on());
        assert_eq!(protect.switches().0, 0);
    }

    #[test]
    fn without_gets_the_mode_ends_also_when_the_clock_went_back() {
        let environment = SteppedEnvironment::in_memory(1);
        let protect = GetProtect::new(Some(THRESHOLD_NS), 0);
        environment.advance(7_000_000);
        feed(&protect, &mut protect.sampler(), 1024, (1, 9000));
        environment.rewind(7_000_000);
        assert!(protect.protects(&environment));
        environment.advance(STALE_NS + 1);
        assert!(!protect.protects(&environment));
    }

    #[test]
    fn without_gets_the_mode_ends() {
        let environment = SteppedEnvironment::in_memory(1);
        let protect = GetProtect::new(Some(THRESHOLD_NS), 0);
        environment.advance(7_000_000);
        feed(&protect, &mut protect.sampler(), 1024, (1, 9000));
        assert!(protect.protects(&environment));
        environment.advance(STALE_NS);
        assert!(protect.protects(&environment), "a window ended at 7 ms");
        environment.advance(8_000_000);
        assert!(!protect.protects(&environment) && !protect.is_on());
    }
}
