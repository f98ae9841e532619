//! [`Arena`]: allocating and freeing memory of a [`Region`].
//!
//! The region is cut into chunks. A chunk belongs to nobody, to a bin of objects of one size, or to one object
//! that is larger than half a chunk and has a run of chunks to itself. What is free is known in DRAM alone.
//!
//! # Thread safety
//! All of it may be used from any number of threads.
//! 1. Each size class has several bins with a lock each. A thread allocates from a bin of its own choice.
//! 2. Free chunks have a lock, which is taken last: while a bin is locked, never the other way round.
//!    The lock of those who gather empty chunks is taken first.
//! 3. The owner of a chunk is a word. It changes only while no live object is in the chunk, so whoever frees an object reads it
//!    without a lock.

mod bin;
mod chunks;
mod classes;

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::region::{Region, RegionOptions};
use bin::{Bin, Given};
use chunks::Chunks;
use classes::{CLASSES, SMALL_MAX, class_of, size_of};

/// Bytes of a chunk.
const CHUNK: usize = 256 << 10;
/// Bins of a size class.
const SHARDS: usize = 4;
/// Owner of a chunk that is free, or not the first one of its run.
const NOBODY: u64 = 0;
/// Owner of the first chunk of a run for one object; the length of the run is below.
const RUN: u64 = 1 << 62;
/// Owner of a chunk of a bin: the bin and the chunk's place there are below.
const OF_BIN: u64 = 1 << 63;

/// Memory of a region, allocated and freed.
#[derive(Debug)]
pub struct Arena {
    region: Region,
    bins: Vec<Mutex<Bin>>,
    chunks: Mutex<Chunks>,
    owners: Vec<AtomicU64>,
    live_bytes: AtomicUsize,
    peak_bytes: AtomicUsize,
    refused: AtomicU64,
    /// How often a bin kept an empty chunk.
    emptied: AtomicU64,
    /// How often that was when bins were last asked for them. Held while they are asked.
    gathered: Mutex<u64>,
}

/// What an arena has given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ArenaReport {
    /// Bytes of the region.
    pub bytes: u64,
    /// Bytes of live objects, rounded up to their size classes.
    pub live_bytes: u64,
    /// Most bytes that were live at once.
    pub peak_bytes: u64,
    /// Allocations for which there was no room.
    pub refused: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a lock protects is whole before anything under it can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The shard that this thread allocates from.
fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    // A thread that is ending has no storage any more.
    let mine = SHARD.try_with(|shard| {
        if shard.get() == usize::MAX {
            shard.set(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
        }
        shard.get()
    });
    mine.unwrap_or(0)
}

impl Arena {
    /// Maps a region.
    ///
    /// # Errors
    /// As [`Region::open`].
    pub fn open(options: &RegionOptions) -> Result<Self> {
        Ok(Self::new(Region::open(options)?))
    }

    /// Allocates from a region.
    pub fn new(region: Region) -> Self {
        let count = region.length() / CHUNK;
        let bins = (0..CLASSES * SHARDS).map(|index| Mutex::new(Bin::new(size_of(index / SHARDS))));
        Self {
            bins: bins.collect(),
            chunks: Mutex::new(Chunks::new(count)),
            owners: (0..count).map(|_| AtomicU64::new(NOBODY)).collect(),
            region,
            live_bytes: AtomicUsize::new(0),
            peak_bytes: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            emptied: AtomicU64::new(0),
            gathered: Mutex::new(0),
        }
    }

    /// The memory.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Allocates at least `size` bytes, aligned to 64. `None` when there is no room.
    ///
    /// # Cost
    /// A lock that few threads share, and no access to persistent memory.
    pub fn allocate(&self, size: usize) -> Option<NonNull<u8>> {
        let take = || {
            if size <= SMALL_MAX { self.take_small(class_of(size)) } else { self.take_run(size) }
        };
        let taken = take().or_else(|| self.gather_and_take(take));
        let Some((offset, bytes)) = taken else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let live = self.live_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak_bytes.fetch_max(live, Ordering::Relaxed);
        // SAFETY: `offset + bytes` is inside the region: chunks are, and objects are inside their chunks.
        Some(unsafe { self.region.base().add(offset) })
    }

    /// Frees what [`allocate`](Self::allocate) gave out; false when no live object begins at the address, and nothing happens
    /// then.
    pub fn free(&self, object: NonNull<u8>) -> bool {
        let Some(offset) = self.region.offset_of(object.as_ptr()) else { return false };
        let chunk = offset / CHUNK;
        let Some(owner) = self.owners.get(chunk) else { return false };
        let bytes = match owner.load(Ordering::Acquire) {
            NOBODY => None,
            owner if owner & OF_BIN != 0 => self.give_small(owner, chunk, offset % CHUNK),
            run if offset.is_multiple_of(CHUNK) => self.give_run(run, chunk),
            _ => None,
        };
        self.live_bytes.fetch_sub(bytes.unwrap_or(0), Ordering::Relaxed);
        bytes.is_some()
    }

