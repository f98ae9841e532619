//! [`Pace`]: how fast work in the background goes.

use std::time::Duration;

use chimera_pmem::environment::TaskStep;

use crate::engine::contract::core::Background;
use crate::engine::contract::upkeep::Step;

/// From one pass of space reclamation to the next.
const PASS_EVERY: Duration = Duration::from_secs(1);
/// Shortest rest that pays for moved bytes, in nanoseconds: waking takes longer than moving a block.
const REST_NS_MIN: u64 = 1_000_000;

/// The pace of space reclamation: for the bytes it moves it rests.
#[derive(Debug)]
pub(crate) struct Pace {
    bytes_per_second: u64,
    owed_ns: u64,
}

impl Pace {
    pub(crate) fn new(background: Background) -> Self {
        Self { bytes_per_second: background.reclaim_bytes_per_second, owed_ns: 0 }
    }

    /// How to go on after a step.
    pub(crate) fn after(&mut self, step: Step) -> TaskStep {
        let Step::More { moved_bytes } = step else { return Self::between_passes() };
        let cost_ns = moved_bytes.saturating_mul(1_000_000_000) / self.bytes_per_second;
        self.owed_ns = self.owed_ns.saturating_add(cost_ns);
        if self.owed_ns < REST_NS_MIN {
            return TaskStep::Again;
        }
        TaskStep::WaitAtMost(Duration::from_nanos(std::mem::take(&mut self.owed_ns)))
    }

    /// The rest between two passes.
    pub(crate) fn between_passes() -> TaskStep {
        TaskStep::WaitAtMost(PASS_EVERY)
    }
}
