//! ChameleonDB as an [`Engine`]: what the rest of the store calls.

use chimera_pmem::Pmem;

use super::baselines::TableHelpers;
use super::collector::Collector;
use super::compactor::Compactor;
use super::creation::Parameters;
use super::flusher::{BYTES_MAX, Flusher, open_bytes_max};
use super::index::{Index, list_from};
use super::modes::Modes;
use super::records::Records;
use super::recovery::{Found, recover};
use super::report::report;
use super::runs::{KINDS, LOG};
use super::shards::Shards;
use super::space::Space;
use super::store::{Chameleon, ChameleonClient};
use super::tables::Tables;
use super::upkeep::ChameleonUpkeep;
use super::{ChameleonInspect, ChameleonStats, Type};
use crate::engine::contract::client::SharedClient;
use crate::engine::contract::listed::Listed;
use crate::engine::contract::reports::{Dram, EngineFigures, Reports};
use crate::engine::shared::update::update_bytes;
use crate::engine::{ChameleonOptions, Core, Engine, Options, Recovered};
use crate::pool::Pool;
use crate::records::storage_log::StorageLog;
use crate::types::durability::Durability;
use crate::types::error::Result;
use crate::types::progress::Progress;
use crate::types::swap::Swap;
use crate::types::totals::Totals;

const LOAD_FACTORS: (f64, f64) = (0.65, 0.85);

/// How many entries the MemTable of each shard takes, by chance.
fn entries_max<P: Pmem>(
    pool: &Pool<P>,
    parameters: &Parameters,
    options: &ChameleonOptions,
) -> impl FnMut() -> u32 {
    let (shape, environment) = (parameters.shape, pool.environment.clone());
    let (read_only, range) = (pool.read_only, options.load_factors.as_ref());
    let (least, most) = range.map_or(LOAD_FACTORS, |range| (*range.start(), *range.end()));
    move || {
        if read_only {
            return shape.read_only_slots() / 8 * 7;
        }
        let chance = environment.random_u64() as f64 / u64::MAX as f64;
        shape.entries_max(least + (most - least) * chance)
    }
}

impl<P: Pmem> Engine<P> for Chameleon<P> {
    type Type = Type;
    type Client = ChameleonClient;
    type Upkeep<'a> = ChameleonUpkeep<'a, P>;

    fn takes(_parameters: &Parameters) -> bool {
        true
    }

    fn open(core: Core<P>, parameters: Parameters, options: &Options) -> Result<(Self, Recovered)> {
        let (pool, chameleon) = (core.pool.clone(), &options.chameleon);
        let (shape, salvages) = (parameters.shape, options.pool.salvage);
        let mut found = Found::of(&pool, salvages)?;
        let manifest = found.manifest(&core, &parameters, salvages)?;
        let replay_bytes_max = chameleon.replay_log_bytes_max.unwrap_or(BYTES_MAX);
        let (run_blocks, batch_bytes) = (parameters.log_run_blocks, chameleon.log_batch_bytes);
        let log = StorageLog::new(pool.clone(), core.hash, LOG, run_blocks, batch_bytes)
            .with_open_bytes_max(open_bytes_max(replay_bytes_max));
        let helpers = TableHelpers::of(&pool, chameleon, &shape, options.huge_pages)?;
        let environment = core.environment().clone();
        let entries_max = entries_max(&pool, &parameters, chameleon);
        let shards =
            Shards::new(pool.clone(), shape, manifest, helpers, options.huge_pages, entries_max)?;
        let limits = log.limits();
        let index = Index::new(Records::new(core, log, run_blocks, salvages), shards);
        let tables = Tables::new(index, Space::new(pool, shape, run_blocks));
        let compactor = Compactor::new(tables, chameleon.compaction, chameleon.compaction_threads);
        let modes = Modes::of(chameleon, environment.now_ns());
        let mut flusher = Flusher::new(compactor, modes, replay_bytes_max);
        let (opened, recovered) = recover(&mut flusher, found, options)?;
        let (collector, blind_puts) = (Collector::new(flusher), chameleon.blind_puts);
        Ok((Self { collector, parameters, limits, blind_puts, opened }, recovered))
    }

    #[inline(always)]
    fn core(&self) -> &Core<P> {
        self.index().core()
    }

    /// With batches an acknowledged write may not be durable yet, whatever the medium gives.
    fn durability(&self, given: Durability) -> Durability {
        if self.index().log().has_batches() { Durability::Batched } else { given }
    }

