//! [`RocksDb`]: RocksDB through its C interface.

mod ffi;
mod handle;
mod options;

use std::sync::Arc;

use chimera_bench::measure::{Footprint, Store, StoreSession};
use chimera_bench::report::Facts;

use super::{ALL, ALL_BUT_WINDOW, Guarantee, Peer, SEPARATE_BYTES, facts};
use crate::Result;
use crate::job::{Durability, Job};
use crate::window::{Window, Written};
use handle::{Handle, failed};
use options::Chosen;

/// RocksDB.
pub struct RocksDb {
    handle: Arc<Handle>,
    window: Option<Window>,
    job: Job,
}

/// One thread's way to it.
#[derive(Clone)]
pub struct RocksDbSession {
    handle: Arc<Handle>,
    written: Option<Written>,
}

fn chosen(job: &Job) -> Chosen {
    let separates = job.value_bytes >= SEPARATE_BYTES;
    Chosen {
        cache_bytes: job.cache_bytes,
        blobs_from_bytes: separates.then_some(SEPARATE_BYTES as u64),
    }
}

impl Peer for RocksDb {
    const PUTS_KNOW: bool = false;
    const BATCH: &str = "a WriteBatch: all or nothing";

    fn open(job: &Job) -> Result<Self> {
        let syncs = job.durability == Durability::Operation;
        let handle = Arc::new(Handle::open(&job.path, &chosen(job).options(), syncs)?);
        let own = Arc::clone(&handle);
        let window = (job.durability == Durability::Window)
            .then(|| Window::start(Box::new(move || own.sync())));
        Ok(Self { handle, window, job: job.clone() })
    }

    fn compact(self, _: &Job) -> Result<Self> {
        self.handle.compact();
        Ok(self)
    }

    fn version() -> String {
        env!("ROCKSDB_VERSION").to_owned()
    }

    fn configuration(job: &Job) -> Vec<String> {
        let sync = match job.durability {
            Durability::Operation => "WriteOptions::sync",
            Durability::Window => "FlushWAL(true) each 50 ms",
            Durability::Process => "no sync: each put writes the log to the system",
        };
        let mut lines = vec![sync.to_owned()];
        lines.extend(chosen(job).lines());
        lines
    }

    fn guarantee(durability: Durability) -> Guarantee {
        match durability {
            Durability::Operation => Guarantee::new(ALL, ALL),
            Durability::Window => Guarantee::new(ALL, ALL_BUT_WINDOW),
            Durability::Process => Guarantee::new(ALL, "what the system happened to write"),
        }
    }
}

impl Store for RocksDb {
    type Session = RocksDbSession;

    fn session(&self) -> RocksDbSession {
        let written = self.window.as_ref().map(Window::written);
        RocksDbSession { handle: Arc::clone(&self.handle), written }
    }

    fn for_each(&self, mut take: impl FnMut(&[u8], &[u8])) -> Result<()> {
        self.handle.scan(&[], |key, value| {
            take(key, value);
            true
        })
    }

    fn sync(&self) -> Result<()> {
        if self.job.durability != Durability::Process {
            self.handle.sync()?;
        }
        self.window.as_ref().map_or(Ok(()), |window| window.check("rocksdb"))
    }

    fn close(self) -> Result<()> {
        self.sync()?;
        drop(self.window);
        match Arc::into_inner(self.handle) {
            Some(_) => Ok(()),
            None => Err(failed("a session is still open")),
        }
    }

    fn facts(&self) -> Facts {
        facts(&self.job)
    }

    /// Reads all records: RocksDB does not count them.
    fn footprint(&self) -> Footprint {
        let mut records = 0;
        // A listing that fails has fewer records than there are, which is noticed where they are compared.
        let _ = self.for_each(|_, _| records += 1);
        Footprint { records, ..Footprint::default() }
    }
}

impl RocksDbSession {
    #[inline]
    fn note(&self) {
        if let Some(written) = &self.written {
            written.note();
        }
    }
}

impl StoreSession for RocksDbSession {
    #[inline]
    fn get_with<T>(&mut self, key: &[u8], take: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        self.handle.get(key, take)
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.handle.put(key, value)?;
        self.note();
        Ok(true)
    }

    fn put_batch(&mut self, records: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        self.handle.put_batch(records)?;
        self.note();
        Ok(())
    }

    #[inline]
    fn scan(&mut self, start: &[u8], count: usize, mut take: impl FnMut(&[u8])) -> Result<usize> {
        let mut found = 0;
        self.handle.scan(start, |_, value| {
            if found == count {
                return false;
            }
            take(value);
            found += 1;
            found < count
        })?;
        Ok(found)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        self.handle.delete(key)?;
        self.note();
        Ok(true)
    }
}
