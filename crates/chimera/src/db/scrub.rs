//! The scrub: a background task verifies the whole store again and again, in small steps with rests in between.
//!
//! # Pace
//! The part of a pass that is done never lags behind the part of its time that has passed. A pass aims at three
//! quarters of the time it has, and rests before its first step: a store that is open for a moment is not
//! scrubbed at all, and a pass that is held up now and then ends in time. When it lags behind all the same, the
//! machine has too little time for it: then it rests for as long as it works, so that it takes half of a processor
//! at most.
//!
//! What is found is counted and logged, and nothing else: damage of one record is no reason to refuse writes of
//! others, and whoever reads the record is told.

use std::sync::Arc;
use std::time::Duration;

use chimera_pmem::Pmem;
use chimera_pmem::environment::TaskStep;

use super::Inner;
use crate::engine::contract::upkeep::{Point, Scrubbed};
use crate::sync::{Mutex, lock};
use crate::types::check::CheckReport;
use crate::types::progress::Progress;
use crate::types::scrub::ScrubStats;

/// Shortest rest that is taken, in nanoseconds: until then steps follow each other.
const REST_NS_MIN: u64 = 1_000_000;

/// What the scrub has done.
#[derive(Debug, Default)]
pub(super) struct Scrub(Mutex<ScrubStats>);

/// A pass that is under way.
#[derive(Debug)]
struct Pass {
    begun_ns: u64,
    next: Point,
    report: CheckReport,
}

impl Pass {
    fn new(begun_ns: u64) -> Self {
        Self { begun_ns, next: Point::default(), report: CheckReport::default() }
    }
}

/// When steps are due.
#[derive(Debug)]
struct Pace {
    every_ns: u64,
    /// Time worked while the pass lagged behind, and not yet rested.
    owed_ns: u64,
}

impl Pace {
    /// From the begin of a pass to its next step, when so much is done of so much.
    fn due_ns(&self, done: u64, whole: u64) -> u64 {
        let work_ns = u128::from(self.every_ns - self.every_ns / 4);
        let share_ns = work_ns * u128::from(done.min(whole)) / u128::from(whole.max(1));
        self.every_ns / 64 + share_ns as u64
    }

    /// How to go on after a step that took `worked_ns`, when the next one is due at `due_ns`.
    fn after(&mut self, now_ns: u64, worked_ns: u64, due_ns: u64) -> TaskStep {
        let is_late = due_ns < now_ns;
        self.owed_ns = if is_late { self.owed_ns.saturating_add(worked_ns) } else { 0 };
        let rest_ns = if is_late { self.owed_ns } else { due_ns - now_ns };
        if rest_ns < REST_NS_MIN {
            return TaskStep::Again;
        }
        self.owed_ns = 0;
        TaskStep::WaitAtMost(Duration::from_nanos(rest_ns))
    }
}

/// Starts the task that verifies the store every so often.
///
/// # Errors
/// When no thread can be had.
pub(super) fn start<P: Pmem>(inner: &Arc<Inner<P>>, every: Duration) -> std::io::Result<()> {
    let environment = inner.engine.core().environment().clone();
    let every_ns = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
    let mut pace = Pace { every_ns, owed_ns: 0 };
    let mut pass = Pass::new(environment.now_ns());
    let mut due_ns = pass.begun_ns.saturating_add(pace.due_ns(0, 1));
    lock(&inner.scrub.0).pass_done_ratio = Some(0.0);
    let scrubbing = Arc::downgrade(inner);
    let clock = environment.clone();
    let mut seen_ns = pass.begun_ns;
    let step = move || {
        let Some(inner) = scrubbing.upgrade() else { return TaskStep::Done };
        let begun_ns = clock.now_ns();
        // By as much as the clock went back, so that the pass goes on as it would have.
        let back_ns = seen_ns.saturating_sub(begun_ns);
        pass.begun_ns = pass.begun_ns.saturating_sub(back_ns);
        due_ns = due_ns.saturating_sub(back_ns);
        seen_ns = begun_ns;
        // Also after a task was woken: nothing is done before it is due.
        if let Some(rest_ns) = due_ns.checked_sub(begun_ns).filter(|rest_ns| *rest_ns > 0) {
            return TaskStep::WaitAtMost(Duration::from_nanos(rest_ns));
        }
        due_ns = inner.scrub_step(&mut pass, &pace);
        let now_ns = clock.now_ns();
        pace.after(now_ns, now_ns.saturating_sub(begun_ns), due_ns)
    };
    let task = environment.spawn("chimera-scrub", Box::new(step))?;
    // Only ever started once.
    inner.scrubbing.get_or_init(|| task);
    Ok(())
}

