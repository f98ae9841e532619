//! HiKV-wal (section 4.5 of ATC'17): each change is written to a redo log before it is made. A partition of the index has
//! an area of the log.
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

use super::read::Unsound;
use super::{Hikv, LOG, steps};
use crate::pool::runs::Run;
use crate::records::redo_log::{self, FoundChange, Logged, RedoLog};
use crate::types::error::{Error, Result};

impl<P: Pmem> Hikv<P> {
    /// Writes a change of `key`, whose lock the caller holds, to the log, if the store has one. Held until the change is
    /// made, or cannot be.
    #[inline]
    pub(super) fn log_change(
        &self,
        hash: u64,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Option<Logged<'_, P>> {
        let log = self.log.as_ref()?;
        Some(log.write(self.partition_of(hash), hash, key, value))
    }

    /// Blocks of the log's run; 0 where there is none.
    pub(super) fn log_blocks(&self) -> u32 {
        let (areas, block_bytes) =
            (1 << self.parameters.hash.partition_bits, self.core.pool.map.block_bytes);
        let area_bytes = self.parameters.log_area_bytes;
        area_bytes.map_or(0, |bytes| redo_log::run_blocks(areas, bytes, block_bytes) as u32)
    }

    fn partition_of(&self, hash: u64) -> usize {
        hash.checked_shr(u64::BITS - self.parameters.hash.partition_bits).unwrap_or(0) as usize
    }

    /// Makes the log ready, in the run that was found, or in a new one. What it says is made again.
    ///
    /// # Errors
    /// When there is no room for a new log.
    pub(super) fn begin_log(&self, found: Option<Run>) -> Result<Option<RedoLog<P>>> {
        let Some(area_bytes) = self.parameters.log_area_bytes else { return Ok(None) };
        let (pool, areas) = (&self.core.pool, 1 << self.parameters.hash.partition_bits);
        let is_new = found.is_none();
        let run = match found {
            Some(run) => run,
            None => pool.take_bare_run(LOG, self.log_blocks())?,
        };
        let log = RedoLog::new(pool.clone(), run, areas, area_bytes);
        if !is_new && !pool.pmem.skips(steps::REDO) {
            self.redo(&log);
        }
        Ok(Some(log))
    }

    /// Makes the last change of each area again, and empties the areas. It was made already, unless a crash came in between.
    fn redo(&self, log: &RedoLog<P>) {
        let areas = 0..1 << self.parameters.hash.partition_bits;
        log.clear_all(areas.filter(|area| self.redo_area(log, *area)));
    }

    /// Whether what the log has of an area is of no use any more.
    fn redo_area(&self, log: &RedoLog<P>, area: usize) -> bool {
        let change = log.read(area, |key| self.core.hash.of(key));
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
        self.partition_of(change.hash) == area
            && self.limits.check_key(&change.key).is_ok()
            && change.value.as_ref().is_none_or(is_possible)
    }

    fn redo_change(&self, change: &FoundChange) -> Result<()> {
        let FoundChange { hash, key, value } = change;
        let old = self.find_locked(*hash, key)?;
        match (value, old) {
            (None, None) => Ok(()),
            (None, Some(old)) => self.remove_item(0, *hash, &old),
            (Some(value), old) => {
                if let Some(old) = &old {
                    let mut found = Vec::new();
                    // A damaged value is not written over, nor is the record in the log that has it.
                    self.read_item(old, *hash, &mut found, true).map_err(Unsound::into_error)?;
                    if found == *value {
                        return Ok(());
                    }
                }
                // Nobody is told: the order of keys is made of what the index has afterwards.
                self.write_where_there_is_room(0, *hash, (key, value), old, |_| ())
            }
        }
    }
}
