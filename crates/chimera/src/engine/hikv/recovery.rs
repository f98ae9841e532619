//! Recovery: the segments of the index are found, each entry is looked at, and the room of its item is marked as taken.
//! The last step may be left to be done beside sessions: see [`rebuild`](super::rebuild).
//!
//! There is nothing to decide between two items of a key, because an entry leads to one of them. What a crash leaves is a
//! segment beside the one that it was split off, which is freed, and items that nothing leads to, which are free.

use chimera_pmem::{Operation, Pmem};

use super::read::{DAMAGED_RECORD, Unsound};
use super::{HASH, Hikv, LOG, ORDER, kinds, steps};
use crate::engine::{Options, Recovered};
use crate::pool::runs::{FoundRun, Run};
use crate::pool::{Held, Sums};
use crate::records::item_heap::Places;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use crate::types::error::{Error, Result};
use crate::types::stats::RecoveryStats;
use crate::types::totals::Totals;

const DAMAGED_ENTRY: &str = "an entry of the index is damaged";
const ANOTHER_LOG: &str = "the store has another log, or one of a wrong length";

/// What was found damaged.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) damages: u64,
    /// The first damage by position.
    pub(super) first: Option<(u64, &'static str)>,
}

impl Findings {
    pub(super) fn damage(&mut self, at: u64, what: &'static str) {
        self.damages += 1;
        if self.first.is_none_or(|(first, _)| at < first) {
            self.first = Some((at, what));
        }
    }

    /// Logs all of it together.
    pub(super) fn say(&self) {
        if let Some((at, what)) = self.first {
            let count = self.damages;
            log::error!("damage was found {count} times, first at byte {at}: {what}");
        }
    }
}

/// What the runs are.
struct Found {
    /// Parts of the index or of the log that are lost.
    lost: u64,
    /// The run of the log.
    log: Option<Run>,
    /// Segments of the index that a crash left: to be freed.
    orphans: Vec<Run>,
}

impl<P: Pmem> Hikv<P> {
    pub(super) fn recover(&mut self, options: &Options) -> Result<Recovered> {
        let pool = self.core.pool.clone();
        let (salvage, blocks) = (options.pool.salvage, pool.used_blocks());
        let threads = self.core.recovery_threads(options.recovery_threads, blocks);
        self.core.in_chunks(threads, blocks, options.progress.as_ref(), |chunk, (): &mut ()| {
            pool.populate_blocks(chunk);
        });
        let Found { lost, log, orphans } = self.find_runs(salvage)?;
        let findings = Mutex::new(Findings::default());
        let verifies = options.verify_at_open.unwrap_or(salvage);
        let is_later = !verifies && !salvage;
        let places = is_later.then(|| self.heap.places());
        let next = AtomicU64::new(0);
        self.core.environment().run_parallel(threads, &|number| {
            let _booked = self.core.book(Operation::Recovery, number as u32);
            loop {
                let segment = next.fetch_add(1, Ordering::Relaxed);
                if segment >= self.index.segments() {
                    return;
                }
                match &places {
                    Some(places) => self.count_segment(segment, places, &findings),
                    None => self.recover_segment(segment, verifies, &findings),
                }
            }
        });
        let findings = findings.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let (Some((at, what)), false) = (findings.first, salvage) {
            return Err(Error::corrupted(what, at));
        }
        let compared = pool.compare_with_closing(salvage, Sums::Records, || *lock(&self.found))?;
        if lost > 0 {
            // Items that only the missing part leads to look as if they were free.
            self.core.poison.poison("a part of the index or of the log is missing");
        } else if pool.read_only {
            if is_later && self.index.segments() > 0 {
                self.rebuild.begin_unasked();
            }
        } else {
            self.begin_space(is_later, orphans, log)?;
        }
        let stats = RecoveryStats {
            blocks_scanned: blocks,
            records: self.index.len(),
            records_damaged: findings.damages + lost,
            threads,
            ..RecoveryStats::default()
        };
        Ok(Recovered { stats, compared })
    }

    /// Frees what nothing leads to, or leaves that to be found out later, and makes the log ready.
    fn begin_space(&mut self, is_later: bool, orphans: Vec<Run>, log: Option<Run>) -> Result<()> {
        let pool = self.core.pool.clone();
        let booked = self.core.book(Operation::Recovery, 0);
        if !pool.pmem.skips(steps::FREE_ORPHANS) {
            orphans.into_iter().try_for_each(|run| pool.free_run(run))?;
        }
        if is_later && self.index.segments() > 0 {
            self.rebuild.begin();
        } else {
            self.heap.end_recovery().into_iter().try_for_each(|run| pool.free_run(run))?;
        }
        let log = self.begin_log(log)?;
        drop(booked);
        self.log = log;
        Ok(())
    }

