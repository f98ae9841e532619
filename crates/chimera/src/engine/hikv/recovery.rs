//! Recovery: the segments of the index are found, each entry is looked at, and the room of its item is marked as taken.
//! The last step may be left to be done beside sessions: see [`rebuild`](super::rebuild).
//!
//! There is nothing to decide between two items of a key, because an entry leads to one of them. What a crash leaves is a
//! segment beside the one that it was split off, which is freed, and items that nothing leads to, which are free.

use chimera_pmem::{Operation, Pmem};

use super::creation::Parameters;
use super::findings::Findings;
use super::items::{DAMAGED_RECORD, Items, Unsound};
#[cfg(feature = "baselines")]
use super::kinds::LOG;
use super::kinds::{HASH, HEAP, ORDER, kinds};
#[cfg(feature = "baselines")]
use super::log::{ChangeLog, FoundLog};
use super::order::LastDump;
use super::rebuild::{FIRST_ENTRIES, Rebuild};
use super::reclaim::Reclaim;
use super::steps;
use super::store::Hikv;
use super::write::Writer;
use crate::engine::{Core, Options, Recovered};
use crate::index::persistent::partitioned_hash::PartitionedHash;
use crate::pool::runs::{FoundRun, Run};
use crate::pool::{Compared, Held, Sums};
use crate::records::item_heap::{ItemHeap, Places};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use crate::types::error::{Error, Result};
use crate::types::stats::RecoveryStats;
use crate::types::totals::Totals;

const DAMAGED_ENTRY: &str = "an entry of the index is damaged";

/// What the runs are.
struct Found {
    /// Parts of the index or of the log that are lost.
    lost: u64,
    #[cfg(feature = "baselines")]
    log: FoundLog,
    /// Segments of the index that a crash left: to be freed.
    orphans: Vec<Run>,
    /// What the last life wrote keys to.
    dumped: Vec<Run>,
}

/// Makes an open pool ready for sessions.
///
/// # Errors
/// As [`Engine::open`](crate::engine::Engine::open).
pub(super) fn open<P: Pmem>(
    core: Core<P>,
    parameters: Parameters,
    options: &Options,
) -> Result<(Hikv<P>, Recovered)> {
    let (pool, salvage) = (core.pool.clone(), options.pool.salvage);
    let mut index = PartitionedHash::new(pool.clone(), HASH, parameters.hash, salvage)?;
    let heap = ItemHeap::new(pool.clone(), HEAP, parameters.layout, parameters.heap_run_blocks);
    let limits = parameters.limits(heap.limits());
    let blocks = pool.used_blocks();
    let threads = core.recovery_threads(options.recovery_threads, blocks);
    core.in_chunks(threads, blocks, options.progress.as_ref(), |chunk, (): &mut ()| {
        pool.populate_blocks(chunk);
    });
    let mut found = find_runs(&core, &parameters, &mut index, &heap, salvage)?;
    let has_sums = parameters.layout.is_checked();
    let items = Items::new(core, index, heap, has_sums, salvage);
    let recovery = Recovery::new(&items, options);
    let is_later = recovery.is_later();
    let (damages, compared) = recovery.run(threads)?;
    let records_damaged = damages + found.lost;
    let rebuild = Rebuild::new(options.hikv.walked_first.unwrap_or(FIRST_ENTRIES));
    let mut engine = Hikv {
        #[cfg(feature = "baselines")]
        log: ChangeLog::none(&parameters),
        last_dump: LastDump::new(std::mem::take(&mut found.dumped)),
        parameters,
        limits,
        writer: Writer::new(items, rebuild),
        reclaim: Reclaim::default(),
    };
    engine.begin(found, is_later)?;
    let stats = RecoveryStats {
        blocks_scanned: blocks,
        records: engine.items().index().len(),
        records_damaged,
        threads,
        ..RecoveryStats::default()
    };
    Ok((engine, Recovered { stats, compared }))
}

impl<P: Pmem> Hikv<P> {
    /// Frees what nothing leads to, or leaves that to be found out later, and makes the log ready.
    fn begin(&mut self, found: Found, is_later: bool) -> Result<()> {
        let (items, rebuild) = (self.writer.items(), self.writer.rebuild());
        let (core, pool) = (items.core(), items.pool());
        let is_later = is_later && items.index().segments() > 0;
        if found.lost > 0 {
            // Items that only the missing part leads to look as if they were free.
            core.poison.poison("a part of the index or of the log is missing");
            return Ok(());
        }
        if pool.read_only {
            if is_later {
                rebuild.begin_unasked();
            }
            return Ok(());
        }
        let _booked = core.book(Operation::Recovery, 0);
        if !pool.pmem.skips(steps::FREE_ORPHANS) {
            found.orphans.into_iter().try_for_each(|run| pool.free_run(run))?;
        }
        if is_later {
            rebuild.begin();
        } else {
            items.heap().end_recovery().into_iter().try_for_each(|run| pool.free_run(run))?;
        }
        #[cfg(feature = "baselines")]
        {
            self.log = ChangeLog::open(&self.parameters, &self.writer, self.limits, found.log)?;
        }
        Ok(())
    }
}

