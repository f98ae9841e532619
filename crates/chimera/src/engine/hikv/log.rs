//! [`ChangeLog`]: HiKV-wal (section 4.5 of ATC'17): each change is written to a redo log before it is made. A partition of
//! the index has an area of the log. To compare with: only with the feature `baselines`.
//!
//! # Rules
//! 1. A change is written to the log under the key's lock, before it is made. A change that cannot be made is withdrawn.
//! 2. When the store is opened, the last change of each area is made again, before there are sessions.
//!
//! # What the log is worth
//! No acknowledged write depends on the log: an item is durable before its entry, and the entry before the acknowledgement,
//! as without a log. So a damaged record is as good as none. The log is what the paper measures ordered writes against, and
//! is kept as a real one: once a record is durable, no crash undoes its change.
//!
//! # Why changes may be made again
//! The record of an area is that of the last change of its partition that has begun. Where the change was made, no key of the
//! partition has changed since, so making it again changes nothing, and recovery may be interrupted and begin again. Recovery
//! empties the areas before the store serves anybody. After a kill it may have read a record that is not durable. If that
//! area were left, a later power loss could bring back the record before, of a key that has changed since. A power loss before
//! the areas are empty may do so as well. Then the older change is made in place of one that was never acknowledged.
//!
//! The room of the item is taken before the record is written, so a full heap refuses a put that has no record. If the index
//! cannot grow, the item is written where there is room without a fresh run, under the same record. If that fails as well, the
//! record is withdrawn before the put fails. A store that is opened for reading makes no change again: it shows the change as
//! not made, and the next opening for writing may make it.

use chimera_pmem::Pmem;

use super::creation::Parameters;
use super::items::{Items, Unsound};
use super::kinds::LOG;
use super::steps::of_log;
use super::write::Writer;
use crate::pool::runs::Run;
use crate::pool::{Held, Pool};
use crate::records::limits::Limits;
use crate::records::redo_log::{self, FoundChange, Logged, RedoLog};
use crate::types::error::{Error, Result};

const ANOTHER_LOG: &str = "the store has another log, or one of a wrong length";

/// Areas of a log: one for each partition of the index.
#[derive(Clone, Copy, Debug)]
struct Areas {
    partition_bits: u32,
}

impl Areas {
    fn new(parameters: &Parameters) -> Self {
        Self { partition_bits: parameters.hash.partition_bits }
    }

    fn count(self) -> u32 {
        1 << self.partition_bits
    }

    /// The area that has changes of keys with this hash.
    fn of(self, hash: u64) -> usize {
        hash.checked_shr(u64::BITS - self.partition_bits).unwrap_or(0) as usize
    }
}

/// The run of the log, as opening finds it.
pub(super) struct FoundLog {
    run: Option<Run>,
    /// Blocks that it must have; 0 where there is none.
    blocks: u32,
}

impl FoundLog {
    /// Nothing is found yet.
    pub(super) fn new(parameters: &Parameters, block_bytes: u64) -> Self {
        let areas = Areas::new(parameters).count();
        let blocks = |bytes| redo_log::run_blocks(areas, bytes, block_bytes) as u32;
        let blocks = parameters.log_area_bytes.map_or(0, blocks);
        Self { run: None, blocks }
    }

    /// Takes a run of a log. How many parts of the store are lost with it, where salvage goes on without.
    ///
    /// # Errors
    /// `Corrupted` when it is not the store's.
    pub(super) fn adopt<P: Pmem>(
        &mut self,
        pool: &Pool<P>,
        run: Run,
        salvage: bool,
    ) -> Result<u64> {
        if self.run.is_none() && run.blocks() == self.blocks {
            self.run = Some(run);
            return Ok(0);
        }
        let at = pool.run_bytes(&run).offset();
        if !salvage {
            return Err(Error::corrupted(ANOTHER_LOG, at));
        }
        // Records are in the heap, whatever the log says.
        pool.note_loss_of(Held::Nothing, at, ANOTHER_LOG);
        Ok(1)
    }
}

/// The log of a store.
pub(super) struct ChangeLog<P: Pmem> {
    /// None in a store without, and where nothing may be written.
    log: Option<RedoLog<P>>,
    areas: Areas,
}

