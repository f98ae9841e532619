//! Appending records.

use std::sync::Arc;

use chimera_pmem::Pmem;

use super::layout::{Head, KEY_AT, span, value_at};
use super::runs::Slot;
use super::sessions::Pending;
use super::{StorageLog, sites};
use crate::records::checksum::Summed;
use crate::types::error::Result;

/// A record of more than a run's fourth part gets a run of its own: what a run leaves unused is never more.
const OWN_RUN_PART: u64 = 4;

/// What a session appends with: its run, and how far that is filled.
#[derive(Debug)]
pub(crate) struct Appender {
    number: u32,
    run: Option<Filling>,
    pending: Arc<Pending>,
    /// Bytes of runs that it has taken and nobody has asked about.
    taken_bytes: u64,
}

/// A run that is appended to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filling {
    pub(super) slot: Slot,
    /// Where the next record goes, and where the run ends.
    pub(super) tail: u64,
    pub(super) end: u64,
    /// The run's use that its records name.
    pub(super) use_number: u32,
}

/// A record to append, of a key with this hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewRecord<'a> {
    pub(crate) hash: u64,
    pub(crate) version: u64,
    pub(crate) key: &'a [u8],
    /// None for a tombstone.
    pub(crate) value: Option<&'a [u8]>,
}

/// A record that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Appended {
    /// Its offset in the pool, a multiple of 8.
    pub(crate) at: u64,
    /// Its length.
    pub(crate) bytes: u64,
}

impl NewRecord<'_> {
    fn span(&self) -> u64 {
        span(self.key.len(), self.value.map_or(0, <[u8]>::len))
    }
}

impl Appender {
    /// The session, for [`sync_session`](StorageLog::sync_session).
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Whether it has taken a run since [`take_taken_bytes`](Self::take_taken_bytes) was asked.
    #[inline(always)]
    pub(crate) fn has_taken(&self) -> bool {
        self.taken_bytes > 0
    }

    /// Bytes of the runs that it has taken since this was asked last.
    pub(crate) fn take_taken_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.taken_bytes)
    }
}

impl<P: Pmem> StorageLog<P> {
    /// Begins a session, which takes a run with its first record.
    pub(crate) fn begin(&self) -> Appender {
        let pending = Arc::new(Pending::default());
        let number = self.sessions.add(pending.clone());
        Appender { number, run: None, pending, taken_bytes: 0 }
    }

    /// Ends a session: another one may append to its run.
    ///
    /// # Durability
    /// All that it has appended is durable on return.
    pub(crate) fn end(&self, appender: &mut Appender) {
        if let Some(run) = appender.run.take() {
            self.turn_to(&appender.pending, 0);
            self.leave(run);
        }
        self.sessions.remove(appender.number);
    }

    /// Appends a record within the [limits](Self::limits), which counts as referred to and as not in a table.
    ///
    /// # Errors
    /// `PoolFull` when there is no run with room for it, with nothing changed.
    ///
    /// # Durability
    /// Without batches durable on return. With batches it is, and so are all records before it, once the session has
    /// `batch_bytes` bytes pending, or somebody [syncs](Self::sync_session) it. A crash before leaves no record, or all of
    /// it.
    ///
    /// # Cost
    /// The lines of the record, 1 fence; with batches 1 fence for each. 2 atomic additions without other writers. What a
    /// run costs where the last one is full, or the record needs one of its own.
    #[inline]
    pub(crate) fn append(
        &self,
        appender: &mut Appender,
        record: &NewRecord<'_>,
    ) -> Result<Appended> {
        let bytes = record.span();
        let has_room = |run: &Filling| bytes <= run.end - run.tail;
        let Appender { run, pending, taken_bytes, .. } = appender;
        let run = match run {
            Some(run) if has_room(run) => run,
            _ if bytes > self.room_in(self.run_blocks) / OWN_RUN_PART => {
                let appended = self.append_alone(pending, record)?;
                *taken_bytes += appended.bytes;
                return Ok(appended);
            }
            run => {
                let run = self.fill_another(run, pending, bytes)?;
                *taken_bytes += run.end - run.tail;
                run
            }
        };
        let appended = self.store(run, record);
        run.tail += appended.bytes;
        if self.batch_bytes == 0 {
            self.pool.pmem.flush(self.pool.extent(appended.at, bytes), sites::RECORD);
            self.pool.pmem.fence(sites::RECORD);
        } else if pending.advance(run.tail) >= self.batch_bytes {
            self.flush_pending(pending);
        }
        Ok(appended)
    }

    /// Stores a record where its run ends, and counts it. Somebody flushes it.
    #[inline(always)]
    fn store(&self, run: &Filling, record: &NewRecord<'_>) -> Appended {
        let (pool, pmem, at, key) = (&self.pool, &self.pool.pmem, run.tail, record.key);
        let key_to = pool.extent(at + KEY_AT, key.len() as u64);
        pmem.copy(key_to, key, sites::RECORD);
        let value = record.value.map(|value| {
            let to = pool.extent(at + value_at(key.len()), value.len() as u64);
            Summed { bytes: value, sum: pmem.copy_sum(to, value, sites::RECORD) }
        });
        let key = (record.hash, key.len());
        let head = Head::new(at, run.use_number, record.version, key, value);
        for (word, number) in head.words().into_iter().zip(0..) {
            pmem.store_u64(at + 8 * number, word, sites::RECORD);
        }
        let counts = self.runs.get(run.slot);
        counts.refer(head.span());
        counts.write();
        Appended { at, bytes: head.span() }
    }

    /// Gives a session another run, with room for so many bytes, and seals the one that it had.
    #[cold]
    fn fill_another<'a>(
        &self,
        filling: &'a mut Option<Filling>,
        pending: &Pending,
        bytes: u64,
    ) -> Result<&'a mut Filling> {
        let next = self.take(bytes)?;
        self.turn_to(pending, next.tail);
        if let Some(full) = filling.take() {
            self.seal(&full);
        }
        Ok(filling.insert(next))
    }

    /// Appends a record to a run of its own. The session goes on with the run that it has.
    #[cold]
    fn append_alone(&self, pending: &Pending, record: &NewRecord<'_>) -> Result<Appended> {
        let mut run = self.take_alone(record.span())?;
        // What the session appended before is durable before this record.
        self.flush_pending(pending);
        let appended = self.store(&run, record);
        run.tail += appended.bytes;
        self.pool.pmem.flush(self.pool.extent(appended.at, appended.bytes), sites::RECORD);
        self.pool.pmem.fence(sites::RECORD);
        self.seal(&run);
        self.pool.pmem.fence(sites::SEAL);
        Ok(appended)
    }
}
