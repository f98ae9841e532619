//! Appending records.

use std::sync::Arc;

use chimera_pmem::{CACHE_LINE, Fenced, Pmem, Site};

use super::layout::{Head, KEY_AT, span, value_at};
use super::runs::Slot;
use super::sessions::Pending;
use super::{StorageLog, sites};
use crate::pool::Purpose;
use crate::records::checksum::Summed;
use crate::types::error::Result;

/// A record of more than a run's fourth part gets a run of its own: what a run leaves unused is never more.
const OWN_RUN_PART: u64 = 4;

/// What a session appends with: its run, and how far that is filled.
#[derive(Debug)]
pub(crate) struct Appender {
    /// None while it has no run.
    number: Option<u32>,
    run: Option<Filling>,
    pending: Arc<Pending>,
    /// What it takes runs for.
    purpose: Purpose,
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
    /// Up to here its header says that records are certain; 0 if nobody knows.
    pub(super) certain: u64,
    /// When nothing was left of the run's last use.
    pub(super) emptied: Fenced,
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
    fn new(purpose: Purpose) -> Self {
        Self { number: None, run: None, pending: Arc::default(), purpose, taken_bytes: 0 }
    }

    /// The session, for [`sync_session`](StorageLog::sync_session). None where nothing is pending.
    pub(crate) fn number(&self) -> Option<u32> {
        self.number
    }

    /// Its run.
    pub(super) fn filling(&mut self) -> Option<&mut Filling> {
        self.run.as_mut()
    }

    /// Bytes of records that it can append without another run.
    pub(crate) fn room(&self) -> u64 {
        self.run.as_ref().map_or(0, |run| run.end - run.tail)
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
    #[expect(clippy::unused_self, reason = "a session of this log")]
    pub(crate) fn begin(&self) -> Appender {
        Appender::new(Purpose::Put)
    }

    /// Begins a session that takes runs for another purpose than puts.
    #[expect(clippy::unused_self, reason = "a session of this log")]
    pub(crate) fn begin_for(&self, purpose: Purpose) -> Appender {
        Appender::new(purpose)
    }

    /// Makes sure that a session has room for so many bytes of records, which a run can have.
    ///
    /// # Errors
    /// `PoolFull` when it has less, and there is no run with more.
    pub(crate) fn hold(&self, appender: &mut Appender, bytes: u64) -> Result<()> {
        if appender.room() >= bytes { Ok(()) } else { self.fill_another(appender, bytes) }
    }

    /// Ends a session: another one may append to its run. It begins anew with its next record.
    ///
    /// # Durability
    /// All that it has appended is durable on return.
    pub(crate) fn end(&self, appender: &mut Appender) {
        if let Some(run) = appender.run.take() {
            self.turn_to(&appender.pending, 0);
            self.leave(run);
        }
        if let Some(number) = appender.number.take() {
            self.sessions.remove(number);
        }
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
        if bytes > appender.room() {
            if bytes > self.room_in(self.run_blocks) / OWN_RUN_PART {
                return self.append_alone(appender, record);
            }
            self.fill_another(appender, bytes)?;
        }
        let Appender { run: Some(run), pending, purpose, .. } = appender else {
            unreachable!("it has room for a record")
        };
        let site = match (self.batch_bytes, purpose) {
            (0, Purpose::Put) => sites::RECORD,
            (0, _) => sites::KEPT,
            _ => sites::PENDING,
        };
        let appended = self.store(run, record, site);
        run.tail += appended.bytes;
        if self.batch_bytes == 0 {
            self.flush_record(&appended, run.emptied, site);
            self.pool.pmem.fence(site);
        } else if pending.advance(run.tail) >= self.batch_bytes {
            self.flush_pending(pending);
        }
        Ok(appended)
    }

    /// Stores a record where its run ends, and counts it. Somebody flushes it.
    #[inline(always)]
    fn store(&self, run: &Filling, record: &NewRecord<'_>, site: Site) -> Appended {
        let (pool, pmem, at, key) = (&self.pool, &self.pool.pmem, run.tail, record.key);
        let key_to = pool.extent(at + KEY_AT, key.len() as u64);
        pmem.copy(key_to, key, site);
        let value = record.value.map(|value| {
            let to = pool.extent(at + value_at(key.len()), value.len() as u64);
            Summed { bytes: value, sum: pmem.copy_sum(to, value, site) }
        });
        let key = (record.hash, key.len());
        let head = Head::new(at, run.use_number, record.version, key, value);
        for (word, number) in head.words().into_iter().zip(0..) {
            pmem.store_u64(at + 8 * number, word, site);
        }
        let counts = self.runs.get(run.slot);
        counts.refer(head.span());
        counts.write();
        Appended { at, bytes: head.span() }
    }

    /// Flushes a record. Without its head it is none, and nobody stores to it again: so what is behind the head may go to its
    /// place ahead of that.
    #[inline(always)]
    fn flush_record(&self, appended: &Appended, emptied: Fenced, site: Site) {
        let Appended { at, bytes } = *appended;
        let (pool, pmem) = (&self.pool, &self.pool.pmem);
        if !pmem.journal().is_some_and(|journal| journal.writes_new(bytes)) {
            return pmem.flush(pool.extent(at, bytes), site);
        }
        let head_end = (at + KEY_AT).next_multiple_of(CACHE_LINE).min(at + bytes);
        pmem.flush(pool.extent(at, head_end - at), site);
        pmem.flush_new(pool.extent(head_end, at + bytes - head_end), emptied, site);
    }

    /// Gives a session another run, with room for so many bytes, and seals the one that it had.
    #[cold]
    fn fill_another(&self, appender: &mut Appender, bytes: u64) -> Result<()> {
        let next = self.take(bytes, appender.purpose)?;
        appender.number.get_or_insert_with(|| self.sessions.add(appender.pending.clone()));
        self.turn_to(&appender.pending, next.tail);
        appender.taken_bytes += next.end - next.tail;
        if let Some(full) = appender.run.replace(next) {
            self.seal(&full);
        }
        Ok(())
    }

    /// Appends a record to a run of its own. The session goes on with the run that it has. What it has there is certain then:
    /// else damage could lose that, and not the newer record.
    #[cold]
    fn append_alone(&self, appender: &mut Appender, record: &NewRecord<'_>) -> Result<Appended> {
        let mut run = self.take_alone(record.span(), appender.purpose)?;
        // What the session appended before is durable before this record.
        self.flush_pending(&appender.pending);
        let appended = self.store(&run, record, sites::RECORD);
        run.tail += appended.bytes;
        appender.taken_bytes += appended.bytes;
        self.flush_record(&appended, run.emptied, sites::RECORD);
        self.pool.pmem.fence(sites::RECORD);
        self.seal(&run);
        if let Some(before) = appender.run.as_mut().filter(|run| run.certain < run.tail) {
            self.certify_run(before);
        }
        self.pool.pmem.fence(sites::SEAL);
        Ok(appended)
    }
}
