//! [`Chosen`]: how RocksDB is configured.
//!
//! What is set is what the page "Setup Options and Basic Tuning" of RocksDB's documentation names as a good start on any
//! machine, and BlobDB where that page's own page recommends it.

use std::ffi::c_int;
use std::ptr::NonNull;

use super::ffi;

/// Background jobs: flushes and compactions.
const BACKGROUND_JOBS: c_int = 6;
/// Files are written back in such steps, so that a sync at their end is short.
const BYTES_PER_SYNC: u64 = 1 << 20;
/// Larger blocks than the default: less memory for their index.
const BLOCK_BYTES: usize = 16 << 10;
/// A filter that is wrong for 1 % of absent keys.
const BITS_PER_KEY: f64 = 10.0;

/// What was chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    /// About a third of the memory is recommended; here all stores with a cache have the same one.
    pub(super) cache_bytes: u64,
    /// Values from this size on lie in files of their own (BlobDB, for large values).
    pub(super) blobs_from_bytes: Option<u64>,
}

/// RocksDB's options, which live as long as this.
pub(super) struct Options(NonNull<ffi::Options>);

impl Chosen {
    /// RocksDB's options.
    pub(super) fn options(self) -> Options {
        // SAFETY: it takes nothing, and gives options that are freed by `Drop` alone.
        let created = unsafe { ffi::rocksdb_options_create() };
        let options =
            Options(NonNull::new(created).expect("RocksDB aborts where it has no memory"));
        let raw = options.0.as_ptr();
        // SAFETY: `raw` is valid for as long as `options` is, here and below.
        unsafe { ffi::rocksdb_options_set_create_if_missing(raw, 1) };
        // SAFETY: as above.
        unsafe { ffi::rocksdb_options_set_level_compaction_dynamic_level_bytes(raw, 1) };
        // SAFETY: as above.
        unsafe { ffi::rocksdb_options_set_max_background_jobs(raw, BACKGROUND_JOBS) };
        // SAFETY: as above.
        unsafe { ffi::rocksdb_options_set_bytes_per_sync(raw, BYTES_PER_SYNC) };
        // Values are random, and no other store compresses.
        // SAFETY: as above.
        unsafe { ffi::rocksdb_options_set_compression(raw, ffi::NO_COMPRESSION) };
        if let Some(bytes) = self.blobs_from_bytes {
            // SAFETY: as above.
            unsafe { ffi::rocksdb_options_set_enable_blob_files(raw, 1) };
            // SAFETY: as above.
            unsafe { ffi::rocksdb_options_set_min_blob_size(raw, bytes) };
            // SAFETY: as above.
            unsafe { ffi::rocksdb_options_set_enable_blob_gc(raw, 1) };
        }
        self.set_table(raw);
        options
    }

    /// How tables are laid out and cached.
    fn set_table(self, options: *mut ffi::Options) {
        // SAFETY: it takes nothing, and gives options that are freed below.
        let table = unsafe { ffi::rocksdb_block_based_options_create() };
        // SAFETY: `table` is valid until it is destroyed, here and below.
        unsafe { ffi::rocksdb_block_based_options_set_block_size(table, BLOCK_BYTES) };
        // SAFETY: as above.
        unsafe { ffi::rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1) };
        // SAFETY: as above.
        unsafe {
            ffi::rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1);
        };
        // SAFETY: it takes a number, and gives a policy that the table owns from the next call on.
        let filter = unsafe { ffi::rocksdb_filterpolicy_create_bloom_full(BITS_PER_KEY) };
        // SAFETY: both are valid; the table takes the policy over.
        unsafe { ffi::rocksdb_block_based_options_set_filter_policy(table, filter) };
        // SAFETY: it takes a number, and gives a handle of a shared cache.
        let cache = unsafe { ffi::rocksdb_cache_create_lru(self.cache_bytes as usize) };
        // SAFETY: both are valid; the table takes a share of the cache.
        unsafe { ffi::rocksdb_block_based_options_set_block_cache(table, cache) };
        // SAFETY: the handle came from `create` and is not used any more; the table's share stays.
        unsafe { ffi::rocksdb_cache_destroy(cache) };
        // SAFETY: both are valid; the table's options are copied into those of the database.
        unsafe { ffi::rocksdb_options_set_block_based_table_factory(options, table) };
        // SAFETY: it came from `create` and is not used any more.
        unsafe { ffi::rocksdb_block_based_options_destroy(table) };
    }

    /// What was chosen, a line each.
    pub(super) fn lines(self) -> Vec<String> {
        let blobs = match self.blobs_from_bytes {
            Some(bytes) => {
                format!("blob files for values from {bytes} bytes on, with garbage collection")
            }
            None => "no blob files".to_owned(),
        };
        vec![
            format!("LRU block cache of {} bytes, index and filters in it", self.cache_bytes),
            format!("blocks of {BLOCK_BYTES} bytes, bloom filter of {BITS_PER_KEY} bits per key"),
            format!(
                "dynamic level bytes, {BACKGROUND_JOBS} background jobs, bytes_per_sync {BYTES_PER_SYNC}"
            ),
            format!("{blobs}, no compression, all else by default"),
        ]
    }
}

impl Options {
    pub(super) fn as_ptr(&self) -> *const ffi::Options {
        self.0.as_ptr()
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: it came from `create`, and nothing has it any more: an open database has a copy.
        unsafe { ffi::rocksdb_options_destroy(self.0.as_ptr()) };
    }
}
