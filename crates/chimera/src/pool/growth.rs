//! Adding segments, allocating storage ahead of use, handing out blocks.

use std::sync::Arc;

use chimera_pmem::environment::TaskStep;
use chimera_pmem::{Environment, Extent, Fenced, Medium, Pmem};

use super::ahead::Ahead;
use super::files::{cannot_map, full_or_io};
use super::segment::{self, Section};
use super::storage::SYSTEM_PAGE_BYTES;
use super::{Pool, Purpose, Reserve, block_sites, sites, store_used};
use crate::sync::atomic::Ordering;
use crate::sync::{MutexGuard, lock_relaxing};
use crate::types::error::{Error, Result};

/// What handing out blocks needs to know.
pub(super) struct AllocationLimits {
    /// Most blocks the pool may have, but for those that are held.
    pub(super) blocks_max: u64,
    /// Fresh blocks that are held for batches: so many of those that are ready are not handed out.
    pub(super) held: u64,
    pub(super) reserve: Reserve,
    /// When nothing was left in the blocks behind the used ones, and their segment was there.
    pub(super) fresh_emptied: Fenced,
}

/// Blocks that half of the memory has room for that the process may use: the rest is for the index, and for others.
pub(super) fn blocks_in_memory(environment: &dyn Environment, block_bytes: u64) -> u64 {
    environment.memory_bytes().map_or(u64::MAX, |bytes| bytes / 2 / block_bytes)
}

/// What growing needs to know.
pub(super) struct Growth {
    /// Open segments, for allocating storage in them.
    pub(super) segments: Vec<Section>,
    /// Most blocks the pool may have.
    pub(super) blocks_max: u64,
    /// Blocks before it are read as they usually are.
    pub(super) filled: u64,
}

