//! Recovery: the segments in force are found from the headers of all runs, and the directory is built.

use std::ops::Range;

use chimera_pmem::Pmem;

use super::segment::Segment;
use super::{PartitionedHash, no_memory, sites};
use crate::index::persistent::buckets::Prefix;
use crate::pool::runs::Run;
use crate::sync::atomic::Ordering;
use crate::types::error::{Error, Result};

/// What came of looking at the headers of all segments.
#[derive(Default)]
pub(crate) struct Arranged {
    /// Segments that a crash left beside the one that they were split off: to be freed.
    pub(crate) orphans: Vec<Run>,
    /// Segments that are damaged, or missing (salvage only).
    pub(crate) damages: u64,
}

/// A segment that was found.
struct Candidate {
    run: Run,
    at: u64,
    prefix: Prefix,
}

impl<P: Pmem> PartitionedHash<P> {
    /// Takes over a run that the pool found, while the pool walks its runs.
    ///
    /// # Durability
    /// Where a process was killed, what the run holds is durable with the pool's next fence, which ends its walk.
    ///
    /// # Cost
    /// After a kill all of its lines.
    pub(crate) fn adopt(&mut self, run: Run) {
        if self.pool.may_hold_undurable() {
            self.pool.pmem.flush(self.pool.run_bytes(&run), sites::FOUND);
        }
        self.found.push(run);
    }

    /// Finds out which of the runs that were found are in force, and leads the directory to them. Once, before anything
    /// is looked up.
    ///
    /// # Errors
    /// `Corrupted` for damage; with salvage it is counted, and noted as a loss.
    ///
    /// # Cost
    /// A line of each segment.
    pub(crate) fn arrange(&mut self) -> Result<Arranged> {
        let (mut arranged, mut candidates) = (Arranged::default(), Vec::new());
        for run in std::mem::take(&mut self.found) {
            match self.candidate(run) {
                Ok(candidate) => candidates.push(candidate),
                Err(error) => self.pass_over(error, &mut arranged)?,
            }
        }
        candidates.sort_by_key(|candidate| (candidate.prefix.range().0, candidate.prefix.depth));
        self.arrange_sorted(candidates, &mut arranged)?;
        Ok(arranged)
    }

    fn pass_over(&self, error: Error, arranged: &mut Arranged) -> Result<()> {
        if !self.salvages {
            return Err(error);
        }
        self.pool.note_lost(&error, 0);
        arranged.damages += 1;
        Ok(())
    }

    fn candidate(&self, run: Run) -> Result<Candidate> {
        let at = self.pool.run_bytes(&run).offset();
        let damage = |what| Error::corrupted(what, at);
        if run.blocks() != self.shape.segment_blocks {
            return Err(damage("a segment of the index has a wrong length"));
        }
        let prefix = Prefix::decode(self.pool.pmem.load_u64(at), at)
            .filter(|prefix| prefix.depth >= self.shape.partition_bits)
            .ok_or_else(|| damage("the header of a segment of the index is damaged"))?;
        Ok(Candidate { run, at, prefix })
    }

    /// Puts the candidates, in the order of their hashes, in force, but for the orphans.
    fn arrange_sorted(&self, found: Vec<Candidate>, arranged: &mut Arranged) -> Result<()> {
        let (mut last, mut next): (Option<Prefix>, Option<u64>) = (None, Some(0));
        let mut in_force = Vec::new();
        for candidate in found {
            let (first, end) = candidate.prefix.range();
            if next.is_none_or(|next| first < next) {
                if last.is_some_and(|last| last.half(1) == candidate.prefix) {
                    arranged.orphans.push(candidate.run);
                    continue;
                }
                let what = "two segments of the index have the same hashes";
                self.pass_over(Error::corrupted(what, candidate.at), arranged)?;
                continue;
            }
            if next != Some(first) {
                self.check_gap(next, Some(first), candidate.at, arranged)?;
            }
            (last, next) = (Some(candidate.prefix), end.checked_add(1));
            in_force.push(candidate);
        }
        if next.is_some() {
            let at = in_force.last().map_or(0, |candidate| candidate.at);
            self.check_gap(next, None, at, arranged)?;
        }
        self.put_in_force(&in_force)
    }

    /// There may be no segments for the hashes from `from` up to `to` if these are those of whole partitions.
    fn check_gap(
        &self,
        from: Option<u64>,
        to: Option<u64>,
        at: u64,
        arranged: &mut Arranged,
    ) -> Result<()> {
        let inside = u64::MAX.checked_shr(self.shape.partition_bits).unwrap_or(0);
        let is_border = |hash: Option<u64>| hash.is_none_or(|hash| hash & inside == 0);
        if is_border(from) && is_border(to) {
            return Ok(());
        }
        self.pass_over(Error::corrupted("a segment of the index is missing near", at), arranged)
    }

    fn put_in_force(&self, candidates: &[Candidate]) -> Result<()> {
        self.ensure_segment(candidates.len() as u64 + 1)?;
        self.count.store(candidates.len() as u64, Ordering::Release);
        let deepest = candidates.iter().max_by_key(|candidate| candidate.prefix.depth);
        if let Some(deepest) = deepest {
            let depth = deepest.prefix.depth;
            if 1 << depth > self.directory_max() {
                let what = "a segment of the index is split more often than can be";
                return Err(Error::corrupted(what, deepest.at));
            }
            self.directory.ensure_depth(depth).map_err(no_memory)?;
        }
        for (number, candidate) in candidates.iter().enumerate() {
            self.segment(number as u64).begin(candidate.at, candidate.prefix, 0, 0);
            self.publish(candidate.prefix, number as u64);
        }
        Ok(())
    }

    /// Hands every entry of segment number `number` to `take`, with the offset of its slot, and every slot that is
    /// damaged, without an entry. Counts those for which `take` says that they are live. Before there are sessions.
    pub(crate) fn recover_segment(
        &self,
        number: u64,
        mut take: impl FnMut(u64, Option<(u64, u64)>) -> bool,
    ) {
        let segment = self.segment(number);
        let (count, mut entries) = (self.slots(segment).count(), 0);
        self.each_found(segment, 0..count, |slot_at, found| {
            entries += u32::from(take(slot_at, found));
        });
        segment.set_entries(entries);
    }

    /// Hands the entries in some slots of a segment to `take`, and the slots that are damaged.
    pub(super) fn each_found(
        &self,
        segment: &Segment,
        range: Range<u32>,
        take: impl FnMut(u64, Option<(u64, u64)>),
    ) {
        self.slots(segment).each_found(range, segment.prefix(), take);
    }
}
