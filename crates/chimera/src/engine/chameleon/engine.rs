//! ChameleonDB as an [`Engine`]: what the rest of the store calls.

use chimera_pmem::Pmem;

use super::aids::Aids;
use super::budget::Budget;
use super::collect::Collection;
use super::counts::Counts;
use super::creation::Parameters;
use super::modes::Modes;
use super::recovery::Found;
use super::replay_bound;
use super::space::Space;
use super::{
    Chameleon, ChameleonClient, ChameleonInspect, ChameleonOptions, LEVEL, LOG, MANIFEST, Shards,
    TABLE, TableRuns, Type,
};
use crate::engine::report::EngineFigures;
use crate::engine::shared::client::SharedClient;
use crate::engine::shared::listing::Listed;
use crate::engine::shared::maintenance::Step;
use crate::engine::shared::scrub::{Point, Scrubbed};
use crate::engine::{Core, Engine, EngineInspect, EngineStats, Options, Recovered};
use crate::pool::{BlockKind, CLOSED_WORDS, Pool};
use crate::records::storage_log::StorageLog;
use crate::sync::Mutex;
use crate::types::check::CheckReport;
use crate::types::durability::Durability;
use crate::types::error::{Error, Result};
use crate::types::progress::Progress;
use crate::types::stats::ReclaimStats;
use crate::types::swap::Swap;
use crate::types::totals::Totals;

/// What leads readers to tables. A store that is open for reading only makes no table, so it has bypass indexes.
fn aids_of<P: Pmem>(
    pool: &Pool<P>,
    options: &ChameleonOptions,
    parameters: &Parameters,
    huge_pages: bool,
) -> Result<Aids> {
    if pool.read_only {
        return Ok(Aids::Bypass);
    }
    let no_memory = |_| Error::no_memory("filters or copies");
    Aids::new(options, &parameters.shape, huge_pages).map_err(no_memory)
}

pub(super) const KINDS: [BlockKind; 4] = [LOG, MANIFEST, LEVEL, TABLE];
const LOAD_FACTORS: (f64, f64) = (0.65, 0.85);

impl<P: Pmem> Engine<P> for Chameleon<P> {
    type Type = Type;
    type Client = ChameleonClient;

    fn takes(_parameters: &Parameters) -> bool {
        true
    }

    fn open(core: Core<P>, parameters: Parameters, options: &Options) -> Result<(Self, Recovered)> {
        let (pool, chameleon) = (core.pool.clone(), &options.chameleon);
        let mut found = Found::of(&pool, options.pool.salvage)?;
        let manifest = found.manifest(&core, &parameters, options.pool.salvage)?;
        let replay_bytes_max = chameleon.replay_log_bytes_max.unwrap_or(replay_bound::BYTES_MAX);
        let (run_blocks, batch_bytes) = (parameters.log_run_blocks, chameleon.log_batch_bytes);
        let log = StorageLog::new(pool.clone(), core.hash, LOG, run_blocks, batch_bytes)
            .with_open_bytes_max(replay_bound::open_bytes_max(replay_bytes_max));
        let (least, most) = chameleon
            .load_factors
            .as_ref()
            .map_or(LOAD_FACTORS, |range| (*range.start(), *range.end()));
        let environment = core.environment().clone();
        let entries_max = || {
            if pool.read_only {
                return parameters.shape.read_only_slots() / 8 * 7;
            }
            let chance = environment.random_u64() as f64 / u64::MAX as f64;
            parameters.shape.entries_max(least + (most - least) * chance)
        };
        let aids = aids_of(&pool, chameleon, &parameters, options.huge_pages)?;
        let (shape, huge_pages) = (parameters.shape, options.huge_pages);
        let index = Shards::new(pool.clone(), shape, manifest, aids, huge_pages, entries_max)?;
        let space = Space::new(log.begin_keeper(), log.begin_keeper());
        let mut engine = Self {
            space,
            collection: Collection::default(),
            limits: log.limits(),
            core,
            parameters,
            log,
            index,
            table_runs: TableRuns::default(),
            compaction: chameleon.compaction,
            modes: Modes::of(chameleon, environment.now_ns()),
            budget: Budget::new(chameleon.compaction_threads),
            counts: Counts::default(),
            replay_bytes_max,
            replay_turn: Mutex::default(),
            blind_puts: chameleon.blind_puts,
            salvages: options.pool.salvage,
            recounts: false,
            replayed_bytes: 0,
            left_out: 0,
            found: Totals::default(),
        };
        let recovered = engine.recover(found, options)?;
        Ok((engine, recovered))
    }

