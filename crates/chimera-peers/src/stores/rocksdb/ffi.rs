//! What is used of RocksDB's C interface, as `rocksdb/c.h` of 7.8 declares it.

use std::ffi::{c_char, c_int, c_uchar, c_void};

/// Types that C only points to.
macro_rules! opaque {
    ($($name:ident)+) => {
        $(
            #[repr(C)]
            pub(super) struct $name {
                _private: [u8; 0],
            }
        )+
    };
}

opaque! { Db Options WriteOptions ReadOptions WriteBatch Iterator TableOptions Cache FilterPolicy PinnableSlice }

/// `rocksdb_no_compression`.
pub(super) const NO_COMPRESSION: c_int = 0;

unsafe extern "C" {
    pub(super) fn rocksdb_open(
        options: *const Options,
        name: *const c_char,
        error: *mut *mut c_char,
    ) -> *mut Db;
    pub(super) fn rocksdb_close(db: *mut Db);
    pub(super) fn rocksdb_put(
        db: *mut Db,
        options: *const WriteOptions,
        key: *const c_char,
        key_length: usize,
        value: *const c_char,
        value_length: usize,
        error: *mut *mut c_char,
    );
    pub(super) fn rocksdb_delete(
        db: *mut Db,
        options: *const WriteOptions,
        key: *const c_char,
        key_length: usize,
        error: *mut *mut c_char,
    );
    pub(super) fn rocksdb_write(
        db: *mut Db,
        options: *const WriteOptions,
        batch: *mut WriteBatch,
        error: *mut *mut c_char,
    );
    pub(super) fn rocksdb_get_pinned(
        db: *mut Db,
        options: *const ReadOptions,
        key: *const c_char,
        key_length: usize,
        error: *mut *mut c_char,
    ) -> *mut PinnableSlice;
    pub(super) fn rocksdb_pinnableslice_value(
        slice: *const PinnableSlice,
        length: *mut usize,
    ) -> *const c_char;
    pub(super) fn rocksdb_pinnableslice_destroy(slice: *mut PinnableSlice);
    pub(super) fn rocksdb_flush_wal(db: *mut Db, sync: c_uchar, error: *mut *mut c_char);
    pub(super) fn rocksdb_compact_range(
        db: *mut Db,
        start: *const c_char,
        start_length: usize,
        limit: *const c_char,
        limit_length: usize,
    );
    pub(super) fn rocksdb_free(memory: *mut c_void);

    pub(super) fn rocksdb_create_iterator(
        db: *mut Db,
        options: *const ReadOptions,
    ) -> *mut Iterator;
    pub(super) fn rocksdb_iter_destroy(iterator: *mut Iterator);
    pub(super) fn rocksdb_iter_valid(iterator: *const Iterator) -> c_uchar;
    pub(super) fn rocksdb_iter_seek(iterator: *mut Iterator, key: *const c_char, length: usize);
    pub(super) fn rocksdb_iter_next(iterator: *mut Iterator);
    pub(super) fn rocksdb_iter_key(iterator: *const Iterator, length: *mut usize) -> *const c_char;
    pub(super) fn rocksdb_iter_value(
        iterator: *const Iterator,
        length: *mut usize,
    ) -> *const c_char;
    pub(super) fn rocksdb_iter_get_error(iterator: *const Iterator, error: *mut *mut c_char);

    pub(super) fn rocksdb_writebatch_create() -> *mut WriteBatch;
    pub(super) fn rocksdb_writebatch_destroy(batch: *mut WriteBatch);
    pub(super) fn rocksdb_writebatch_put(
        batch: *mut WriteBatch,
        key: *const c_char,
        key_length: usize,
        value: *const c_char,
        value_length: usize,
    );

    pub(super) fn rocksdb_options_create() -> *mut Options;
    pub(super) fn rocksdb_options_destroy(options: *mut Options);
    pub(super) fn rocksdb_options_set_create_if_missing(options: *mut Options, yes: c_uchar);
    pub(super) fn rocksdb_options_set_compression(options: *mut Options, kind: c_int);
    pub(super) fn rocksdb_options_set_bytes_per_sync(options: *mut Options, bytes: u64);
    pub(super) fn rocksdb_options_set_max_background_jobs(options: *mut Options, jobs: c_int);
    pub(super) fn rocksdb_options_set_level_compaction_dynamic_level_bytes(
        options: *mut Options,
        yes: c_uchar,
    );
    pub(super) fn rocksdb_options_set_block_based_table_factory(
        options: *mut Options,
        table: *mut TableOptions,
    );
    pub(super) fn rocksdb_options_set_enable_blob_files(options: *mut Options, yes: c_uchar);
    pub(super) fn rocksdb_options_set_min_blob_size(options: *mut Options, bytes: u64);
    pub(super) fn rocksdb_options_set_enable_blob_gc(options: *mut Options, yes: c_uchar);

    pub(super) fn rocksdb_block_based_options_create() -> *mut TableOptions;
    pub(super) fn rocksdb_block_based_options_destroy(options: *mut TableOptions);
    pub(super) fn rocksdb_block_based_options_set_block_size(
        options: *mut TableOptions,
        bytes: usize,
    );
    pub(super) fn rocksdb_block_based_options_set_block_cache(
        options: *mut TableOptions,
        cache: *mut Cache,
    );
    pub(super) fn rocksdb_block_based_options_set_filter_policy(
        options: *mut TableOptions,
        policy: *mut FilterPolicy,
    );
    pub(super) fn rocksdb_block_based_options_set_cache_index_and_filter_blocks(
        options: *mut TableOptions,
        yes: c_uchar,
    );
    pub(super) fn rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(
        options: *mut TableOptions,
        yes: c_uchar,
    );
    pub(super) fn rocksdb_filterpolicy_create_bloom_full(bits_per_key: f64) -> *mut FilterPolicy;
    pub(super) fn rocksdb_cache_create_lru(bytes: usize) -> *mut Cache;
    pub(super) fn rocksdb_cache_destroy(cache: *mut Cache);

    pub(super) fn rocksdb_writeoptions_create() -> *mut WriteOptions;
    pub(super) fn rocksdb_writeoptions_destroy(options: *mut WriteOptions);
    pub(super) fn rocksdb_writeoptions_set_sync(options: *mut WriteOptions, yes: c_uchar);
    pub(super) fn rocksdb_readoptions_create() -> *mut ReadOptions;
    pub(super) fn rocksdb_readoptions_destroy(options: *mut ReadOptions);
}
