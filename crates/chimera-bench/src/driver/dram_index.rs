//! [`DramIndex`]: bare indexes in DRAM as stores: a hash table, a tree, a skip list, from keys of one size to 8 bytes.
//!
//! What HiKV's Figure 1 compares. Each is what programs use in Rust: tables and trees of the standard library (its tree is a
//! B-tree, with values in all nodes) behind a lock of readers and a writer, and the skip list of `crossbeam`, which many
//! threads may change at a time. They are measured by one thread.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use chimera::Demand;
use crossbeam_skiplist::SkipMap;

use super::dram_map::KeyHasher;
use super::setup::Setup;
use super::store::{Create, Footprint, Store, StoreSession};
use crate::error::{BenchError, Result};
use crate::results::rows::Facts;

/// Bytes of values: room for a position.
pub(crate) const VALUE_BYTES: usize = 8;

type Value = [u8; VALUE_BYTES];
/// A hash table with keys of `K` bytes.
pub(crate) type HashTable<const K: usize> =
    RwLock<HashMap<[u8; K], Value, BuildHasherDefault<KeyHasher>>>;
/// A B-tree with keys of `K` bytes.
pub(crate) type BTree<const K: usize> = RwLock<BTreeMap<[u8; K], Value>>;
/// A skip list with keys of `K` bytes.
pub(crate) type SkipList<const K: usize> = SkipMap<[u8; K], Value>;

/// An index with keys of one size.
pub(crate) trait Index: Send + Sync + 'static {
    /// What results call it.
    const NAME: &str;

    /// An empty one for so many records.
    fn with_room(records: usize) -> Self;
    fn records(&self) -> usize;
    fn find(&self, key: &[u8]) -> Option<Value>;
    /// Whether the key is new; other threads do nothing but insert meanwhile.
    fn set(&self, key: &[u8], value: Value) -> bool;
    fn take_out(&self, key: &[u8]) -> bool;
    /// Hands up to `count` records on to `take`: in the order of keys from `start` on, or of no start in any order. How
    /// many there were; `None` where a start was asked of an index without order.
    fn walk(
        &self,
        start: Option<&[u8]>,
        count: usize,
        take: impl FnMut(&[u8], &[u8]),
    ) -> Option<usize>;
}

