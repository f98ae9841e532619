//! [`Options`]: how a store is created and opened.

use std::fmt;
#[cfg(feature = "baselines")]
use std::sync::Arc;
use std::time::Duration;

#[cfg(not(loom))]
use super::chameleon::ChameleonOptions;
use super::hikv::HikvOptions;
use super::kind::EngineKind;
#[cfg(all(feature = "baselines", not(loom)))]
use super::log_hash::LogHashOptions;
use super::viper::ViperOptions;
use crate::ordered::OrderOptions;
use crate::pool::PoolOptions;
#[cfg(feature = "baselines")]
use crate::types::change::TellChange;
use crate::types::durability::Durability;
use crate::types::progress::Progress;
use crate::types::verify_reads::VerifyReads;

/// How a store is created and opened. Each setting names its default, its unit, what it costs, and
/// whether it can change after creation.
///
/// `Options::new()` opens whatever is there, and creates a store of the default engine where nothing is.
///
/// ```
/// use std::time::Duration;
///
/// use chimera::{Db, Durability, EngineKind, Options};
///
/// # fn main() -> Result<(), chimera::Error> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("data");
/// // Fixed at creation: the engine, sizes. Said again, they must agree with the store.
/// let new = Options::new().engine(EngineKind::Viper).fixed_size(16, 200);
/// // At every open: what is durable when, order, limits, metrics.
/// let options = new
///     .durability(Durability::Group { max_delay: Duration::from_millis(10) })
///     .ordered(true)
///     .memory_budget(256 << 20)
///     .publish_metrics(Duration::from_secs(10));
/// # let options = options.segment_bytes(4 << 20).durability(Durability::Auto);
/// let db = Db::open(&path, &options)?;
/// assert_eq!(options.key_bytes(), Some(16));
/// db.put(&[7; 16], &[0; 200])?;
/// db.close()?;
/// # Ok(())
/// # }
/// ```
///
/// # Cost
/// What a setting changes of a write of 16 + 200 bytes, and what else it takes. A write of the default store costs 2 fences
/// and 4.71 lines (insert), or 3 and 5.71 (overwrite).
///
/// | setting | fences and lines of a write | else |
/// | --- | --- | --- |
/// | [`fixed_size(16, 200)`](Self::fixed_size) | insert 2, 5.471; overwrite 3, 6.468 | |
/// | [`counter_at(0)`](Self::counter_at) | the same; the first update of the number 1, 1 | |
/// | [`engine(Hikv)`](Self::engine) | 2, 5 to 6 | less DRAM, gets read two places of persistent memory |
/// | `engine(Chameleon)` | 1, 4.5, and its share of tables | opening replays a part of the log |
/// | [`chameleon(\|it\| it.log_batch_bytes(4096))`](Self::chameleon) | 1 fence for many writes | the end of the process may take a batch |
/// | [`durability(Immediate)`](Self::durability) | the same | on plain files each write waits for a sync; nothing on persistent memory |
/// | [`ordered(true)`](Self::ordered) | the same | some 30 bytes of DRAM a key, a background thread |
/// | [`flush(false)`](Self::flush) | no lines | safe only where caches survive a power loss |
/// | [`verify_reads(Never)`](Self::verify_reads) | the same | faster gets, which may hand out what the medium has changed |
/// | [`memory_budget`](Self::memory_budget) | the same | the less, the sooner writers wait for write-back, on plain files |
/// | [`latency_sampling(1)`](Self::latency_sampling) | the same | some 100 ns for each operation |
/// | [`publish_metrics`](Self::publish_metrics) | the same | some 40 KB written each time |
#[derive(Clone)]
#[must_use]
pub struct Options {
    pub(crate) engine: Option<EngineKind>,
    pub(crate) pool: PoolOptions,
    pub(crate) viper: ViperOptions,
    pub(crate) order_kept: OrderKept,
    pub(crate) order: OrderOptions,
    pub(crate) hikv: HikvOptions,
    #[cfg(not(loom))]
    pub(crate) chameleon: ChameleonOptions,
    #[cfg(all(feature = "baselines", not(loom)))]
    pub(crate) log_hash: LogHashOptions,
    pub(crate) sizes: Option<(u32, u32)>,
    pub(crate) counter_at: Option<u32>,
    pub(crate) segment_bytes: Option<u64>,
    pub(crate) flush: bool,
    pub(crate) huge_pages: bool,
    pub(crate) verify_reads: VerifyReads,
    pub(crate) scrub_every: Option<Duration>,
    /// As the engine does it, unless said otherwise.
    pub(crate) verify_at_open: Option<bool>,
    pub(crate) recovery_threads: usize,
    pub(crate) reclaim_percent: u32,
    pub(crate) reclaim_bytes_per_second: u64,
    pub(crate) progress: Option<Progress>,
    #[cfg(feature = "baselines")]
    pub(crate) told: Option<Arc<dyn TellChange>>,
    pub(crate) latency_sampling: u32,
    pub(crate) publish_metrics: Option<Duration>,
}

