//! [`Reserve`]: the blocks of a pool that puts leave, so that a full store can still make room.
//!
//! Steps that make room take room first: a tombstone is a record, and what is moved is written before its old place is free.
//! So a put is refused while only the reserve is left.
//!
//! # Rule
//! An engine states once, when it opens a store, how long a run each kind of step takes: a delete, reclamation, a merge.
//! Each [`Purpose`] leaves room for one run of each kind after it, so the last one always finds what it needs:
//!
//! | blocks are taken for | what stays free |
//! | --- | --- |
//! | [`Put`](Purpose::Put) | a run for a delete, one for reclamation, one for a merge |
//! | [`Delete`](Purpose::Delete) | a run for reclamation, one for a merge |
//! | [`Reclaim`](Purpose::Reclaim) | a run for a merge |
//! | [`Merge`](Purpose::Merge) | nothing |
//!
//! - Free are fresh blocks that the capacity allows, and runs that were freed. No block is set apart: whatever is freed
//!   refills the reserve first.
//! - Each of these runs must find its blocks in a row. So a put may be refused although enough blocks are free in pieces.
//! - A run is taken wherever it leaves the reserve: where the shortest free run does not, of one of the longest; where the rest
//!   of a segment does not, of a later segment. So whatever the reserve has room in can be taken.
//! - A put must leave all of them. Any other purpose must not take away one that is there, also where a shorter one fits
//!   instead. What another step has in use, it need not leave.
//! - A run that will be replaced by one of its length, as a last table is, [lengthens](Pool::take_replaced_run) the
//!   reserve: a put takes it only if there is room to replace it.
//! - An engine of single blocks frees blocks that are not the last ones by marks of its own. It leaves as many of these to
//!   reclamation as the reserve [lacks](Pool::reserve_lacks) of fresh blocks.
//!
//! # Limits
//! Nothing of the reserve is on media. After a restart the rule is that of what is free then, so puts are refused until what
//! was used before is free again. Where the capacity was lowered, or the pool is smaller than its reserve, it takes no puts.
//! Nor is there a reserve then: a step that needs blocks may fail with `PoolFull`, until the capacity is raised.
//! Storage is not allocated for the reserve: on a file system that is full before the capacity is reached a step that
//! makes room may fail with `PoolFull`, with nothing changed.

use chimera_pmem::Pmem;

use super::Pool;
use super::runs::{FreeList, FreeRun};
use crate::sync::atomic::Ordering;

/// Kinds of steps that make room.
pub(super) const KINDS: usize = 3;

/// What blocks are taken for. Each purpose leaves what those after it need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// More data.
    #[default]
    Put = 0,
    /// A delete, which may be a record.
    Delete = 1,
    /// Moving what is live, so that its old place becomes free.
    Reclaim = 2,
    /// Putting parts of an index together, so that it is known what is live.
    Merge = 3,
}

/// Blocks in a row for one step of each kind that makes room; 0 where none are needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reserve {
    pub(crate) delete: u32,
    pub(crate) reclaim: u32,
    pub(crate) merge: u32,
}

impl Reserve {
    /// The runs that a purpose leaves. That of the last kind comes first.
    fn left_by(self, purpose: Purpose) -> impl Iterator<Item = u32> {
        let all: [u32; KINDS] = [self.merge, self.reclaim, self.delete];
        all.into_iter().take(KINDS - purpose as usize).filter(|blocks| *blocks > 0)
    }

    /// The blocks that a purpose leaves.
    pub(super) fn blocks_left_by(self, purpose: Purpose) -> u64 {
        self.left_by(purpose).map(u64::from).sum()
    }

    /// Of each run that a purpose leaves, whether it finds room in pieces of these lengths.
    fn found_in(self, purpose: Purpose, mut pieces: Vec<u64>) -> Vec<bool> {
        let mut find = |blocks: u64| {
            let fitting = pieces.iter_mut().filter(|piece| **piece >= blocks).min();
            fitting.map(|piece| *piece -= blocks).is_some()
        };
        self.left_by(purpose).map(|blocks| find(u64::from(blocks))).collect()
    }
}

/// What would be free.
#[derive(Clone, Copy)]
pub(super) struct Left<'a> {
    /// A free run that is not free any more.
    pub(super) without: Option<FreeRun>,
    /// What is left of it, or of segments that are not filled.
    pub(super) rests: &'a [FreeRun],
    /// Blocks from this one on are fresh.
    pub(super) used_blocks: u64,
}

impl<P: Pmem> Pool<P> {
    /// Sets the reserve: once, before there are sessions.
    pub(crate) fn set_reserve(&self, reserve: Reserve) {
        self.lock_hand_out().reserve = reserve;
    }

    /// Blocks of the reserve.
    pub(crate) fn reserve_blocks(&self) -> u64 {
        self.lock_hand_out().reserve.blocks_left_by(Purpose::Put)
    }

    /// Blocks of the reserve for reclamation that are not fresh: so many free blocks that an engine has marked itself are part
    /// of it.
    pub(crate) fn reserve_lacks(&self) -> u64 {
        let limits = self.lock_hand_out();
        let fresh = limits.blocks_max.saturating_sub(self.used.load(Ordering::Acquire));
        limits.reserve.blocks_left_by(Purpose::Put).saturating_sub(fresh)
    }

    /// Whether blocks may be taken for a purpose, so that this is `left` of what is free.
    pub(super) fn leaves_reserve(
        &self,
        free: &FreeList,
        (reserve, blocks_max): (Reserve, u64),
        purpose: Purpose,
        left: Left<'_>,
    ) -> bool {
        if reserve.blocks_left_by(purpose) == 0 {
            return true;
        }
        let found = |left| reserve.found_in(purpose, self.pieces(free, blocks_max, left));
        let after = found(left);
        if purpose == Purpose::Put {
            return after.into_iter().all(|is_found| is_found);
        }
        let used_blocks = self.used.load(Ordering::Acquire);
        let now = found(Left { without: None, rests: &[], used_blocks });
        // One by one: a short run that is found afterwards does not replace a long one.
        now.into_iter().zip(after).all(|(is_found, stays)| stays || !is_found)
    }

    /// The lengths of free pieces: of the longest free runs, and of what is fresh in as many segments as the runs of a reserve
    /// may need.
    fn pieces(&self, free: &FreeList, blocks_max: u64, left: Left<'_>) -> Vec<u64> {
        let is_left = |run: &FreeRun| Some(*run) != left.without;
        let free_runs = free.longest().filter(is_left).take(KINDS).map(|run| u64::from(run.1));
        let mut next = left.used_blocks;
        let fresh = (0..=KINDS).map(|_| {
            let in_segment = self.map.blocks_to_segment_end(next);
            let piece = in_segment.min(blocks_max.saturating_sub(next));
            next += in_segment;
            piece
        });
        let rests = left.rests.iter().map(|run| u64::from(run.1));
        free_runs.chain(rests).chain(fresh).collect()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
