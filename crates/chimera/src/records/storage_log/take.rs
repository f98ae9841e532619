//! Runs taken, opened again, left and sealed.

use std::cell::Cell;

use chimera_pmem::{CACHE_LINE, Extent, Pmem};

use super::append::{Appender, Filling};
use super::header::{HEADER_BYTES, HeaderAt};
use super::replay::Share;
use super::runs::{Entry, Slot, Use};
use super::{StorageLog, sites};
use crate::pool::Purpose;
use crate::pool::runs::Run;
use crate::sync::atomic::Ordering;
use crate::types::error::Result;

/// A run with less room than this part is not opened again.
const ROOM_PART_MIN: u64 = 8;

impl<P: Pmem> StorageLog<P> {
    /// A run with room for so many bytes: one that was left, one that is not full, or a fresh one.
    ///
    /// # Errors
    /// `PoolFull` with nothing changed.
    ///
    /// # Cost
    /// A run that was left: nothing. One that is opened again: 1 line, 1 fence. A fresh one: what it costs the pool, and
    /// 1 line.
    pub(super) fn take(&self, bytes: u64, purpose: Purpose) -> Result<Filling> {
        if let Some(filling) = self.take_with_room(bytes, purpose) {
            return Ok(filling);
        }
        let usual = self.take_run(self.fresh_blocks(self.blocks_for(bytes)), purpose);
        // Where there is no usual run any more, a short one may do.
        usual.or_else(|error| match self.blocks_for(bytes) {
            need if need < self.run_blocks => self.take_run(need, purpose),
            _ => Err(error),
        })
    }

    /// A fresh run for one record of so many bytes.
    ///
    /// # Errors
    /// `PoolFull` with nothing changed.
    pub(super) fn take_alone(&self, bytes: u64, purpose: Purpose) -> Result<Filling> {
        self.take_run(self.blocks_for(bytes), purpose)
    }

    /// Blocks of a run for so many bytes of records.
    fn blocks_for(&self, bytes: u64) -> u32 {
        let bytes = bytes + CACHE_LINE + HEADER_BYTES;
        u32::try_from(bytes.div_ceil(self.pool.map.block_bytes)).unwrap_or(u32::MAX)
    }

    /// Takes a fresh run. Its header is durable before it is taken.
    fn take_run(&self, blocks: u32, purpose: Purpose) -> Result<Filling> {
        let sequence = Cell::new(0);
        let prepare = |place: Extent| {
            // Under the pool's lock: the higher number is durable later.
            sequence.set(self.runs.next_sequence());
            let header = HeaderAt(place.offset());
            header.begin(&self.pool, sequence.get(), self.batch_bytes, sites::BEGIN);
        };
        let run = self.pool.take_run_for(purpose, self.kind, blocks, prepare)?;
        let (header, end) = self.place_of(&run);
        if matches!(purpose, Purpose::Put | Purpose::Delete) {
            self.session_bytes.fetch_add(self.pool.run_bytes(&run).length(), Ordering::Relaxed);
        }
        let emptied = run.emptied();
        let (sequence, tail) = (sequence.get(), header.0 + HEADER_BYTES);
        let usage = Use::Open;
        let (flushed, share) = (0, Share::default());
        let entry = Entry { run, header, sequence, tail, end, usage, flushed, share };
        let added = self.runs.add(&mut self.runs.lock(&*self.pool.environment), entry);
        match added {
            Ok(slot) => {
                let use_number = sequence as u32;
                Ok(Filling { slot, tail, end, use_number, certain: tail, emptied })
            }
            Err((run, error)) => {
                self.pool.free_run(run)?;
                Err(error)
            }
        }
    }

    /// Bytes of all fresh runs that were taken so far for what sessions write.
    pub(crate) fn session_bytes(&self) -> u64 {
        self.session_bytes.load(Ordering::Relaxed)
    }

    /// The header of a run, and where the run ends.
    pub(super) fn place_of(&self, run: &Run) -> (HeaderAt, u64) {
        let bytes = self.pool.run_bytes(run);
        (HeaderAt(bytes.offset()), bytes.end())
    }