    /// Takes over all runs, and puts the segments of the index in force.
    fn find_runs(&mut self, salvage: bool) -> Result<Found> {
        let _booked = self.core.book(Operation::Recovery, 0);
        let (pool, mut lost, mut log) = (&self.core.pool, 0, None);
        let (mut dumped, log_blocks) = (Vec::new(), self.log_blocks());
        pool.recover_runs(kinds(&self.parameters), salvage, |run| {
            match run {
                FoundRun::InUse(run) if run.is(HASH) => self.index.adopt(run),
                FoundRun::InUse(run) if run.is(ORDER) => dumped.push(run),
                FoundRun::InUse(run) if run.is(LOG) => {
                    if log.is_none() && run.blocks() == log_blocks {
                        log = Some(run);
                    } else if salvage {
                        // Records are in the heap, whatever the log says.
                        let at = pool.run_bytes(&run).offset();
                        pool.note_loss_of(Held::Nothing, at, ANOTHER_LOG);
                        lost += 1;
                    } else {
                        return Err(Error::corrupted(ANOTHER_LOG, pool.run_bytes(&run).offset()));
                    }
                }
                FoundRun::InUse(run) => self.heap.adopt(run),
                FoundRun::Damaged(_) => lost += 1,
            }
            Ok(())
        })?;
        *lock(&self.dumped) = dumped;
        let arranged = self.index.arrange()?;
        lost += arranged.damages;
        Ok(Found { lost, log, orphans: arranged.orphans })
    }

    /// Looks at the entries of a segment of the index, and marks the room of their items.
    fn recover_segment(&self, segment: u64, verify_values: bool, findings: &Mutex<Findings>) {
        let (mut value, mut totals) = (Vec::new(), Totals::default());
        self.index.recover_segment(segment, |slot_at, entry| {
            if let Some((hash, at)) = entry {
                totals.add(hash, at);
            }
            let Some((hash, at)) = entry else {
                self.note_damage(Held::One, slot_at, DAMAGED_ENTRY, findings);
                // Its item may be anywhere.
                self.heap.condemn_found();
                return false;
            };
            let recovered = self.recover_item(hash, at, verify_values, &mut value);
            if let Err(Unsound { at }) = &recovered {
                // Its entry is there, and was added.
                self.note_damage(Held::Nothing, *at, DAMAGED_RECORD, findings);
                self.heap.condemn(*at);
            }
            recovered.is_ok()
        });
        lock(&self.found).merge(totals);
    }

    /// Counts the entries of a segment of the index, and verifies that each leads to where an item can be.
    fn count_segment(&self, segment: u64, places: &Places, findings: &Mutex<Findings>) {
        let mut totals = Totals::default();
        self.index.recover_segment(segment, |slot_at, entry| {
            if let Some((hash, at)) = entry {
                totals.add(hash, at);
            }
            let is_placed = entry.is_some_and(|(_, at)| places.has(at));
            if !is_placed {
                self.note_damage(Held::Unknown, slot_at, DAMAGED_ENTRY, findings);
            }
            is_placed
        });
        lock(&self.found).merge(totals);
    }

    /// Notes damage that was found at opening, which salvage leaves out.
    #[cold]
    fn note_damage(&self, held: Held, at: u64, what: &'static str, findings: &Mutex<Findings>) {
        lock(findings).damage(at, what);
        if self.salvages {
            self.core.pool.note_loss_of(held, at, what);
        }
    }

    pub(super) fn recover_item(
        &self,
        hash: u64,
        at: u64,
        verify_value: bool,
        value: &mut Vec<u8>,
    ) -> Result<(), Unsound> {
        let unsound = || Unsound { at };
        let item = self.heap.decode(at).filter(|item| self.is_of(item, hash));
        let item = item.ok_or_else(unsound)?;
        // First: of forged items that overlap no byte is read twice.
        if !self.core.pool.pmem.skips(steps::MARK_ITEMS) {
            self.heap.mark(self.heap.extent(&item)).map_err(|_| unsound())?;
        }
        if verify_value {
            self.read_item(&item, hash, value, true)?;
        }
        Ok(())
    }
}
