//! Gets: the entries of a hash, in all places where a shard may have one.

use chimera_pmem::Pmem;

use super::Shards;
use crate::index::Probe;
use crate::index::probing_table::Found;
use crate::types::error::Result;

impl<P: Pmem> Shards<P> {
    /// Asks `probe` about the entries of a hash, the newest one of each key first. See
    /// [`Tables`](crate::index::probing_table::Tables) for the answers.
    ///
    /// # Errors
    /// `Corrupted` when a table is damaged. A caller without a lock ignores it, unless what was read is valid.
    ///
    /// # Cost
    /// A line, sometimes 2, of at most three places: the MemTable, the bypass index, the last table; and of each dump. Until
    /// the bypass index is complete, of each table of the shard. Without one, of each table or its copy that no filter rules
    /// out.
    #[inline]
    pub(crate) fn probe<T>(
        &self,
        number: u32,
        hash: u64,
        mut probe: impl FnMut(Found) -> Probe<T>,
    ) -> Result<Probe<T>> {
        match self.memtable(number).probe(hash, &mut probe) {
            Probe::NotThis => {}
            answer => return Ok(answer),
        }
        #[cfg(feature = "baselines")]
        if !self.has_bypass() {
            return self.probe_tables(number, hash, probe);
        }
        let shard = self.shard(number);
        // Asked before: it may become complete while it is looked at, and have the key only then.
        let is_bypassed = shard.is_bypassed();
        match self.bypasses.table(shard.helper()).probe(hash, &mut probe) {
            Probe::NotThis => {}
            answer => return Ok(answer),
        }
        if !is_bypassed {
            for (_, table) in self.upper_tables(number) {
                match self.probe_table(table, hash, &mut probe)? {
                    Probe::NotThis => {}
                    answer => return Ok(answer),
                }
            }
        }
        for table in shard.dumps().chain(shard.last()) {
            match self.probe_table(table, hash, &mut probe)? {
                Probe::NotThis => {}
                answer => return Ok(answer),
            }
        }
        Ok(Probe::NotThis)
    }

    /// Where the record of a hash probably lies, to start loading it. Proves nothing: nothing is validated.
    #[inline]
    pub(crate) fn peek(&self, hash: u64) -> Option<u64> {
        let first = |found: Found| Probe::Found(found.offset);
        match self.probe(self.number_of(hash), hash, first) {
            Ok(Probe::Found(at)) => Some(at),
            _ => None,
        }
    }
}
