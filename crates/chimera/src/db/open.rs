//! Opening a store: from options and a superblock to an engine.

use std::path::Path;
use std::sync::{Arc, OnceLock, TryLockError};

use chimera_pmem::environment::TaskStep;
use chimera_pmem::journal::Damage;
use chimera_pmem::{
    Environment, FlushChoice, Hardware, HardwareOptions, Medium, Pmem, RealEnvironment,
};

use super::close::Lease;
use super::publish::publisher;
use super::scrub::{self, Scrub};
use super::{Db, HardwareFacts, Inner, memory};
use crate::engine::contract::upkeep::Step;
use crate::engine::shared::creation::check_counter;
use crate::engine::shared::maintenance::Pace;
use crate::engine::{Core, EngineKind, Options, OrderKept, Plan};
use crate::metrics::Registry;
use crate::ordered::RebuildStep;
use crate::pool::{Closing, NewPool, Pool, Superblock, TOTALS_AT};
use crate::sync::Mutex;
use crate::sync::atomic::AtomicU32;
use crate::types::durability::Durability;
use crate::types::error::{Error, Result};
use crate::types::stats::RecoveryStats;
use crate::types::totals::Totals;

/// The target of messages about what salvage has left out. Whoever opens a store can ask it.
const LOSSES_TARGET: &str = "chimera::losses";

pub(super) fn on_hardware(path: &Path, options: &Options) -> Result<Db> {
    let pmem = hardware(options).map_err(Error::io("reserve address space for", path))?;
    let facts: fn(&Hardware) -> HardwareFacts = |pmem| HardwareFacts {
        flush_instruction: pmem.flush_instruction().to_string(),
        huge_pages: pmem.uses_huge_pages(),
    };
    let environment: Arc<dyn Environment> = Arc::new(RealEnvironment::new());
    on(pmem, &environment, path, options, Some(facts))
}

/// Mapped memory as the options want it.
fn hardware(options: &Options) -> std::io::Result<Hardware> {
    Hardware::new(options.hardware_options())
}

impl Options {
    /// How [`Db::open`] maps and flushes memory with these options. Addresses are reserved for the capacity, or in steps.
    pub fn hardware_options(&self) -> HardwareOptions {
        let default = HardwareOptions::default();
        let most = self.pool.capacity_bytes.or(self.pool.anonymous_bytes);
        HardwareOptions {
            reserve_bytes: most.unwrap_or(default.reserve_bytes),
            flush: if self.flush { FlushChoice::Auto } else { FlushChoice::Never },
            huge_pages: self.huge_pages,
        }
    }
}

pub(super) fn on<P: Pmem>(
    pmem: P,
    environment: &Arc<dyn Environment>,
    path: &Path,
    options: &Options,
    hardware: Option<fn(&P) -> HardwareFacts>,
) -> Result<Db<P>> {
    let started_ns = environment.now_ns();
    check_options(options)?;
    let new = || new_pool(options, &**environment);
    let (pool, opened) = Pool::open(pmem, environment.clone(), path, &options.pool, new)?;
    let superblock = pool.superblock();
    let kind = EngineKind::from_code(superblock.engine)?;
    check_engine(kind, options)?;
    kind.check(&superblock, options)?;
    let pool = Arc::new(pool);
    pool.mark_open()?;
    memory::limit_tables(&pool, &options.pool);
    let opened_engine = kind.open(Core::new(pool.clone(), options), options);
    let (engine, recovered) = opened_engine.or_else(|error| refuse(&pool, error))?;
    pool.ask_for_storage().or_else(|error| refuse(&pool, error))?;
    let difference = recovered.compared.difference();
    if let Some(what) = &difference {
        log::warn!(target: LOSSES_TARGET, "{}: {what}", path.display());
        pool.note_difference(recovered.compared);
    }
    if options.pool.populate_at_open {
        pool.grow_to_capacity()?;
    }
    engine.begin_order(options.recovery_threads)?;
    let batches = engine.end_batches(options.pool.salvage);
    let batches = batches.or_else(|error| refuse(&pool, error))?;
    pool.mark_recovered()?;
    let durability = engine.durability(options.pool.effective_durability(pool.pmem.medium())?);
    let recovery = RecoveryStats {
        clean: opened.clean,
        differs_from_closing: difference.is_some(),
        duration_ns: environment.now_ns().saturating_sub(started_ns),
        losses: pool.losses(),
        batches_made: batches.made,
        batches_taken_back: batches.taken_back,
        ..with_journal_loss(recovered.stats, opened.journal_loss.as_ref())
    };
    say_opened(path, kind, (pool.pmem.medium(), durability), &recovery);
    let is_published = pool.directory().is_some() && !pool.read_only;
    let inner = Arc::new(Inner {
        kind,
        engine,
        rebuilding: OnceLock::new(),
        reclaim: OnceLock::new(),
        ordering: OnceLock::new(),
        scrubbing: OnceLock::new(),
        scrub: Scrub::default(),
        compaction: Mutex::default(),
        durability,
        recovery,
        clients: Mutex::default(),
        next_client: AtomicU32::new(0),
        hardware,
        metrics: Registry::new(environment.clone(), options.latency_sampling),
        opened_ns: environment.now_ns(),
        published_every: options.publish_metrics.filter(|_| is_published),
    });
    memory::limit(&inner, &options.pool).or_else(|error| refuse(&pool, error))?;
    if options.order_kept == OrderKept::FromNowOn && !options.order.this_time {
        pool.keep_order();
    }
    let lease = start(&inner, &pool, path, options)?;
    Ok(Db { inner, lease: Arc::new(lease) })
}

