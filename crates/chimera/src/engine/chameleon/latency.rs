//! [`GetProtect`]: whether the tail latency of gets is above a threshold (ChameleonDB, section 2.4).
//!
//! Each session times some of its gets, by the environment's clock, and hands what it has seen to the store now and then: all
//! gets where there are fewer than a hundred a second, and one in [`SAMPLED_ONE_IN`] where there are many. Of each *window* of
//! timed gets the store asks one thing: whether the 99th percentile is above the threshold. It is if more than one get in a
//! hundred took longer, so nothing is kept but counts.
//!
//! A window ends with [`WINDOW_SAMPLES`] gets; or after [`WINDOW_NS`] with [`WINDOW_SAMPLES_MIN`], as few as a 99th percentile
//! can be told of. So any rate of gets will do, and a window takes as long as a hundred gets where there are few.
//!
//! The mode begins when a window is above the threshold, which may be known before the window ends. It ends when a window is
//! below [`CALM_PERCENT`] of the threshold, so that it does not come and go; or when nobody gets anything that could be
//! protected: when the pause since the last timed get is [`STALE_PAUSES`] times the pause before that, and [`STALE_NS`] at
//! least. Above a threshold of nothing is everything: the mode is always on then, and no get is timed.

use chimera_pmem::Environment;

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, lock};

/// One get in so many is timed, where there are many.
pub(super) const SAMPLED_ONE_IN: u32 = 64;
/// A session times a get so often, where it has so many.
const SAMPLED_EVERY_NS: u64 = 10_000_000;
/// A session hands over so many timed gets at a time.
const HANDED_OVER: u64 = 32;
/// It hands over fewer after so long.
const HANDED_OVER_NS: u64 = 100_000_000;
/// Timed gets of a window, at most.
const WINDOW_SAMPLES: u64 = 1000;
/// It ends after so long.
const WINDOW_NS: u64 = 1_000_000_000;
/// Not with fewer timed gets.
const WINDOW_SAMPLES_MIN: u64 = 100;
/// The 99th percentile: one in so many gets may take longer.
const ONE_IN: u64 = 100;
/// The mode ends below this part of the threshold.
const CALM_PERCENT: u64 = 80;
/// It ends after a pause so long without a timed get.
const STALE_NS: u64 = 10_000_000_000;
/// And so many times as long as the last pause between two.
const STALE_PAUSES: u64 = 10;
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
    /// One get in so many is timed now.
    one_in: u32,
    counts: Counts,
    /// When the last timed get ended, if there was one.
    last_ns: Option<u64>,
    handed_over_ns: u64,
}

/// A change of the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
    /// When the first of its gets were handed over.
    window_ns: u64,
    /// When gets were handed over last.
    told_ns: u64,
    /// From the time before until then.
    pause_ns: u64,
    count: u64,
    /// The last ones.
    switches: Vec<ProtectSwitch>,
}

impl Sampler {
    /// Whether the next get is to be timed. The session that times it [notes](GetProtect::note) it, which says when the next one is.
    #[inline(always)]
    pub(super) fn is_turn(&mut self) -> bool {
        let is_turn = self.left == 0;
        self.left = self.left.wrapping_sub(1);
        is_turn
    }

    /// A timed get has ended: the next one is so many gets later as there are in [`SAMPLED_EVERY_NS`].
    fn go_on(&mut self, now_ns: u64) {
        if let Some(last_ns) = self.last_ns {
            let pause_ns = now_ns.saturating_sub(last_ns);
            let gets = u64::from(self.one_in) * SAMPLED_EVERY_NS;
            let one_in = gets.checked_div(pause_ns).unwrap_or(u64::MAX);
            self.one_in = one_in.clamp(1, SAMPLED_ONE_IN.into()) as u32;
        }
        self.last_ns = Some(now_ns);
        self.left = self.one_in - 1;
    }

