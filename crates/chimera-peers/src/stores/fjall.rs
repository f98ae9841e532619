//! [`Fjall`]: fjall.

use chimera_bench::measure::{Footprint, Store, StoreSession};
use chimera_bench::report::Facts;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};

use super::{ALL, ALL_BUT_WINDOW, Guarantee, Peer, SEPARATE_BYTES, facts};
use crate::job::{Durability, Job};
use crate::window::{Window, Written};
use crate::{BenchError, Result};

/// fjall.
pub struct Fjall {
    database: Database,
    records: Keyspace,
    window: Option<Window>,
    job: Job,
}

/// One thread's way to it.
#[derive(Clone)]
pub struct FjallSession {
    database: Database,
    records: Keyspace,
    syncs: bool,
    written: Option<Written>,
}

fn failed(error: impl std::fmt::Display) -> BenchError {
    BenchError::Peer { store: "fjall", message: error.to_string() }
}

/// The documentation recommends key-value separation for large values; its own threshold is 1 KiB.
fn separates(job: &Job) -> bool {
    job.value_bytes >= SEPARATE_BYTES
}

/// Options of the keyspace.
fn options(job: &Job) -> KeyspaceCreateOptions {
    let separation = separates(job).then(KvSeparationOptions::default);
    KeyspaceCreateOptions::default().with_kv_separation(separation)
}

impl Peer for Fjall {
    const PUTS_KNOW: bool = false;
    const BATCH: &str = "a WriteBatch: all or nothing";

    fn open(job: &Job) -> Result<Self> {
        let database = Database::builder(&job.path)
            // The documentation: 20 to 25 % of the memory.
            .cache_size(job.cache_bytes)
            .open()
            .map_err(failed)?;
        let records = database.keyspace("records", || options(job)).map_err(failed)?;
        let own = database.clone();
        let sync = move || own.persist(PersistMode::SyncAll).map_err(failed);
        let window = (job.durability == Durability::Window).then(|| Window::start(Box::new(sync)));
        Ok(Self { database, records, window, job: job.clone() })
    }

    /// fjall has no public way to be asked for it, and says that its background threads do all that is needed. This is what
    /// its own tests call.
    fn compact(self, _: &Job) -> Result<Self> {
        self.records.rotate_memtable_and_wait().map_err(failed)?;
        self.records.major_compact().map_err(failed)?;
        Ok(self)
    }

    fn version() -> String {
        env!("FJALL_VERSION").to_owned()
    }

    fn configuration(job: &Job) -> Vec<String> {
        let sync = match job.durability {
            Durability::Operation => "persist(SyncAll) after each put",
            Durability::Window => "persist(SyncAll) each 50 ms",
            Durability::Process => "no persist: each put writes the journal to the system",
        };
        let separation =
            if separates(job) { "values apart from keys" } else { "values beside keys" };
        vec![
            sync.to_owned(),
            format!("cache of {} bytes, {separation}", job.cache_bytes),
            // Values are random, and no other store compresses.
            "no compression, all else by default".to_owned(),
        ]
    }

    fn guarantee(durability: Durability) -> Guarantee {
        match durability {
            Durability::Operation => Guarantee::new(ALL, ALL),
            Durability::Window => Guarantee::new(ALL, ALL_BUT_WINDOW),
            Durability::Process => Guarantee::new(ALL, "what the system happened to write"),
        }
    }
}

impl Store for Fjall {
    type Session = FjallSession;

    fn session(&self) -> FjallSession {
        FjallSession {
            database: self.database.clone(),
            records: self.records.clone(),
            syncs: self.job.durability == Durability::Operation,
            written: self.window.as_ref().map(Window::written),
        }
    }

    fn for_each(&self, mut take: impl FnMut(&[u8], &[u8])) -> Result<()> {
        for record in self.records.iter() {
            let (key, value) = record.into_inner().map_err(failed)?;
            take(&key, &value);
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        if self.job.durability != Durability::Process {
            self.database.persist(PersistMode::SyncAll).map_err(failed)?;
        }
        self.window.as_ref().map_or(Ok(()), |window| window.check("fjall"))
    }

    fn close(self) -> Result<()> {
        self.sync()
    }

    fn facts(&self) -> Facts {
        facts(&self.job)
    }

    /// Reads all records: fjall does not count them.
    fn footprint(&self) -> Footprint {
        let records = self.records.len().unwrap_or_default() as u64;
        Footprint { records, ..Footprint::default() }
    }
}

impl FjallSession {
    /// Makes durable what was written, as far as is asked for.
    #[inline]
    fn acknowledge(&self) -> Result<()> {
        if self.syncs {
            self.database.persist(PersistMode::SyncAll).map_err(failed)?;
        }
        if let Some(written) = &self.written {
            written.note();
        }
        Ok(())
    }
}

impl StoreSession for FjallSession {
    #[inline]
    fn get_with<T>(&mut self, key: &[u8], take: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        Ok(self.records.get(key).map_err(failed)?.map(|value| take(&value)))
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.records.insert(key, value).map_err(failed)?;
        self.acknowledge()?;
        Ok(true)
    }

    fn put_batch(&mut self, records: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        let mode = if self.syncs { PersistMode::SyncAll } else { PersistMode::Buffer };
        let mut batch = self.database.batch().durability(Some(mode));
        for (key, value) in records {
            batch.insert(&self.records, &key[..], &value[..]);
        }
        batch.commit().map_err(failed)?;
        if let Some(written) = &self.written {
            written.note();
        }
        Ok(())
    }

    #[inline]
    fn scan(&mut self, start: &[u8], count: usize, mut take: impl FnMut(&[u8])) -> Result<usize> {
        let mut found = 0;
        for record in self.records.range(start..).take(count) {
            take(&record.value().map_err(failed)?);
            found += 1;
        }
        Ok(found)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        self.records.remove(key).map_err(failed)?;
        self.acknowledge()?;
        Ok(true)
    }
}
