//! [`Tier`]: blocks that a block cache in DRAM gave up, in persistent memory, compressed or not.
//!
//! # Rules
//! - The bytes that blocks occupy, rounded up to their size classes, are at most the capacity.
//! - The least recently used block goes first.
//! - A block that is being read stays where it is until its last reader is done, whoever gives it up meanwhile.
//! - A block for which the arena has no room is refused. The cache in front goes on without it.
//!
//! # Thread safety
//! All of it may be used from any number of threads. Keys are spread over shards with a lock each. No lock is held while a block
//! is read, written, compressed or decompressed.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::heap::Heap;

/// Locks that keys are spread over.
const SHARDS: usize = 16;
/// Blocks that are given up at most to make room for one where the arena is full.
const ATTEMPTS: usize = 8;

/// What a tier has done and has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct TierReport {
    /// Lookups that found their block.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Blocks taken.
    pub inserts: u64,
    /// Blocks given up to make room.
    pub evictions: u64,
    /// Blocks not taken because there was no room.
    pub refused: u64,
    /// Blocks there are.
    pub blocks: u64,
    /// Bytes of these blocks as the cache in front has them.
    pub raw_bytes: u64,
    /// Bytes of persistent memory that they occupy.
    pub pmem_bytes: u64,
    /// Bytes of DRAM that say where they are, estimated from the number of blocks.
    pub index_bytes: u64,
}

/// A block.
#[derive(Debug)]
struct Block {
    heap: Arc<Heap>,
    object: NonNull<u8>,
    stored: usize,
    raw: usize,
    occupied: usize,
    is_compressed: bool,
}

// SAFETY: the object belongs to the block alone, and its bytes never change once the block is shared.
unsafe impl Send for Block {}
// SAFETY: as above: shared readers only.
unsafe impl Sync for Block {}