/// Whether keys are kept in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderKept {
    /// As the store says.
    AsRecorded,
    /// Now, and at every later open unless the order is for [this time](OrderOptions::this_time).
    FromNowOn,
    NotNow,
}

impl OrderKept {
    /// Whether they are, in a store that says `recorded`.
    pub(crate) fn applies(self, recorded: bool) -> bool {
        match self {
            Self::AsRecorded => recorded,
            Self::FromNowOn => true,
            Self::NotNow => false,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            engine: None,
            pool: PoolOptions::default(),
            viper: ViperOptions::default(),
            order_kept: OrderKept::AsRecorded,
            order: OrderOptions::default(),
            hikv: HikvOptions::default(),
            #[cfg(not(loom))]
            chameleon: ChameleonOptions::default(),
            #[cfg(all(feature = "baselines", not(loom)))]
            log_hash: LogHashOptions::default(),
            sizes: None,
            counter_at: None,
            segment_bytes: None,
            flush: true,
            huge_pages: true,
            verify_reads: VerifyReads::Always,
            scrub_every: Some(Self::SCRUB_EVERY_DEFAULT),
            verify_at_open: None,
            recovery_threads: 0,
            reclaim_percent: 50,
            reclaim_bytes_per_second: 16 << 20,
            progress: None,
            #[cfg(feature = "baselines")]
            told: None,
            latency_sampling: Self::LATENCY_SAMPLING_DEFAULT,
            publish_metrics: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("engine", &self.engine)
            .field("sizes", &self.sizes)
            .field("pool", &self.pool)
            .field("viper", &self.viper)
            .field("hikv", &self.hikv)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// One operation in so many is timed.
    const LATENCY_SAMPLING_DEFAULT: u32 = 128;
    /// From the begin of one scrub to the next.
    const SCRUB_EVERY_DEFAULT: Duration = Duration::from_secs(24 * 60 * 60);
    /// The shortest time from the begin of one scrub to the next.
    pub(crate) const SCRUB_EVERY_MIN: Duration = Duration::from_millis(1);
    /// The shortest time between two publications of metrics.
    pub(crate) const PUBLISH_EVERY_MIN: Duration = Duration::from_millis(10);

    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The engine of a new store. Default: none in particular, which opens whatever the store is, and
    /// creates one of `viper`. A store that is there must have the engine that is given. Fixed at creation.
    pub fn engine(mut self, engine: EngineKind) -> Self {
        self.engine = Some(engine);
        self
    }

    /// Every key has exactly `key_bytes` (1 to 4096) and every value exactly `value_bytes` (0 to
    /// 524,288) bytes. Default: keys and values of any size. When a store is opened it may be left out, and
    /// must agree if given. Fixed at creation.
    pub fn fixed_size(mut self, key_bytes: u32, value_bytes: u32) -> Self {
        self.sizes = Some((key_bytes, value_bytes));
        self
    }

    /// Key size, if set.
    pub fn key_bytes(&self) -> Option<u32> {
        self.sizes.map(|sizes| sizes.0)
    }

    /// Value size, if set.
    pub fn value_bytes(&self) -> Option<u32> {
        self.sizes.map(|sizes| sizes.1)
    }

    /// In each value the 8 bytes at `at` are a number that will be updated: every put of a value is a
    /// [`put_counter`](crate::Session::put_counter) there, so that the first
    /// [`fetch_add_u64`](crate::Session::fetch_add_u64) costs no more than later ones. Other words of a value
    /// are no longer changed in place. For stores of a [fixed size](Self::fixed_size) only; `at` is a multiple of 8, below 65,528.
    /// Default: none. Not recorded: it may change at every open, and holds for what is written from then on.
    pub fn counter_at(mut self, at: u32) -> Self {
        self.counter_at = Some(at);
        self
    }

    /// Bytes per segment; overrides the one in a [geometry](ViperOptions::geometry). Default 1 GiB; on a
    /// device, what fills it with equal segments of up to 1 GiB. Small segments make more files. A
    /// value of HiKV fits into a segment: with the default it has up to 1,073,733,536 bytes, with segments of 1 GiB and
    /// 2 MiB up to 1 GiB. A segment bounds nothing else. Fixed at creation.
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = Some(bytes);
        self
    }

    /// Options of Viper alone, changed by `change`: `options.viper(|viper| viper.geometry(..))`. They have no
    /// effect on stores of other engines.
    pub fn viper(mut self, change: impl FnOnce(ViperOptions) -> ViperOptions) -> Self {
        self.viper = change(self.viper);
        self
    }

    /// Keeps all keys in their order, too, so that [`Db::scan`](crate::Db::scan) reads ranges of them. `true` is recorded in the
    /// store, and holds at every later open as well, if this one is for writing; `false` leaves the order out this time. Without
    /// either it is as recorded: none in a new store.
    ///
    /// Costs DRAM, some 30 bytes for each key of 16. When a store is opened, all keys are gathered in the background,
    /// while it is used; meanwhile they take some 40 bytes more, and changed ones 100. A write of a new key, and a
    /// removal, cost a change of a tree, which a background thread makes.
    pub fn ordered(mut self, ordered: bool) -> Self {
        self.order_kept = if ordered { OrderKept::FromNowOn } else { OrderKept::NotNow };
        self
    }

    /// How the order of keys is kept, changed by `change`: `options.order(|order| order.threads(2))`. Without effect
    /// unless the store is [`ordered`](Self::ordered).
    pub fn order(mut self, change: impl FnOnce(OrderOptions) -> OrderOptions) -> Self {
        self.order = change(self.order);
        self
    }

    /// Options of HiKV alone, changed by `change`: `options.hikv(|hikv| hikv.partitions(..))`. They have no effect on
    /// stores of other engines.
    pub fn hikv(mut self, change: impl FnOnce(HikvOptions) -> HikvOptions) -> Self {
        self.hikv = change(self.hikv);
        self
    }

    /// Options of ChameleonDB alone, changed by `change`: `options.chameleon(|chameleon| chameleon.shards(..))`. They have
    /// no effect on stores of other engines.
    #[cfg(not(loom))]
    pub fn chameleon(mut self, change: impl FnOnce(ChameleonOptions) -> ChameleonOptions) -> Self {
        self.chameleon = change(self.chameleon);
        self
    }

    /// Options of `pmem-hash` and `dram-hash` alone, changed by `change`. They have no effect on stores of other engines.
    #[cfg(all(feature = "baselines", not(loom)))]
    pub fn log_hash(mut self, change: impl FnOnce(LogHashOptions) -> LogHashOptions) -> Self {
        self.log_hash = change(self.log_hash);
        self
    }

    /// What an acknowledged write survives. Default [`Durability::Auto`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.pool.durability = durability;
        self
    }

