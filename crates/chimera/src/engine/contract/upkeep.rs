//! [`Upkeep`]: the work of a store beside its sessions, step by step: space is reclaimed, what opening left is done,
//! everything is verified, and the order of keys is kept from one open to the next.

use crate::ordered::Order;
use crate::pool::CLOSED_WORDS;
use crate::types::check::CheckReport;
use crate::types::error::Result;
use crate::types::stats::ReclaimStats;

/// What one step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is more to do; so many bytes were moved.
    More { moved_bytes: u64 },
    /// The pass is over.
    Done,
}

/// Where a pass goes on. What the numbers mean is the engine's; a pass begins at the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) part: u8,
    pub(crate) next: u64,
}

/// What comes after a step of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scrubbed {
    /// More: so much is done, of so much in all as it is now.
    More { next: Point, done: u64, whole: u64 },
    /// The pass is over.
    Done,
}

/// The work of a store beside its sessions. What an engine has no such work for is left alone.
pub(crate) trait Upkeep {
    /// Whether a task in the background reclaims space, where the options say so: it does not, unless said otherwise.
    fn reclaims(&self) -> bool {
        false
    }

    /// One step of a pass of space reclamation over what is free to at least `free_percent`: there is nothing
    /// to do, unless the engine has `reclaim`.
    fn reclaim_step(&self, free_percent: u32) -> Result<Step> {
        let _ = free_percent;
        Ok(Step::Done)
    }

    /// Ends a compaction: gives back what is kept for later writes: nothing, unless said otherwise.
    ///
    /// # Errors
    /// Those of a write. No record is lost.
    fn trim(&self) -> Result<()> {
        Ok(())
    }

    /// The store is closed: gives back the blocks that reclamation holds, and says what work in the background has found.
    fn end_reclaim(&self) {}

    /// The work that reclamation has done, and the work that is left.
    fn reclaim_stats(&self) -> ReclaimStats {
        ReclaimStats::default()
    }

    /// Whether opening left work that is done beside sessions, in [steps](Self::rebuild_step): none, unless said otherwise.
    fn is_rebuilding(&self) -> bool {
        false
    }

    /// One short step of that work.
    fn rebuild_step(&self) -> Step {
        Step::Done
    }

    /// Waits until whoever holds the lock of the keys with this hash has let go of it.
    fn pass(&self, hash: u64);

    /// One step of a pass that verifies everything: a block, or some records, from `from` on. Adds what it found to
    /// `report`. Other sessions may go on, and no damage is reported that is none. An engine
    /// that does not know better goes by a listing.
    fn scrub_step(&self, from: Point, report: &mut CheckReport) -> Scrubbed;

    /// Makes the order of keys, which nobody uses yet, of what [`save_order`](Self::save_order) wrote. `false` where it
    /// cannot: then keys are gathered. Called at each open, also without an order, to free what was written.
    ///
    /// # Errors
    /// When what was written cannot be freed.
    fn load_order(&self, order: Option<&Order>) -> Result<bool> {
        let _ = order;
        Ok(false)
    }

    /// Writes the order of keys for the next open, if it is worth while. What the superblock is to say of it.
    fn save_order(&self) -> [u64; CLOSED_WORDS] {
        [0; CLOSED_WORDS]
    }

    /// The store is closed, and its sessions have ended: completes on media what they have left open. Nothing, unless
    /// said otherwise.
    fn seal(&self) {}
}