/// A change that is in the log, if the store has one. Held until the change is made, or cannot be.
pub(super) struct LoggedChange<'a, P: Pmem>(Option<Logged<'a, P>>);

impl<P: Pmem> LoggedChange<'_, P> {
    /// The change could not be made.
    pub(super) fn withdraw(self) {
        if let Some(logged) = self.0 {
            logged.withdraw();
        }
    }
}

impl<P: Pmem> ChangeLog<P> {
    /// No log.
    pub(super) fn none(parameters: &Parameters) -> Self {
        Self { log: None, areas: Areas::new(parameters) }
    }

    /// Makes the log ready, in the run that was found, or in a new one. What it says is made again.
    ///
    /// # Errors
    /// When there is no room for a new log.
    pub(super) fn open(
        parameters: &Parameters,
        writer: &Writer<P>,
        limits: Limits,
        found: FoundLog,
    ) -> Result<Self> {
        let areas = Areas::new(parameters);
        let Some(area_bytes) = parameters.log_area_bytes else { return Ok(Self::none(parameters)) };
        let pool = &writer.items().core().pool;
        let is_new = found.run.is_none();
        let run = match found.run {
            Some(run) => run,
            None => pool.take_bare_run(LOG, found.blocks)?,
        };
        let log = RedoLog::new(pool.clone(), run, areas.count(), area_bytes);
        if !is_new && !pool.pmem.skips(of_log::REDO) {
            Redo { log: &log, areas, limits, writer }.run();
        }
        Ok(Self { log: Some(log), areas })
    }

    /// Writes a change of `key`, whose lock the caller holds, to the log, if the store has one.
    #[inline]
    pub(super) fn write(&self, hash: u64, key: &[u8], value: Option<&[u8]>) -> LoggedChange<'_, P> {
        let log = self.log.as_ref();
        LoggedChange(log.map(|log| log.write(self.areas.of(hash), hash, key, value)))
    }
}

/// Makes again what a log says.
struct Redo<'a, P: Pmem> {
    log: &'a RedoLog<P>,
    areas: Areas,
    limits: Limits,
    writer: &'a Writer<P>,
}

impl<P: Pmem> Redo<'_, P> {
    fn items(&self) -> &Items<P> {
        self.writer.items()
    }

    /// Makes the last change of each area again, and empties the areas. It was made already, unless a crash came in between.
    fn run(&self) {
        let areas = 0..self.areas.count() as usize;
        self.log.clear_all(areas.filter(|area| self.redo_area(*area)));
    }

    /// Whether what the log has of an area is of no use any more.
    fn redo_area(&self, area: usize) -> bool {
        let change = self.log.read(area, |key| self.items().core().hash.of(key));
        let change = change.filter(|change| self.is_of_area(change, area));
        match change.map_or(Ok(()), |change| self.redo_change(&change)) {
            // Reads and writes of the key say so. What the log has of it stays there.
            Err(error @ Error::Corrupted { .. }) => {
                ::log::error!("a change of the log is not made again: {error}");
                false
            }
            // With another error it was never acknowledged: otherwise it is made, and needs neither room nor an entry.
            _ => true,
        }
    }

    /// Whether a change is one that this area can have.
    fn is_of_area(&self, change: &FoundChange, area: usize) -> bool {
        let is_possible = |value: &Vec<u8>| self.limits.check_value(value).is_ok();
        self.areas.of(change.hash) == area
            && self.limits.check_key(&change.key).is_ok()
            && change.value.as_ref().is_none_or(is_possible)
    }

    fn redo_change(&self, change: &FoundChange) -> Result<()> {
        let (items, FoundChange { hash, key, value }) = (self.items(), change);
        let old = items.find_locked(*hash, key)?;
        match (value, old) {
            (None, None) => Ok(()),
            (None, Some(old)) => self.writer.remove_item(0, *hash, &old),
            (Some(value), old) => {
                if let Some(old) = &old {
                    let mut found = Vec::new();
                    // A damaged value is not written over, nor is the record in the log that has it.
                    items.read_item(old, *hash, &mut found, true).map_err(Unsound::into_error)?;
                    if found == *value {
                        return Ok(());
                    }
                }
                // Nobody is told: the order of keys is made of what the index has afterwards.
                self.writer.write_where_there_is_room(0, *hash, (key, value), old, |_| ())
            }
        }
    }
}