    /// Whether to create the store when nothing is there. Default true.
    pub fn create(mut self, create: bool) -> Self {
        self.pool.create = create;
        self
    }

    /// Open for reading only. Default false. Several read-only processes may share a store that
    /// nobody writes; nothing on media changes, not even to finish an interrupted overwrite.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.pool.read_only = read_only;
        self
    }

    /// Open in spite of damage. Default false. Damaged records stay on media, are not served, and are
    /// counted in [`Db::losses`](crate::Db::losses), with the first of them; keys they held read as absent.
    /// Reports of exports, of backups and of the store say so, too. Where the word that says which records are live is damaged, sound records are taken as
    /// live: one that was deleted may come back. Also opens a `Process` store after a power loss.
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.pool.salvage = salvage;
        self
    }

    /// Keep the store in `bytes` of anonymous memory instead of files; the path is not used. Default
    /// off. Everything is gone at close: for tests, and for the paper's DRAM-only variant.
    pub fn anonymous(mut self, bytes: u64) -> Self {
        self.pool.anonymous_bytes = Some(bytes);
        self
    }

    /// Whether cache lines are flushed at all. Default true. `false` is for machines that you know to
    /// keep their caches through a power loss, and for the paper's DRAM-only variant.
    pub fn flush(mut self, flush: bool) -> Self {
        self.flush = flush;
        self
    }

    /// Ask for huge pages, for the pool's mapping and for the index. Default true: random reads are
    /// up to a third faster where the system grants it. [`Stats`](crate::Stats) and `chimera doctor`
    /// say whether it did.
    pub fn huge_pages(mut self, huge_pages: bool) -> Self {
        self.huge_pages = huge_pages;
        self
    }

    /// Whether a get verifies the sum of the value that it hands out. Default [`VerifyReads::Always`], which makes a
    /// get take longer, the more the longer its value is: `chimera bench core --verify-reads always,sampled,never`
    /// measures by how much. [`Sampled`](VerifyReads::Sampled) costs a seventeenth of that, and
    /// [`Never`](VerifyReads::Never) nothing. What is at risk with these is that a get hands out a value that the
    /// medium has changed. Keys, headers and bounds are verified in each mode, and so is whatever is no get. May
    /// change at every open.
    pub fn verify_reads(mut self, verify: VerifyReads) -> Self {
        self.verify_reads = verify;
        self
    }

    /// Verify everything in the background, once in so long: a pass takes at most that long, unless it would take
    /// more than half of a processor. Default a day: of a terabyte a pass reads some 15 MB a second. `None` switches
    /// it off. From a millisecond on. May change at every open.
    ///
    /// The scrub reads a block or some records at a time, and rests in between. It waits for writers, and they for
    /// it, as briefly as a listing, and longer only where something looks damaged. It changes nothing. Damage is
    /// logged and counted in [`Stats::scrub`](crate::Stats::scrub), and the store goes on. The first pass begins when
    /// the store is opened, so a store that is always closed before a pass ends relies on
    /// [`verify_at_open`](Self::verify_at_open).
    pub fn scrub_every(mut self, every: impl Into<Option<Duration>>) -> Self {
        self.scrub_every = every.into();
        self
    }

    /// Verify all records while the store is opened. Default true for engines that read them anyway, where the checksums of
    /// values cost about 15 ns per 200 bytes; with false keys and versions are still verified. Default false for HiKV, which
    /// reads the index alone, and looks at records in the background: damage of one is found then, or when it is read.
    pub fn verify_at_open(mut self, verify: bool) -> Self {
        self.verify_at_open = Some(verify);
        self
    }

    /// Threads that scan the pool at open, and that make the order of keys afterwards. Default 0: one per core.
    pub fn recovery_threads(mut self, threads: usize) -> Self {
        self.recovery_threads = threads;
        self
    }

    /// How far ahead of use the background task allocates storage, and touches it where it has no journal. Default: a
    /// sixteenth of what is in use, at least 128 KiB and at most 64 MiB. More is there sooner, less saves space; 0 leaves it
    /// to the inserting session, at up to 16 us per page.
    pub fn populate_ahead_bytes(mut self, bytes: u64) -> Self {
        self.pool.populate_ahead_bytes = Some(bytes);
        self
    }

    /// Rewrites, in the background, blocks that are at least so many percent free, so that they are used again
    /// or given back. Default 50; 0 switches it off, and leaves it to [`Db::compact`](crate::Db::compact).
    /// With records of any size the space of retired records is free in this sense. (Viper, section 4.6.) `hikv` uses free space
    /// where it is, and moves nothing in the background.
    pub fn reclaim_percent(mut self, percent: u32) -> Self {
        self.reclaim_percent = percent.min(100);
        self
    }

    /// Most bytes of keys and values that the background task moves in a second. Default 16 MiB, which takes
    /// some 8 % of a processor where records are small. `chameleon` moves up to half as many as sessions write meanwhile beside
    /// that: else they would write faster than what they supersede is collected.
    pub fn reclaim_bytes_per_second(mut self, bytes: u64) -> Self {
        self.reclaim_bytes_per_second = bytes.max(1);
        self
    }

    /// Allocate the whole of [`capacity_bytes`](Self::capacity_bytes) at open and touch it, so that no first access
    /// faults; on a plain file with a journal it is not touched. Default false. Costs about a second per GiB. Blocks that reclamation empties keep their storage.
    pub fn populate_at_open(mut self, populate: bool) -> Self {
        self.pool.populate_at_open = populate;
        self
    }

    /// Largest size of the pool in bytes; further inserts fail with
    /// [`Error::PoolFull`](crate::Error::PoolFull). Default: as much as the file system or device has.
    /// May change at every open. Below what is in use no puts are taken, and a delete that needs room, as those of
    /// `chameleon` do, may fail with `PoolFull` until the capacity is raised. Addresses are reserved for as much at open;
    /// without a capacity they are reserved in steps, each doubling them. Both cost no memory.
    pub fn capacity_bytes(mut self, bytes: u64) -> Self {
        self.pool.capacity_bytes = Some(bytes);
        self
    }

    /// Most bytes of the journal on plain files: a multiple of 4096 from 16 KiB to 1 GiB. Default 64 MiB. It begins with a
    /// 256th of that, at least 16 KiB and at most 256 KiB, doubles while writers find it too small, and is small again when
    /// the store is closed. In a larger one more changes of the same line are written back together; it costs disk space,
    /// and time to read after a crash. One that a crash left larger is as large until the store is closed in order.
    pub fn journal_bytes(mut self, bytes: u64) -> Self {
        self.pool.journal_bytes = Some(bytes);
        self
    }

    /// How long a change stays in the journal alone on plain files: it is written back to the data files so long after the sync
    /// that made it durable, or sooner, where the journal has little room or pages are given back. At least 10 ms; default
    /// 1 second; `Duration::MAX` leaves it to the room in the journal.
    ///
    /// After the end of a process or of power, opening replays what was not written back: the changes of one interval, of the
    /// window of [`Durability::Group`], and of up to two checkpoints; never more than the [journal](Self::journal_bytes)
    /// holds, all of which is read. A shorter interval makes opening faster, and writes lines that change often to the data
    /// files more often. A checkpoint costs three syncs or more in the background, of a store that was written to.
    pub fn checkpoint_interval(mut self, interval: Duration) -> Self {
        self.pool.checkpoint_interval = interval;
        self
    }

    /// Bytes of memory that the store may take on a plain file with a journal. Default: a quarter of what the process may use,
    /// by the machine, its control group and its limits; looked at again every few seconds. Writers wait for write-back when
    /// it is used up. With less, pages are written back sooner and more often. Elsewhere it has no effect.
    ///
    /// It covers index, order of keys and other tables in DRAM, and pages that were stored to and not given back yet. A quarter
    /// of what index and tables leave is for what a long step adds before it waits, and for buffers: the lines that a
    /// checkpoint writes back, and the entry of the journal that is being made. It does not cover what recovery, backup,
    /// compaction or `check` take while they run, and stacks of threads. The journal is a mapped file: its pages are the kernel's.
    ///
    /// Pages that were only read are not part of it: the kernel takes them when it needs memory. The store lets go of
    /// them as well, every few seconds, while all files that the process has mapped take more than the budget.
    ///
    /// Opening fails with [`Error::MemoryBudget`](crate::Error::MemoryBudget) when the index leaves less than 8 MiB of
    /// a budget that was asked for. Of an index that grows beyond that while the store is open, puts of new keys fail with the
    /// same error until it is opened with a larger one; gets, deletes and overwrites go on. Pages keep 8 MiB, so that the store
    /// may take more than its budget by what the index grows in a second. A budget that nobody asked for is exceeded with a
    /// warning first: new keys are refused where index and tables need more than three quarters of what the process may use.
    /// Each store has a budget of its own: where a process opens several, tell each what it may take.
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.pool.memory_budget = Some(bytes);
        self
    }

    /// Most bytes of pages with stores of their own, instead of what the budget leaves: for tests of small stores.
    #[cfg(feature = "baselines")]
    pub fn page_limit(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.pool.page_limit = bytes.into();
        self
    }

    /// Least bytes that are written to their place ahead of the journal, where that was empty; and whether what is stored to
    /// fresh blocks goes to their file until the next sync: for tests of small stores.
    #[cfg(feature = "baselines")]
    pub fn written_once(
        mut self,
        direct_bytes_min: impl Into<Option<u64>>,
        takes_places: bool,
    ) -> Self {
        self.pool.direct_bytes_min = direct_bytes_min.into();
        self.pool.takes_places = takes_places;
        self
    }

    /// Called now and then during recovery with (blocks done, blocks in all).
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Tell `whom` of each change of the index, from the time the store is open. Default: nobody. For add-ons
    /// in this library. `whom` is called under the key's lock and must not wait.
    #[cfg(feature = "baselines")]
    pub fn tell_changes(mut self, whom: Arc<dyn TellChange>) -> Self {
        self.told = Some(whom);
        self
    }

    /// Time one operation in `every`, on average, for the latencies in
    /// [`Stats::operations`](crate::Stats::operations). Default 128: less than 1 ns each. 1 times every
    /// operation, at the price of reading the clock twice, some 100 ns; 0 none. Operations are counted
    /// all the same.
    pub fn latency_sampling(mut self, every: u32) -> Self {
        self.latency_sampling = every;
        self
    }

    /// Write the [metrics](crate::Db::metrics_text) to the file `metrics` in the store's directory every so
    /// often, at least 10 ms, for `chimera stats` and other collectors. Default off: it writes some 40 KB
    /// to the file system each time, also while nothing happens, and shows what the store does to anybody who
    /// may read its directory. A background thread does it; sessions are not disturbed. The
    /// file replaces the one before as a whole, is no part of the store, and is removed when the store is
    /// closed in order. Nothing is published of a store that is open for reading only, on a device or in
    /// anonymous memory.
    pub fn publish_metrics(mut self, every: Duration) -> Self {
        self.publish_metrics = Some(every);
        self
    }
}