    /// A run that was left or is not full: of those with room for so many bytes the fullest. None where a restart would have
    /// to replay too much of it; a step that makes room takes it nevertheless.
    fn take_with_room(&self, bytes: u64, purpose: Purpose) -> Option<Filling> {
        let mut table = self.runs.lock(&*self.pool.environment);
        let found = table.with_room.range((bytes, 0)..).next().copied()?;
        let slot = found.1;
        let open = table.replay.bytes().1;
        let entry = table.entry(slot);
        let more = entry.end - entry.replay_from();
        if entry.usage == Use::Sealed && purpose == Purpose::Put && !self.may_open(open, more) {
            return None;
        }
        table.with_room.remove(&found);
        let is_sealed = table.entry(slot).usage == Use::Sealed;
        if is_sealed {
            let sequence = self.runs.next_sequence();
            let entry = table.entry(slot);
            entry.sequence = sequence;
            let tail = entry.tail - entry.header.0;
            entry.header.open(&self.pool, sequence, self.batch_bytes, tail, sites::UNSEAL);
            self.pool.pmem.fence(sites::UNSEAL);
            table.note_sequence(sequence, slot);
        }
        self.runs.set_use(&mut table, slot, Use::Open);
        let Entry { tail, end, sequence, .. } = *table.entry(slot);
        let emptied = table.entry(slot).run.emptied();
        let certain = if is_sealed { tail } else { 0 };
        Some(Filling { slot, tail, end, use_number: sequence as u32, certain, emptied })
    }

    /// A session that ends leaves its run, in which nothing is pending, to others; one without room is sealed.
    pub(super) fn leave(&self, run: Filling) {
        let mut table = self.runs.lock(&*self.pool.environment);
        let entry = table.entry(run.slot);
        entry.tail = run.tail;
        let is_offered = self.offer(&mut table, run.slot);
        if is_offered {
            self.runs.set_use(&mut table, run.slot, Use::Left);
        } else {
            drop(table);
            self.seal(&run);
            self.pool.pmem.fence(sites::SEAL);
        }
    }

    /// Makes what a session has appended to its run certain: damage of it is noticed after a crash too, and does not look
    /// like the end of the run.
    ///
    /// # Durability
    /// Durable on return, and all that the session has appended.
    ///
    /// # Cost
    /// What is pending; 1 line, 1 fence, unless it is certain already.
    pub(crate) fn certify(&self, appender: &mut Appender) {
        self.sync_session(appender.number());
        let Some(run) = appender.filling().filter(|run| run.certain < run.tail) else { return };
        self.certify_run(run);
        self.pool.pmem.fence(sites::CERTIFY);
    }

    /// As [`certify`](Self::certify), where nothing is pending. The next fence makes that durable.
    pub(super) fn certify_run(&self, run: &mut Filling) {
        run.certain = run.tail;
        let mut table = self.runs.lock(&*self.pool.environment);
        let header = table.entry(run.slot).header;
        header.certify(&self.pool, run.tail - header.0, sites::CERTIFY);
    }

    /// Offers a run that no session appends to, if it has enough room.
    pub(super) fn offer(&self, table: &mut super::runs::Table, slot: Slot) -> bool {
        let Entry { tail, end, .. } = *table.entry(slot);
        let room = end - tail;
        let is_enough = room >= self.room_in(self.run_blocks) / ROOM_PART_MIN && room > 0;
        if is_enough {
            table.with_room.insert((room, slot));
        }
        is_enough
    }

    /// Seals a run whose records are durable and that is not appended to any more. The next fence makes that durable.
    pub(super) fn seal(&self, full: &Filling) {
        let mut table = self.runs.lock(&*self.pool.environment);
        self.seal_locked(&mut table, full.slot, full.tail);
    }

    fn seal_locked(&self, table: &mut super::runs::Table, slot: Slot, tail: u64) {
        let entry = table.entry(slot);
        entry.tail = tail;
        entry.header.seal(&self.pool, tail - entry.header.0, sites::SEAL);
        if self.pool.pmem.journal().is_some() {
            // From now on the run can be freed: what is fenced later would be written over its next use.
            self.pool.pmem.fence(sites::SEAL);
        }
        self.runs.set_use(table, slot, Use::Sealed);
        let counts = self.runs.get(slot);
        if counts.is_unreferred() {
            self.runs.note_candidate();
        }
        self.mark_flushed(table, slot);
    }

    /// Seals the runs that sessions have left: for closing, so that the next opening looks for no end.
    ///
    /// # Durability
    /// Durable on return.
    ///
    /// # Cost
    /// 1 line for each run, 1 fence.
    pub(crate) fn seal_left(&self) {
        let mut table = self.runs.lock(&*self.pool.environment);
        let left: Vec<_> = table.iter().filter(|(_, entry)| entry.usage == Use::Left).collect();
        let left: Vec<_> = left.into_iter().map(|(slot, entry)| (slot, entry.tail)).collect();
        for &(slot, tail) in &left {
            self.seal_locked(&mut table, slot, tail);
        }
        if !left.is_empty() {
            self.pool.pmem.fence(sites::SEAL);
        }
    }
}
