//! Recovery: the headers of all segments say which of them are in force; the directory is completed where a crash came
//! between the word of a split and the words that lead to the new segment.

use std::collections::HashSet;

use chimera_pmem::Pmem;

use super::directory::Directory;
use super::{ExtendibleHash, damaged_directory, damaged_segment, sites, steps};
use crate::index::persistent::buckets::Prefix;
use crate::pool::runs::Run;
use crate::sync::atomic::Ordering;
use crate::sync::lock;
use crate::types::error::{Error, Result};

/// A segment in force.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InForce {
    at: u64,
    prefix: Prefix,
}

/// What came of looking at the headers of all runs.
#[derive(Default)]
pub(crate) struct Arranged {
    pub(crate) segments: Vec<InForce>,
    /// What a crash left: segments beside the one that they were split off, directories that are not in force. To be freed.
    pub(crate) orphans: Vec<Run>,
    /// Segments, or words of the directory, that are damaged or missing (salvage only).
    pub(crate) damages: u64,
}

/// A segment that was found.
struct Candidate {
    run: Run,
    found: InForce,
}

impl<P: Pmem> ExtendibleHash<P> {
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

    /// Finds out which of the runs that were found are in force. Once, before anything is looked up. Entries are
    /// [counted](Self::recover_segment) afterwards. Nothing is stored: where a crash came before the directory led to a
    /// segment, lookups are led there beside the directory until that is [completed](Self::complete).
    ///
    /// # Errors
    /// `Corrupted` for damage; with salvage it is counted, and noted as a loss.
    ///
    /// # Cost
    /// A line of each segment, and the directory.
    pub(crate) fn arrange(&mut self) -> Result<Arranged> {
        let (mut arranged, mut candidates, mut directories) =
            (Arranged::default(), Vec::new(), Vec::new());
        for run in std::mem::take(&mut self.found) {
            if run.is(self.kinds.directory) {
                match self.directory_in(&run) {
                    Ok(Some(directory)) => directories.push((directory, run)),
                    Ok(None) => arranged.orphans.push(run),
                    Err(error) => self.pass_over(error, &mut arranged)?,
                }
            } else {
                match self.candidate(run) {
                    Ok(candidate) => candidates.push(candidate),
                    Err(error) => self.pass_over(error, &mut arranged)?,
                }
            }
        }
        directories.sort_by_key(|(directory, _)| directory.depth);
        let Some((directory, run)) = directories.pop() else {
            self.without_directory(candidates, &mut arranged)?;
            return Ok(arranged);
        };
        arranged.orphans.extend(directories.into_iter().map(|(_, run)| run));
        lock(&self.growth).run = Some(run);
        self.directory.store(directory.pack(), Ordering::Release);
        candidates.sort_by_key(|it| (it.found.prefix.range().0, it.found.prefix.depth));
        self.arrange_sorted(candidates, &mut arranged)?;
        self.segments.store(arranged.segments.len() as u64, Ordering::Relaxed);
        self.beside = self.find_behind(directory, &mut arranged)?;
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

    /// The directory in a run, if it has ever been in force.
    fn directory_in(&self, run: &Run) -> Result<Option<Directory>> {
        let bytes = self.pool.run_bytes(run);
        let word = self.pool.pmem.load_u64(bytes.offset());
        if word == Directory::begun(bytes.offset()) {
            return Ok(None);
        }
        let directory = Directory::decode(word, bytes.offset());
        let directory =
            directory.filter(|directory| Directory::bytes(directory.depth) <= bytes.length());
        directory.map(Some).ok_or_else(|| damaged_directory(bytes.offset()))
    }

    fn candidate(&self, run: Run) -> Result<Candidate> {
        let at = self.pool.run_bytes(&run).offset();
        let prefix = self.prefix_at(at).filter(|_| run.blocks() == self.segment_blocks);
        let prefix = prefix.ok_or_else(|| damaged_segment(at))?;
        Ok(Candidate { run, found: InForce { at, prefix } })
    }

    /// There may be no directory where a crash came before the first one: nothing was entered.
    fn without_directory(&self, found: Vec<Candidate>, arranged: &mut Arranged) -> Result<()> {
        let is_first = |candidate: &Candidate| {
            let (slots, mut is_empty) = (self.slots(candidate.found.at), true);
            slots.each_found(0..slots.count(), candidate.found.prefix, |_, _| is_empty = false);
            candidate.found.prefix.depth == 0 && is_empty
        };
        let is_begun = found.len() <= 1 && found.iter().all(is_first);
        if let (Some(first), false) = (found.first(), is_begun) {
            let what = "the directory of the index is missing";
            self.pass_over(Error::corrupted(what, first.found.at), arranged)?;
            return Ok(());
        }
        arranged.orphans.extend(found.into_iter().map(|candidate| candidate.run));
        Ok(())
    }

    /// Puts the candidates, in the order of their hashes, in force, but for the orphans.
    fn arrange_sorted(&self, found: Vec<Candidate>, arranged: &mut Arranged) -> Result<()> {
        let (mut last, mut next): (Option<Prefix>, Option<u64>) = (None, Some(0));
        for Candidate { run, found } in found {
            let (first, end) = found.prefix.range();
            if next.is_none_or(|next| first < next) {
                if last.is_some_and(|last| last.half(1) == found.prefix) {
                    arranged.orphans.push(run);
                    continue;
                }
                let what = "two segments of the index have the same hashes";
                self.pass_over(Error::corrupted(what, found.at), arranged)?;
                continue;
            }
            if next != Some(first) {
                self.pass_over(missing_before(found.at), arranged)?;
            }
            (last, next) = (Some(found.prefix), end.checked_add(1));
            arranged.segments.push(found);
        }
        match next {
            Some(_) => self.pass_over(missing_before(0), arranged),
            None => Ok(()),
        }
    }

    /// The segments that the directory does not lead to: each of its words leads to the segment that has its hashes, or to one
    /// that had them before.
    fn find_behind(
        &self,
        directory: Directory,
        arranged: &mut Arranged,
    ) -> Result<Vec<(Prefix, u64)>> {
        let known: HashSet<u64> = arranged.segments.iter().map(|segment| segment.at).collect();
        let (mut behind, mut damages) = (Vec::new(), Vec::new());
        for InForce { at, prefix } in &arranged.segments {
            if prefix.depth > directory.depth {
                damages.push(damaged_segment(*at));
                continue;
            }
            let (words, mut is_behind) = (directory.words_of(*prefix), false);
            for word_at in (words.offset()..words.end()).step_by(8) {
                match self.segment_at(word_at, self.pool.pmem.load_u64(word_at)) {
                    Some(found) if found == *at => {}
                    Some(found) if known.contains(&found) => is_behind = true,
                    _ => damages.push(damaged_directory(word_at)),
                }
            }
            if is_behind {
                behind.push((*prefix, *at));
            }
        }
        damages.into_iter().try_for_each(|error| self.pass_over(error, arranged))?;
        let skips = self.pool.pmem.skips(steps::COMPLETE);
        Ok(if skips { Vec::new() } else { behind })
    }

    /// Makes the directory lead to each segment that it does not lead to. The store is open for writing, and no part of the index
    /// is damaged.
    ///
    /// # Durability
    /// Durable on return.
    ///
    /// # Cost
    /// The lines of these words, and 1 fence; nothing where there are none.
    pub(crate) fn complete(&mut self) {
        let behind = std::mem::take(&mut self.beside);
        let Some(directory) = self.directory().filter(|_| !behind.is_empty()) else { return };
        for (prefix, at) in behind {
            directory.lead(&self.pool, prefix, self.pool.extent(at, 8), sites::LEAD);
        }
        self.pool.pmem.fence(sites::LEAD);
    }

    /// Hands every entry of a segment to `take`, with the offset of its slot, and every slot that is damaged, without an
    /// entry. Counts those for which `take` says that they are live. Before there are sessions.
    pub(crate) fn recover_segment(
        &self,
        segment: &InForce,
        mut take: impl FnMut(u64, Option<(u64, u64)>) -> bool,
    ) {
        let (slots, mut entries) = (self.slots(segment.at), 0);
        slots.each_found(0..slots.count(), segment.prefix, |slot_at, found| {
            entries += u64::from(take(slot_at, found));
        });
        self.stripe(segment.at).add(entries);
    }
}

fn missing_before(at: u64) -> Error {
    Error::corrupted("a segment of the index is missing near", at)
}