/// Starts what works in the background. Dropping the lease stops it.
fn start<P: Pmem>(
    inner: &Arc<Inner<P>>,
    pool: &Arc<Pool<P>>,
    path: &Path,
    options: &Options,
) -> Result<Lease<P>> {
    let mut lease = Lease::new(inner.clone());
    pool.start_background()?;
    lease.publisher = publisher(inner)?;
    if let Some(order) = inner.engine.core().changes.order().filter(|_| !options.pool.read_only) {
        order.start().map_err(Error::io("start a thread for", path))?;
    }
    start_ordering(inner, options.recovery_threads)
        .map_err(Error::io("start a thread for", path))?;
    start_rebuild(inner).map_err(Error::io("start a thread for", path))?;
    start_reclaim(inner).map_err(Error::io("start a thread for", path))?;
    if let Some(every) = options.scrub_every {
        scrub::start(inner, every).map_err(Error::io("start a thread for", path))?;
    }
    Ok(lease)
}

/// Opening ends with this error. A store that is not what it was when it was closed stays closed, and so does one in which
/// nothing was changed, whatever was in the way: the next open would compare less with one that was not.
fn refuse<P: Pmem, T>(pool: &Pool<P>, error: Error) -> Result<T> {
    let differs = matches!(error, Error::Corrupted { at: TOTALS_AT, .. });
    if (differs || !pool.has_changes())
        && let Err(failed) = pool.close_as_it_was()
    {
        log::warn!("marking the store as it was: {failed}");
    }
    Err(error)
}

/// Logs how a store was opened, and what salvage has left out.
fn say_opened(
    path: &Path,
    kind: EngineKind,
    (medium, durability): (Medium, Durability),
    recovery: &RecoveryStats,
) {
    log::info!(
        "`{}` is open, with engine {kind}, medium {medium} and durability {durability}. {recovery}",
        path.display()
    );
    if !recovery.losses.is_empty() {
        log::warn!(target: LOSSES_TARGET, "{}: {}", path.display(), recovery.losses);
    }
}

/// What recovery has done, with what is lost of the journal.
fn with_journal_loss(recovered: RecoveryStats, loss: Option<&Damage>) -> RecoveryStats {
    let Some(loss) = loss else { return recovered };
    RecoveryStats {
        journal_entries_lost: loss.entries,
        journal_bytes_lost: loss.bytes,
        journal_lost_at: Some(loss.at),
        ..recovered
    }
}