impl<P: Pmem> Inner<P> {
    /// One step of a pass. When the next one is due.
    fn scrub_step(&self, pass: &mut Pass, pace: &Pace) -> u64 {
        let CheckReport { records, bytes, damages, .. } = pass.report;
        let scrubbed = self.engine.scrub_step(pass.next, &mut pass.report);
        let report = &pass.report;
        if let Some(first) = report.first_damage.as_ref().filter(|_| report.damages > damages) {
            let (found, at, what) = (report.damages, first.at, &first.what);
            log::error!("the scrub has found damage {found} times, first at byte {at}: {what}");
        }
        let mut stats = lock(&self.scrub.0);
        stats.records += report.records - records;
        stats.bytes += report.bytes - bytes;
        stats.damages += report.damages - damages;
        let (done, whole) = match scrubbed {
            Scrubbed::More { next, done, whole } => {
                pass.next = next;
                (done, whole)
            }
            Scrubbed::Done => {
                stats.end_pass(report, self.engine.core().environment().unix_seconds());
                let now_ns = self.engine.core().environment().now_ns();
                *pass = Pass::new(now_ns.max(pass.begun_ns.saturating_add(pace.every_ns)));
                (0, 1)
            }
        };
        stats.pass_done_ratio = Some(done.min(whole) as f64 / whole.max(1) as f64);
        pass.begun_ns.saturating_add(pace.due_ns(done, whole))
    }

    /// See [`Db::check`](super::Db::check).
    pub(super) fn check(&self, progress: Option<&Progress>) -> CheckReport {
        let report = self.engine.check(progress);
        let mut stats = lock(&self.scrub.0);
        stats.records += report.records;
        stats.bytes += report.bytes;
        stats.damages += report.damages;
        stats.end_pass(&report, self.engine.core().environment().unix_seconds());
        report
    }

    /// What was verified since the store was opened.
    pub(super) fn scrub_stats(&self) -> ScrubStats {
        lock(&self.scrub.0).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY_NS: u64 = 64_000_000_000;

    #[test]
    fn a_pass_rests_first_and_ends_in_time() {
        let pace = Pace { every_ns: EVERY_NS, owed_ns: 0 };
        assert_eq!(pace.due_ns(0, 100), EVERY_NS / 64);
        let due: Vec<_> = (0..=100).map(|done| pace.due_ns(done, 100)).collect();
        assert!(due.is_sorted());
        assert!(due[100] < EVERY_NS * 4 / 5, "{due:?}");
        assert_eq!(pace.due_ns(0, 0), EVERY_NS / 64, "an empty store");
    }

    #[test]
    fn steps_follow_each_other_until_a_rest_pays() {
        let mut pace = Pace { every_ns: EVERY_NS, owed_ns: 0 };
        assert_eq!(pace.after(100, 50, 100 + REST_NS_MIN - 1), TaskStep::Again);
        let rest = Duration::from_nanos(REST_NS_MIN);
        assert_eq!(pace.after(100, 50, 100 + REST_NS_MIN), TaskStep::WaitAtMost(rest));
    }

    #[test]
    fn a_pass_that_lags_behind_takes_half_of_a_processor() {
        let mut pace = Pace { every_ns: EVERY_NS, owed_ns: 0 };
        let third_ns = REST_NS_MIN.div_ceil(3);
        let steps = [(); 3].map(|()| pace.after(1000, third_ns, 999));
        let rest = TaskStep::WaitAtMost(Duration::from_nanos(3 * third_ns));
        assert_eq!(steps, [TaskStep::Again, TaskStep::Again, rest]);
        assert_eq!(pace.after(1000, third_ns, 999), TaskStep::Again, "it has rested");
        pace.after(1000, third_ns, 1000);
        assert_eq!(pace.after(1000, third_ns, 999), TaskStep::Again, "it was in time again");
        assert_eq!(pace.owed_ns, third_ns);
    }
}
