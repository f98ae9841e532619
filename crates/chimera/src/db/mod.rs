//! What a user sees: [`Db`], [`Session`], [`TypedDb`].

mod batch;
mod calls;
mod close;
mod destroy;
mod forked;
mod iter;
pub mod keyspace;
mod memory;
mod metered;
mod metrics_text;
mod open;
mod publish;
mod report;
mod scan;
mod scrub;
pub mod session;
pub mod typed;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chimera_pmem::environment::Task;
use chimera_pmem::{Environment, Hardware, Pmem};

use self::close::Lease;
use self::metered::Metered;
use self::scrub::Scrub;
use crate::engine::contract::listed::Listed;
use crate::engine::contract::upkeep::Step;
use crate::engine::{AnyEngine, EngineKind, InspectReport, Options, Stats};
use crate::metrics::{Meter, Registry};
use crate::pool::Pool;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, lock, lock_relaxing};
use crate::types::check::CheckReport;
use crate::types::durability::Durability;
use crate::types::error::{Error, Result};
use crate::types::losses::Losses;
use crate::types::operations::SessionStats;
use crate::types::progress::Progress;
use crate::types::scrub::ScrubStats;
use crate::types::stats::{ReclaimStats, RecoveryStats};
use crate::types::stream::StreamKind;
pub use batch::{Transaction, Writes};
pub use close::CloseError;
pub use iter::{Iter, Keys};
pub use keyspace::{Keyspace, KeyspaceScan, KeyspaceSession};
pub use scan::{KeyRange, Record, Scan, prefix_range};
pub use session::Session;
#[cfg(feature = "postcard")]
pub use typed::Encoded;
pub use typed::{Plain, TypedDb, TypedKey, TypedKeyspace, TypedRecords, TypedSession, TypedValue};

/// Steps of compaction between two reports of progress, because the rest is counted block by block.
const STEPS_PER_PROGRESS: u64 = 64;

/// An open store. Cheap to clone; every clone is the same store.
///
/// ```
/// use chimera::{Db, Options};
///
/// # fn main() -> Result<(), chimera::Error> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("data");
/// let options = Options::new().fixed_size(8, 8).segment_bytes(1 << 20);
/// let db = Db::open(&path, &options)?;
/// db.put(b"visitors", &1_u64.to_le_bytes())?;
/// db.fetch_add_u64(b"visitors", 0, 41)?;
/// db.close()?;
///
/// // Another process, later. Sizes are known from the store.
/// let db = Db::open(&path, &Options::new())?;
/// assert_eq!(db.get(b"visitors")?.unwrap(), 42_u64.to_le_bytes());
/// # Ok(())
/// # }
/// ```
///
/// Methods of `Db` that read or write borrow a session from a pool for each call, at the price of a
/// lock. Threads that do more than a few operations take a [`Session`] each.
///
/// Write `Db`, without a parameter: that is a store on this machine. Another `P` is for tests and simulations; the same holds
/// for sessions and iterators.
///
/// The store closes when the last clone and the last session are dropped, or explicitly, with errors
/// reported, by [`close`](Self::close).
///
/// # Cost
/// Beside those of a [`Session`], which are in its table, what methods of a store cost as a whole:
///
/// | method | cost |
/// | --- | --- |
/// | [`open`](Db::open) | `viper` reads every record, some 150 ns each per thread; `hikv` its index; `chameleon` tables and a part of the log |
/// | [`get`](Self::get), [`put`](Self::put), .. | as of a session, and a lock |
/// | [`len`](Self::len), [`stats`](Self::stats) | some microseconds per million records |
/// | [`metrics_text`](Self::metrics_text) | as `stats`, and some 40 KB of text |
/// | [`check`](Self::check), [`scrub`](Self::scrub) | reads the whole store, in one thread |
/// | [`compact`](Self::compact) | an overwrite for each record that is moved; 1 fence for each block that is given back, 2 to 4 for one that becomes free |
/// | [`export`](Self::export) | reads every record once; memory for a frame and the longest value |
/// | [`backup`](Db::backup) | reads and puts every record once, in one thread; a second index in DRAM |
///
/// # Fork
/// A handle is of use in the process that opened the store, and not in children that are forked from it: open the store
/// after the fork, and in one process at a time. In a child every call is [`Error::Forked`], and one that returns no
/// error panics; handles, sessions and iterators that are dropped there do nothing. The parent goes on undisturbed. A
/// child that executes another program has nothing of the store. One that lives on shares the lock of the store, so
/// nobody can open it before both have ended. Do not fork inside a closure that the store calls.
pub struct Db<P: Pmem = Hardware> {
    inner: Arc<Inner<P>>,
    /// Dropped last.
    lease: Arc<Lease<P>>,
}

