//! One run of the log is collected: those of its records that are current are appended anew.

use chimera_pmem::Pmem;

use super::Collector;
use crate::engine::chameleon::index::Key;
use crate::engine::chameleon::space::Need;
use crate::engine::chameleon::steps;
use crate::index::probing_table::Slot;
use crate::records::storage_log::{NewRecord, Victim, Walked};
use crate::sync::atomic::Ordering;
use crate::types::error::{Error, Result};

impl<P: Pmem> Collector<P> {
    /// Collects a run, which stays until its copies are certain: the end of a run that is appended to may look cut off.
    pub(super) fn collect_run(&self, victim: &Victim) -> Result<()> {
        let index = self.flusher.index();
        if !index.log().pin(victim) {
            return Ok(());
        }
        let collected = self.copy_all(victim);
        index.records().certify_copies();
        index.log().unpin(victim);
        collected
    }

    fn copy_all(&self, victim: &Victim) -> Result<()> {
        let log = self.flusher.index().log();
        let mut walk = log.walk(victim.start);
        while let Some(walked) = log.next(&mut walk)? {
            self.copy(&walked)?;
        }
        Ok(())
    }

    /// Appends a record anew, if the newest entry of its key refers to it.
    fn copy(&self, walked: &Walked<'_>) -> Result<()> {
        let index = self.flusher.index();
        let key = Key { hash: walked.hash, bytes: walked.key };
        let shard = index.shards().number_of(key.hash);
        let mut writing = self.flusher.lock_with_room(0, shard, Need::Upkeep)?;
        let newest = match index.find_locked(shard, key) {
            Err(Error::KeyCollisions) => None,
            found => found?.entry,
        };
        let is_it = |at: u64| {
            let record = index.log().decode(at);
            at == walked.at && record.is_some_and(|record| record.version() == walked.version)
        };
        let is_current = newest.is_some_and(|found| is_it(found.offset));
        if !is_current && !index.core().pool.pmem.skips(steps::COLLECT_CURRENT) {
            return Ok(());
        }
        let version = writing.version + 1;
        let value = walked.value;
        let record = NewRecord { hash: key.hash, version, key: key.bytes, value };
        let appended = index.records().append_copy(&record)?;
        writing.version = version;
        let new = Slot::new(key.hash, appended.at, appended.bytes, value.is_none());
        index.enter(shard, new, newest);
        let bytes = key.bytes.len() + value.map_or(0, <[u8]>::len);
        self.moved_records.fetch_add(1, Ordering::Relaxed);
        self.moved_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }
}
