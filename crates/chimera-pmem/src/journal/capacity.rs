//! How long the ring is: a journal begins small, and has the storage that its writers need.
//!
//! # Sequence
//! A journal that may have *n* bytes begins with *n* / 256, whole pages of them, but no fewer than 16 KiB and no more than
//! 256 KiB. It doubles, up to *n*, where it is found too small: a writer finds it full, or less than an eighth of it free; or
//! of two checkpoints in the background the second follows within a [second](SOON_NS). Closed in order, or [trimmed], it has what
//! a new one begins with. Where there is no room for more it stays as long as it is, until it is opened again.
//!
//! # A change
//! With the locks of the checkpoint and of the tail, and with nothing pending, so that `start` is the tail:
//!
//! 1. Storage for the longer ring is allocated, and it is mapped. Without these nothing is changed.
//! 2. The end mark is stored at the place that the tail has in the new ring, and the file is synced, with its length.
//! 3. Both copies of the header get the new capacity, each synced.
//! 4. Entries go to the new ring. Of a shorter one the rest of the file is cut off.
//!
//! A crash before 3 leaves the old header, whose end mark is still there: the new one lies in the same place, where it is the
//! same word, or in free space. A crash between the copies leaves either one in force, and both rings are empty ones: an entry
//! says its position, and none with a position behind the tail was ever written. A crash before the file is cut leaves it
//! longer than needed.
//!
//! [trimmed]: Journal::trim

use std::io;
use std::sync::atomic::Ordering;

use super::append::Ring;
use super::checkpoint::Scratch;
use super::header::{CAPACITY_MIN, DATA_AT};
use super::{Header, Journal, MarkState, lock};
use crate::environment::File;

/// Most bytes to begin with.
const FIRST_MAX: u64 = 256 << 10;
/// A journal may grow to so many times what it begins with.
const PARTS: u64 = 256;
/// The journal is too small when it has to be written back so often.
const SOON_NS: u64 = 1_000_000_000;

/// What a journal begins with that may have `capacity_max` bytes.
pub fn first_capacity(capacity_max: u64) -> u64 {
    (capacity_max / PARTS).next_multiple_of(4096).clamp(CAPACITY_MIN, FIRST_MAX)
}

/// Gives back what a file has beyond a ring of this capacity. What cannot be given back stays.
pub(super) fn cut(file: &dyn File, capacity: u64) {
    let needed = DATA_AT + capacity;
    let cut_from = |length| if length > needed { file.set_length(needed) } else { Ok(()) };
    let cut = file.length().and_then(cut_from);
    if let Err(error) = cut {
        log::warn!("the journal keeps storage that it does not need: {error}");
    }
}

impl Journal {
    /// Bytes for entries.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Acquire)
    }

    /// The header in force.
    pub(super) fn header_now(&self) -> Header {
        let placed = self.placed.load(Ordering::Acquire);
        Header { start: self.start_at(), capacity: self.capacity(), placed, ..self.header }
    }

    /// Writes a header, durably.
    pub(super) fn write_header(&self, header: Header) -> io::Result<()> {
        self.sync_file(|file| header.write(file))
    }

    /// Whether the last checkpoint in the background is not long ago, now that one begins.
    pub(super) fn is_soon(&self, scratch: &mut Scratch) -> bool {
        let now = self.environment.now_ns();
        let last = scratch.begun_ns.replace(now);
        last.is_some_and(|last| now.saturating_sub(last) < SOON_NS)
    }

    /// What the ring would have next, if it may be longer.
    fn next_capacity(&self) -> Option<u64> {
        let capacity = self.capacity();
        let longer = (2 * capacity).min(self.capacity_max.load(Ordering::Relaxed));
        (longer > capacity).then_some(longer)
    }

    /// Whether the ring may be longer.
    pub(super) fn may_grow(&self) -> bool {
        self.next_capacity().is_some()
    }

    /// Writes everything back and doubles the ring, if it may be longer and there is room for that.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    ///
    /// # Cost
    /// A checkpoint, and three syncs, during which nobody appends.
    pub(super) fn grow(&self, scratch: &mut Scratch) -> io::Result<()> {
        // While others append.
        self.write_back_all(scratch)?;
        let Some(longer) = self.next_capacity() else { return Ok(()) };
        let allocated = self.file.allocate(0, DATA_AT + longer);
        let ring = match allocated.and_then(|()| Ring::map(&self.file, longer)) {
            Ok(ring) => ring,
            Err(error) => {
                let capacity = self.capacity();
                log::warn!("the journal stays at {capacity} bytes: {error}");
                self.capacity_max.store(capacity, Ordering::Relaxed);
                cut(&*self.file, capacity);
                return Ok(());
            }
        };
        self.change_capacity(scratch, longer, ring)?;
        log::debug!("the journal has {longer} bytes");
        Ok(())
    }

    /// Writes everything back and gives the storage back that a new journal does not have. It grows again where it is found too
    /// small.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    ///
    /// # Cost
    /// A checkpoint, and three syncs, during which nobody appends.
    pub fn trim(&self) -> io::Result<()> {
        let mut scratch = lock(&self.checkpoint);
        // While others append.
        self.write_back_all(&mut scratch)?;
        let capacity = self.capacity_closed;
        if capacity < self.capacity() {
            let ring = Ring::map(&self.file, capacity)?;
            self.change_capacity(&mut scratch, capacity, ring)?;
            cut(&*self.file, capacity);
        }
        Ok(())
    }

    /// Takes a ring into use in place of the one that there is.
    pub(super) fn change_capacity(
        &self,
        scratch: &mut Scratch,
        capacity: u64,
        ring: Ring,
    ) -> io::Result<()> {
        let _paused = self.pause_taking()?;
        let mut tail = lock(&self.tail);
        self.write_back_all(scratch)?;
        let header = Header { capacity, ..self.header_now() };
        header.mark_end(&*self.file).inspect_err(|error| self.fail(error))?;
        self.sync_file(|file| file.sync())?;
        self.write_header(header)?;
        *lock(&self.mapped) = ring.window();
        tail.ring = ring;
        self.capacity.store(capacity, Ordering::Release);
        Ok(())
    }

    /// Writes everything back and marks the journal as closed, with as little storage as a new one has.
    pub(super) fn close_with(&self, scratch: &mut Scratch) -> io::Result<()> {
        let _paused = self.pause_taking()?;
        let mut tail = lock(&self.tail);
        self.write_back_all(scratch)?;
        let capacity = self.capacity_closed;
        let closed = Header { is_closed: true, capacity, ..self.header_now() };
        self.write_header(closed)?;
        self.change_mark(MarkState::Unused).inspect_err(|error| self.fail(error))?;
        // Where the file is cut, a store through the mapping would be a signal.
        tail.ring = Ring::unmapped(&self.file, capacity);
        self.capacity.store(capacity, Ordering::Release);
        cut(&*self.file, capacity);
        Ok(())
    }
}