/// Takes over all runs, and puts the segments of the index in force.
fn find_runs<P: Pmem>(
    core: &Core<P>,
    parameters: &Parameters,
    index: &mut PartitionedHash<P>,
    heap: &ItemHeap<P>,
    salvage: bool,
) -> Result<Found> {
    let _booked = core.book(Operation::Recovery, 0);
    let (pool, mut lost, mut dumped) = (&core.pool, 0, Vec::new());
    #[cfg(feature = "baselines")]
    let mut log = FoundLog::new(parameters, pool.map.block_bytes);
    pool.recover_runs(kinds(parameters), salvage, |run| {
        match run {
            FoundRun::InUse(run) if run.is(HASH) => index.adopt(run),
            FoundRun::InUse(run) if run.is(ORDER) => dumped.push(run),
            #[cfg(feature = "baselines")]
            FoundRun::InUse(run) if run.is(LOG) => lost += log.adopt(pool, run, salvage)?,
            FoundRun::InUse(run) => heap.adopt(run),
            FoundRun::Damaged(_) => lost += 1,
        }
        Ok(())
    })?;
    let arranged = index.arrange()?;
    Ok(Found {
        lost: lost + arranged.damages,
        #[cfg(feature = "baselines")]
        log,
        orphans: arranged.orphans,
        dumped,
    })
}

/// Looks at the entries of the index.
struct Recovery<'i, P: Pmem> {
    items: &'i Items<P>,
    /// Values are verified now.
    verifies: bool,
    /// Where items can be, if they are looked at later.
    places: Option<Places>,
    findings: Mutex<Findings>,
    totals: Mutex<Totals>,
}

impl<'i, P: Pmem> Recovery<'i, P> {
    fn new(items: &'i Items<P>, options: &Options) -> Self {
        let verifies = options.verify_at_open.unwrap_or(items.salvages());
        let is_later = !verifies && !items.salvages();
        Self {
            items,
            verifies,
            places: is_later.then(|| items.heap().places()),
            findings: Mutex::default(),
            totals: Mutex::default(),
        }
    }

    /// Whether items are looked at later.
    fn is_later(&self) -> bool {
        self.places.is_some()
    }

    /// Looks at all entries. How many are damaged.
    ///
    /// # Errors
    /// `Corrupted` for damage, and where the store is not what it was when it was closed, unless it salvages.
    fn run(self, threads: usize) -> Result<(u64, Compared)> {
        let (core, index) = (self.items.core(), self.items.index());
        let next = AtomicU64::new(0);
        core.environment().run_parallel(threads, &|number| {
            let _booked = core.book(Operation::Recovery, number as u32);
            loop {
                let segment = next.fetch_add(1, Ordering::Relaxed);
                if segment >= index.segments() {
                    return;
                }
                match &self.places {
                    Some(places) => self.count_segment(segment, places),
                    None => self.recover_segment(segment),
                }
            }
        });
        let findings = std::mem::take(&mut *lock(&self.findings));
        if let (Some((at, what)), false) = (findings.first, self.items.salvages()) {
            return Err(Error::corrupted(what, at));
        }
        let (pool, salvage) = (&core.pool, self.items.salvages());
        let compared = pool.compare_with_closing(salvage, Sums::Records, || *lock(&self.totals))?;
        Ok((findings.damages, compared))
    }

    /// Looks at the entries of a segment of the index, and marks the room of their items.
    fn recover_segment(&self, segment: u64) {
        let (mut value, mut totals) = (Vec::new(), Totals::default());
        self.items.index().recover_segment(segment, |slot_at, entry| {
            if let Some((hash, at)) = entry {
                totals.add(hash, at);
            }
            let Some((hash, at)) = entry else {
                self.note_damage(Held::One, slot_at, DAMAGED_ENTRY);
                // Its item may be anywhere.
                self.items.heap().condemn_found();
                return false;
            };
            let recovered = self.items.mark(hash, at, self.verifies, &mut value);
            if let Err(Unsound { at }) = &recovered {
                // Its entry is there, and was added.
                self.note_damage(Held::Nothing, *at, DAMAGED_RECORD);
                self.items.heap().condemn(*at);
            }
            recovered.is_ok()
        });
        lock(&self.totals).merge(totals);
    }

    /// Counts the entries of a segment of the index, and verifies that each leads to where an item can be.
    fn count_segment(&self, segment: u64, places: &Places) {
        let mut totals = Totals::default();
        self.items.index().recover_segment(segment, |slot_at, entry| {
            if let Some((hash, at)) = entry {
                totals.add(hash, at);
            }
            let is_placed = entry.is_some_and(|(_, at)| places.has(at));
            if !is_placed {
                self.note_damage(Held::Unknown, slot_at, DAMAGED_ENTRY);
            }
            is_placed
        });
        lock(&self.totals).merge(totals);
    }

    /// Notes damage that was found at opening, which salvage leaves out.
    #[cold]
    fn note_damage(&self, held: Held, at: u64, what: &'static str) {
        lock(&self.findings).damage(at, what);
        if self.items.salvages() {
            self.items.pool().note_loss_of(held, at, what);
        }
    }
}
