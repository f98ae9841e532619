//! Gets where there is no bypass index.

use chimera_pmem::Pmem;

use super::Shards;
use crate::engine::chameleon::baselines::Look;
use crate::engine::chameleon::shape::Shape;
use crate::index::Probe;
use crate::index::persistent::shard_manifest::TableAt;
use crate::index::probing_table::Found;
use crate::types::error::Result;

impl<P: Pmem> Shards<P> {
    /// As [`probe`](Self::probe), in what is behind the MemTable, where there is no bypass index.
    pub(super) fn probe_tables<T>(
        &self,
        number: u32,
        hash: u64,
        mut probe: impl FnMut(Found) -> Probe<T>,
    ) -> Result<Probe<T>> {
        let shard = self.shard(number);
        let is_made = shard.is_bypassed();
        for (upper, table) in self.upper_tables(number) {
            let look = if is_made { self.helpers.look(upper, hash) } else { Look::InTable };
            let answer = match look {
                Look::InTable => self.probe_table(table, hash, &mut probe)?,
                Look::InCopy(copy) => copy.probe(hash, &mut probe),
                Look::Nowhere => Probe::NotThis,
            };
            match answer {
                Probe::NotThis => {}
                answer => return Ok(answer),
            }
        }
        let is_ruled_out = |last: &TableAt| {
            is_made
                && self.helpers.rules_out_last(shard.helper(), Shape::slots_of(last.bytes), hash)
        };
        for table in shard.dumps().chain(shard.last().filter(|last| !is_ruled_out(last))) {
            match self.probe_table(table, hash, &mut probe)? {
                Probe::NotThis => {}
                answer => return Ok(answer),
            }
        }
        Ok(Probe::NotThis)
    }
}