impl<P: Pmem> Pool<P> {
    pub(super) fn lock_hand_out(&self) -> MutexGuard<'_, AllocationLimits> {
        lock_relaxing(&self.hand_out, &*self.environment)
    }

    /// Most blocks that the capacity allows.
    pub(crate) fn blocks_max(&self) -> u64 {
        let limits = self.lock_hand_out();
        limits.blocks_max + limits.held
    }

    /// Keeps so many fresh blocks, and storage for them, from being handed out, until they are [let go of](Self::release_fresh),
    /// if `times` as many are left. In DRAM only. Whether it does.
    ///
    /// # Cost
    /// Three loads where there is storage; else it is allocated, for some more.
    pub(crate) fn hold_fresh(&self, blocks: u64, times: u64) -> bool {
        loop {
            let mut limits = self.lock_hand_out();
            let used = self.used.load(Ordering::Acquire);
            let fresh = limits.blocks_max.saturating_sub(used);
            if fresh < blocks.saturating_mul(times) {
                return false;
            }
            let end = used + limits.held + blocks;
            if self.ready.load(Ordering::Acquire) >= end {
                limits.blocks_max -= blocks;
                limits.held += blocks;
                return true;
            }
            drop(limits);
            if let Err(error) = self.grow_beyond(end - 1) {
                log::debug!("{blocks} fresh blocks are not held: {error}");
                return false;
            }
        }
    }

    /// Lets go of fresh blocks that were [held](Self::hold_fresh).
    pub(crate) fn release_fresh(&self, blocks: u64) {
        let mut limits = self.lock_hand_out();
        limits.blocks_max += blocks;
        limits.held -= blocks;
    }

    /// Blocks that were never handed out, or given back, that the capacity allows, and that are not held.
    pub(crate) fn fresh_blocks(&self) -> u64 {
        let handing_out = self.lock_hand_out();
        handing_out.blocks_max.saturating_sub(self.used.load(Ordering::Acquire))
    }

    /// Hands out the next fresh block, and leaves the [reserve](super::reserve) of this purpose. Its bytes are zero, or
    /// what was left of its last use when it was given back, or a crash took it back before it was in use.
    ///
    /// `prepare` stores into the block what must be found there while it is in use, and starts writing it back; it is
    /// durable before the block is in use. It is called once, under the lock of handing out, so it is short.
    ///
    /// # Errors
    /// `PoolFull`, with nothing changed.
    ///
    /// # Durability
    /// The block is in use, durably, on return. A crash before leaves it a fresh one, or in use and as it was prepared.
    ///
    /// # Cost
    /// 2 lines and those that `prepare` flushes, 2 fences. Storage is allocated here only when the background task has
    /// fallen behind.
    pub(crate) fn take_block(&self, purpose: Purpose, prepare: impl Fn(u64)) -> Result<u64> {
        loop {
            let limits = self.lock_hand_out();
            let block = self.used.load(Ordering::Acquire);
            if block + limits.reserve.blocks_left_by(purpose) >= limits.blocks_max {
                let all = limits.blocks_max + limits.held;
                let reason =
                    format!("{block} blocks are used of the {all} that its capacity allows");
                return Err(Error::PoolFull { reason });
            }
            let ready = self.ready.load(Ordering::Acquire);
            // What is held keeps its storage.
            let last = block + limits.held;
            if last < ready {
                self.take_new(block..block + 1, ready, limits.fresh_emptied);
                prepare(block);
                self.pmem.fence(block_sites::BLOCK_READY);
                store_used(&self.pmem, block + 1, block_sites::USED_BLOCKS);
                self.used.store(block + 1, Ordering::Release);
                drop(limits);
                self.pmem.fence(block_sites::USED_BLOCKS);
                self.note_handed_out(block, ready);
                return Ok(block);
            }
            drop(limits);
            self.grow_beyond(last)?;
        }
    }

    /// Takes the last block back, which is the caller's and in which nothing is live; `false` when it is
    /// not the last one, or `clear` failed. `clear` ends with a fence; nobody is handed the block before.
    ///
    /// # Durability
    /// Durable on return. A crash before leaves it in use, and empty.
    ///
    /// # Cost
    /// 2 lines, and what `clear` costs.
    pub(crate) fn give_back(&self, block: u64, clear: impl FnOnce() -> Result<()>) -> bool {
        let mut handing_out = self.lock_hand_out();
        if self.used.load(Ordering::Acquire) != block + 1 {
            return false;
        }
        store_used(&self.pmem, block, block_sites::USED_BLOCKS);
        if let Err(error) = clear() {
            log::warn!("block {block} stays in use: {error}");
            store_used(&self.pmem, block + 1, block_sites::USED_BLOCKS);
            return false;
        }
        handing_out.fresh_emptied = self.pmem.fenced();
        self.used.store(block, Ordering::Release);
        true
    }

    /// When nothing was left in any of the blocks that were never handed out, or given back, under a journal.
    pub(crate) fn fresh_emptied(&self) -> Fenced {
        self.lock_hand_out().fresh_emptied
    }

    /// Wakes the background task when it has fallen behind, after the block before which `ready - block`
    /// were ready was handed out.
    #[inline]
    pub(super) fn note_handed_out(&self, block: u64, ready: u64) {
        if ready - block < self.ahead.blocks(block) / 2 {
            self.keeps_least_ready.store(false, Ordering::Relaxed);
            self.wake_background();
        }
    }

    /// Returns storage of blocks that were given back to the file system, but for those that are kept
    /// ready ahead of use, and where all of it was asked for. What cannot be returned stays, without being ready.
    ///
    /// # Cost
    /// Nothing while there is little to return. Else a system call and a sync for each segment, and with a journal a
    /// checkpoint: what it is yet to write back would take the storage again.
    pub(crate) fn release_storage(&self) {
        self.release(|ahead, used| (ahead.blocks(used), ahead.step_blocks(used)));
    }

    /// As [`release_storage`](Self::release_storage), and next to nothing is kept ready: after a compaction, which leaves free
    /// space before it.
    pub(crate) fn release_ahead(&self) {
        self.keeps_least_ready.store(true, Ordering::Relaxed);
        self.release(|ahead, _| (ahead.least_blocks(), 1));
    }

    /// Returns what is ready beyond as many blocks as `keep` says for those in use, if it is as many more as that says or
    /// more.
    fn release(&self, keep: impl Fn(&Ahead, u64) -> (u64, u64)) {
        let held = self.lock_hand_out().held;
        if self.keeps_all_storage() || self.blocks_to_release(held, &keep).is_none() {
            return;
        }
        // Most of it here, where nobody who needs blocks waits.
        if let Some(journal) = self.pmem.journal()
            && let Err(error) = journal.checkpoint()
        {
            log::debug!("storage of free blocks is kept: {error}");
            return;
        }
        let mut growth = lock_relaxing(&self.growth, &*self.environment);
        let handing_out = self.lock_hand_out();
        let Some(blocks) = self.blocks_to_release(handing_out.held, &keep) else { return };
        // From here on nobody is handed what is about to have no storage.
        self.ready.store(blocks.start, Ordering::Release);
        drop(handing_out);
        let mut block = blocks.start;
        while block < blocks.end {
            let end = blocks.end.min(block + self.map.blocks_to_segment_end(block));
            if let Err(error) = self.punch(&growth, block..end) {
                log::debug!("storage of free blocks is kept: {error}");
            }
            block = end;
        }
        // A power loss before would bring back what was there, under records that are stored where there are zeros now.
        if let Err(error) = self.sync_punched(&growth, blocks.clone()) {
            log::warn!("the store does not grow any more: {error}");
            growth.blocks_max = growth.blocks_max.min(blocks.start);
        }
    }

    /// Returns storage that the journal has grown by, where there is one.
    ///
    /// # Errors
    /// Those of a write.
    pub(crate) fn trim_journal(&self) -> Result<()> {
        let Some(journal) = self.pmem.journal() else { return Ok(()) };
        journal.trim().map_err(Error::io("give back storage of the journal of", &self.files.path))
    }

    /// Returns storage of blocks of a segment.
    fn punch(&self, growth: &Growth, blocks: std::ops::Range<u64>) -> std::io::Result<()> {
        if self.is_journaled {
            let start = self.map.block_at(blocks.start);
            let length = (blocks.end - blocks.start) * self.map.block_bytes;
            let range = self.extent(start, length);
            return self.pmem.punch(range, block_sites::USED_BLOCKS).map(|_| ());
        }
        let (section, at, length) = self.locate(&growth.segments, &blocks);
        section.file.punch(at, length)
    }

    /// Makes durable that storage of blocks was returned, where a power loss leaves anything.
    fn sync_punched(&self, growth: &Growth, blocks: std::ops::Range<u64>) -> std::io::Result<()> {
        if self.is_journaled {
            return self.pmem.sync_punched(block_sites::USED_BLOCKS);
        }
        // Nothing else has files whose holes outlast a power loss.
        if self.pmem.medium() != Medium::FsDax {
            return Ok(());
        }
        let per_segment = self.map.blocks_per_segment;
        let segments = blocks.start / per_segment..blocks.end.div_ceil(per_segment);
        segments.into_iter().try_for_each(|index| growth.segments[index as usize].file.sync())
    }

    /// The blocks that are ready, and more than are kept so or held, if there are enough of them.
    fn blocks_to_release(
        &self,
        held: u64,
        keep: impl Fn(&Ahead, u64) -> (u64, u64),
    ) -> Option<std::ops::Range<u64>> {
        // In this order: in the other one there could be more used than ready ones.
        let used = self.used.load(Ordering::Acquire);
        let ready = self.ready.load(Ordering::Acquire);
        let (blocks, more) = keep(&self.ahead, used);
        let keep = used + held + blocks.max(more);
        (ready >= keep + more).then_some(keep..ready)
    }

    /// Allocates storage for the next blocks, adding a segment where needed, and touches it so that
    /// no access faults later, but for a plain file with a journal. Does nothing when more than `blocks` are ready already.
    ///
    /// # Errors
    /// `PoolFull` when the file system, the device or the configured capacity is exhausted; `Removed` when files
    /// of the pool are gone; `InTheWay` when something else has the name of the next segment.
    pub(crate) fn grow_beyond(&self, blocks: u64) -> Result<()> {
        let mut growth = lock_relaxing(&self.growth, &*self.environment);
        let ready = self.ready.load(Ordering::Acquire);
        if ready > blocks {
            return Ok(());
        }
        let segment = ready / self.map.blocks_per_segment;
        let inside = ready % self.map.blocks_per_segment;
        if ready >= growth.blocks_max {
            let reason = format!("its {ready} blocks are all that its capacity allows");
            return Err(Error::PoolFull { reason });
        }
        // Whoever grows into files that are gone loses what it stores there.
        let is_new = segment == growth.segments.len() as u64;
        self.files.check_in_place(Some(segment).filter(|_| !is_new))?;
        if is_new {
            self.add_segment(&mut growth, segment)?;
        }
        let blocks = self
            .ahead
            .step_blocks(self.used_blocks())
            .min(self.map.blocks_per_segment - inside)
            .min(growth.blocks_max - ready);
        let start = self.map.block_at(ready);
        let length = blocks * self.map.block_bytes;
        let in_file = start - (self.map.base + segment * self.map.segment_bytes);
        let path = self.files.segment_path(segment);
        let section = &growth.segments[segment as usize];
        let is_device = self.files.device.is_some();
        if !is_device {
            section
                .file
                .allocate(section.offset + in_file, length)
                .map_err(|source| full_or_io(source, "allocate space in", &path))?;
        }
        // Where there is a journal, a page that is touched is memory of the process from then on.
        if self.is_journaled {
            self.expect_stores(&mut growth, self.extent(start, length));
        } else {
            self.populate(start, length)
                .map_err(|source| full_or_io(source, "touch the memory of", &path))?;
        }
        if is_device {
            self.blank(start, length);
        }
        self.ready.store(ready + blocks, Ordering::Release);
        self.note_size();
        Ok(())
    }

    /// Tells the seam of new storage, and that blocks that were handed out since it was told of some are not new any more.
    fn expect_stores(&self, growth: &mut Growth, new: Extent) {
        self.pmem.expect_stores(new);
        let used = self.used_blocks();
        let filled = std::mem::replace(&mut growth.filled, used);
        if filled < used {
            let (start, end) = (self.map.block_at(filled), self.map.block_at(used));
            self.pmem.expect_loads(self.extent(start, end.min(new.offset()) - start));
        }
    }

    /// Tells the seam once there is more than memory has room for.
    fn note_size(&self) {
        if self.ready_blocks() > self.blocks_in_memory {
            self.pmem.expect_misses();
        }
    }

    /// Touches the pages of a range for writing.
    fn populate(&self, start: u64, length: u64) -> std::io::Result<()> {
        let first = start / SYSTEM_PAGE_BYTES * SYSTEM_PAGE_BYTES;
        let end = (start + length).next_multiple_of(SYSTEM_PAGE_BYTES).min(self.pmem.mapped());
        self.pmem.populate(first, end - first)
    }

    /// Makes a range of a device zero that may hold anything, durably, writing only where it is not
    /// zero already.
    fn blank(&self, start: u64, length: u64) {
        let mut bytes = vec![0; SYSTEM_PAGE_BYTES as usize];
        for at in (start..start + length).step_by(bytes.len()) {
            let page = self.extent(at, SYSTEM_PAGE_BYTES.min(start + length - at));
            let bytes = &mut bytes[..page.length() as usize];
            self.pmem.read(page, bytes);
            if bytes.iter().any(|&byte| byte != 0) {
                self.pmem.zero(page, block_sites::USED_BLOCKS);
            }
        }
        // All of it: zeros that were found may be somebody's who did not live to flush them.
        self.pmem.flush(self.extent(start, length), block_sites::USED_BLOCKS);
        self.pmem.fence(block_sites::USED_BLOCKS);
    }

    /// Touches the pages of blocks in use before a scan, where that saves faults and costs no writing
    /// back later.
    pub(crate) fn populate_blocks(&self, blocks: std::ops::Range<u64>) {
        if self.read_only || self.pmem.medium() == Medium::File || blocks.is_empty() {
            return;
        }
        let start = self.map.block_at(blocks.start);
        let end = self.map.block_at(blocks.end - 1) + self.map.block_bytes;
        if let Err(error) = self.populate(start, end - start) {
            log::debug!("pages of blocks {blocks:?} are touched when used: {error}");
        }
    }

    /// Makes all blocks that the capacity allows ready.
    ///
    /// # Errors
    /// As [`grow_beyond`](Self::grow_beyond).
    pub(crate) fn grow_to_capacity(&self) -> Result<()> {
        let blocks_max = lock_relaxing(&self.growth, &*self.environment).blocks_max;
        while self.ready_blocks() < blocks_max {
            self.grow_beyond(self.ready_blocks())?;
        }
        Ok(())
    }

    /// Starts the background tasks: the one that keeps blocks ready ahead of use, and those of the
    /// journal.
    ///
    /// # Errors
    /// When no thread can be had.
    pub(crate) fn start_background(self: &Arc<Self>) -> Result<()> {
        if let Some(journal) = self.pmem.journal() {
            journal.start().map_err(Error::io("start a thread for", &self.files.path))?;
        }
        // Not before: who opens a pool reads all of it.
        self.note_size();
        if self.read_only || self.ahead.is_none() {
            return Ok(());
        }
        let pool = Arc::downgrade(self);
        let step = move || pool.upgrade().map_or(TaskStep::Done, |pool| pool.keep_ahead());
        let task = self
            .environment
            .spawn("chimera-growth", Box::new(step))
            .map_err(Error::io("start a thread for", &self.files.path))?;
        // Only ever started once: a second task would be dropped, and so stopped, here.
        self.background.get_or_init(|| task);
        Ok(())
    }

    /// Stops the background tasks. The owner of the pool calls this before dropping it, so that the
    /// task never holds the last reference.
    pub(crate) fn stop_background(&self) {
        if let Some(task) = self.background.get() {
            task.stop();
        }
        if let Some(journal) = self.pmem.journal() {
            journal.stop();
        }
    }

    /// Processor time of the background task so far, in nanoseconds.
    pub(crate) fn background_ns(&self) -> u64 {
        let time = self.background.get().and_then(|task| task.processor_time());
        time.map_or(0, |time| time.as_nanos() as u64)
    }

    fn wake_background(&self) {
        if let Some(task) = self.background.get() {
            task.wake();
        }
    }

    /// One step of the background task.
    fn keep_ahead(&self) -> TaskStep {
        // In this order: in the other one there could be more used than ready ones.
        let used = self.used_blocks();
        let ready = self.ready_blocks();
        let is_enough = self.keeps_least_ready.load(Ordering::Relaxed);
        if is_enough || ready.saturating_sub(used) >= self.ahead.blocks(used) {
            return TaskStep::Wait;
        }
        match self.grow_beyond(ready) {
            Ok(()) => TaskStep::Again,
            Err(error) => {
                // The session that needs a block will try, and report, by itself.
                log::debug!("no blocks ahead of use: {error}");
                TaskStep::Wait
            }
        }
    }

    fn add_segment(&self, growth: &mut Growth, index: u64) -> Result<()> {
        let header = self.map.header_in_segment();
        let length = self.map.segment_bytes;
        let pool_id = self.superblock().pool_id;
        let section = self.files.create_segment(pool_id, index, length, header)?;
        let at = self.map.base + index * length;
        self.pmem
            .map(at, &section.file, section.offset, length)
            .map_err(cannot_map(&self.files.segment_path(index)))?;
        let words = segment::encode(pool_id, index);
        for (number, word) in words.iter().enumerate() {
            self.pmem.store_u64(at + header + 8 * number as u64, *word, sites::SEGMENT_HEADER);
        }
        self.pmem.flush(self.extent(at + header, 8 * segment::WORDS as u64), sites::SEGMENT_HEADER);
        self.pmem.fence(sites::SEGMENT_HEADER);
        // Twice, so that both copies say so: blocks will be in use that a store with fewer segments
        // cannot have, and either copy alone must be enough.
        for _ in 0..2 {
            self.change_superblock(|superblock| superblock.segments = index + 1);
        }
        growth.segments.push(section);
        // A crash may take the segment and leave its file, in which nothing may be found then.
        let mut handing_out = self.lock_hand_out();
        // Under the lock: whoever gives blocks back meanwhile has a later one.
        handing_out.fresh_emptied = self.pmem.fenced();
        drop(handing_out);
        if let Some(journal) = self.pmem.journal() {
            journal.write_back_soon();
        }
        Ok(())
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
