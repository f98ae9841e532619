//! [`Handle`]: an open database of RocksDB, through its C interface.

use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr::{self, NonNull};

use super::ffi;
use super::options::Options;
use crate::{BenchError, Result};

/// An open database. It is closed when this is dropped.
pub(super) struct Handle {
    db: NonNull<ffi::Db>,
    write: NonNull<ffi::WriteOptions>,
    read: NonNull<ffi::ReadOptions>,
}

// SAFETY: RocksDB's database may be used and closed by any thread; options are only read once they are made.
unsafe impl Send for Handle {}
// SAFETY: RocksDB synchronises all calls of a database itself, as its documentation says; options are only read.
unsafe impl Sync for Handle {}

pub(super) fn failed(message: impl Into<String>) -> BenchError {
    BenchError::Peer { store: "rocksdb", message: message.into() }
}

/// Hands a place for an error to `call`, and says whether one was put there.
fn checked<T>(call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T> {
    let mut error: *mut c_char = ptr::null_mut();
    let result = call(&raw mut error);
    let Some(error) = NonNull::new(error) else { return Ok(result) };
    // SAFETY: RocksDB puts a text there that ends with a zero, and that is the caller's.
    let message = unsafe { CStr::from_ptr(error.as_ptr()) }.to_string_lossy().into_owned();
    // SAFETY: it was allocated by RocksDB and is not used any more.
    unsafe { ffi::rocksdb_free(error.as_ptr().cast()) };
    Err(failed(message))
}

fn bytes(of: &[u8]) -> (*const c_char, usize) {
    (of.as_ptr().cast(), of.len())
}

/// What C gave, as bytes.
///
/// # Safety
/// `start` is valid for `length` bytes for as long as `'a` is, or null where `length` is 0.
unsafe fn slice<'a>(start: *const c_char, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(start.cast(), length) }
}

impl Handle {
    /// Opens the database in `path`, whose writes wait for a sync or do not.
    pub(super) fn open(path: &Path, options: &Options, syncs: bool) -> Result<Self> {
        let name = CString::new(path.as_os_str().as_encoded_bytes());
        let name = name.map_err(|error| failed(error.to_string()))?;
        let db = checked(|error| {
            // SAFETY: options, name and place for an error are valid during the call.
            unsafe { ffi::rocksdb_open(options.as_ptr(), name.as_ptr(), error) }
        })?;
        let db = NonNull::new(db).ok_or_else(|| failed("no database"))?;
        // SAFETY: it takes nothing; `Drop` frees it.
        let write = unsafe { ffi::rocksdb_writeoptions_create() };
        // SAFETY: as above.
        let read = unsafe { ffi::rocksdb_readoptions_create() };
        // SAFETY: `write` was just made.
        unsafe { ffi::rocksdb_writeoptions_set_sync(write, u8::from(syncs)) };
        let (write, read) = (NonNull::new(write), NonNull::new(read));
        let made = write.zip(read).ok_or_else(|| failed("no memory"))?;
        Ok(Self { db, write: made.0, read: made.1 })
    }

