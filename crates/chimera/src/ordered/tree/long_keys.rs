//! [`LongKeys`]: keys that are too long for a node, whole.
//!
//! A node has the number of such a key. Entries, separators and fences have each a number of their own,
//! which is freed with them; equal keys share their bytes.
//!
//! A reader that does not hold the lock of a node may come with a number that was freed or means another
//! key by now. It gets some key or none, and finds afterwards that the node has changed.

use std::cmp::Ordering;
use std::sync::{Arc, PoisonError};

use crate::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The long keys of a tree.
#[derive(Debug, Default)]
pub(super) struct LongKeys(RwLock<Slab>);

#[derive(Debug, Default)]
struct Slab {
    keys: Vec<Option<Arc<[u8]>>>,
    free: Vec<u32>,
    bytes: u64,
}

impl LongKeys {
    fn read(&self) -> RwLockReadGuard<'_, Slab> {
        // A panic leaves nothing half-done.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Slab> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a key, and gives it a number.
    pub(super) fn insert(&self, key: Arc<[u8]>) -> u32 {
        let mut slab = self.write();
        slab.bytes += key.len() as u64;
        if let Some(number) = slab.free.pop() {
            slab.keys[number as usize] = Some(key);
            return number;
        }
        let number = u32::try_from(slab.keys.len()).expect("memory ends before numbers do");
        slab.keys.push(Some(key));
        number
    }

    /// Forgets a key that was kept under this number.
    pub(super) fn remove(&self, number: u32) {
        let mut slab = self.write();
        let key = slab.keys.get_mut(number as usize).and_then(Option::take);
        let Some(key) = key else { return };
        slab.bytes -= key.len() as u64;
        slab.free.push(number);
    }

    /// The key that is kept under a number.
    pub(super) fn get(&self, number: u32) -> Option<Arc<[u8]>> {
        self.read().keys.get(number as usize)?.clone()
    }

    /// How a key that is kept compares with another one.
    pub(super) fn compare(&self, number: u32, with: &[u8]) -> Ordering {
        let slab = self.read();
        let key = slab.keys.get(number as usize).and_then(Option::as_deref);
        key.map_or(Ordering::Less, |key| key.cmp(with))
    }

    /// Appends a key that is kept.
    pub(super) fn append(&self, number: u32, into: &mut Vec<u8>) {
        let slab = self.read();
        let key = slab.keys.get(number as usize).and_then(Option::as_deref);
        into.extend_from_slice(key.unwrap_or_default());
    }

    /// How many numbers are in use.
    pub(super) fn count(&self) -> u64 {
        let slab = self.read();
        (slab.keys.len() - slab.free.len()) as u64
    }

    /// Bytes of the table and the keys; shared ones are counted for each number.
    pub(super) fn bytes(&self) -> u64 {
        let slab = self.read();
        let table = slab.keys.capacity() * size_of::<Option<Arc<[u8]>>>()
            + slab.free.capacity() * size_of::<u32>();
        slab.bytes + table as u64
    }
}
