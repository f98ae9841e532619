//! A log with one hash table as an [`Engine`]: what the rest of the store calls.

use chimera_pmem::Pmem;

use super::creation::Parameters;
use super::index::LogIndex;
use super::list::Listing;
use super::recovery::Recovery;
use super::report::Sizes;
use super::write::Writer;
use super::{LOG, LogHash, LogHashClient, LogHashInspect, LogHashStats, Versions};
use crate::engine::contract::client::SharedClient;
use crate::engine::contract::listed::Listed;
use crate::engine::contract::reports::{Dram, EngineFigures, Reports};
use crate::engine::contract::upkeep::{Point, Scrubbed, Upkeep};
use crate::engine::shared::KeyLocks;
use crate::engine::shared::totals;
use crate::engine::shared::update::update_bytes;
use crate::engine::{Core, Engine, Options, Recovered};
use crate::records::storage_log::StorageLog;
use crate::types::check::CheckReport;
use crate::types::durability::Durability;
use crate::types::error::Result;
use crate::types::progress::Progress;
use crate::types::swap::Swap;
use crate::types::totals::Totals;

/// The work of a store beside its sessions.
pub(crate) struct LogHashUpkeep<'a, P: Pmem, I>(&'a LogHash<P, I>);

/// What the store says of itself.
fn report<P: Pmem, I: LogIndex<P>>(engine: &LogHash<P, I>) -> LogHashStats {
    let Sizes { segments, slots, directory_depth } = engine.index.sizes();
    let log = engine.log.counts();
    LogHashStats {
        index_segments: segments,
        index_slots: slots,
        directory_depth,
        log_runs: log.runs,
        log_bytes: log.bytes,
        replayed_log_bytes: engine.replayed_bytes,
    }
}

impl<P: Pmem, I: LogIndex<P>> Engine<P> for LogHash<P, I> {
    type Type = I::Type;
    type Client = LogHashClient;
    type Upkeep<'a> = LogHashUpkeep<'a, P, I>;

    fn takes(_parameters: &Parameters) -> bool {
        true
    }

    fn open(core: Core<P>, parameters: Parameters, options: &Options) -> Result<(Self, Recovered)> {
        let pool = core.pool.clone();
        // A durable index leads to durable records alone.
        let batch_bytes = if I::IS_DURABLE { 0 } else { options.log_hash.log_batch_bytes };
        let log = StorageLog::new(pool, core.hash, LOG, parameters.log_run_blocks, batch_bytes);
        let mut engine = Self {
            limits: log.limits(),
            index: I::new(&core, parameters, options)?,
            keys: KeyLocks::new(core.environment().clone()),
            versions: Versions::new(),
            core,
            parameters,
            log,
            salvages: options.pool.salvage,
            replayed_bytes: 0,
        };
        let recovered = Recovery(&mut engine).run(options)?;
        Ok((engine, recovered))
    }

    #[inline(always)]
    fn core(&self) -> &Core<P> {
        &self.core
    }

    /// As that of ChameleonDB.
    fn durability(&self, given: Durability) -> Durability {
        if self.log.has_batches() { Durability::Batched } else { given }
    }

    fn sync(&self) {
        self.log.sync_all();
    }

    fn client(&self, number: u32) -> LogHashClient {
        LogHashClient { shared: SharedClient::new(number), appender: self.log.begin() }
    }

    fn certify(&self, client: &mut LogHashClient) {
        self.log.certify(&mut client.appender);
    }

    fn end(&self, client: &mut LogHashClient) {
        self.log.end(&mut client.appender);
    }

    #[inline(always)]
    fn check_key(&self, key: &[u8]) -> Result<()> {
        self.limits.check_key(key)
    }

    #[inline(always)]
    fn check_value(&self, value: &[u8]) -> Result<()> {
        self.limits.check_value(value)
    }

    #[inline]
    fn prefetch_to_put(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    #[inline(never)]
    fn put(&self, client: &mut LogHashClient, key: &[u8], value: &[u8]) -> Result<bool> {
        Writer(self).put_value(client, key, value)
    }

    #[inline(never)]
    fn get(&self, client: &mut LogHashClient, hash: u64, key: &[u8]) -> Result<bool> {
        self.get_in_turn(client, hash, key)
    }

    #[inline]
    fn read(&self, client: &mut LogHashClient, hash: u64, key: &[u8]) -> Result<bool> {
        self.read_value(client, hash, key, true)
    }

    fn replace(
        &self,
        client: &mut LogHashClient,
        hash: u64,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
        _verify: bool,
    ) -> Result<Swap> {
        Writer(self).replace_value(client, hash, key, expected, new)
    }

    fn insert(
        &self,
        client: &mut LogHashClient,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        Writer(self).insert_value(client, hash, key, value)
    }

    fn remove_if(
        &self,
        client: &mut LogHashClient,
        hash: u64,
        key: &[u8],
        expected: &[u8],
    ) -> Result<Swap> {
        Writer(self).remove_if_value(client, hash, key, expected)
    }

    fn update_word(
        &self,
        client: &mut LogHashClient,
        key: &[u8],
        at: usize,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>> {
        update_bytes(self, client, key, at, change)
    }

    #[inline(never)]
    fn delete(&self, client: &mut LogHashClient, key: &[u8]) -> Result<bool> {
        Writer(self).remove(client, key)
    }

    fn list(
        &self,
        client: &mut LogHashClient,
        from: u64,
        take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()> {
        Listing(self).list_from(client, from, take)
    }

    fn records(&self) -> u64 {
        self.index.len()
    }

    fn totals(&self) -> Totals {
        totals::of_entries(|from, batch| self.index.list(from, batch))
    }

    fn upkeep(&self) -> LogHashUpkeep<'_, P, I> {
        LogHashUpkeep(self)
    }
}

impl<P: Pmem, I: LogIndex<P>> Upkeep for LogHashUpkeep<'_, P, I> {
    fn pass(&self, hash: u64) {
        self.0.keys.pass(hash, &self.0.core.poison);
    }

    fn scrub_step(&self, from: Point, report: &mut CheckReport) -> Scrubbed {
        Listing(self.0).check_step(from, report)
    }

    /// Damage of the last record of a run is not taken for one that was cut off.
    fn seal(&self) {
        self.0.log.seal_left();
    }
}

impl<P: Pmem, I: LogIndex<P>> Reports<P> for LogHash<P, I> {
    type Stats = LogHashStats;
    type Inspect = LogHashInspect;

    fn inspect(&self, _progress: Option<&Progress>) -> LogHashInspect {
        let sizes = report(self);
        LogHashInspect {
            index_load: self.index.len() as f64 / sizes.index_slots.max(1) as f64,
            sizes,
            runs: self.core.pool.count_runs(I::KINDS),
        }
    }

    fn dram(&self) -> Dram {
        Dram {
            index_bytes: self.index.bytes(),
            table_bytes: self.keys.bytes() + self.versions.bytes(),
        }
    }

    fn stats(&self) -> EngineFigures<LogHashStats> {
        EngineFigures {
            blocks_free: self.core.pool.count_runs(I::KINDS).free_blocks,
            details: report(self),
        }
    }

    fn options_for_copy(&self) -> Options {
        let Parameters { index_segment_blocks, log_run_blocks } = self.parameters;
        let map = &self.core.pool.map;
        let bytes = |blocks: u32| blocks * map.block_bytes as u32;
        Options::new().segment_bytes(map.segment_bytes).log_hash(|options| {
            options
                .index_segment_bytes(bytes(index_segment_blocks))
                .log_run_bytes(bytes(log_run_blocks))
        })
    }
}
