//! [`Database`]: RocksDB with block cache and memtables placed in DRAM, in persistent memory or in both.

mod iterator;
mod raw;

use std::ffi::{CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::tier::Tier;
pub use iterator::{Direction, Iter};
use raw::{RawCounts, RawDatabase, RawOptions};

/// Which block cache RocksDB uses.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum CacheKind {
    /// The least recently used block goes first. RocksDB's default.
    #[default]
    Lru,
    /// HyperClockCache, which replaces ClockCache in RocksDB 7.8. Has no tier behind it.
    HyperClock,
}

/// The most bytes that any size may have: RocksDB adds to sizes, and what does not fit becomes small.
pub(crate) const BYTES_MAX: u64 = i64::MAX as u64;

/// Where components of a database lie, and how large they are.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// Memory of the block cache. `None`, the default, for RocksDB's own allocator.
    pub cache_heap: Option<Arc<Heap>>,
    /// Memory of memtables. `None`, the default, for RocksDB's own memtable.
    pub memtable_heap: Option<Arc<Heap>>,
    /// Directory and bytes for a block cache in memory of libmemkind, that of the published study. Default none. Not with a heap, and
    /// only where [`has_memkind`].
    pub memkind: Option<(PathBuf, u64)>,
    /// A tier behind the block cache. Default none. Not with [`CacheKind::HyperClock`].
    pub tier: Option<Arc<Tier>>,
    /// Whether the tier gives up blocks that go back to DRAM. Default false: it keeps them.
    pub tier_is_exclusive: bool,
    /// Bytes of the block cache. Default 8 MiB, that of db_bench.
    pub cache_bytes: u64,
    /// Bytes of a memtable. Default 64 MiB, that of RocksDB.
    pub write_buffer_bytes: u64,
    /// Bytes of a block. Default 4096.
    pub block_bytes: u64,
    /// Size of huge pages for RocksDB's own memtable; 0, the default, for none. Without reserved pages RocksDB takes others.
    pub memtable_huge_page_bytes: u64,
    /// Which block cache. Default LRU.
    pub cache_kind: CacheKind,
    /// Bits per key of a Bloom filter; 0, the default, for none. RocksDB takes more than 100 as 100.
    pub bloom_bits_per_key: u32,
    /// Whether blocks are compressed in files (Snappy). Default true.
    pub compresses: bool,
    /// Whether RocksDB counts hits and misses. Default true.
    pub keeps_statistics: bool,
    /// Whether files are read and written past the system's page cache. Default false.
    pub is_direct: bool,
    /// Bytes of all memtables together (a `WriteBufferManager`), which are charged to the block cache; 0, the default, for no limit.
    /// Memtables in a heap are not counted.
    pub write_buffers_bytes: u64,
    /// Bytes of a cache of whole records in DRAM; 0, the default, for none.
    pub row_cache_bytes: u64,
    /// Whether index and filter blocks are in the block cache, too. Default false: each open file keeps them.
    pub caches_index: bool,
    /// Whether [`Database::merge`] appends to what is there. Default false: nothing is merged.
    pub appends: bool,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self {
            cache_heap: None,
            memtable_heap: None,
            memkind: None,
            tier: None,
            tier_is_exclusive: false,
            cache_bytes: 8 << 20,
            write_buffer_bytes: 64 << 20,
            block_bytes: 4096,
            memtable_huge_page_bytes: 0,
            cache_kind: CacheKind::Lru,
            bloom_bits_per_key: 0,
            compresses: true,
            keeps_statistics: true,
            is_direct: false,
            write_buffers_bytes: 0,
            row_cache_bytes: 0,
            caches_index: false,
            appends: false,
        }
    }
}

impl DatabaseOptions {
    /// Checks what makes no sense together, and sizes.
    fn check(&self) -> Result<()> {
        let wrong = |text: &str| Err(Error::Option(text.to_owned()));
        if self.tier.is_some() && self.cache_kind == CacheKind::HyperClock {
            return wrong(
                "HyperClockCache has no tier behind it; use the LRU cache for a hot/cold split",
            );
        }
        if self.tier.is_some() && self.cache_heap.is_some() {
            return wrong("a tier goes behind a block cache in DRAM; leave the cache where it is");
        }
        if self.memkind.is_some() && self.cache_heap.is_some() {
            return wrong("the block cache lies in a heap or in memory of libmemkind, not in both");
        }
        for (what, bytes) in [
            ("a block cache", self.cache_bytes),
            ("a memtable", self.write_buffer_bytes),
            ("a block", self.block_bytes),
            ("the limit of all memtables", self.write_buffers_bytes),
            ("a row cache", self.row_cache_bytes),
            ("a huge page", self.memtable_huge_page_bytes),
            ("memory of libmemkind", self.memkind.as_ref().map_or(0, |(_, bytes)| *bytes)),
        ] {
            if bytes > BYTES_MAX {
                return wrong(&format!("{bytes} bytes for {what}, which has at most {BYTES_MAX}"));
            }
        }
        Ok(())
    }
}

