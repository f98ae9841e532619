//! [`Tier`]: blocks that a block cache in DRAM gave up, in persistent memory, compressed or not.
//!
//! # Rules
//! - The bytes that blocks occupy, rounded up to their size classes, are at most the capacity.
//! - The least recently used block goes first.
//! - A block that is being read stays where it is until its last reader is done, whoever gives it up meanwhile.
//! - Where the arena is full, one block is given up for another one: the oldest whose memory the other one can have. Where none of
//!   the oldest has such memory, the oldest one goes, so that its chunk becomes empty some time. A block that still has no room is
//!   refused. The cache in front goes on without it.
//!
//! # Thread safety
//! All of it may be used from any number of threads. Keys are spread over shards with a lock each. No lock is held while a block
//! is read, written, compressed or decompressed.

mod order;

use std::cell::Cell;
use std::hash::BuildHasher;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};

use crate::arena::Arena;
use crate::heap::Heap;
use order::{Key, Order};

/// Locks that keys are spread over.
const SHARDS: usize = 16;
/// Blocks that are looked at for one whose memory another one can have, where the arena is full.
const OLDEST: usize = 64;

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
    /// A block of zeros in persistent memory, for `fill`; `None` when there is no room, or `fill` fails.
    fn new(
        heap: &Arc<Heap>,
        stored: usize,
        raw: usize,
        is_compressed: bool,
        fill: &mut dyn FnMut(&mut [u8]) -> bool,
    ) -> Option<Self> {
        let object = heap.allocate_pmem(stored)?;
        // SAFETY: the object is live.
        let occupied = unsafe { heap.usable_bytes(object) };
        let heap = Arc::clone(heap);
        // From here on the object is freed with the block.
        let block = Self { heap, object, stored, raw, occupied, is_compressed };
        // SAFETY: the object has as many bytes. They are of a mapped file, so they have values, and nobody else knows of them yet.
        let bytes = unsafe { std::slice::from_raw_parts_mut(object.as_ptr(), stored) };
        if !fill(bytes) {
            return None;
        }
        block.heap.stored(object.as_ptr(), stored);
        Some(block)
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

/// Blocks of some of the keys.
#[derive(Debug, Default)]
struct Shard {
    blocks: Order<Arc<Block>>,
    occupied: usize,
    raw: usize,
}

impl Shard {
    fn insert(&mut self, hash: u64, key: Key, block: Block) {
        self.remove(hash, &key);
        self.occupied += block.occupied;
        self.raw += block.raw;
        self.blocks.insert(hash, key, Arc::new(block));
    }

    fn touch(&mut self, hash: u64, key: &Key) -> Option<Arc<Block>> {
        self.blocks.touch(hash, key).cloned()
    }

    fn remove(&mut self, hash: u64, key: &Key) -> Option<Arc<Block>> {
        let block = self.blocks.remove(hash, key)?;
        self.forget(&block);
        Some(block)
    }

    /// Gives up the least recently used block.
    fn evict(&mut self) -> Option<Arc<Block>> {
        let block = self.blocks.remove_oldest()?;
        self.forget(&block);
        Some(block)
    }

    /// Gives up the oldest block whose memory one that occupies `bytes` can have; where none of the oldest has such memory, the
    /// oldest one.
    fn evict_for(&mut self, bytes: usize) -> Option<Arc<Block>> {
        let is_one = |found: &(u64, &Key, &Arc<Block>)| found.2.occupied == bytes;
        let fits = self.blocks.oldest_first().take(OLDEST).find(is_one);
        let fits = fits.map(|(hash, key, _)| (hash, *key));
        match fits {
            Some((hash, key)) => self.remove(hash, &key),
            None => self.evict(),
        }
    }

    fn forget(&mut self, block: &Block) {
        self.occupied -= block.occupied;
        self.raw -= block.raw;
    }
}

thread_local! {
    /// A block before it is compressed, and after.
    static SCRATCH: Cell<[Vec<u8>; 2]> = const { Cell::new([Vec::new(), Vec::new()]) };
}

/// Lends the buffers of this thread. `work` may come back here, or run while the thread is ending: it gets others then.
fn with_scratch<R>(work: impl FnOnce(&mut [Vec<u8>; 2]) -> R) -> R {
    let mut buffers = SCRATCH.try_with(Cell::take).unwrap_or_default();
    let result = work(&mut buffers);
    // A thread that is ending keeps none.
    let _ = SCRATCH.try_with(|scratch| scratch.set(buffers));
    result
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
            hasher: RandomState::default(),
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

    /// The shard of a key, and the key's hash.
    fn shard(&self, key: &Key) -> (MutexGuard<'_, Shard>, u64) {
        let hash = self.hasher.hash_one(key);
        // The upper half: a table goes by the lower bits and the uppermost ones.
        (lock(&self.shards[(hash >> 32) as usize % SHARDS]), hash)
    }

    /// Gives up blocks of a shard until `bytes` more have room; false when they never will.
    fn make_room(&self, shard: &mut Shard, bytes: usize) -> bool {
        let most = self.capacity() / SHARDS;
        if bytes > most {
            return false;
        }
        while shard.occupied + bytes > most {
            if shard.evict().is_none() {
                return false;
            }
            self.evictions.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    /// Whether there is a block of this key already; it is then the one that was used last.
    pub fn renew(&self, key: &[u8]) -> bool {
        let is_there = |key: Key| {
            let (mut shard, hash) = self.shard(&key);
            shard.touch(hash, &key).is_some()
        };
        Key::new(key).is_some_and(is_there)
    }

    /// Takes a block; one of the same key is replaced. False when there is no room.
    pub fn insert(&self, key: &[u8], raw: &[u8]) -> bool {
        self.insert_with(key, raw.len(), &mut |bytes| {
            bytes.copy_from_slice(raw);
            true
        })
    }

    /// Takes a block of `length` bytes that `fill` writes; one of the same key is replaced. False when there is no room, the key is
    /// longer than 24 bytes, or `fill` says that it failed.
    pub fn insert_with(
        &self,
        key: &[u8],
        length: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> bool,
    ) -> bool {
        let taken = Key::new(key).is_some_and(|key| {
            if self.is_compressed {
                self.insert_compressed(&key, length, fill)
            } else {
                self.place(&key, length, length, false, fill)
            }
        });
        let counter = if taken { &self.inserts } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        taken
    }

    fn insert_compressed(
        &self,
        key: &Key,
        length: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> bool,
    ) -> bool {
        with_scratch(|[raw, compressed]| {
            raw.resize(length, 0);
            if !fill(raw) {
                return false;
            }
            compressed.resize(get_maximum_output_size(length), 0);
            // What does not shrink is kept as it is.
            let shrunk = compress_into(raw, compressed).ok().filter(|shrunk| *shrunk < length);
            let bytes = shrunk.map_or(&raw[..], |shrunk| &compressed[..shrunk]);
            let copy = &mut |into: &mut [u8]| {
                into.copy_from_slice(bytes);
                true
            };
            self.place(key, bytes.len(), length, shrunk.is_some(), copy)
        })
    }

    fn place(
        &self,
        key: &Key,
        stored: usize,
        raw: usize,
        is_compressed: bool,
        fill: &mut dyn FnMut(&mut [u8]) -> bool,
    ) -> bool {
        let bytes = Arena::occupied_bytes(stored);
        if bytes > self.capacity() / SHARDS {
            return false;
        }
        let is_filled = Cell::new(true);
        let mut make = || {
            Block::new(&self.heap, stored, raw, is_compressed, &mut |bytes| {
                is_filled.set(fill(bytes));
                is_filled.get()
            })
        };
        let again = || is_filled.get() && self.evict_for(key, bytes);
        let block = make().or_else(|| if again() { make() } else { None });
        let Some(block) = block else { return false };
        let (mut shard, hash) = self.shard(key);
        let has_room = self.make_room(&mut shard, block.occupied);
        if has_room {
            shard.insert(hash, *key, block);
        }
        has_room
    }

    /// Gives up a block of the shard of `key` for one that occupies `bytes` and has no room in the arena; false when there is none.
    fn evict_for(&self, key: &Key, bytes: usize) -> bool {
        let given_up = self.shard(key).0.evict_for(bytes);
        self.evictions.fetch_add(u64::from(given_up.is_some()), Ordering::Relaxed);
        given_up.is_some()
    }

    /// Finds a block and hands its bytes to `work`; what that returns, or `None` without a block. With `take`, the block is given
    /// up.
    pub fn lookup<R>(&self, key: &[u8], take: bool, work: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let found = Key::new(key).and_then(|key| {
            let (mut shard, hash) = self.shard(&key);
            if take { shard.remove(hash, &key) } else { shard.touch(hash, &key) }
        });
        let result = found.and_then(|block| self.hand_out(&block, work));
        let counter = if result.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        result
    }

    fn hand_out<R>(&self, block: &Block, work: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.heap.read(block.object.as_ptr(), block.stored);
        if !block.is_compressed {
            return Some(work(block.bytes()));
        }
        with_scratch(|[raw, _]| {
            raw.resize(block.raw, 0);
            let length = decompress_into(block.bytes(), raw).ok()?;
            raw.get(..length).map(work)
        })
    }

    /// Gives up a block.
    pub fn erase(&self, key: &[u8]) {
        if let Some(key) = Key::new(key) {
            let (mut shard, hash) = self.shard(&key);
            shard.remove(hash, &key);
        }
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

/// DRAM for each block: the block, its count of readers and the allocator's header; a node of the order with the key and four words;
/// its place in a table that is two thirds full, and a byte of that.
const INDEX_BYTES: u64 = (size_of::<Block>() + 32 + size_of::<Key>() + 32 + 5 * 3 / 2) as u64;

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // A shard is whole before anything under its lock can panic.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