/// What all handles, sessions and tasks of a store share.
pub(crate) struct Inner<P: Pmem> {
    kind: EngineKind,
    engine: AnyEngine<P>,
    /// Ends in the background what opening left to be done.
    rebuilding: OnceLock<Box<dyn Task>>,
    /// Reclaims space in the background.
    reclaim: OnceLock<Box<dyn Task>>,
    /// Make the order of all keys.
    ordering: OnceLock<Box<[Box<dyn Task>]>>,
    /// Verifies everything in the background.
    scrubbing: OnceLock<Box<dyn Task>>,
    scrub: Scrub,
    /// Held by a compaction, so that no pass with another share of free space begins meanwhile.
    compaction: Mutex<()>,
    durability: Durability,
    recovery: RecoveryStats,
    /// Of sessions that `Db`'s own methods borrow.
    clients: Mutex<Vec<Metered<P>>>,
    next_client: AtomicU32,
    /// Facts of the hardware for [`Stats`], if it is known.
    hardware: Option<fn(&P) -> HardwareFacts>,
    metrics: Arc<Registry>,
    /// When the store was open, by the environment's clock.
    opened_ns: u64,
    /// How often metrics are published, if they are.
    published_every: Option<Duration>,
}

/// What only the backend knows.
struct HardwareFacts {
    flush_instruction: String,
    huge_pages: bool,
}

impl Db {
    /// Opens the store in the directory `path` or on the DAX device `path` (`/dev/daxX.Y`), or creates
    /// it; recovers it where needed. A device is free for a new store when its first 8192 bytes are
    /// zero.
    ///
    /// # Errors
    /// See [`Error`]: missing, foreign, damaged, locked or full stores, options that cannot be had.
    ///
    /// # Durability
    /// Everything acknowledged earlier is there, as far as [`Durability`] promises.
    ///
    /// # Cost
    /// Reads every record: some 150 ns for each per thread. An empty store opens within 20 ms.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        open::on_hardware(path.as_ref(), options)
    }
}

impl<P: Pmem> Db<P> {
    /// As [`open`](Db::open), on a given backend of the persistence seam and environment: for
    /// counters, latency models and simulated failures.
    ///
    /// # Errors
    /// As [`open`](Db::open).
    #[doc(hidden)]
    pub fn open_on(
        pmem: P,
        environment: &Arc<dyn Environment>,
        path: impl AsRef<Path>,
        options: &Options,
    ) -> Result<Self> {
        open::on(pmem, environment, path.as_ref(), options, None)
    }

    /// The backend of the persistence seam.
    #[doc(hidden)]
    pub fn pmem(&self) -> &P {
        &self.inner.engine.core().pool.pmem
    }

    /// A session: the way for a thread to read and write.
    ///
    /// # Panics
    /// In a process that was [forked](Self#fork). There
    /// [`try_session`](Self::try_session) is an error.
    pub fn session(&self) -> Session<P> {
        self.assert_not_forked();
        Session::new(self.clone(), self.inner.new_client())
    }

    /// As [`session`](Self::session), with an error in a process that was [forked](Self#fork).
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn try_session(&self) -> Result<Session<P>> {
        self.refuse_forked()?;
        Ok(self.session())
    }

    /// Refuses a process other than the one that opened the store.
    pub(crate) fn refuse_forked(&self) -> Result<()> {
        forked::refuse(self.inner.metrics.origin())
    }