impl Block {
    /// Puts bytes into persistent memory; `None` when there is no room.
    fn new(heap: &Arc<Heap>, bytes: &[u8], raw: usize, is_compressed: bool) -> Option<Self> {
        let object = heap.allocate_pmem(bytes.len())?;
        // SAFETY: the object was allocated with as many bytes, and nobody else knows of it yet.
        unsafe { object.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        heap.stored(object.as_ptr(), bytes.len());
        // SAFETY: the object is live.
        let occupied = unsafe { heap.usable_bytes(object) };
        let heap = Arc::clone(heap);
        Some(Self { heap, object, stored: bytes.len(), raw, occupied, is_compressed })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: `new` wrote as many bytes, and they do not change until the block is dropped.
        unsafe { std::slice::from_raw_parts(self.object.as_ptr(), self.stored) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the object came from this heap, and the block is dropped once.
        unsafe { self.heap.free(self.object) };
    }
}

/// Blocks of some of the keys, in order of use.
#[derive(Debug, Default)]
struct Shard {
    blocks: HashMap<Box<[u8]>, (u64, Arc<Block>)>,
    /// Keys by when they were used last.
    order: BTreeMap<u64, Box<[u8]>>,
    clock: u64,
    occupied: usize,
    raw: usize,
}

impl Shard {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn insert(&mut self, key: &[u8], block: Block) {
        self.remove(key);
        let at = self.tick();
        self.occupied += block.occupied;
        self.raw += block.raw;
        self.order.insert(at, key.into());
        self.blocks.insert(key.into(), (at, Arc::new(block)));
    }

    fn touch(&mut self, key: &[u8]) -> Option<Arc<Block>> {
        let now = self.tick();
        let (at, block) = self.blocks.get_mut(key)?;
        if let Some(key) = self.order.remove(at) {
            self.order.insert(now, key);
        }
        *at = now;
        Some(Arc::clone(block))
    }

    fn remove(&mut self, key: &[u8]) -> Option<Arc<Block>> {
        let (at, block) = self.blocks.remove(key)?;
        self.order.remove(&at);
        self.occupied -= block.occupied;
        self.raw -= block.raw;
        Some(block)
    }

    /// Gives up the least recently used block.
    fn evict(&mut self) -> Option<Arc<Block>> {
        let (_, key) = self.order.first_key_value()?;
        let key = key.clone();
        self.remove(&key)
    }
}

/// Blocks in persistent memory behind a block cache in DRAM.
#[derive(Debug)]
pub struct Tier {
    heap: Arc<Heap>,
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
    capacity: AtomicUsize,
    is_compressed: bool,
    hits: AtomicU64,
    misses: AtomicU64,
    inserts: AtomicU64,
    evictions: AtomicU64,
    refused: AtomicU64,
}

impl Tier {
    /// A tier of at most `capacity` bytes of the persistent memory of `heap`.
    pub fn new(heap: Arc<Heap>, capacity: usize, is_compressed: bool) -> Self {
        Self {
            heap,
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            capacity: AtomicUsize::new(capacity),
            is_compressed,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            inserts: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Where its memory comes from.
    pub fn heap(&self) -> &Arc<Heap> {
        &self.heap
    }

    /// Bytes it may occupy.
    pub fn capacity(&self) -> usize {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Changes the bytes it may occupy. Blocks that are too many are given up at once.
    pub fn set_capacity(&self, capacity: usize) {
        self.capacity.store(capacity, Ordering::Relaxed);
        for shard in &self.shards {
            self.make_room(&mut lock(shard), 0);
        }
    }

    fn shard(&self, key: &[u8]) -> MutexGuard<'_, Shard> {
        lock(&self.shards[self.hasher.hash_one(key) as usize % SHARDS])
    }

    /// Gives up blocks of a shard until `bytes` more have room; false when they never will.
    fn make_room(&self, shard: &mut Shard, bytes: usize) -> bool {
        let most = self.capacity() / SHARDS;
        while shard.occupied + bytes > most {
            if shard.evict().is_none() {
                return false;
            }
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    /// Takes a block; one of the same key is replaced. False when there is no room.
    pub fn insert(&self, key: &[u8], raw: &[u8]) -> bool {
        let compressed = self.is_compressed.then(|| lz4_flex::block::compress(raw));
        // What does not shrink is kept as it is.
        let compressed = compressed.filter(|compressed| compressed.len() < raw.len());
        let bytes = compressed.as_deref().unwrap_or(raw);
        let taken = self.place(key, bytes, raw.len(), compressed.is_some());
        let counter = if taken { &self.inserts } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        taken
    }

    fn place(&self, key: &[u8], bytes: &[u8], raw: usize, is_compressed: bool) -> bool {
        for _ in 0..ATTEMPTS {
            if let Some(block) = Block::new(&self.heap, bytes, raw, is_compressed) {
                let mut shard = self.shard(key);
                let has_room = self.make_room(&mut shard, block.occupied);
                if has_room {
                    shard.insert(key, block);
                }
                return has_room;
            }
            // The arena is full or in fragments.
            if self.shard(key).evict().is_none() {
                return false;
            }
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
        false
    }

    /// Finds a block and hands its bytes to `work`; what that returns, or `None` without a block. With `take`, the block is given
    /// up.
    pub fn lookup<R>(&self, key: &[u8], take: bool, work: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let block = {
            let mut shard = self.shard(key);
            if take { shard.remove(key) } else { shard.touch(key) }
        };
        let Some(block) = block else {
            self.misses.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        self.heap.read(block.object.as_ptr(), block.stored);
        if !block.is_compressed {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Some(work(block.bytes()));
        }
        let raw = lz4_flex::block::decompress(block.bytes(), block.raw);
        let counter = if raw.is_ok() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        raw.ok().map(|raw| work(&raw))
    }

    /// Gives up a block.
    pub fn erase(&self, key: &[u8]) {
        self.shard(key).remove(key);
    }

    /// What it has done and has.
    pub fn report(&self) -> TierReport {
        let mut report = TierReport {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            inserts: self.inserts.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            ..TierReport::default()
        };
        for shard in &self.shards {
            let shard = lock(shard);
            report.blocks += shard.blocks.len() as u64;
            report.raw_bytes += shard.raw as u64;
            report.pmem_bytes += shard.occupied as u64;
        }
        report.index_bytes = report.blocks * INDEX_BYTES;
        report
    }
}

/// DRAM for each block: the block and its count of readers, its place in the map and in the order, and its key twice with the
/// allocator's headers.
const INDEX_BYTES: u64 = (size_of::<Block>() + 16 + 2 * (16 + 24) + 2 * (8 + 16) + 16) as u64;

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // A shard is whole before anything under its lock can panic.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