    #[inline(always)]
    fn core(&self) -> &Core<P> {
        &self.core
    }

    /// With batches an acknowledged write may not be durable yet, whatever the medium gives.
    fn durability(&self, given: Durability) -> Durability {
        if self.log.has_batches() { Durability::Batched } else { given }
    }

    fn sync(&self) {
        self.log.sync_all();
    }

    fn client(&self, number: u32) -> ChameleonClient {
        let (shared, sampler) = (SharedClient::new(number), self.modes.protect.sampler());
        ChameleonClient { shared, appender: self.log.begin(), sampler }
    }

    fn end(&self, client: &mut ChameleonClient) {
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
    fn put(&self, client: &mut ChameleonClient, key: &[u8], value: &[u8]) -> Result<bool> {
        self.put_value(client, key, value)
    }

    #[inline(never)]
    fn get(&self, client: &mut ChameleonClient, hash: u64, key: &[u8]) -> Result<bool> {
        self.get_or_time(client, hash, key)
    }

    #[inline]
    fn read(&self, client: &mut ChameleonClient, hash: u64, key: &[u8]) -> Result<bool> {
        self.read_value(client, hash, key, true)
    }

    fn read_many<K: AsRef<[u8]>>(
        &self,
        client: &mut ChameleonClient,
        keys: &[K],
        take: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        self.read_group(client, keys, take)
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

    #[inline(never)]
    fn delete(&self, client: &mut ChameleonClient, key: &[u8]) -> Result<bool> {
        self.remove(client, key)
    }

    fn list(
        &self,
        client: &mut ChameleonClient,
        from: u64,
        take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()> {
        self.list_from(client, from, take)
    }

    fn records(&self) -> u64 {
        self.count_records().saturating_sub(self.left_out)
    }

    /// Keys are counted and not summed up: nobody reads all tables to close or to open a store.
    fn totals(&self) -> Totals {
        let mut totals = self.manifest_totals();
        totals.merge(self.log.totals());
        // What blind puts have counted is not counted so by a restart.
        let records = if self.blind_puts { Totals::UNCOUNTED } else { self.count_records() };
        Totals { records, ..totals }
    }

    fn scrub_step(&self, from: Point, report: &mut CheckReport) -> Scrubbed {
        self.check_step(from, report)
    }

    /// Nothing of an order. What sessions have left is sealed, so that damage of the last record is not taken for one that
    /// was cut off.
    fn save_order(&self) -> [u64; CLOSED_WORDS] {
        self.log.seal_left();
        [0; CLOSED_WORDS]
    }

    /// Runs of the log become free, where there are bypass indexes. That the pool becomes shorter is not promised.
    fn reclaims(&self) -> bool {
        self.index.has_bypass()
    }

    fn reclaim_step(&self, free_percent: u32) -> Result<Step> {
        self.collect_step(free_percent)
    }

    fn end_reclaim(&self) {
        self.release();
    }

    fn reclaim_stats(&self) -> ReclaimStats {
        self.collect_stats()
    }

    fn is_rebuilding(&self) -> bool {
        !self.core.pool.read_only && self.index.unbypassed() > 0
    }

    fn rebuild_step(&self) -> Step {
        self.complete_one()
    }

    fn inspect(&self, _progress: Option<&Progress>) -> EngineInspect {
        EngineInspect::Chameleon(Box::new(ChameleonInspect {
            sizes: self.report(),
            runs: self.core.pool.count_runs(&KINDS),
        }))
    }

    fn stats(&self) -> EngineFigures {
        let (memtables, bypasses) = self.index.bytes();
        EngineFigures {
            blocks_free: self.core.pool.count_runs(&KINDS).free_blocks,
            dram_index_bytes: bypasses,
            dram_table_bytes: memtables,
            details: EngineStats::Chameleon(self.report()),
        }
    }

    fn options_alike(&self) -> Options {
        let Parameters { shape, log_run_blocks } = self.parameters;
        let map = &self.core.pool.map;
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
