//! How many threads apply changes: dynamic threads adaption (HiKV, section 3.2.2 of ATC'17).
//!
//! The paper divides a pool of `N` threads into those that serve and those that apply changes in the background, so that
//! neither side waits for the other one:
//!
//! ```text
//! (Ng * Lg + Ns * Ls + Lsw) / Nserving = Lbw / Nbackend        Nserving + Nbackend = N
//! ```
//! `Ng` and `Ns` are gets and scans for each write, `L` is how long a get, a scan, the serving side of a write and its
//! background side take. `split` solves both, for programs whose threads are their own to divide.
//!
//! A store in a library does not own the threads of its callers. What it can decide is the number of its background threads
//! that work. By the first equation `Nbackend = Lbw * (Nserving / (Ng * Lg + Ns * Ls + Lsw))`, and the factor in brackets is
//! nothing but the rate at which changes arrive. So the store [samples](Sampling) arrivals and the time that a change takes,
//! and needs no other latency. Threads that are not needed sleep.

#[cfg(feature = "baselines")]
mod split;

#[cfg(feature = "baselines")]
pub use split::{SampledOperations, ThreadSplit};

use crate::types::order::OrderWindow;

/// Background threads, from 1 to `budget`, that apply changes as fast as they arrived in a window.
fn backends_for(window: &OrderWindow, budget: usize) -> usize {
    let needed = (u128::from(window.arrivals) * u128::from(window.apply_ns))
        .div_ceil(u128::from(window.duration_ns).max(1));
    usize::try_from(needed).unwrap_or(usize::MAX).clamp(1, budget.max(1))
}

/// What the background threads of an order gather in a window.
#[derive(Debug)]
pub(super) struct Sampling {
    window_ns: u64,
    /// Threads there are.
    budget: usize,
    begun_ns: Option<u64>,
    /// Changes that had arrived when the window began.
    arrived: u64,
    /// Changes that background threads have applied in it, and how long they took.
    applied: u64,
    busy_ns: u64,
    pub(super) decisions: u64,
    pub(super) last: OrderWindow,
}

impl Sampling {
    /// Of windows that last at least so long.
    pub(super) fn new(window_ns: u64, budget: usize) -> Self {
        Self {
            window_ns,
            budget,
            begun_ns: None,
            arrived: 0,
            applied: 0,
            busy_ns: 0,
            decisions: 0,
            last: OrderWindow::default(),
        }
    }