    /// Bytes that an object may use: what its size class has. 0 when no object can begin there.
    pub fn usable_bytes(&self, object: NonNull<u8>) -> usize {
        let offset = self.region.offset_of(object.as_ptr());
        let owner = offset.and_then(|offset| self.owners.get(offset / CHUNK));
        match owner.map_or(NOBODY, |owner| owner.load(Ordering::Acquire)) {
            NOBODY => 0,
            owner if owner & OF_BIN != 0 => size_of(bin_of(owner) / SHARDS),
            run => (run & !RUN) as usize * CHUNK,
        }
    }

    /// Bytes that an object of `size` bytes occupies.
    pub(crate) fn occupied_bytes(size: usize) -> usize {
        if size <= SMALL_MAX {
            size_of(class_of(size))
        } else {
            size.checked_next_multiple_of(CHUNK).unwrap_or(usize::MAX)
        }
    }

    /// What it has given out.
    pub fn report(&self) -> ArenaReport {
        ArenaReport {
            bytes: self.region.length() as u64,
            live_bytes: self.live_bytes.load(Ordering::Relaxed) as u64,
            peak_bytes: self.peak_bytes.load(Ordering::Relaxed) as u64,
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    /// Takes an object of a class: from this thread's bin, from a new chunk, or from any other bin.
    fn take_small(&self, class: usize) -> Option<(usize, usize)> {
        let mine = shard();
        let of_mine = self.take_from(class * SHARDS + mine, true);
        let others = || (1..SHARDS).map(|step| class * SHARDS + (mine + step) % SHARDS);
        let offset = of_mine.or_else(|| others().find_map(|bin| self.take_from(bin, false)))?;
        Some((offset, size_of(class)))
    }

    fn take_from(&self, index: usize, may_grow: bool) -> Option<usize> {
        let mut bin = lock(&self.bins[index]);
        if let Some(offset) = bin.take() {
            return Some(offset);
        }
        if !may_grow {
            return None;
        }
        let chunk = lock(&self.chunks).take(1)?;
        let place = bin.add(chunk);
        self.owners[chunk].store(owner_of(index, place), Ordering::Release);
        bin.take()
    }

    /// Takes again when bins have given up empty chunks that they kept.
    ///
    /// One thread gathers at a time. Another one waits, and takes of what the first one found; it asks the bins only if they kept a
    /// chunk since.
    fn gather_and_take<T>(&self, take: impl Fn() -> Option<T>) -> Option<T> {
        let mut gathered = lock(&self.gathered);
        let emptied = self.emptied.load(Ordering::Relaxed);
        if *gathered != emptied {
            *gathered = emptied;
            self.gather_empty_chunks();
        }
        take()
    }

    fn gather_empty_chunks(&self) {
        for bin in &self.bins {
            let mut bin = lock(bin);
            while let Some(chunk) = bin.give_up_empty() {
                self.free_chunk(chunk);
            }
        }
    }

    /// Frees a chunk of a bin, which is locked.
    fn free_chunk(&self, chunk: usize) {
        self.owners[chunk].store(NOBODY, Ordering::Release);
        lock(&self.chunks).give(chunk, 1);
    }

    fn give_small(&self, owner: u64, chunk: usize, offset: usize) -> Option<usize> {
        let index = bin_of(owner);
        let mut bin = lock(&self.bins[index]);
        match bin.give(place_of(owner), offset) {
            Given::Nothing => return None,
            Given::Object => {}
            Given::EmptyChunk => {
                self.emptied.fetch_add(1, Ordering::Relaxed);
            }
            Given::Chunk => self.free_chunk(chunk),
        }
        Some(size_of(index / SHARDS))
    }

    fn take_run(&self, size: usize) -> Option<(usize, usize)> {
        let length = size.div_ceil(CHUNK);
        let start = lock(&self.chunks).take(length)?;
        self.owners[start].store(RUN | length as u64, Ordering::Release);
        Some((start * CHUNK, length * CHUNK))
    }

    fn give_run(&self, run: u64, start: usize) -> Option<usize> {
        let length = (run & !RUN) as usize;
        let owner = &self.owners[start];
        // Of two threads that free the same object one gives it back.
        owner.compare_exchange(run, NOBODY, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        lock(&self.chunks).give(start, length);
        Some(length * CHUNK)
    }
}

fn owner_of(bin: usize, place: usize) -> u64 {
    OF_BIN | (bin as u64) << 32 | place as u64
}

fn bin_of(owner: u64) -> usize {
    ((owner & !OF_BIN) >> 32) as usize
}

fn place_of(owner: u64) -> usize {
    (owner & u64::from(u32::MAX)) as usize
}
