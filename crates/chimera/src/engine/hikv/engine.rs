//! HiKV as an [`Engine`]: what the rest of the store calls.

use std::ops::RangeInclusive;

use chimera_pmem::Pmem;

use super::creation::Parameters;
use super::rebuild::FIRST_ENTRIES;
use super::{HASH, HEAP, Hikv, HikvInspect, HikvStats, Rebuild, Type, kinds};
use crate::engine::report::EngineFigures;
use crate::engine::shared::KeyLocks;
use crate::engine::shared::client::SharedClient;
use crate::engine::shared::listing::Listed;
use crate::engine::shared::maintenance::Step;
use crate::engine::shared::scrub::{Point, Scrubbed};
use crate::engine::shared::totals;
use crate::engine::{Core, Engine, EngineInspect, EngineStats, Options, Recovered};
use crate::index::persistent::partitioned_hash::PartitionedHash;
use crate::metrics::{Exposition, Kind};
use crate::ordered::Order;
use crate::pool::CLOSED_WORDS;
use crate::records::item_heap::ItemHeap;
use crate::records::redo_log;
use crate::sync::Mutex;
use crate::types::check::CheckReport;
use crate::types::error::Result;
use crate::types::layout::RecordLayout;
use crate::types::progress::Progress;
use crate::types::swap::Swap;
use crate::types::totals::Totals;
use crate::types::verify_reads::VerifyReads;

impl<P: Pmem> Hikv<P> {
    fn report(&self) -> HikvStats {
        let is_rebuilt = self.rebuild.is_known();
        let (heap_runs, heap_bytes, item_bytes) = self.heap.counts();
        let index_segments = self.index.segments();
        let (walked, damages) = self.rebuild.progress();
        HikvStats {
            layout: self.parameters.layout,
            consistency: self.parameters.consistency(),
            partitions: 1 << self.parameters.hash.partition_bits,
            index_segments,
            index_slots: index_segments * u64::from(self.index.slots_per_segment()),
            heap_runs,
            heap_bytes,
            item_bytes,
            space_is_rebuilt: is_rebuilt,
            space_segments_walked: if is_rebuilt { index_segments } else { walked },
            space_damages: damages,
        }
    }
}

impl<P: Pmem> Engine<P> for Hikv<P> {
    type Type = Type;
    type Client = SharedClient;

    fn takes(_parameters: &Parameters) -> bool {
        true
    }

    fn open(core: Core<P>, parameters: Parameters, options: &Options) -> Result<(Self, Recovered)> {
        let (pool, salvages) = (core.pool.clone(), options.pool.salvage);
        let index = PartitionedHash::new(pool.clone(), HASH, parameters.hash, salvages)?;
        let heap = ItemHeap::new(pool, HEAP, parameters.layout, parameters.heap_run_blocks);
        let limits = match parameters.log_area_bytes {
            Some(area_bytes) => redo_log::limits(heap.limits(), area_bytes),
            None => heap.limits(),
        };
        let has_sums = parameters.layout == RecordLayout::Checked;
        let mut engine = Self {
            keys: KeyLocks::new(core.environment().clone()),
            verify_reads: if has_sums { core.verify_reads } else { VerifyReads::Never },
            limits,
            core,
            parameters,
            index,
            heap,
            dumped: Mutex::default(),
            rebuild: Rebuild::new(options.hikv.walked_first.unwrap_or(FIRST_ENTRIES)),
            log: None,
            salvages,
            found: Mutex::default(),
        };
        let recovered = engine.recover(options)?;
        Ok((engine, recovered))
    }

    #[inline(always)]
    fn core(&self) -> &Core<P> {
        &self.core
    }

