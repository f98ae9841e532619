//! [`Budget`]: how many compactions run at once.
//!
//! The writer that needs room compacts; there is no thread for it that might not be scheduled. A budget lets only so many do it at
//! once. Where it is spent a full MemTable goes to the bypass index alone, while that has room; then the writer waits.
//! The holder of a permit waits for no writer that may wait for one: so one of them always gets on.

use chimera_pmem::Environment;

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::until_some;

/// Compactions that may run.
#[derive(Debug)]
pub(super) struct Budget {
    max: u32,
    running: AtomicU32,
}

/// A compaction runs.
#[must_use]
pub(crate) struct Permit<'a>(&'a Budget);

impl Budget {
    /// So many at once; none: as many as there are writers.
    pub(super) fn new(max: Option<u32>) -> Self {
        Self { max: max.map_or(u32::MAX, |max| max.max(1)), running: AtomicU32::new(0) }
    }

    /// Whether one more would have to wait, at this moment.
    pub(super) fn is_spent(&self) -> bool {
        self.running.load(Ordering::Relaxed) >= self.max
    }

    /// A permit, as soon as there is one.
    pub(super) fn wait(&self, environment: &dyn Environment) -> Permit<'_> {
        until_some(environment, || self.try_take())
    }

    fn try_take(&self) -> Option<Permit<'_>> {
        let more = |running: u32| (running < self.max).then(|| running + 1);
        let taken = self.running.fetch_update(Ordering::Acquire, Ordering::Relaxed, more);
        taken.is_ok().then(|| Permit(self))
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use chimera_pmem::SteppedEnvironment;

    use super::*;

    #[test]
    fn so_many_run_at_once_and_no_more() {
        let environment = SteppedEnvironment::in_memory(1);
        let budget = Budget::new(Some(2));
        let first = budget.wait(&environment);
        assert!(!budget.is_spent());
        let second = budget.wait(&environment);
        assert!(budget.is_spent() && budget.try_take().is_none());
        drop(first);
        assert!(budget.try_take().is_some() && !budget.is_spent());
        drop(second);
        assert_eq!(budget.running.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn without_a_limit_nobody_waits_and_with_none_at_all_one_runs() {
        let environment = SteppedEnvironment::in_memory(1);
        let budget = Budget::new(None);
        let permits: Vec<_> = (0..100).map(|_| budget.wait(&environment)).collect();
        assert!(!budget.is_spent());
        drop(permits);
        let budget = Budget::new(Some(0));
        let _permit = budget.wait(&environment);
        assert!(budget.is_spent());
    }
}
