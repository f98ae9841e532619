//! A log with one hash table as an [`Engine`]: what the rest of the store calls.

use chimera_pmem::Pmem;

use super::creation::Parameters;
use super::index::LogIndex;
use super::report::Sizes;
use super::{LOG, LogHash, LogHashClient, LogHashInspect, LogHashStats, Versions};
use crate::engine::report::EngineFigures;
use crate::engine::shared::KeyLocks;
use crate::engine::shared::client::SharedClient;
use crate::engine::shared::listing::Listed;
use crate::engine::shared::scrub::{Point, Scrubbed};
use crate::engine::shared::totals;
use crate::engine::{Core, Engine, EngineInspect, Options, Recovered};
use crate::pool::CLOSED_WORDS;
use crate::records::storage_log::StorageLog;
use crate::types::check::CheckReport;
use crate::types::durability::Durability;
use crate::types::error::Result;
use crate::types::progress::Progress;
use crate::types::swap::Swap;
use crate::types::totals::Totals;

impl<P: Pmem, I: LogIndex<P>> LogHash<P, I> {
    fn report(&self) -> LogHashStats {
        let Sizes { segments, slots, directory_depth } = self.index.sizes();
        let log = self.log.counts();
        LogHashStats {
            index_segments: segments,
            index_slots: slots,
            directory_depth,
            log_runs: log.runs,
            log_bytes: log.bytes,
            replayed_log_bytes: self.replayed_bytes,
        }
    }
}

impl<P: Pmem, I: LogIndex<P>> Engine<P> for LogHash<P, I> {
    type Type = I::Type;
    type Client = LogHashClient;

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
        let recovered = engine.recover(options)?;
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
        self.put_value(client, key, value)
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
        self.replace_value(client, hash, key, expected, new)
    }

    #[inline(never)]
    fn delete(&self, client: &mut LogHashClient, key: &[u8]) -> Result<bool> {
        self.remove(client, key)
    }

    fn list(
        &self,
        client: &mut LogHashClient,
        from: u64,
        take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()> {
        self.list_from(client, from, take)
    }

    fn records(&self) -> u64 {
        self.index.len()
    }

    fn totals(&self) -> Totals {
        totals::of_entries(|from, batch| self.index.list(from, batch))
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

    fn inspect(&self, _progress: Option<&Progress>) -> EngineInspect {
        let sizes = self.report();
        I::inspect(LogHashInspect {
            index_load: self.index.len() as f64 / sizes.index_slots.max(1) as f64,
            sizes,
            runs: self.core.pool.count_runs(I::KINDS),
        })
    }

    fn stats(&self) -> EngineFigures {
        EngineFigures {
            blocks_free: self.core.pool.count_runs(I::KINDS).free_blocks,
            dram_index_bytes: self.index.bytes(),
            dram_table_bytes: self.keys.bytes() + self.versions.bytes(),
            details: I::stats(self.report()),
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