/// What RocksDB counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Lookups in the block cache that found their block, those that the tier had included.
    pub block_cache_hits: u64,
    /// Lookups that had to read a file.
    pub block_cache_misses: u64,
    /// Blocks that were put into the block cache.
    pub block_cache_adds: u64,
    /// Lookups that found their block in the tier.
    pub tier_hits: u64,
    /// Gets that were answered by a memtable.
    pub memtable_hits: u64,
    /// Gets that were not.
    pub memtable_misses: u64,
    /// Time that writers were held up, in microseconds.
    pub stall_us: u64,
    /// Bytes that the block cache counts now.
    pub cache_usage_bytes: u64,
    /// Bytes of memtables now.
    pub memtable_bytes: u64,
    /// Lookups that read a block in persistent memory. Counted where reads are charged.
    pub pmem_cache_hits: u64,
    /// Blocks that the cache did not keep because persistent memory was full.
    pub cache_refused: u64,
}

/// An open database. All methods may be called from any number of threads.
#[derive(Debug)]
pub struct Database {
    raw: NonNull<RawDatabase>,
    path: PathBuf,
}

// SAFETY: a `rocksdb::DB` may be used and closed by any thread.
unsafe impl Send for Database {}
// SAFETY: all methods of a `rocksdb::DB` that are called here may be called by any number of threads.
unsafe impl Sync for Database {}

fn raw_or_null<T>(shared: Option<&Arc<T>>) -> *const c_void {
    shared.map_or(ptr::null(), |shared| Arc::as_ptr(shared).cast())
}

/// What a message of the shim says.
fn check(message: *mut c_char) -> Result<()> {
    if message.is_null() {
        return Ok(());
    }
    // SAFETY: a message of the shim is a string that ends with a zero.
    let text = unsafe { std::ffi::CStr::from_ptr(message) }.to_string_lossy().into_owned();
    // SAFETY: the message belongs to the caller, and is not used any more.
    unsafe { raw::chimera_message_free(message) };
    Err(Error::RocksDb(text))
}

/// A path as the shim takes it.
fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::Option(format!("{} has a zero in it", path.display())))
}

/// Whether libmemkind is built in: the feature `memkind`.
pub fn has_memkind() -> bool {
    raw::chimera_has_memkind()
}

fn parts(bytes: &[u8]) -> (*const c_char, usize) {
    (bytes.as_ptr().cast(), bytes.len())
}

impl Database {
    /// Opens the database in `path`, and creates it where there is none.
    ///
    /// # Errors
    /// When the options contradict each other, or RocksDB cannot open it.
    pub fn open(path: &Path, options: &DatabaseOptions) -> Result<Self> {
        options.check()?;
        let name = c_path(path)?;
        let memkind = options.memkind.as_ref();
        let memkind_directory = memkind.map(|(directory, _)| c_path(directory)).transpose()?;
        let given = RawOptions {
            path: name.as_ptr(),
            cache_heap: raw_or_null(options.cache_heap.as_ref()),
            memtable_heap: raw_or_null(options.memtable_heap.as_ref()),
            memkind_directory: memkind_directory.as_ref().map_or(ptr::null(), |path| path.as_ptr()),
            memkind_bytes: memkind.map_or(0, |(_, bytes)| *bytes),
            tier: raw_or_null(options.tier.as_ref()),
            cache_bytes: options.cache_bytes,
            write_buffer_bytes: options.write_buffer_bytes,
            block_bytes: options.block_bytes,
            memtable_huge_page_bytes: options.memtable_huge_page_bytes,
            cache_kind: u32::from(options.cache_kind == CacheKind::HyperClock),
            bloom_bits_per_key: i32::try_from(options.bloom_bits_per_key).unwrap_or(i32::MAX),
            create_if_missing: true,
            tier_is_exclusive: options.tier_is_exclusive,
            compresses: options.compresses,
            keeps_statistics: options.keeps_statistics,
            is_direct: options.is_direct,
            write_buffers_bytes: options.write_buffers_bytes,
            row_cache_bytes: options.row_cache_bytes,
            caches_index: options.caches_index,
            appends: options.appends,
        };
        let mut database = ptr::null_mut();
        // SAFETY: all pointers are live during the call. The shim takes references of its own to heaps and tier.
        check(unsafe { raw::chimera_database_open(&raw const given, &raw mut database) })?;
        let raw = NonNull::new(database);
        let raw = raw.ok_or_else(|| Error::RocksDb("no database was opened".to_owned()))?;
        Ok(Self { raw, path: path.to_owned() })
    }

