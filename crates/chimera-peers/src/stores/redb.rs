//! [`Redb`]: redb.

use std::fs;
use std::sync::Arc;

use chimera_bench::measure::{Footprint, Store, StoreSession};
use chimera_bench::report::Facts;
use redb::{
    Database, Durability as RedbDurability, ReadableDatabase, ReadableTable, ReadableTableMetadata,
    Table, TableDefinition,
};

use super::{ALL, ALL_BUT_WINDOW, Guarantee, Peer, facts};
use crate::job::{Durability, Job};
use crate::window::{Window, Written};
use crate::{BenchError, Result};

const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");
/// The file with all records.
const DATA: &str = "data.redb";

/// redb.
pub struct Redb {
    database: Arc<Database>,
    window: Option<Window>,
    job: Job,
}

/// One thread's way to it.
#[derive(Clone)]
pub struct RedbSession {
    database: Arc<Database>,
    durability: RedbDurability,
    written: Option<Written>,
}

fn failed(error: impl std::fmt::Display) -> BenchError {
    BenchError::Peer { store: "redb", message: error.to_string() }
}

/// How a put commits. redb has no level between: a commit of `None` lies in this process's memory until an `Immediate` one
/// follows, so that only `Immediate` ones survive a kill.
fn commits(durability: Durability) -> RedbDurability {
    match durability {
        Durability::Window => RedbDurability::None,
        Durability::Operation | Durability::Process => RedbDurability::Immediate,
    }
}

/// Makes earlier commits durable: by redb's documentation an `Immediate` commit does.
fn commit_all(database: &Database) -> Result<()> {
    let mut transaction = database.begin_write().map_err(failed)?;
    transaction.set_durability(RedbDurability::Immediate).map_err(failed)?;
    transaction.commit().map_err(failed)
}

impl Peer for Redb {
    const PUTS_KNOW: bool = false;
    const BATCH: &str = "one transaction: all or nothing";

    fn open(job: &Job) -> Result<Self> {
        fs::create_dir_all(&job.path).map_err(failed)?;
        let database = Database::builder()
            // The documentation gives a default of 1 GiB and no rule; here all stores with a cache have the same one.
            .set_cache_size(job.cache_bytes as usize)
            .create(job.path.join(DATA))
            .map_err(failed)?;
        let transaction = database.begin_write().map_err(failed)?;
        transaction.open_table(RECORDS).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        let database = Arc::new(database);
        let own = Arc::clone(&database);
        let window = (job.durability == Durability::Window)
            .then(|| Window::start(Box::new(move || commit_all(&own))));
        Ok(Self { database, window, job: job.clone() })
    }

    fn compact(self, job: &Job) -> Result<Self> {
        let Self { database, window, .. } = self;
        drop(window);
        let in_use = "a session is still open";
        let mut database = Arc::into_inner(database).ok_or_else(|| failed(in_use))?;
        database.compact().map_err(failed)?;
        drop(database);
        Self::open(job)
    }

    fn version() -> String {
        env!("REDB_VERSION").to_owned()
    }

    fn configuration(job: &Job) -> Vec<String> {
        let sync = match job.durability {
            Durability::Operation => "a transaction for each put, Durability::Immediate",
            Durability::Window => {
                "a transaction for each put, Durability::None, an Immediate one each 50 ms"
            }
            Durability::Process => {
                "a transaction for each put, Durability::Immediate: the weakest that survives a kill"
            }
        };
        vec![sync.to_owned(), format!("cache of {} bytes, all else by default", job.cache_bytes)]
    }

    fn guarantee(durability: Durability) -> Guarantee {
        match durability {
            Durability::Operation | Durability::Process => Guarantee::new(ALL, ALL),
            Durability::Window => Guarantee::new(ALL_BUT_WINDOW, ALL_BUT_WINDOW),
        }
    }
}

impl Store for Redb {
    type Session = RedbSession;

    fn session(&self) -> RedbSession {
        RedbSession {
            database: Arc::clone(&self.database),
            durability: commits(self.job.durability),
            written: self.window.as_ref().map(Window::written),
        }
    }

    fn for_each(&self, mut take: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let transaction = self.database.begin_read().map_err(failed)?;
        let table = transaction.open_table(RECORDS).map_err(failed)?;
        for record in table.iter().map_err(failed)? {
            let (key, value) = record.map_err(failed)?;
            take(key.value(), value.value());
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        match &self.window {
            None => Ok(()),
            Some(window) => commit_all(&self.database).and_then(|()| window.check("redb")),
        }
    }

    fn close(self) -> Result<()> {
        self.sync()?;
        drop(self.window);
        match Arc::into_inner(self.database) {
            Some(database) => database.close().map_err(failed),
            None => Err(failed("a session is still open")),
        }
    }

    fn facts(&self) -> Facts {
        facts(&self.job)
    }

    fn footprint(&self) -> Footprint {
        let count = || {
            let transaction = self.database.begin_read().map_err(failed)?;
            let table = transaction.open_table(RECORDS).map_err(failed)?;
            table.len().map_err(failed)
        };
        Footprint { records: count().unwrap_or_default(), ..Footprint::default() }
    }
}

impl RedbSession {
    /// Does `change` in a transaction of its own.
    fn write<T>(
        &self,
        change: impl FnOnce(
            &mut Table<'_, &'static [u8], &'static [u8]>,
        ) -> redb::Result<T, redb::StorageError>,
    ) -> Result<T> {
        let mut transaction = self.database.begin_write().map_err(failed)?;
        transaction.set_durability(self.durability).map_err(failed)?;
        let changed = {
            let mut table = transaction.open_table(RECORDS).map_err(failed)?;
            change(&mut table).map_err(failed)?
        };
        transaction.commit().map_err(failed)?;
        if let Some(written) = &self.written {
            written.note();
        }
        Ok(changed)
    }
}

impl StoreSession for RedbSession {
    #[inline]
    fn get_with<T>(&mut self, key: &[u8], take: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        let transaction = self.database.begin_read().map_err(failed)?;
        let table = transaction.open_table(RECORDS).map_err(failed)?;
        let value = table.get(key).map_err(failed)?;
        Ok(value.map(|value| take(value.value())))
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.write(|table| table.insert(key, value).map(|_| true))
    }

    fn put_batch(&mut self, batch: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        self.write(|table| {
            batch.iter().try_for_each(|(key, value)| table.insert(&key[..], &value[..]).map(|_| ()))
        })
    }

    #[inline]
    fn scan(&mut self, start: &[u8], count: usize, mut take: impl FnMut(&[u8])) -> Result<usize> {
        let transaction = self.database.begin_read().map_err(failed)?;
        let table = transaction.open_table(RECORDS).map_err(failed)?;
        let mut found = 0;
        for record in table.range(start..).map_err(failed)?.take(count) {
            take(record.map_err(failed)?.1.value());
            found += 1;
        }
        Ok(found)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        self.write(|table| table.remove(key).map(|old| old.is_some()))
    }
}
