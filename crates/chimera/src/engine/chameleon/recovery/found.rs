//! [`Found`]: the runs of a store, as opening finds them.

use std::collections::BTreeMap;

use chimera_pmem::{Operation, Pmem};

use crate::engine::Core;
use crate::engine::chameleon::creation::Parameters;
use crate::engine::chameleon::runs::{LEVEL, LOG, MANIFEST, TABLE, blocks_for};
use crate::index::persistent::shard_manifest::{self, ShardManifest, TableAt};
use crate::index::probing_table::TABLE_ALIGN;
use crate::pool::Pool;
use crate::pool::runs::{FoundRun, Run};
use crate::types::error::{Error, Result};

/// The runs of a store.
#[derive(Default)]
pub(crate) struct Found {
    manifest: Option<Run>,
    pub(super) log: Vec<Run>,
    /// Runs of tables, by the offset of the first of their bytes where one can begin.
    pub(super) tables: BTreeMap<u64, Run>,
    /// Parts that are lost.
    pub(super) lost: u64,
}

impl Found {
    /// Takes over all runs of the pool.
    pub(crate) fn of<P: Pmem>(pool: &Pool<P>, salvage: bool) -> Result<Self> {
        let mut found = Self::default();
        pool.recover_runs(&[LOG, MANIFEST, LEVEL, TABLE], salvage, |run| {
            match run {
                FoundRun::InUse(run) if run.is(LOG) => found.log.push(run),
                FoundRun::InUse(run) if run.is(MANIFEST) => {
                    if found.manifest.is_some() {
                        let at = pool.run_bytes(&run).offset();
                        let error = Error::corrupted("the store has two manifests", at);
                        if !salvage {
                            return Err(error);
                        }
                        pool.note_lost(&error, at);
                    }
                    found.manifest.get_or_insert(run);
                }
                FoundRun::InUse(run) => {
                    let at = pool.run_bytes(&run).offset().next_multiple_of(TABLE_ALIGN);
                    found.tables.insert(at, run);
                }
                FoundRun::Damaged(_) => found.lost += 1,
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The manifest, which is made where the store has nothing yet.
    pub(crate) fn manifest<P: Pmem>(
        &mut self,
        core: &Core<P>,
        parameters: &Parameters,
        salvage: bool,
    ) -> Result<ShardManifest<P>> {
        let (pool, shards) = (&core.pool, parameters.shape.shards());
        let none = || ShardManifest::none(pool.clone(), shards);
        let run = match self.manifest.take() {
            Some(run) => run,
            None if pool.read_only && self.is_empty() => {
                return Ok(none());
            }
            // One that was closed in order had a manifest.
            None if self.is_empty() && pool.closed_totals().is_none() => {
                let _booked = core.book(Operation::Recovery, 0);
                let blocks = blocks_for(pool, shard_manifest::run_bytes(shards));
                pool.take_run(MANIFEST, blocks, |bytes| shard_manifest::begin(pool, bytes, shards))?
            }
            None => {
                self.lose(pool, Error::corrupted("the store has no manifest", 0), salvage)?;
                return Ok(none());
            }
        };
        if let Some(manifest) = ShardManifest::new(pool.clone(), &run, shards) {
            return Ok(manifest);
        }
        let at = pool.run_bytes(&run).offset();
        let error = Error::corrupted("the manifest of the store is too short", at);
        self.lose(pool, error, salvage)?;
        Ok(none())
    }

    /// A part of the store is lost. All that salvage has is the log.
    fn lose<P: Pmem>(&mut self, pool: &Pool<P>, error: Error, salvage: bool) -> Result<()> {
        if !salvage {
            return Err(error);
        }
        pool.note_lost(&error, 0);
        self.lost += 1;
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.log.is_empty() && self.tables.is_empty() && self.lost == 0
    }

    /// Whether a table can lie here, in a run that is there. The run is used, then.
    pub(super) fn has(&self, table: TableAt, used: &mut Vec<u64>, pool: &Pool<impl Pmem>) -> bool {
        let end = table.at.checked_add(table.bytes);
        let run = self.tables.get(&table.at).map(|run| pool.run_bytes(run));
        used.push(table.at);
        run.zip(end).is_some_and(|(run, end)| end <= run.end())
    }
}
