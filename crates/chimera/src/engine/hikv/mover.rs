//! [`Mover`]: moves the items of a run to other runs.
//!
//! # Rules
//! 1. An item is moved under its key's lock, as an overwrite with the same value: so a crash leaves the same states as one
//!    in the middle of a put.
//! 2. It is moved only if the index leads to it: so no change is lost.
//! 3. A value is moved only if it is as it was written: a damaged one must not get a checksum that is right.

use chimera_pmem::Pmem;

use super::items::Items;
use super::steps;
use super::write::Writer;
use crate::records::item_heap::SparseRun;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::types::error::Result;

/// What was moved since the store was opened.
#[derive(Debug, Default)]
pub(super) struct Moved {
    pub(super) records: AtomicU64,
    /// Of keys and values.
    pub(super) bytes: AtomicU64,
    /// Blocks of runs that are free now.
    pub(super) blocks_freed: AtomicU64,
}

/// What the mover keeps between runs.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    key: Vec<u8>,
    value: Vec<u8>,
}

/// Moves items, while it is the only one who does.
pub(super) struct Mover<'w, P: Pmem> {
    writer: &'w Writer<P>,
    moved: &'w Moved,
}

impl<'w, P: Pmem> Mover<'w, P> {
    /// The caller makes sure that there is no other one.
    pub(super) fn new(writer: &'w Writer<P>, moved: &'w Moved) -> Self {
        Self { writer, moved }
    }

    pub(super) fn items(&self) -> &'w Items<P> {
        self.writer.items()
    }

    /// Moves the items of a run that is [evacuated](crate::records::item_heap::ItemHeap::evacuate_sparse). With the last one the
    /// run is free. Where one stays, the run is kept.
    ///
    /// # Errors
    /// Those of a write. What has not been moved stays, and no item is lost.
    pub(super) fn empty_run(&self, run: SparseRun, buffers: &mut Buffers) -> Result<()> {
        let heap = self.items().heap();
        if !heap.is_evacuating(run) {
            // A session has freed its last item, and another run may begin there by now.
            return Ok(());
        }
        let items = heap.items_in(run);
        let moved = items.into_iter().try_for_each(|at| self.move_item(at, buffers));
        if heap.is_evacuating(run) {
            heap.keep(run);
        } else {
            self.moved.blocks_freed.fetch_add(run.blocks.into(), Ordering::Relaxed);
        }
        moved
    }

    /// Writes the item at `at` anew, if the index leads to it.
    fn move_item(&self, at: u64, Buffers { key, value }: &mut Buffers) -> Result<()> {
        let (items, core) = (self.items(), self.items().core());
        // It may be gone, or about to be written: whatever is read, only the index says whether it is an item of this key.
        let Some(before) = items.heap().decode(at) else { return Ok(()) };
        items.heap().read_key(&before, key);
        let hash = core.hash.of(key);
        let _key = items.lock_key(hash)?;
        let is_any_moved = core.pool.pmem.skips(steps::MOVE_CURRENT);
        let current = items.find_locked(hash, key)?.filter(|item| item.at == at || is_any_moved);
        let Some(old) = current else { return Ok(()) };
        let from = if is_any_moved { before } else { old };
        // A damaged value must not get a checksum that is right.
        let is_sound = items.read_item(&from, hash, value, true).is_ok();
        if !is_sound && !core.pool.pmem.skips(steps::MOVE_CHECK) {
            return Ok(());
        }
        let room = self.writer.room_for(0, key.len(), value.len())?;
        self.writer.write_item(0, hash, (key, value), room, Some(old), |_| ())?;
        self.moved.records.fetch_add(1, Ordering::Relaxed);
        self.moved.bytes.fetch_add((key.len() + value.len()) as u64, Ordering::Relaxed);
        Ok(())
    }
}
