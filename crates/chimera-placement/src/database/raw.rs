//! The functions of the shim, as `shim/database.h` declares them.

use std::ffi::{c_char, c_void};

/// A database of the shim.
#[repr(C)]
pub(super) struct RawDatabase {
    _opaque: [u8; 0],
}

/// An iterator of the shim.
#[repr(C)]
pub(super) struct RawIterator {
    _opaque: [u8; 0],
}

/// Mirrors `ChimeraOptions`.
#[repr(C)]
pub(super) struct RawOptions {
    pub(super) path: *const c_char,
    pub(super) cache_heap: *const c_void,
    pub(super) memtable_heap: *const c_void,
    pub(super) memkind_directory: *const c_char,
    pub(super) memkind_bytes: u64,
    pub(super) tier: *const c_void,
    pub(super) cache_bytes: u64,
    pub(super) write_buffer_bytes: u64,
    pub(super) block_bytes: u64,
    pub(super) memtable_huge_page_bytes: u64,
    pub(super) write_buffers_bytes: u64,
    pub(super) row_cache_bytes: u64,
    pub(super) cache_kind: u32,
    pub(super) bloom_bits_per_key: i32,
    pub(super) create_if_missing: bool,
    pub(super) tier_is_exclusive: bool,
    pub(super) compresses: bool,
    pub(super) keeps_statistics: bool,
    pub(super) is_direct: bool,
    pub(super) caches_index: bool,
    pub(super) appends: bool,
}

/// Mirrors `ChimeraCounts`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RawCounts {
    pub(super) block_cache_hits: u64,
    pub(super) block_cache_misses: u64,
    pub(super) block_cache_adds: u64,
    pub(super) block_cache_add_failures: u64,
    pub(super) tier_hits: u64,
    pub(super) memtable_hits: u64,
    pub(super) memtable_misses: u64,
    pub(super) stall_us: u64,
    pub(super) cache_usage_bytes: u64,
    pub(super) memtable_bytes: u64,
    pub(super) pmem_cache_hits: u64,
    pub(super) cache_refused: u64,
}

/// Mirrors `ChimeraRecord`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct RawRecord {
    pub(super) key: *const c_char,
    pub(super) key_length: usize,
    pub(super) value: *const c_char,
    pub(super) value_length: usize,
    pub(super) is_there: bool,
}

/// Takes a value that was found.
pub(super) type TakeValue = extern "C" fn(*mut c_void, *const c_char, usize);

// Contract of all of them: pointers are live, lengths are those of what is pointed to, and a message that is not null belongs to
// the caller.
unsafe extern "C" {
    pub(super) safe fn chimera_has_memkind() -> bool;
    pub(super) fn chimera_message_free(message: *mut c_char);
    pub(super) fn chimera_database_open(
        options: *const RawOptions,
        database: *mut *mut RawDatabase,
    ) -> *mut c_char;
    pub(super) fn chimera_database_close(database: *mut RawDatabase);
    pub(super) fn chimera_database_put(
        database: *mut RawDatabase,
        key: *const c_char,
        key_length: usize,
        value: *const c_char,
        value_length: usize,
    ) -> *mut c_char;
    pub(super) fn chimera_database_merge(
        database: *mut RawDatabase,
        key: *const c_char,
        key_length: usize,
        value: *const c_char,
        value_length: usize,
    ) -> *mut c_char;
    pub(super) fn chimera_database_delete(
        database: *mut RawDatabase,
        key: *const c_char,
        key_length: usize,
    ) -> *mut c_char;
    pub(super) fn chimera_database_get(
        database: *mut RawDatabase,
        key: *const c_char,
        key_length: usize,
        work: TakeValue,
        context: *mut c_void,
        found: *mut bool,
    ) -> *mut c_char;
    pub(super) fn chimera_database_flush(database: *mut RawDatabase) -> *mut c_char;
    pub(super) fn chimera_database_compact(database: *mut RawDatabase) -> *mut c_char;
    pub(super) fn chimera_database_approximate_bytes(
        database: *mut RawDatabase,
        from: *const c_char,
        from_length: usize,
        to: *const c_char,
        to_length: usize,
        bytes: *mut u64,
    ) -> *mut c_char;
    pub(super) fn chimera_database_counts(
        database: *mut RawDatabase,
        counts: *mut RawCounts,
    ) -> *mut c_char;
    pub(super) fn chimera_iterator_new(
        database: *mut RawDatabase,
        iterator: *mut *mut RawIterator,
    ) -> *mut c_char;
    pub(super) fn chimera_iterator_free(iterator: *mut RawIterator);
    pub(super) fn chimera_iterator_seek_to_first(iterator: *mut RawIterator) -> *mut c_char;
    pub(super) fn chimera_iterator_seek_to_last(iterator: *mut RawIterator) -> *mut c_char;
    pub(super) fn chimera_iterator_seek(
        iterator: *mut RawIterator,
        key: *const c_char,
        key_length: usize,
    ) -> *mut c_char;
    pub(super) fn chimera_iterator_seek_for_prev(
        iterator: *mut RawIterator,
        key: *const c_char,
        key_length: usize,
    ) -> *mut c_char;
    pub(super) fn chimera_iterator_next(iterator: *mut RawIterator) -> *mut c_char;
    pub(super) fn chimera_iterator_prev(iterator: *mut RawIterator) -> *mut c_char;
    pub(super) fn chimera_iterator_record(
        iterator: *mut RawIterator,
        record: *mut RawRecord,
    ) -> *mut c_char;
}