    /// Notes that a thread has applied so many changes from `begun_ns` to `now_ns`. `arrived` are all changes so far. At the
    /// end of a window the number of threads that work from now on.
    pub(super) fn note(
        &mut self,
        applied: u64,
        arrived: u64,
        begun_ns: u64,
        now_ns: u64,
    ) -> Option<usize> {
        self.applied += applied;
        self.busy_ns += now_ns.saturating_sub(begun_ns);
        // After a clock that went back the window begins anew, so that it ends.
        let begun = self.begun_ns.unwrap_or(begun_ns).min(now_ns);
        self.begun_ns = Some(begun);
        let duration_ns = now_ns - begun;
        // A window in which nobody has applied anything says nothing of the time that it takes.
        if duration_ns < self.window_ns || self.applied == 0 {
            return None;
        }
        self.last = OrderWindow {
            duration_ns,
            arrivals: arrived.saturating_sub(self.arrived),
            apply_ns: self.busy_ns / self.applied,
        };
        self.decisions += 1;
        (self.begun_ns, self.arrived, self.applied, self.busy_ns) = (Some(now_ns), arrived, 0, 0);
        Some(backends_for(&self.last, self.budget))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Lg : Lsw : Lbw = 1 : 4.4 : 5.4, and so many gets for each write.
    fn published(gets: u64) -> SampledOperations {
        let (get_ns, write_ns, apply_ns) = (1000, 4400, 5400);
        SampledOperations { gets, writes: 1, get_ns, write_ns, apply_ns, ..Default::default() }
    }

    #[test]
    fn one_set_of_latencies_gives_all_published_choices() {
        // YCSB A, B and F on 16 threads: section 4.5.
        for (gets, serving, backend) in [(1, 8, 8), (19, 13, 3), (3, 9, 7)] {
            let split = ThreadSplit::of(&published(gets), 16);
            assert_eq!(split, ThreadSplit { serving, backend }, "{gets} gets for each write");
            // Counts are relative.
            let many = SampledOperations { gets: gets * 1000, writes: 1000, ..published(0) };
            assert_eq!(ThreadSplit::of(&many, 16), split);
        }
    }

    #[test]
    fn a_split_uses_all_threads_and_leaves_none_without_its_kind() {
        let reads = SampledOperations { gets: 100, get_ns: 500, ..Default::default() };
        let scans = SampledOperations { scans: 5, scan_ns: 14_000, ..published(0) };
        let applies = SampledOperations { writes: u64::MAX, apply_ns: u64::MAX, ..published(0) };
        let nothing = SampledOperations::default();
        for sampled in [reads, scans, applies, nothing, published(7)] {
            for threads in 2..70 {
                let split = ThreadSplit::of(&sampled, threads);
                assert_eq!(split.serving + split.backend, threads);
                assert!(split.serving > 0 && split.backend > 0, "{split:?}");
            }
            assert_eq!(ThreadSplit::of(&sampled, 1), ThreadSplit { serving: 1, backend: 0 });
            assert_eq!(ThreadSplit::of(&sampled, 0), ThreadSplit { serving: 0, backend: 0 });
        }
        assert_eq!(ThreadSplit::of(&reads, 16).backend, 1, "nothing to apply");
        assert_eq!(ThreadSplit::of(&applies, 16).serving, 1, "a write takes no time");
        assert_eq!(ThreadSplit::of(&scans, 16).backend, 1, "scans take long");
    }

    #[test]
    fn a_window_asks_for_the_threads_that_keep_up() {
        let window = |arrivals| OrderWindow { duration_ns: 1_000_000, arrivals, apply_ns: 500 };
        for (arrivals, threads) in
            [(0, 1), (1, 1), (2000, 1), (2001, 2), (4000, 2), (7000, 4), (u64::MAX, 4)]
        {
            assert_eq!(backends_for(&window(arrivals), 4), threads, "{arrivals} changes");
        }
        let empty = OrderWindow { duration_ns: 0, ..window(u64::MAX) };
        assert_eq!(backends_for(&empty, 64), 64);
        assert_eq!(backends_for(&window(5), 0), 1);
    }

    #[test]
    fn the_store_and_the_paper_agree() {
        // A pool of threads without rest, divided as the paper does: the rate at which its writes arrive asks for as many.
        for gets in [0, 1, 3, 19] {
            let sampled = published(gets);
            let split = ThreadSplit::of(&sampled, 1600);
            let operation_ns = gets * sampled.get_ns + sampled.write_ns;
            let arrivals = 1_000_000_000 * split.serving as u64 / operation_ns;
            let window = OrderWindow { duration_ns: 1_000_000_000, arrivals, apply_ns: 5400 };
            let needed = backends_for(&window, 1600);
            assert!(needed.abs_diff(split.backend) <= 2, "{needed} and {split:?}");
        }
    }

    #[test]
    fn a_decision_comes_at_the_end_of_a_window_and_of_what_happened_in_it() {
        let mut sampling = Sampling::new(1000, 8);
        // 100 ns for each change.
        assert_eq!(sampling.note(5, 10, 0, 500), None);
        assert_eq!(sampling.note(4, 30, 500, 900), None);
        assert_eq!(sampling.note(1, 32, 900, 1000), Some(4), "32 changes take 3200 of 1000 ns");
        assert_eq!(
            (sampling.decisions, sampling.last.arrivals, sampling.last.apply_ns),
            (1, 32, 100)
        );
        // The next window begins where this one ended; none ends in which nothing was applied.
        assert_eq!(sampling.note(0, 32, 2000, 2500), None);
        assert_eq!(sampling.note(1, 33, 2500, 2600), Some(1));
        assert_eq!(sampling.last, OrderWindow { duration_ns: 1600, arrivals: 1, apply_ns: 600 });
        assert_eq!(sampling.note(2, u64::MAX, 2600, 3600), Some(8), "no more than there are");
        assert_eq!(sampling.decisions, 3);
    }

    #[test]
    fn a_window_ends_also_when_the_clock_went_back() {
        let mut sampling = Sampling::new(1000, 8);
        assert_eq!(sampling.note(1, 10, 1_000_000, 1_000_500), None);
        assert_eq!(sampling.note(1, 20, 900, 0), None);
        assert_eq!(sampling.note(1, 30, 500, 999), None);
        assert!(sampling.note(1, 40, 999, 1000).is_some());
    }
}
