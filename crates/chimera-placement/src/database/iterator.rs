//! [`Iter`]: records in the order of their keys.

use std::ffi::c_char;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use super::raw::{self, RawIterator, RawRecord};
use super::{Database, check, parts};
use crate::error::{Error, Result};

/// Which way an iterator goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To larger keys.
    Forward,
    /// To smaller keys.
    Backward,
}

/// A place among the records of a database, as they were when the iterator was made.
#[derive(Debug)]
pub struct Iter<'a> {
    raw: NonNull<RawIterator>,
    database: PhantomData<&'a Database>,
}

impl<'a> Iter<'a> {
    pub(super) fn new(database: &'a Database) -> Result<Self> {
        let mut made = ptr::null_mut();
        // SAFETY: the database is open, and what is made is lent for the time of the call.
        check(unsafe { raw::chimera_iterator_new(database.raw.as_ptr(), &raw mut made) })?;
        let raw = NonNull::new(made);
        let raw = raw.ok_or_else(|| Error::RocksDb("no iterator was made".to_owned()))?;
        Ok(Self { raw, database: PhantomData })
    }

    /// Goes to the first or the last record.
    ///
    /// # Errors
    /// As RocksDB says.
    pub fn seek_to_end(&mut self, direction: Direction) -> Result<()> {
        let raw = self.raw.as_ptr();
        check(match direction {
            // SAFETY: the iterator is live.
            Direction::Forward => unsafe { raw::chimera_iterator_seek_to_first(raw) },
            // SAFETY: the iterator is live.
            Direction::Backward => unsafe { raw::chimera_iterator_seek_to_last(raw) },
        })
    }

    /// Goes to the record of a key, or to the next one in a direction.
    ///
    /// # Errors
    /// As RocksDB says.
    pub fn seek(&mut self, key: &[u8], direction: Direction) -> Result<()> {
        let raw = self.raw.as_ptr();
        let (key, length) = parts(key);
        check(match direction {
            // SAFETY: the iterator is live, and the key is lent for the time of the call.
            Direction::Forward => unsafe { raw::chimera_iterator_seek(raw, key, length) },
            // SAFETY: the iterator is live, and the key is lent for the time of the call.
            Direction::Backward => unsafe { raw::chimera_iterator_seek_for_prev(raw, key, length) },
        })
    }

    /// The record at this place; `None` beyond the ends. Goes on in a direction.
    ///
    /// # Errors
    /// As RocksDB says.
    pub fn step(&mut self, direction: Direction) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let raw = self.raw.as_ptr();
        let mut record = RawRecord {
            key: ptr::null(),
            key_length: 0,
            value: ptr::null(),
            value_length: 0,
            is_there: false,
        };
        // SAFETY: the iterator is live, and the record is lent for the time of the call.
        check(unsafe { raw::chimera_iterator_record(raw, &raw mut record) })?;
        if !record.is_there {
            return Ok(None);
        }
        // SAFETY: the shim said where the key is, and the iterator has not moved since.
        let key = unsafe { copy(record.key, record.key_length) };
        // SAFETY: the shim said where the value is, and the iterator has not moved since.
        let value = unsafe { copy(record.value, record.value_length) };
        check(match direction {
            // SAFETY: the iterator is at a record.
            Direction::Forward => unsafe { raw::chimera_iterator_next(raw) },
            // SAFETY: the iterator is at a record.
            Direction::Backward => unsafe { raw::chimera_iterator_prev(raw) },
        })?;
        Ok(Some((key, value)))
    }
}

/// Copies bytes that belong to an iterator.
///
/// # Safety
/// `length` bytes at `start` may be read; without bytes, `start` may be anything.
unsafe fn copy(start: *const c_char, length: usize) -> Vec<u8> {
    if length == 0 {
        return Vec::new();
    }
    // SAFETY: the contract is the caller's.
    unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) }.to_vec()
}

impl Drop for Iter<'_> {
    fn drop(&mut self) {
        // SAFETY: the iterator is live, and is freed once.
        unsafe { raw::chimera_iterator_free(self.raw.as_ptr()) };
    }
}