/// A key as the index has it.
#[inline(always)]
fn fixed<const K: usize>(key: &[u8]) -> [u8; K] {
    key.try_into().expect("keys are as long as the index was made for")
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl<const K: usize> Index for HashTable<K> {
    const NAME: &str = "hash-table";

    fn with_room(records: usize) -> Self {
        Self::new(HashMap::with_capacity_and_hasher(records, BuildHasherDefault::default()))
    }

    fn records(&self) -> usize {
        read(self).len()
    }

    #[inline(always)]
    fn find(&self, key: &[u8]) -> Option<Value> {
        read(self).get(&fixed(key)).copied()
    }

    #[inline(always)]
    fn set(&self, key: &[u8], value: Value) -> bool {
        write(self).insert(fixed(key), value).is_none()
    }

    fn take_out(&self, key: &[u8]) -> bool {
        write(self).remove(&fixed(key)).is_some()
    }

    fn walk(
        &self,
        start: Option<&[u8]>,
        count: usize,
        mut take: impl FnMut(&[u8], &[u8]),
    ) -> Option<usize> {
        if start.is_some() {
            return None;
        }
        Some(read(self).iter().take(count).map(|(key, value)| take(key, value)).count())
    }
}

impl<const K: usize> Index for BTree<K> {
    const NAME: &str = "b-tree";

    fn with_room(_: usize) -> Self {
        Self::default()
    }

    fn records(&self) -> usize {
        read(self).len()
    }

    #[inline(always)]
    fn find(&self, key: &[u8]) -> Option<Value> {
        read(self).get(&fixed(key)).copied()
    }

    #[inline(always)]
    fn set(&self, key: &[u8], value: Value) -> bool {
        write(self).insert(fixed(key), value).is_none()
    }

    fn take_out(&self, key: &[u8]) -> bool {
        write(self).remove(&fixed(key)).is_some()
    }

    #[inline(always)]
    fn walk(
        &self,
        start: Option<&[u8]>,
        count: usize,
        mut take: impl FnMut(&[u8], &[u8]),
    ) -> Option<usize> {
        let start = start.map_or([0; K], fixed);
        Some(read(self).range(start..).take(count).map(|(key, value)| take(key, value)).count())
    }
}

impl<const K: usize> Index for SkipList<K> {
    const NAME: &str = "skip-list";

    fn with_room(_: usize) -> Self {
        Self::new()
    }

    fn records(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn find(&self, key: &[u8]) -> Option<Value> {
        self.get(&fixed(key)).map(|entry| *entry.value())
    }

    /// The list itself does not say whether a key was there.
    #[inline(always)]
    fn set(&self, key: &[u8], value: Value) -> bool {
        let before = self.len();
        self.insert(fixed(key), value);
        self.len() > before
    }

    fn take_out(&self, key: &[u8]) -> bool {
        self.remove(&fixed(key)).is_some()
    }

    #[inline(always)]
    fn walk(
        &self,
        start: Option<&[u8]>,
        count: usize,
        mut take: impl FnMut(&[u8], &[u8]),
    ) -> Option<usize> {
        let start = start.map_or([0; K], fixed);
        let entries = self.range(start..).take(count);
        Some(entries.map(|entry| take(entry.key(), entry.value())).count())
    }
}

/// An index from which nothing survives.
pub(crate) struct DramIndex<I>(Arc<I>);

impl<I: Index> Store for DramIndex<I> {
    type Session = Self;

    fn session(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    fn for_each(&self, take: impl FnMut(&[u8], &[u8])) -> Result<()> {
        self.0.walk(None, usize::MAX, take);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn close(self) -> Result<()> {
        Ok(())
    }

    fn facts(&self) -> Facts {
        Facts {
            engine: I::NAME.to_owned(),
            medium: "dram".to_owned(),
            durability: "none".to_owned(),
            flush_instruction: "none".to_owned(),
            huge_pages: false,
        }
    }

    /// None of them says how much memory it takes.
    fn footprint(&self) -> Footprint {
        Footprint { records: self.0.records() as u64, ..Footprint::default() }
    }
}

impl<I: Index> Create for DramIndex<I> {
    fn create(_: &Setup, _: &Path, demand: &Demand) -> Result<Self> {
        Ok(Self(Arc::new(I::with_room(demand.live as usize))))
    }
}

impl<I: Index> StoreSession for DramIndex<I> {
    #[inline(always)]
    fn get_with<T>(&mut self, key: &[u8], take: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        Ok(self.0.find(key).map(|value| take(&value)))
    }

    #[inline(always)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.0.set(key, fixed(value)))
    }

    #[inline(always)]
    fn scan(&mut self, start: &[u8], count: usize, mut take: impl FnMut(&[u8])) -> Result<usize> {
        let found = self.0.walk(Some(start), count, |_, value| take(value));
        found.ok_or_else(|| BenchError::Arguments("a hash table has no order".to_owned()))
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.0.take_out(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds_what_it_was_given<I: Index>(is_ordered: bool) {
        let demand = Demand { live: 100, ..Demand::default() };
        let mut store =
            DramIndex::<I>::create(&Setup::small(), Path::new(""), &demand).expect("made");
        for number in (0..100_u64).rev() {
            let (key, value) = (number.to_be_bytes(), number.to_le_bytes());
            assert!(store.put(&key, &[0; 8]).expect("puts"), "{}: new", I::NAME);
            assert!(!store.put(&key, &value).expect("puts"), "{}: there", I::NAME);
        }
        assert!(store.delete(&50_u64.to_be_bytes()).expect("deletes"));
        assert!(!store.delete(&50_u64.to_be_bytes()).expect("deletes"));
        for (number, expected) in [(7, Some(7_u64.to_le_bytes().to_vec())), (50, None)] {
            let found = store.get_with(&u64::to_be_bytes(number), <[u8]>::to_vec);
            assert_eq!(found.expect("gets"), expected, "{}", I::NAME);
        }
        let mut listed = 0;
        store.for_each(|_, _| listed += 1).expect("lists");
        assert_eq!((listed, store.footprint().records), (99, 99), "{}", I::NAME);
        let mut values = Vec::new();
        let scanned = store.scan(&49_u64.to_be_bytes(), 3, |value| values.push(value[0]));
        assert_eq!(scanned.ok(), is_ordered.then_some(3), "{}", I::NAME);
        assert_eq!(values, if is_ordered { vec![49, 51, 52] } else { vec![] }, "{}", I::NAME);
    }

    #[test]
    fn indexes_hold_what_they_were_given_and_walk_in_their_order() {
        holds_what_it_was_given::<HashTable<8>>(false);
        holds_what_it_was_given::<BTree<8>>(true);
        holds_what_it_was_given::<SkipList<8>>(true);
    }
}