    /// As [`refuse_forked`](Self::refuse_forked), for calls that return no error.
    ///
    /// # Panics
    /// In such a process.
    #[track_caller]
    fn assert_not_forked(&self) {
        if let Err(error) = self.refuse_forked() {
            panic!("{error}");
        }
    }

    /// Stores `value` under `key`. See [`Session::put`].
    ///
    /// # Errors
    /// As [`Session::put`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.with_client(|client| client.put(key.as_ref(), value.as_ref()))
    }

    /// Stores many records. See [`Session::multi_put`].
    ///
    /// # Errors
    /// As [`Session::multi_put`].
    pub fn multi_put<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, records: &[(K, V)]) -> Result<u64> {
        self.with_client(|client| client.multi_put(records))
    }

    /// The value of `key`. See [`Session::get`].
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Removes `key`. See [`Session::delete`].
    ///
    /// # Errors
    /// As [`Session::delete`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.with_client(|client| client.delete(key.as_ref()))
    }

    /// Whether `key` is there. See [`Session::contains_key`].
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.get_with(key, |_| ()).map(|found| found.is_some())
    }

    /// The number of live records, roughly while others write.
    ///
    /// # Cost
    /// Some microseconds per million records.
    ///
    /// # Panics
    /// In a process that was [forked](Self#fork).
    pub fn len(&self) -> u64 {
        self.assert_not_forked();
        self.inner.engine.records()
    }

    /// Whether keys are kept in their order, so that the store can be scanned.
    pub fn is_ordered(&self) -> bool {
        self.inner.engine.core().changes.order().is_some()
    }

    /// What damage has kept out of the store, as far as it is known: what opening it with
    /// [`Options::salvage`] left out, and what listings, scans, gets, exports, backups and checks have come across since.
    /// Each place counts once, however often. Nothing without salvage: then damage is an error.
    ///
    /// A store from which something is left out says so of everything that is read from it. A key that a get does not
    /// find may be one that is left out, and a listing lacks it.
    ///
    /// # Cost
    /// None worth mentioning.
    pub fn losses(&self) -> Losses {
        self.pool().losses()
    }

    /// Whether there is no live record.
    ///
    /// # Panics
    /// As [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands every record to `take`, in no order that means anything, until it says `false`. A key that
    /// is there from beginning to end comes exactly once, with a value that it has meanwhile.
    ///
    /// # Errors
    /// [`Error::Corrupted`] when a record does not match its checksums. A store that was opened with salvage leaves it
    /// out, and [`losses`](Self::losses) says so.
    pub fn for_each(&self, mut take: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        self.list(0, |listed| take(listed.key, listed.value))
    }

    /// As [`for_each`](Self::for_each), from a position on, in the order of positions.
    pub(crate) fn list(&self, from: u64, take: impl FnMut(&Listed<'_>) -> bool) -> Result<()> {
        self.with_client(|client| client.list(from, take))
    }

    /// Makes everything acknowledged so far as durable as the medium can: it survives a power loss, except in
    /// memory. With `Process` durability on plain files that holds only if nothing more is written before the
    /// store is closed.
    ///
    /// # Errors
    /// When the medium fails; [`Error::Removed`] when a file of the store was removed or replaced since it was opened.
    /// The store then refuses writes.
    pub fn sync(&self) -> Result<()> {
        self.refuse_forked()?;
        let engine = &self.inner.engine;
        engine.sync();
        let pool = &engine.core().pool;
        pool.sync()
            .and_then(|()| pool.check_in_place())
            .inspect_err(|error| engine.core().poison.poison(&error.to_string()))
    }

    /// The durability in force.
    pub fn effective_durability(&self) -> Durability {
        self.inner.durability
    }

    /// What the store says of itself.
    ///
    /// # Cost
    /// Some microseconds per million records and for each session; more where the kernel is asked for
    /// huge pages. Sessions are not disturbed.
    ///
    /// # Panics
    /// In a process that was [forked](Self#fork).
    pub fn stats(&self) -> Stats {
        self.assert_not_forked();
        self.inner.stats()
    }

    /// What each open session has done, those that `Db`'s own methods borrow included. See
    /// [`Session::stats`].
    ///
    /// # Cost
    /// Some microseconds for each session. Sessions are not disturbed.
    ///
    /// # Panics
    /// In a process that was [forked](Self#fork).
    pub fn session_stats(&self) -> Vec<SessionStats> {
        self.assert_not_forked();
        self.inner.metrics.sessions()
    }

    /// All that [`stats`](Self::stats) knows, as OpenMetrics text, with histograms of latencies. The
    /// names and what they mean are listed in docs/METRICS.md.
    ///
    /// # Cost
    /// As [`stats`](Self::stats), and some 40 KB of text.
    ///
    /// # Panics
    /// In a process that was [forked](Self#fork).
    pub fn metrics_text(&self) -> String {
        self.assert_not_forked();
        self.inner.metrics_text()
    }

    /// Verifies every checksum and that index and records agree. Other sessions may go on. Counts as a full pass of
    /// the [scrub](Options::scrub_every), of which it is one without rests.
    ///
    /// # Cost
    /// Reads the whole store, in one thread.
    ///
    /// In a process that was [forked](Self#fork) nothing is read, and the report says so, as one damage.
    pub fn check(&self, progress: Option<&Progress>) -> CheckReport {
        if let Err(error) = self.refuse_forked() {
            let mut report = CheckReport::default();
            report.damage(0, error.to_string());
            return report;
        }
        self.inner.check(progress)
    }

    /// Runs a whole pass of the [scrub](Options::scrub_every) now, without rests: a [`check`](Self::check) that
    /// returns what is known of the scrub then. The pass in the background goes on where it is.
    ///
    /// # Cost
    /// As [`check`](Self::check).
    ///
    /// # Panics
    /// In a process that was [forked](Self#fork).
    pub fn scrub(&self, progress: Option<&Progress>) -> ScrubStats {
        self.assert_not_forked();
        self.inner.check(progress);
        self.inner.scrub_stats()
    }

    /// Rewrites blocks that are at least `free_percent` % free, then shrinks the tail of the file: records move
    /// from the end of the pool to free space before it, and the end is given back. Whole files go when the
    /// store is closed. In stores of any size the space of retired records is free in this sense. On a plain file with
    /// a journal, free space between records has no storage afterwards, and the journal that of a new one. What is kept ready
    /// for later writes is given back as well.
    ///
    /// Sessions may go on. A block that a session fills stays where it is, with all blocks before it. The
    /// background task rests meanwhile. A second caller waits, so `progress` must not compact.
    ///
    /// # Errors
    /// As [`Session::put`]. No record is lost then, and freed blocks stay free. A pool without room to move
    /// records to is no error: fewer blocks are given back.
    ///
    /// # Durability
    /// At any time a crash leaves every record, at its old place or at its new one.
    ///
    /// # Cost
    /// An overwrite for each record that is moved: see [`Stats::reclaim`](crate::Stats::reclaim). 2 fences for
    /// each block that becomes free, up to 4 for one that was one page; 1 for each that is given back. Where
    /// emptying blocks would not leave fewer of them, nothing is moved.
    pub fn compact(&self, free_percent: u32, progress: Option<&Progress>) -> Result<ReclaimStats> {
        self.refuse_forked()?;
        let engine = &self.inner.engine;
        engine.core().poison.check()?;
        let free_percent = free_percent.min(100);
        let clients = std::mem::take(&mut *lock(&self.inner.clients));
        for mut client in clients {
            client.end();
            lock(&self.inner.clients).push(client);
        }
        let _alone = lock_relaxing(&self.inner.compaction, &*self.pool().environment);
        engine.give_back_pieces();
        let debt_bytes = engine.reclaim_stats().debt_bytes;
        let (mut steps, mut passes) = (0_u64, 0);
        // A pass that had begun before may have passed over blocks that have become free since.
        while passes < 2 {
            if engine.reclaim_step(free_percent)? == Step::Done {
                passes += 1;
            }
            steps += 1;
            if let (Some(progress), true) = (progress, steps.is_multiple_of(STEPS_PER_PROGRESS)) {
                progress(debt_bytes.saturating_sub(engine.reclaim_stats().debt_bytes), debt_bytes);
            }
        }
        engine.trim()?;
        self.pool().release_free_runs();
        self.pool().release_ahead();
        self.pool().trim_journal()?;
        let stats = engine.reclaim_stats();
        if let Some(progress) = progress {
            progress(debt_bytes.saturating_sub(stats.debt_bytes), debt_bytes);
        }
        Ok(stats)
    }

    /// Says what the store is made of: blocks by kind and state, pages, where the bytes are, how the index
    /// has grown. Other sessions may go on.
    ///
    /// # Cost
    /// Reads the words that tell which records are live, of every page, in one thread. No checksum of a
    /// record is verified.
    ///
    /// # Panics
    /// In a process that was [forked](Self#fork).
    pub fn inspect(&self, progress: Option<&Progress>) -> InspectReport {
        self.assert_not_forked();
        self.inner.engine.inspect(progress)
    }

    #[cfg(test)]
    pub(crate) fn engine(&self) -> &AnyEngine<P> {
        &self.inner.engine
    }

    pub(crate) fn pool(&self) -> &Pool<P> {
        &self.inner.engine.core().pool
    }

    /// Options for an empty store like this one.
    pub(crate) fn options_for_copy(&self) -> Options {
        self.inner.engine.options_for_copy().engine(self.inner.kind)
    }

    /// What kind of records the store has.
    pub(crate) fn kind(&self) -> StreamKind {
        self.inner.engine.kind()
    }

    /// Ends the making of a store that was opened as incomplete, and closes it.
    ///
    /// # Errors
    /// As [`close`](Self::close), and when an earlier failure left the store in doubt: it then stays
    /// incomplete.
    pub(crate) fn complete(self) -> Result<()> {
        self.sync()?;
        if let Some(reason) = self.inner.engine.core().poison.failure() {
            return Err(Error::Poisoned { reason });
        }
        self.pool().complete();
        Ok(self.close()?)
    }

    /// Does `work` with a pooled session, which goes back to the pool also when `work` panics.
    fn with_client<T>(&self, work: impl FnOnce(&mut Metered<P>) -> Result<T>) -> Result<T> {
        self.refuse_forked()?;
        let client = lock(&self.inner.clients).pop();
        let client = Some(client.unwrap_or_else(|| self.inner.new_client()));
        let mut borrowed = Borrowed { inner: &self.inner, client };
        work(borrowed.client.as_mut().expect("given back by the drop alone"))
    }
}