/// Starts the tasks that make the order of keys, if it is not made.
fn start_ordering<P: Pmem>(inner: &Arc<Inner<P>>, threads: usize) -> std::io::Result<()> {
    let core = inner.engine.core();
    if core.changes.order().is_none_or(|order| order.is_ready()) {
        return Ok(());
    }
    let mut tasks = Vec::new();
    for number in 0..core.order_threads(threads) {
        let ordering = Arc::downgrade(inner);
        let step = move || {
            let Some(inner) = ordering.upgrade() else { return TaskStep::Done };
            match inner.engine.order_step(number as u32) {
                Ok(RebuildStep::Again) => TaskStep::Again,
                // Whoever is at the last part makes the rest. An error is told by scans.
                Ok(RebuildStep::Busy | RebuildStep::Done) | Err(_) => TaskStep::Done,
            }
        };
        tasks.push(core.environment().spawn("chimera-ordering", Box::new(step))?);
    }
    // Only ever started once.
    inner.ordering.get_or_init(|| tasks.into());
    Ok(())
}

/// Starts the task that ends what opening left to be done, if there is something.
fn start_rebuild<P: Pmem>(inner: &Arc<Inner<P>>) -> std::io::Result<()> {
    if !inner.engine.is_rebuilding() {
        return Ok(());
    }
    let rebuilding = Arc::downgrade(inner);
    let step = move || {
        let Some(inner) = rebuilding.upgrade() else { return TaskStep::Done };
        match inner.engine.rebuild_step() {
            Step::More { .. } => TaskStep::Again,
            Step::Done => TaskStep::Done,
        }
    };
    let task = inner.engine.core().environment().spawn("chimera-rebuild", Box::new(step))?;
    // Only ever started once.
    inner.rebuilding.get_or_init(|| task);
    Ok(())
}

/// Starts the task that reclaims space, if there is to be one.
fn start_reclaim<P: Pmem>(inner: &Arc<Inner<P>>) -> std::io::Result<()> {
    let core = inner.engine.core();
    let percent = core.background.reclaim_percent;
    if core.pool.read_only || percent == 0 || !inner.engine.reclaims() {
        return Ok(());
    }
    let reclaiming = Arc::downgrade(inner);
    let mut pace = Pace::new(core.background);
    let step = move || {
        let Some(inner) = reclaiming.upgrade() else { return TaskStep::Done };
        let _turn = match inner.compaction.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // A compaction is under way: a pass with another share of free space would end it early.
            Err(TryLockError::WouldBlock) => return Pace::between_passes(),
        };
        match inner.engine.reclaim_step(percent) {
            Ok(step) => pace.after(step),
            Err(error) => {
                log::warn!("space is not reclaimed any more: {error}");
                TaskStep::Done
            }
        }
    };
    let task = core.environment().spawn("chimera-reclaim", Box::new(step))?;
    // Only ever started once.
    inner.reclaim.get_or_init(|| task);
    Ok(())
}

/// Refuses options that no engine's store can have.
fn check_options(options: &Options) -> Result<()> {
    if options.publish_metrics.is_some_and(|every| every < Options::PUBLISH_EVERY_MIN) {
        return Err(Error::InvalidOptions("metrics are published every 10 ms at most".to_owned()));
    }
    if options.scrub_every.is_some_and(|every| every < Options::SCRUB_EVERY_MIN) {
        return Err(Error::InvalidOptions("a scrub takes 1 ms at least".to_owned()));
    }
    options.order.validate()?;
    options.pool.validate()
}

/// Whether the store's engine is the one that was asked for, if any was.
fn check_engine(found: EngineKind, options: &Options) -> Result<()> {
    match options.engine {
        Some(wanted) if wanted != found => Err(Error::Mismatch {
            what: "engine",
            found: found.to_string(),
            wanted: wanted.to_string(),
        }),
        _ => Ok(()),
    }
}

/// The superblock of a new pool, by the options: of the default engine, where none was asked for.
fn new_pool(options: &Options, environment: &dyn Environment) -> Result<NewPool> {
    let kind = options.engine.unwrap_or_default();
    check_counter(options, options.value_bytes())?;
    let Plan { geometry, is_segment_fixed, area } = kind.plan(options)?;
    let closing = if options.pool.incomplete { Closing::Incomplete } else { Closing::Open };
    let superblock = Superblock {
        engine: kind.code(),
        pool_id: environment.random_u64(),
        hash_seed: environment.random_u64(),
        geometry,
        sequence: 0,
        segments: 0,
        closing,
        boot_id: 0,
        is_ordered: false,
        closed_words: Default::default(),
        totals: Totals::default(),
        area,
    };
    Ok(NewPool { superblock, is_segment_fixed })
}