    /// Where its files are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a record; the write-ahead log has it when the call returns, and is not synced.
    ///
    /// # Errors
    /// As RocksDB says.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let ((key, key_length), (value, value_length)) = (parts(key), parts(value));
        let raw = self.raw.as_ptr();
        // SAFETY: the database is open, and key and value are lent for the time of the call.
        check(unsafe { raw::chimera_database_put(raw, key, key_length, value, value_length) })
    }

    /// Appends to the value of a key, with [`DatabaseOptions::appends`].
    ///
    /// # Errors
    /// As RocksDB says, and without that option.
    pub fn merge(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let ((key, key_length), (value, value_length)) = (parts(key), parts(value));
        let raw = self.raw.as_ptr();
        // SAFETY: the database is open, and key and value are lent for the time of the call.
        check(unsafe { raw::chimera_database_merge(raw, key, key_length, value, value_length) })
    }

    /// Deletes a record, if there is one.
    ///
    /// # Errors
    /// As RocksDB says.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        let (key, length) = parts(key);
        // SAFETY: the database is open, and the key is lent for the time of the call.
        check(unsafe { raw::chimera_database_delete(self.raw.as_ptr(), key, length) })
    }

    /// Copies the value of a key into `value`; false when there is none.
    ///
    /// # Errors
    /// As RocksDB says.
    pub fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        extern "C" fn take(context: *mut c_void, bytes: *const c_char, length: usize) {
            // SAFETY: the context is the vector that `get` borrows for the time of the call.
            let value = unsafe { &mut *context.cast::<Vec<u8>>() };
            // SAFETY: the shim lends as many bytes for the time of the call.
            let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) };
            value.extend_from_slice(bytes);
        }
        value.clear();
        let (key, length) = parts(key);
        let mut found = false;
        let context = ptr::from_mut(value).cast();
        // SAFETY: the database is open, and everything is lent for the time of the call.
        check(unsafe {
            raw::chimera_database_get(self.raw.as_ptr(), key, length, take, context, &raw mut found)
        })?;
        Ok(found)
    }

    /// Writes all memtables to files.
    ///
    /// # Errors
    /// As RocksDB says.
    pub fn flush(&self) -> Result<()> {
        // SAFETY: the database is open.
        check(unsafe { raw::chimera_database_flush(self.raw.as_ptr()) })
    }

    /// Compacts everything.
    ///
    /// # Errors
    /// As RocksDB says.
    pub fn compact(&self) -> Result<()> {
        // SAFETY: the database is open.
        check(unsafe { raw::chimera_database_compact(self.raw.as_ptr()) })
    }

    /// Bytes of the keys from `from` to below `to`, as RocksDB estimates them, those in memtables included.
    ///
    /// # Errors
    /// As RocksDB says.
    pub fn approximate_bytes(&self, from: &[u8], to: &[u8]) -> Result<u64> {
        let ((from, from_length), (to, to_length)) = (parts(from), parts(to));
        let (raw, mut bytes) = (self.raw.as_ptr(), 0);
        let out = &raw mut bytes;
        // SAFETY: the database is open, and everything is lent for the time of the call.
        check(unsafe {
            raw::chimera_database_approximate_bytes(raw, from, from_length, to, to_length, out)
        })?;
        Ok(bytes)
    }

    /// A snapshot of all records, in the order of their keys.
    ///
    /// # Errors
    /// As RocksDB says.
    pub fn cursor(&self) -> Result<Iter<'_>> {
        Iter::new(self)
    }

    /// What RocksDB counted so far.
    ///
    /// # Errors
    /// As RocksDB says.
    pub fn counts(&self) -> Result<Counts> {
        let mut raw = RawCounts::default();
        // SAFETY: the database is open, and the counts are lent for the time of the call.
        check(unsafe { raw::chimera_database_counts(self.raw.as_ptr(), &raw mut raw) })?;
        Ok(Counts {
            block_cache_hits: raw.block_cache_hits,
            block_cache_misses: raw.block_cache_misses,
            block_cache_adds: raw.block_cache_adds,
            tier_hits: raw.tier_hits,
            memtable_hits: raw.memtable_hits,
            memtable_misses: raw.memtable_misses,
            stall_us: raw.stall_us,
            cache_usage_bytes: raw.cache_usage_bytes,
            memtable_bytes: raw.memtable_bytes,
            pmem_cache_hits: raw.pmem_cache_hits,
            cache_refused: raw.cache_refused,
        })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: it was opened, is closed once, and its iterators borrow it.
        unsafe { raw::chimera_database_close(self.raw.as_ptr()) };
    }
}