    /// What is to be handed over at `now_ns`, if anything is.
    fn hand_over(&mut self, now_ns: u64) -> Option<Counts> {
        let is_late = now_ns.saturating_sub(self.handed_over_ns) >= HANDED_OVER_NS;
        if self.counts.samples < HANDED_OVER && !is_late {
            return None;
        }
        self.handed_over_ns = now_ns;
        Some(std::mem::take(&mut self.counts))
    }
}

impl GetProtect {
    pub(super) fn new(threshold_ns: Option<u64>, opened_ns: u64) -> Self {
        let switches = Vec::with_capacity(SWITCHES_MAX);
        let watch = Watch { opened_ns, told_ns: opened_ns, switches, ..Watch::default() };
        Self {
            threshold_ns: threshold_ns.unwrap_or(u64::MAX),
            is_on: AtomicU32::new((threshold_ns == Some(0)).into()),
            watch: Mutex::new(watch),
        }
    }

    /// Whether the mode comes and goes, so that gets are timed.
    fn is_watching(&self) -> bool {
        !matches!(self.threshold_ns, 0 | u64::MAX)
    }

    /// What a new session times with. Where gets are never protected, or always, it times hardly any.
    pub(super) fn sampler(&self) -> Sampler {
        let left = if self.is_watching() { 0 } else { u32::MAX };
        let counts = Counts::default();
        Sampler { left, one_in: 1, counts, last_ns: None, handed_over_ns: 0 }
    }

    /// A session's get took so long, and ended at `now_ns`.
    pub(super) fn note(&self, sampler: &mut Sampler, took_ns: u64, now_ns: u64) {
        if !self.is_watching() {
            sampler.left = u32::MAX;
            return;
        }
        let calm_ns = self.threshold_ns / 100 * CALM_PERCENT;
        let counts = &mut sampler.counts;
        counts.samples += 1;
        counts.slow += u64::from(took_ns > self.threshold_ns);
        counts.uncalm += u64::from(took_ns > calm_ns);
        sampler.go_on(now_ns);
        if let Some(counts) = sampler.hand_over(now_ns) {
            self.judge(&mut lock(&self.watch), counts, now_ns);
        }
    }

    /// Takes what a session has handed over, and begins or ends the mode.
    fn judge(&self, watch: &mut Watch, counts: Counts, now_ns: u64) {
        if watch.is_stale(now_ns) {
            // What was seen before the pause says nothing of now.
            watch.window = Counts::default();
        }
        watch.pause_ns = now_ns.saturating_sub(watch.told_ns);
        watch.told_ns = now_ns;
        if watch.window.samples == 0 {
            watch.window_ns = now_ns;
        }
        let Counts { samples, slow, uncalm } = &mut watch.window;
        *samples += counts.samples;
        *slow += counts.slow;
        *uncalm += counts.uncalm;
        let window = watch.window;
        let lasted_ns = now_ns.saturating_sub(watch.window_ns);
        let is_late = window.samples >= WINDOW_SAMPLES_MIN && lasted_ns >= WINDOW_NS;
        let is_whole = window.samples >= WINDOW_SAMPLES || is_late;
        // However many gets are still to come, these alone are too many of a whole window.
        let is_above_already = window.slow * ONE_IN > WINDOW_SAMPLES;
        let is_above = |slow: u64| slow * ONE_IN > window.samples;
        match self.is_on() {
            false if is_above_already || is_whole && is_above(window.slow) => {
                self.switch(watch, true, now_ns);
            }
            true if is_whole && !is_above(window.uncalm) => self.switch(watch, false, now_ns),
            _ if is_whole => {}
            _ => return,
        }
        watch.window = Counts::default();
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
        watch.told_ns = watch.told_ns.min(now_ns);
        if self.is_on() && watch.is_stale(now_ns) {
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

impl Watch {
    /// Whether nobody seems to get anything any more.
    fn is_stale(&self, now_ns: u64) -> bool {
        let stale_ns = STALE_NS.max(self.pause_ns.saturating_mul(STALE_PAUSES));
        now_ns.saturating_sub(self.told_ns) > stale_ns
    }
}

#[cfg(test)]
mod tests;
