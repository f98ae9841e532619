//! Opening a store: from options and a superblock to an engine.

use std::path::Path;
use std::sync::{Arc, OnceLock, TryLockError};
use std::time::Duration;

use chimera_pmem::environment::TaskStep;
use chimera_pmem::{Environment, FlushChoice, Hardware, HardwareOptions, Pmem, RealEnvironment};

use super::kind::Engine;
use super::publish::publisher;
use super::{Db, HardwareFacts, Inner, Lease};
use crate::engine::viper::{Step, Viper, hash_geometry};
use crate::metrics::Registry;
use crate::pool::{Closing, Pool, Superblock};
use crate::records::vpage::{LogPages, PageLayout};
use crate::sync::Mutex;
use crate::sync::atomic::AtomicU32;
use crate::types::error::{Error, Result};
use crate::types::options::{Geometry, Options, RecordLayout};
use crate::types::stats::RecoveryStats;

/// From one pass of space reclamation to the next.
const RECLAIM_EVERY: Duration = Duration::from_secs(1);
/// What is moved is paid for with rests of so many nanoseconds at least: waking takes longer than moving a block.
const REST_NS_MIN: u64 = 1_000_000;
/// Largest key, in bytes.
const KEY_BYTES_MAX: u32 = 4096;
/// Largest value of a fixed size, in bytes.
const VALUE_BYTES_MAX: u32 = 512 << 10;

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
    /// How [`Db::open`] maps and flushes memory with these options.
    pub fn hardware_options(&self) -> HardwareOptions {
        HardwareOptions {
            flush: if self.flush { FlushChoice::Auto } else { FlushChoice::Never },
            huge_pages: self.huge_pages,
            ..HardwareOptions::default()
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
    hash_geometry(options)?;
    let new = || new_superblock(options, &**environment);
    let (pool, opened) = Pool::open(pmem, environment.clone(), path, options, new)?;
    check_superblock(&pool.superblock(), options)?;
    let pool = Arc::new(pool);
    if options.populate_at_open {
        pool.grow_to_capacity()?;
    }
    pool.mark_open()?;
    let (engine, recovered) = if pool.superblock().is_variable() {
        let (engine, recovered) = Viper::open(pool.clone(), options)?;
        (Engine::ViperLog(engine), recovered)
    } else {
        let (engine, recovered) = Viper::open(pool.clone(), options)?;
        (Engine::Viper(engine), recovered)
    };
    pool.mark_recovered();
    let durability = options.effective_durability(pool.pmem.medium())?;
    let recovery = RecoveryStats {
        clean: opened.clean,
        duration_ns: environment.now_ns() - started_ns,
        ..recovered
    };
    let medium = pool.pmem.medium();
    log::info!("{}: medium {medium}, durability {durability}, {recovery:?}", path.display());
    let is_published = pool.directory().is_some() && !options.read_only;
    let inner = Arc::new(Inner {
        engine,
        reclaim: OnceLock::new(),
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
    // From here on dropping `lease` stops it.
    let mut lease = Lease { inner: inner.clone(), publisher: None, is_closed: false };
    pool.start_background()?;
    lease.publisher = publisher(&inner)?;
    start_reclaim(&inner, options).map_err(Error::io("start a thread for", path))?;
    Ok(Db { inner, lease: Arc::new(lease) })
}

/// Starts the task that reclaims space, if there is to be one.
fn start_reclaim<P: Pmem>(inner: &Arc<Inner<P>>, options: &Options) -> std::io::Result<()> {
    if options.read_only || options.reclaim_percent == 0 {
        return Ok(());
    }
    let (percent, rate) = (options.reclaim_percent, options.reclaim_bytes_per_second);
    let reclaiming = Arc::downgrade(inner);
    let mut owed_ns = 0_u64;
    let step = move || {
        let Some(inner) = reclaiming.upgrade() else { return TaskStep::Done };
        let _turn = match inner.compaction.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Somebody compacts: a pass with another share of free space would end theirs early.
            Err(TryLockError::WouldBlock) => return TaskStep::WaitAtMost(RECLAIM_EVERY),
        };
        match inner.engine.reclaim_step(percent) {
            Ok(Step::More { moved_bytes }) => {
                owed_ns = owed_ns.saturating_add(moved_bytes.saturating_mul(1_000_000_000) / rate);
                if owed_ns < REST_NS_MIN {
                    return TaskStep::Again;
                }
                TaskStep::WaitAtMost(Duration::from_nanos(std::mem::take(&mut owed_ns)))
            }
            Ok(Step::Done) => TaskStep::WaitAtMost(RECLAIM_EVERY),
            Err(error) => {
                log::warn!("space is not reclaimed any more: {error}");
                TaskStep::Done
            }
        }
    };
    let environment = &inner.engine.pool().environment;
    let task = environment.spawn("chimera-reclaim", Box::new(step))?;
    // Only ever started once.
    inner.reclaim.get_or_init(|| task);
    Ok(())
}

fn check_options(options: &Options) -> Result<()> {
    let invalid = |what: &str| Err(Error::InvalidOptions(what.to_owned()));
    if let Some((key_bytes, value_bytes)) = options.sizes {
        if !(1..=KEY_BYTES_MAX).contains(&key_bytes) {
            return invalid("keys must have 1 to 4096 bytes");
        }
        if value_bytes > VALUE_BYTES_MAX {
            return invalid("values must have at most 524288 bytes");
        }
    }
    let bounded = options.capacity_bytes.or(options.anonymous_bytes).is_some();
    if options.populate_at_open && !bounded {
        return invalid("populating at open needs a capacity");
    }
    if options.publish_metrics.is_some_and(|every| every < Options::PUBLISH_EVERY_MIN) {
        return invalid("metrics are published every 10 ms at most");
    }
    if let Some(bytes) = options.journal_bytes {
        let possible = Options::JOURNAL_BYTES_MIN..=Options::JOURNAL_BYTES_MAX;
        if !possible.contains(&bytes) || !bytes.is_multiple_of(4096) {
            return invalid("a journal must have a multiple of 4096 bytes, from 16 KiB to 1 GiB");
        }
    }
    Ok(())
}

/// What a new pool is, by the options.
fn new_superblock(options: &Options, environment: &dyn Environment) -> Result<Superblock> {
    let layout = options.layout.unwrap_or_default();
    let (key_bytes, value_bytes) = options.sizes.unwrap_or_default();
    let geometry = options.creation_geometry();
    geometry.validate().map_err(Error::InvalidOptions)?;
    if options.sizes.is_none() {
        check_variable(&geometry, layout).map_err(Error::InvalidOptions)?;
    } else if PageLayout::new(&geometry, layout, key_bytes, value_bytes).is_none() {
        let page = geometry.page_bytes;
        let what = format!("pages of {page} bytes do not hold a record; leave the geometry out");
        return Err(Error::InvalidOptions(what));
    }
    Ok(Superblock {
        engine: options.engine,
        pool_id: environment.random_u64(),
        hash_seed: environment.random_u64(),
        geometry,
        layout,
        key_bytes,
        value_bytes,
        sequence: 0,
        segments: 0,
        closing: if options.incomplete { Closing::Incomplete } else { Closing::Open },
        boot_id: 0,
    })
}

/// Whether there can be a store of records of any size like this.
fn check_variable(geometry: &Geometry, layout: RecordLayout) -> Result<(), String> {
    if layout == RecordLayout::Published {
        return Err("the published layout needs records of a fixed size".to_owned());
    }
    let block_bytes = u64::from(geometry.page_bytes) * u64::from(geometry.pages_per_block);
    if block_bytes > LogPages::BLOCK_BYTES_MAX {
        let most = LogPages::BLOCK_BYTES_MAX;
        return Err(format!("blocks of records of any size have at most {most} bytes"));
    }
    Ok(())
}

/// Checks what a superblock says against what is possible and what the options say.
fn check_superblock(superblock: &Superblock, options: &Options) -> Result<()> {
    let Superblock { geometry, layout, key_bytes, value_bytes, .. } = superblock;
    let possible = if superblock.is_variable() {
        *value_bytes == 0 && check_variable(geometry, *layout).is_ok()
    } else {
        (1..=KEY_BYTES_MAX).contains(key_bytes)
            && *value_bytes <= VALUE_BYTES_MAX
            && PageLayout::new(geometry, *layout, *key_bytes, *value_bytes).is_some()
    };
    if !possible {
        return Err(Error::corrupted("the superblock's record sizes are not valid", 56));
    }
    let mismatch = |what, found: String, wanted: String| {
        if found == wanted { Ok(()) } else { Err(Error::Mismatch { what, found, wanted }) }
    };
    mismatch("engine", superblock.engine.to_string(), options.engine.to_string())?;
    if let Some((key, value)) = options.sizes {
        mismatch("a key size of", key_bytes.to_string(), key.to_string())?;
        mismatch("a value size of", value_bytes.to_string(), value.to_string())?;
    }
    if let Some(wanted) = options.layout {
        mismatch("the record layout", format!("{layout:?}"), format!("{wanted:?}"))?;
    }
    if let Some(wanted) = options.geometry {
        mismatch("the geometry", format!("{geometry:?}"), format!("{wanted:?}"))?;
    }
    if let Some(wanted) = options.segment_bytes {
        let found = geometry.segment_bytes.to_string();
        mismatch("a segment size of", found, wanted.to_string())?;
    }
    Ok(())
}