/// A pooled session that is borrowed. It goes back also when its user panics, because it may hold a block.
struct Borrowed<'a, P: Pmem> {
    inner: &'a Inner<P>,
    client: Option<Metered<P>>,
}

impl<P: Pmem> Drop for Borrowed<'_, P> {
    fn drop(&mut self) {
        lock(&self.inner.clients).extend(self.client.take());
    }
}

impl<P: Pmem> Inner<P> {
    fn new_client(&self) -> Metered<P> {
        let number = self.next_client.fetch_add(1, Ordering::Relaxed);
        Metered::new(self.engine.session(number), Meter::new(self.metrics.clone(), number))
    }

    /// Processor time of space reclamation and of the scrub in the background.
    fn tasks_ns(&self) -> u64 {
        let tasks = [&self.rebuilding, &self.reclaim, &self.scrubbing];
        let tasks = tasks.into_iter().filter_map(|task| task.get());
        let ordering = self.ordering.get().into_iter().flatten();
        let times = tasks.chain(ordering).filter_map(|task| task.processor_time());
        times.sum::<Duration>().as_nanos() as u64
    }
}

impl<P: Pmem> Clone for Db<P> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), lease: self.lease.clone() }
    }
}

impl<P: Pmem> fmt::Debug for Db<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db").field("durability", &self.inner.durability).finish_non_exhaustive()
    }
}
