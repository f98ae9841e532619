//! [`Iter`]: records in the order of their keys.

use std::ffi::c_char;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use super::raw::{self, RawIterator};
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
    raw: Option<NonNull<RawIterator>>,
    database: PhantomData<&'a Database>,
}

impl<'a> Iter<'a> {
    pub(super) fn new(database: &'a Database) -> Self {
        // SAFETY: the database is open.
        let raw = NonNull::new(unsafe { raw::chimera_iterator_new(database.raw.as_ptr()) });
        Self { raw, database: PhantomData }
    }

    fn raw(&self) -> Result<*mut RawIterator> {
        let raw = self.raw.ok_or_else(|| Error::RocksDb("no iterator was made".to_owned()))?;
        Ok(raw.as_ptr())
    }

    /// Goes to the first or the last record.
    ///
    /// # Errors
    /// As RocksDB says.
    pub fn seek_to_end(&mut self, direction: Direction) -> Result<()> {
        let raw = self.raw()?;
        match direction {
            // SAFETY: the iterator is live.
            Direction::Forward => unsafe { raw::chimera_iterator_seek_to_first(raw) },
            // SAFETY: the iterator is live.
            Direction::Backward => unsafe { raw::chimera_iterator_seek_to_last(raw) },
        }
        Ok(())
    }

    /// Goes to the record of a key, or to the next one in a direction.
    ///
    /// # Errors
    /// As RocksDB says.
    pub fn seek(&mut self, key: &[u8], direction: Direction) -> Result<()> {
        let raw = self.raw()?;
        let (key, length) = parts(key);
        match direction {
            // SAFETY: the iterator is live, and the key is lent for the time of the call.
            Direction::Forward => unsafe { raw::chimera_iterator_seek(raw, key, length) },
            // SAFETY: the iterator is live, and the key is lent for the time of the call.
            Direction::Backward => unsafe { raw::chimera_iterator_seek_for_prev(raw, key, length) },
        }
        Ok(())
    }

    /// The record at this place; `None` beyond the ends. Goes on in a direction.
    ///
    /// # Errors
    /// As RocksDB says.
    pub fn step(&mut self, direction: Direction) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let raw = self.raw()?;
        let mut message = ptr::null_mut();
        // SAFETY: the iterator is live, and the message is lent for the time of the call.
        if !unsafe { raw::chimera_iterator_valid(raw, &raw mut message) } {
            return check(message).map(|()| None);
        }
        // SAFETY: the iterator is at a record.
        let key = copy(|length| unsafe { raw::chimera_iterator_key(raw, length) });
        // SAFETY: the iterator is at a record.
        let value = copy(|length| unsafe { raw::chimera_iterator_value(raw, length) });
        match direction {
            // SAFETY: the iterator is at a record.
            Direction::Forward => unsafe { raw::chimera_iterator_next(raw) },
            // SAFETY: the iterator is at a record.
            Direction::Backward => unsafe { raw::chimera_iterator_prev(raw) },
        }
        Ok(Some((key, value)))
    }
}

/// Copies bytes that belong to an iterator.
fn copy(bytes: impl FnOnce(*mut usize) -> *const c_char) -> Vec<u8> {
    let mut length = 0;
    let start = bytes(&raw mut length);
    if length == 0 {
        return Vec::new();
    }
    // SAFETY: the shim said how many bytes are there, and they stay until the iterator moves.
    unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) }.to_vec()
}

impl Drop for Iter<'_> {
    fn drop(&mut self) {
        if let Some(raw) = self.raw {
            // SAFETY: the iterator is live, and is freed once.
            unsafe { raw::chimera_iterator_free(raw.as_ptr()) };
        }
    }
}
