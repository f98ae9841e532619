//! [`Lmdb`]: LMDB through heed.

use std::fs;
use std::ops::Bound;
use std::path::Path;

use chimera_bench::measure::{Footprint, Store, StoreSession};
use chimera_bench::report::Facts;
use heed::types::Bytes;
use heed::{CommitOrAbort, CompactionOption, Database, Env, EnvFlags, EnvOpenOptions};

use super::{ALL, Guarantee, Peer, facts};
use crate::job::{Durability, Job};
use crate::window::{Window, Written};
use crate::{BenchError, Result};

/// Addresses for the map. LMDB's documentation: a database cannot outgrow it, it costs addresses alone, so take plenty.
const MAP_BYTES: usize = 1 << 40;
/// The file with all records.
const DATA: &str = "data.mdb";
/// Where a compaction writes its copy.
const COPY: &str = "compacted.mdb";

/// LMDB.
pub struct Lmdb {
    env: Env,
    records: Database<'static, Bytes, Bytes>,
    window: Option<Window>,
    job: Job,
}

/// One thread's way to it.
#[derive(Clone)]
pub struct LmdbSession {
    env: Env,
    records: Database<'static, Bytes, Bytes>,
    written: Option<Written>,
}

fn failed(error: impl std::fmt::Display) -> BenchError {
    BenchError::Peer { store: "lmdb", message: error.to_string() }
}

fn environment(job: &Job) -> Result<Env> {
    fs::create_dir_all(&job.path).map_err(failed)?;
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES);
    let mut flags = EnvFlags::empty();
    if job.durability != Durability::Operation {
        // No writable map: by LMDB's documentation a file system that writes in order then keeps the database whole.
        flags |= EnvFlags::NO_SYNC;
    }
    if job.exceeds_memory() {
        // As its documentation says of databases that are larger than memory.
        flags |= EnvFlags::NO_READ_AHEAD;
    }
    // SAFETY: without syncs a power loss may damage the file, and nothing reads it after one: each run makes its own. The other
    // flag changes what is read ahead alone.
    unsafe { options.flags(flags) };
    // SAFETY: the directory belongs to this run, and no other process maps the file or changes it.
    unsafe { options.open(&job.path) }.map_err(failed)
}

impl Peer for Lmdb {
    const PUTS_KNOW: bool = false;
    const BATCH: &str = "one transaction: all or nothing";

    fn open(job: &Job) -> Result<Self> {
        let env = environment(job)?;
        let transaction = env.write_txn().map_err(failed)?;
        let records = env
            .create_databases_and_commit(transaction, |opener, transaction| {
                let records = opener.create_database(transaction, None)?;
                Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(records))
            })
            .map_err(failed)?
            .unwrap_commit();
        let own = env.clone();
        let window = (job.durability == Durability::Window)
            .then(|| Window::start(Box::new(move || own.force_sync().map_err(failed))));
        Ok(Self { env, records, window, job: job.clone() })
    }

    /// LMDB's only way: a copy without free pages takes the file's place.
    fn compact(self, job: &Job) -> Result<Self> {
        let copy = job.path.join(COPY);
        let file = self.env.copy_to_path(&copy, CompactionOption::Enabled).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        self.close()?;
        fs::rename(&copy, job.path.join(DATA)).map_err(failed)?;
        sync_directory(&job.path)?;
        Self::open(job)
    }

    fn version() -> String {
        let version = heed::lmdb_version();
        format!(
            "{}.{}.{} (heed {})",
            version.major,
            version.minor,
            version.patch,
            env!("HEED_VERSION")
        )
    }

    fn configuration(job: &Job) -> Vec<String> {
        let sync = match job.durability {
            Durability::Operation => "a transaction for each put, synced when it commits",
            Durability::Window => "a transaction for each put, MDB_NOSYNC, mdb_env_sync each 50 ms",
            Durability::Process => "a transaction for each put, MDB_NOSYNC",
        };
        let ahead = if job.exceeds_memory() { "MDB_NORDAHEAD" } else { "read-ahead of the system" };
        vec![sync.to_owned(), format!("map of {} GiB, no MDB_WRITEMAP, {ahead}", MAP_BYTES >> 30)]
    }

    fn guarantee(durability: Durability) -> Guarantee {
        match durability {
            Durability::Operation => Guarantee::new(ALL, ALL),
            Durability::Window => Guarantee::new(
                ALL,
                "all but the writes since the last sync began, if the file system writes in order; else the database may \
                 be damaged",
            ),
            Durability::Process => Guarantee::new(ALL, "nothing: the database may be damaged"),
        }
    }
}

fn sync_directory(path: &Path) -> Result<()> {
    fs::File::open(path).and_then(|directory| directory.sync_all()).map_err(failed)
}

impl Store for Lmdb {
    type Session = LmdbSession;

    fn session(&self) -> LmdbSession {
        let written = self.window.as_ref().map(Window::written);
        LmdbSession { env: self.env.clone(), records: self.records, written }
    }

    fn for_each(&self, mut take: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let transaction = self.env.read_txn().map_err(failed)?;
        for record in self.records.iter(&transaction).map_err(failed)? {
            let (key, value) = record.map_err(failed)?;
            take(key, value);
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        if self.job.durability != Durability::Process {
            self.env.force_sync().map_err(failed)?;
        }
        self.window.as_ref().map_or(Ok(()), |window| window.check("lmdb"))
    }

    fn close(self) -> Result<()> {
        self.sync()?;
        drop(self.window);
        self.env.prepare_for_closing().wait();
        Ok(())
    }

    fn facts(&self) -> Facts {
        facts(&self.job)
    }

    fn footprint(&self) -> Footprint {
        let counted = self.env.read_txn().and_then(|transaction| self.records.len(&transaction));
        Footprint { records: counted.unwrap_or_default(), ..Footprint::default() }
    }
}

impl LmdbSession {
    /// Does `change` in a transaction of its own.
    fn write<T>(&self, change: impl FnOnce(&mut heed::RwTxn<'_>) -> heed::Result<T>) -> Result<T> {
        let mut transaction = self.env.write_txn().map_err(failed)?;
        let changed = change(&mut transaction).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        if let Some(written) = &self.written {
            written.note();
        }
        Ok(changed)
    }
}

impl StoreSession for LmdbSession {
    #[inline]
    fn get_with<T>(&mut self, key: &[u8], take: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        let transaction = self.env.read_txn().map_err(failed)?;
        let value = self.records.get(&transaction, key).map_err(failed)?;
        Ok(value.map(take))
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let records = self.records;
        self.write(|transaction| records.put(transaction, key, value))?;
        Ok(true)
    }

    fn put_batch(&mut self, batch: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        let records = self.records;
        self.write(|transaction| {
            batch.iter().try_for_each(|(key, value)| records.put(transaction, key, value))
        })
    }

    #[inline]
    fn scan(&mut self, start: &[u8], count: usize, mut take: impl FnMut(&[u8])) -> Result<usize> {
        let transaction = self.env.read_txn().map_err(failed)?;
        let range = (Bound::Included(start), Bound::Unbounded);
        let mut found = 0;
        for record in self.records.range(&transaction, &range).map_err(failed)?.take(count) {
            take(record.map_err(failed)?.1);
            found += 1;
        }
        Ok(found)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        let records = self.records;
        self.write(|transaction| records.delete(transaction, key))
    }
}