    fn sync(&self) {
        self.index().log().sync_all();
    }

    fn client(&self, number: u32) -> ChameleonClient {
        let (shared, sampler) = (SharedClient::new(number), self.flusher().modes().sampler());
        ChameleonClient { shared, appender: self.index().log().begin(), sampler }
    }

    fn certify(&self, client: &mut ChameleonClient) {
        self.index().log().certify(&mut client.appender);
    }

    fn end(&self, client: &mut ChameleonClient) {
        self.index().log().end(&mut client.appender);
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
        self.index().shards().prefetch(hash);
    }

    #[inline]
    fn prefetch_to_get(&self, hash: u64) {
        self.index().shards().prefetch(hash);
    }

    fn prefetch_records(&self, hashes: &[u64]) {
        self.index().prefetch_records(hashes);
    }

    #[inline(never)]
    fn put(&self, client: &mut ChameleonClient, key: &[u8], value: &[u8]) -> Result<bool> {
        self.put_value(client, key, value)
    }

    #[inline(never)]
    fn get(&self, client: &mut ChameleonClient, hash: u64, key: &[u8]) -> Result<bool> {
        self.get_or_time(client, hash, key)
    }

    #[inline]
    fn read(&self, client: &mut ChameleonClient, hash: u64, key: &[u8]) -> Result<bool> {
        self.index().read_value(&mut client.shared, hash, key, true)
    }

    fn replace(
        &self,
        client: &mut ChameleonClient,
        hash: u64,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
        _verify: bool,
    ) -> Result<Swap> {
        self.replace_value(client, hash, key, expected, new)
    }

    fn insert(
        &self,
        client: &mut ChameleonClient,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        self.insert_value(client, hash, key, value)
    }

    fn remove_if(
        &self,
        client: &mut ChameleonClient,
        hash: u64,
        key: &[u8],
        expected: &[u8],
    ) -> Result<Swap> {
        self.remove(client, hash, key, Some(expected))
    }

    fn update_word(
        &self,
        client: &mut ChameleonClient,
        key: &[u8],
        at: usize,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>> {
        update_bytes(self, client, key, at, change)
    }

    #[inline(never)]
    fn delete(&self, client: &mut ChameleonClient, key: &[u8]) -> Result<bool> {
        let hash = self.index().core().hash.of(key);
        self.remove(client, hash, key, None).map(|removed| removed == Swap::Swapped)
    }

    fn list(
        &self,
        client: &mut ChameleonClient,
        from: u64,
        take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()> {
        list_from(self.index(), &mut client.shared.value, from, take)
    }

    fn records(&self) -> u64 {
        self.index().count_records().saturating_sub(self.opened.left_out)
    }

    /// Keys are counted and not summed up: nobody reads all tables to close or to open a store.
    fn totals(&self) -> Totals {
        let index = self.index();
        let mut totals = index.manifest_totals();
        totals.merge(index.log().totals());
        // What blind puts have counted is not counted so by a restart.
        let records = if self.blind_puts { Totals::UNCOUNTED } else { index.count_records() };
        Totals { records, ..totals }
    }

    fn upkeep(&self) -> ChameleonUpkeep<'_, P> {
        ChameleonUpkeep(self)
    }
}

impl<P: Pmem> Reports<P> for Chameleon<P> {
    type Stats = ChameleonStats;
    type Inspect = ChameleonInspect;

    fn inspect(&self, _progress: Option<&Progress>) -> ChameleonInspect {
        ChameleonInspect { sizes: report(self), runs: self.core().pool.count_runs(&KINDS) }
    }

    fn dram(&self) -> Dram {
        let (memtables, bypasses) = self.index().shards().bytes();
        Dram { index_bytes: bypasses, table_bytes: memtables }
    }

    fn stats(&self) -> EngineFigures<ChameleonStats> {
        EngineFigures {
            blocks_free: self.core().pool.count_runs(&KINDS).free_blocks,
            details: report(self),
        }
    }

    fn options_for_copy(&self) -> Options {
        let Parameters { shape, log_run_blocks } = self.parameters;
        let map = &self.core().pool.map;
        Options::new().segment_bytes(map.segment_bytes).chameleon(|chameleon| {
            chameleon
                .shards(shape.shards())
                .memtable_bytes(shape.memtable_slots * super::shape::SLOT_BYTES)
                .levels(shape.levels)
                .ratio(shape.ratio)
                .log_run_bytes(log_run_blocks * map.block_bytes as u32)
        })
    }
}
