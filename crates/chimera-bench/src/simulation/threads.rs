//! [`Threads`]: which thread is next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::workload::random::Random;

/// Threads in the order of their time.
#[derive(Debug)]
pub(super) struct Threads {
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    last_ps: u64,
}

impl Threads {
    /// Threads that begin within `first_ps`.
    pub(super) fn new(count: usize, first_ps: u64, random: &mut Random) -> Self {
        let waiting = (0..count).map(|thread| Reverse((random.below(first_ps.max(1)), thread)));
        Self { waiting: waiting.collect(), last_ps: 0 }
    }

    /// The thread that is next, and its time.
    pub(super) fn next(&mut self) -> (usize, u64) {
        let Reverse((now_ps, thread)) = self.waiting.pop().expect("each thread goes on");
        (thread, now_ps)
    }

    /// A thread goes on then.
    pub(super) fn goes_on(&mut self, thread: usize, at_ps: u64) {
        self.last_ps = self.last_ps.max(at_ps);
        self.waiting.push(Reverse((at_ps, thread)));
    }

    /// When the last of all operations ended.
    pub(super) fn last_ps(&self) -> u64 {
        self.last_ps
    }
}
