//! [`CachedFpTree`]: FPTree with a cache of records in DRAM, as HiKV's FPTree_C (ATC 2017, section 4.1): a hash index, and the
//! least recently used record makes room.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chimera_pmem::{Operation, Pmem};

use super::cache::RecordCache;
use super::{FpTree, Tree, TreeFootprint, TreeShape};
use crate::error::Result;

/// The part of persistent memory that the cache has in DRAM: by how much more DRAM HiKV needs than FPTree there.
const CACHE_PERCENT: f64 = 15.4;

/// See the module. Every write goes to the tree first.
pub struct CachedFpTree<P: Pmem> {
    tree: FpTree<P>,
    cache: Mutex<RecordCache>,
}

impl<P: Pmem> std::fmt::Debug for CachedFpTree<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedFpTree").field("tree", &self.tree).finish_non_exhaustive()
    }
}

impl<P: Pmem> CachedFpTree<P> {
    fn cache(&self) -> MutexGuard<'_, RecordCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Pmem> Tree<P> for CachedFpTree<P> {
    const NAME: &'static str = "fptree-cached";

    fn bytes_for(shape: TreeShape, records: u64) -> Result<u64> {
        <FpTree<P> as Tree<P>>::bytes_for(shape, records)
    }

    /// The cache is empty, and has room for as many records as 15.4 % of the pool hold.
    fn open(pmem: P, shape: TreeShape) -> Result<Self> {
        let record = u64::from(shape.key_bytes) + u64::from(shape.value_bytes);
        // Leaves of a pool are half full at least.
        let records = pmem.mapped() as f64 / 2.0 / record as f64;
        let capacity = (records * CACHE_PERCENT / 100.0) as usize;
        let tree = FpTree::open(pmem, shape)?;
        Ok(Self { tree, cache: Mutex::new(RecordCache::new(capacity)) })
    }

    fn pmem(&self) -> &P {
        self.tree.pmem()
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        if self.cache().get(key, value) {
            self.pmem().operation_begin(Operation::Get, 0);
            self.pmem().operation_acknowledge();
            return Ok(true);
        }
        let found = self.tree.get(key, value)?;
        if found {
            self.cache().put(key, value);
        }
        Ok(found)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let is_new = self.tree.put(key, value)?;
        self.cache().put(key, value);
        Ok(is_new)
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let was_there = self.tree.update(key, value)?;
        if was_there {
            self.cache().replace(key, value);
        }
        Ok(was_there)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        self.cache().remove(key);
        self.tree.delete(key)
    }

    fn scan(&self, from: &[u8], count: usize, take: impl FnMut(&[u8], &[u8])) -> Result<usize> {
        self.tree.scan(from, count, take)
    }

    fn footprint(&self) -> TreeFootprint {
        let tree = self.tree.footprint();
        TreeFootprint { dram_bytes: tree.dram_bytes + self.cache().dram_bytes(), ..tree }
    }

    fn check(&self) -> Result<()> {
        self.tree.check()
    }
}