    #[inline]
    pub(super) fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let ((key, key_length), (value, length)) = (bytes(key), bytes(value));
        let (db, write) = (self.db.as_ptr(), self.write.as_ptr());
        checked(|error| {
            // SAFETY: the database is open, and key and value are valid during the call.
            unsafe { ffi::rocksdb_put(db, write, key, key_length, value, length, error) }
        })
    }

    #[inline]
    pub(super) fn delete(&self, key: &[u8]) -> Result<()> {
        let (key, length) = bytes(key);
        checked(|error| {
            // SAFETY: the database is open, and the key is valid during the call.
            unsafe {
                ffi::rocksdb_delete(self.db.as_ptr(), self.write.as_ptr(), key, length, error);
            }
        })
    }

    #[inline]
    pub(super) fn get<T>(&self, key: &[u8], take: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        let (key, key_length) = bytes(key);
        let found = checked(|error| {
            // SAFETY: the database is open, and the key is valid during the call.
            unsafe {
                ffi::rocksdb_get_pinned(
                    self.db.as_ptr(),
                    self.read.as_ptr(),
                    key,
                    key_length,
                    error,
                )
            }
        })?;
        let Some(found) = NonNull::new(found).map(Pinned) else { return Ok(None) };
        let mut length = 0;
        // SAFETY: the slice is valid until it is destroyed.
        let value = unsafe { ffi::rocksdb_pinnableslice_value(found.0.as_ptr(), &raw mut length) };
        // SAFETY: RocksDB pins so many bytes there until `found` is dropped, at the end of this function.
        let value = unsafe { slice(value, length) };
        Ok(Some(take(value)))
    }

    /// Writes all records as one.
    pub(super) fn put_batch(&self, records: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        // SAFETY: it takes nothing.
        let batch = NonNull::new(unsafe { ffi::rocksdb_writebatch_create() }).map(Batch);
        let batch = batch.ok_or_else(|| failed("no memory"))?;
        for (key, value) in records {
            let ((key, key_length), (value, length)) = (bytes(key), bytes(value));
            // SAFETY: the batch is valid and copies key and value, which are valid during the call.
            unsafe {
                ffi::rocksdb_writebatch_put(batch.0.as_ptr(), key, key_length, value, length);
            };
        }
        checked(|error| {
            // SAFETY: the database is open, and the batch is valid.
            unsafe {
                ffi::rocksdb_write(self.db.as_ptr(), self.write.as_ptr(), batch.0.as_ptr(), error);
            }
        })
    }

    /// Hands records from `start` on to `take`, until that says enough or there are no more.
    pub(super) fn scan(
        &self,
        start: &[u8],
        mut take: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        // SAFETY: the database is open, and outlives the iterator.
        let created = unsafe { ffi::rocksdb_create_iterator(self.db.as_ptr(), self.read.as_ptr()) };
        let iterator = NonNull::new(created).map(Cursor).ok_or_else(|| failed("no memory"))?;
        let raw = iterator.0.as_ptr();
        let (key, length) = bytes(start);
        // SAFETY: the iterator is valid until it is dropped, here and below; the key is valid during the call.
        unsafe { ffi::rocksdb_iter_seek(raw, key, length) };
        // SAFETY: as above.
        while unsafe { ffi::rocksdb_iter_valid(raw) } != 0 {
            let (mut key_length, mut length) = (0, 0);
            // SAFETY: as above, and it stands on a record.
            let key = unsafe { ffi::rocksdb_iter_key(raw, &raw mut key_length) };
            // SAFETY: as above.
            let value = unsafe { ffi::rocksdb_iter_value(raw, &raw mut length) };
            // SAFETY: the key is valid until the iterator moves.
            let key = unsafe { slice(key, key_length) };
            // SAFETY: so is the value.
            let value = unsafe { slice(value, length) };
            if !take(key, value) {
                break;
            }
            // SAFETY: as above; nobody has key or value any more.
            unsafe { ffi::rocksdb_iter_next(raw) };
        }
        checked(|error| {
            // SAFETY: as above.
            unsafe { ffi::rocksdb_iter_get_error(raw, error) }
        })
    }

    /// Syncs the write-ahead log.
    pub(super) fn sync(&self) -> Result<()> {
        checked(|error| {
            // SAFETY: the database is open.
            unsafe { ffi::rocksdb_flush_wal(self.db.as_ptr(), 1, error) }
        })
    }

    /// Compacts all records.
    pub(super) fn compact(&self) {
        let none = ptr::null();
        // SAFETY: the database is open; null means from the first to the last key.
        unsafe { ffi::rocksdb_compact_range(self.db.as_ptr(), none, 0, none, 0) };
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: nothing has the database any more: batches, slices and iterators end within a call.
        unsafe { ffi::rocksdb_close(self.db.as_ptr()) };
        // SAFETY: the options came from `create`, and the database is closed.
        unsafe { ffi::rocksdb_writeoptions_destroy(self.write.as_ptr()) };
        // SAFETY: as above.
        unsafe { ffi::rocksdb_readoptions_destroy(self.read.as_ptr()) };
    }
}

/// A value that is pinned.
struct Pinned(NonNull<ffi::PinnableSlice>);

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: it came from a get, and the value is not used any more.
        unsafe { ffi::rocksdb_pinnableslice_destroy(self.0.as_ptr()) };
    }
}

/// Puts that are written as one.
struct Batch(NonNull<ffi::WriteBatch>);

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: it came from `create`, and nothing has it any more.
        unsafe { ffi::rocksdb_writebatch_destroy(self.0.as_ptr()) };
    }
}

/// A place in the order of keys.
struct Cursor(NonNull<ffi::Iterator>);

impl Drop for Cursor {
    fn drop(&mut self) {
        // SAFETY: it came from `create_iterator`, and nothing has it any more.
        unsafe { ffi::rocksdb_iter_destroy(self.0.as_ptr()) };
    }
}