    fn client(&self, number: u32) -> SharedClient {
        SharedClient::new(number)
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
    fn put(&self, client: &mut SharedClient, key: &[u8], value: &[u8]) -> Result<bool> {
        self.put_value(client, key, value)
    }

    #[inline(never)]
    fn get(&self, client: &mut SharedClient, hash: u64, key: &[u8]) -> Result<bool> {
        self.get_in_turn(client, hash, key)
    }

    #[inline]
    fn read(&self, client: &mut SharedClient, hash: u64, key: &[u8]) -> Result<bool> {
        self.read_value(client, hash, key, true)
    }

    fn read_many<K: AsRef<[u8]>>(
        &self,
        client: &mut SharedClient,
        keys: &[K],
        take: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        self.read_group(client, keys, take)
    }

    fn replace(
        &self,
        client: &mut SharedClient,
        hash: u64,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
        _verify: bool,
    ) -> Result<Swap> {
        self.replace_value(client, hash, key, expected, new)
    }

    #[inline(never)]
    fn delete(&self, client: &mut SharedClient, key: &[u8]) -> Result<bool> {
        self.remove(client, key)
    }

    fn list(
        &self,
        client: &mut SharedClient,
        from: u64,
        take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()> {
        self.list_from(client, from, take)
    }

    fn list_keys(
        &self,
        _: &mut SharedClient,
        positions: RangeInclusive<u64>,
        take: impl FnMut(&[u8]),
    ) -> Result<()> {
        self.list_keys_at(&positions, take)
    }

    fn records(&self) -> u64 {
        self.index.len()
    }

    fn totals(&self) -> Totals {
        totals::of_entries(|from, batch| self.index.list(from, batch))
    }

    fn load_order(&self, order: Option<&Order>) -> Result<bool> {
        self.load_dump(order)
    }

    fn save_order(&self) -> [u64; CLOSED_WORDS] {
        self.save_dump()
    }

    fn is_rebuilding(&self) -> bool {
        self.rebuild.is_pending()
    }

    fn rebuild_step(&self) -> Step {
        self.rebuild_some()
    }

    /// Nothing is moved. What space there is, is known afterwards, and runs without items are given back.
    fn reclaim_step(&self, _free_percent: u32) -> Result<Step> {
        Ok(self.rebuild_some())
    }

    fn end_reclaim(&self) {
        self.end_walk();
    }

    fn scrub_step(&self, from: Point, report: &mut CheckReport) -> Scrubbed {
        self.check_step(from, report)
    }

    fn inspect(&self, _progress: Option<&Progress>) -> EngineInspect {
        self.ask();
        let sizes = self.report();
        let part = |some: u64, whole: u64| some as f64 / whole.max(1) as f64;
        EngineInspect::Hikv(Box::new(HikvInspect {
            index_load: part(self.index.len(), sizes.index_slots),
            directory_depth: self.index.directory_depth(),
            heap_load: part(sizes.item_bytes, sizes.heap_bytes),
            runs: self.core.pool.count_runs(kinds(&self.parameters)),
            sizes,
        }))
    }

    fn stats(&self) -> EngineFigures {
        EngineFigures {
            blocks_free: self.core.pool.count_runs(kinds(&self.parameters)).free_blocks,
            dram_index_bytes: self.index.bytes(),
            dram_table_bytes: self.heap.bytes() + self.keys.bytes(),
            details: EngineStats::Hikv(self.report()),
        }
    }

    fn write_metrics(&self, text: &mut Exposition) {
        let help = "How HiKV's items and index lie in persistent memory.";
        let layout = format!("{:?}", self.parameters.layout).to_lowercase();
        let partitions = (1_u32 << self.parameters.hash.partition_bits).to_string();
        let consistency = self.parameters.consistency().to_string();
        let labels =
            [("layout", &*layout), ("partitions", &partitions), ("consistency", &consistency)];
        text.family("chimera_hikv", Kind::Info, help).sample(&labels, true);
        let HikvStats { space_is_rebuilt, space_segments_walked, space_damages, .. } =
            self.report();
        let help = "Whether it is known which space is free.";
        text.single("chimera_hikv_space_rebuilt", Kind::Gauge, help, space_is_rebuilt);
        let help = "Segments of the index walked to find out which space is free.";
        text.single("chimera_hikv_space_walked_segments", Kind::Gauge, help, space_segments_walked);
        let help = "Damage that was found meanwhile.";
        text.single("chimera_hikv_space_damages", Kind::Gauge, help, space_damages);
    }

    fn options_alike(&self) -> Options {
        let Parameters { hash, heap_run_blocks, layout, log_area_bytes } = self.parameters;
        let consistency = self.parameters.consistency();
        let map = &self.core.pool.map;
        let bytes = |blocks: u32| blocks * map.block_bytes as u32;
        Options::new().segment_bytes(map.segment_bytes).hikv(|hikv| {
            let hikv = match log_area_bytes {
                Some(bytes) => hikv.log_area_bytes(bytes),
                None => hikv,
            };
            hikv.layout(layout)
                .consistency(consistency)
                .partitions(1 << hash.partition_bits)
                .index_segment_bytes(bytes(hash.segment_blocks))
                .heap_run_bytes(bytes(heap_run_blocks))
        })
    }
}
