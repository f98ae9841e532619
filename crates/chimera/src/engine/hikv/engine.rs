//! HiKV as an [`Engine`]: what the rest of the store calls.

use std::ops::RangeInclusive;

use chimera_pmem::Pmem;

use super::creation::Parameters;
use super::kinds::kinds;
use super::store::Hikv;
use super::upkeep::HikvUpkeep;
use super::{HikvInspect, HikvStats, Type, recovery};
use crate::engine::contract::client::SharedClient;
use crate::engine::contract::listed::Listed;
use crate::engine::contract::reports::{Dram, EngineFigures, Reports};
use crate::engine::shared::totals;
use crate::engine::shared::update::update_bytes;
use crate::engine::{Core, Engine, Options, Recovered};
use crate::metrics::{Exposition, Kind};
use crate::pool::runs::Piece;
use crate::types::error::{Error, Result};
use crate::types::progress::Progress;
use crate::types::swap::Swap;
use crate::types::totals::Totals;

impl<P: Pmem> Hikv<P> {
    fn report(&self) -> HikvStats {
        let index = self.items().index();
        let is_rebuilt = self.rebuild().is_known();
        let (heap_runs, heap_bytes, item_bytes) = self.items().heap().counts();
        let index_segments = index.segments();
        let (walked, damages) = self.rebuild().progress();
        HikvStats {
            #[cfg(feature = "baselines")]
            layout: self.parameters.layout,
            #[cfg(feature = "baselines")]
            consistency: self.parameters.consistency(),
            partitions: 1 << self.parameters.hash.partition_bits,
            index_segments,
            index_slots: index_segments * u64::from(index.slots_per_segment()),
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
    type Upkeep<'a> = HikvUpkeep<'a, P>;

    fn takes(_parameters: &Parameters) -> bool {
        true
    }

    fn open(core: Core<P>, parameters: Parameters, options: &Options) -> Result<(Self, Recovered)> {
        recovery::open(core, parameters, options)
    }

    #[inline(always)]
    fn core(&self) -> &Core<P> {
        self.items().core()
    }

    fn take_piece(&self, bytes: u64) -> Result<Piece> {
        let pool = &self.core().pool;
        match pool.take_piece(bytes) {
            // Runs that are kept for items may be what a batch needs.
            Err(Error::PoolFull { .. }) if self.items().heap().give_back_empty() => {
                pool.take_piece(bytes)
            }
            taken => taken,
        }
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
        self.items().index().prefetch(hash);
    }

    #[inline]
    fn prefetch_to_get(&self, hash: u64) {
        self.items().index().prefetch(hash);
    }

    fn prefetch_records(&self, hashes: &[u64]) {
        for at in hashes.iter().filter_map(|hash| self.items().index().peek(*hash)) {
            self.items().heap().prefetch(at);
        }
    }

    #[inline(never)]
    fn put(&self, client: &mut SharedClient, key: &[u8], value: &[u8]) -> Result<bool> {
        self.put_value(client, key, value)
    }

    #[inline(never)]
    fn get(&self, client: &mut SharedClient, hash: u64, key: &[u8]) -> Result<bool> {
        self.items().get_in_turn(client, hash, key)
    }

    #[inline]
    fn read(&self, client: &mut SharedClient, hash: u64, key: &[u8]) -> Result<bool> {
        self.items().read_value(client, hash, key, true)
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

    fn insert(
        &self,
        client: &mut SharedClient,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        self.insert_value(client, hash, key, value)
    }

    fn remove_if(
        &self,
        client: &mut SharedClient,
        hash: u64,
        key: &[u8],
        expected: &[u8],
    ) -> Result<Swap> {
        self.remove_if_value(client, hash, key, expected)
    }

    fn update_word(
        &self,
        client: &mut SharedClient,
        key: &[u8],
        at: usize,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>> {
        update_bytes(self, client, key, at, change)
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
        self.items().list(client, from, take)
    }

    fn list_keys(
        &self,
        _: &mut SharedClient,
        positions: RangeInclusive<u64>,
        take: impl FnMut(&[u8]),
    ) -> Result<()> {
        self.items().list_keys(&positions, take)
    }

    fn records(&self) -> u64 {
        self.items().index().len()
    }

    fn totals(&self) -> Totals {
        totals::of_entries(|from, batch| self.items().index().list(from, batch))
    }

    fn upkeep(&self) -> HikvUpkeep<'_, P> {
        HikvUpkeep(self)
    }
}

impl<P: Pmem> Reports<P> for Hikv<P> {
    type Stats = HikvStats;
    type Inspect = HikvInspect;

    fn inspect(&self, _progress: Option<&Progress>) -> HikvInspect {
        let items = self.items();
        self.rebuild().ask(items);
        let sizes = self.report();
        let part = |some: u64, whole: u64| some as f64 / whole.max(1) as f64;
        HikvInspect {
            index_load: part(items.index().len(), sizes.index_slots),
            directory_depth: items.index().directory_depth(),
            heap_load: part(sizes.item_bytes, sizes.heap_bytes),
            runs: items.pool().count_runs(kinds(&self.parameters)),
            sizes,
        }
    }

    fn dram(&self) -> Dram {
        let items = self.items();
        Dram { index_bytes: items.index().bytes(), table_bytes: items.table_bytes() }
    }

    fn stats(&self) -> EngineFigures<HikvStats> {
        let items = self.items();
        EngineFigures {
            blocks_free: items.pool().count_runs(kinds(&self.parameters)).free_blocks,
            details: self.report(),
        }
    }

    fn write_metrics(&self, text: &mut Exposition) {
        let help = "How HiKV's items and index lie in persistent memory.";
        let layout = format!("{:?}", self.parameters.layout).to_lowercase();
        let partitions = (1_u32 << self.parameters.hash.partition_bits).to_string();
        #[cfg(feature = "baselines")]
        let consistency = self.parameters.consistency().to_string();
        let labels = [
            ("layout", &*layout),
            ("partitions", &partitions),
            #[cfg(feature = "baselines")]
            ("consistency", &consistency),
        ];
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

    fn options_for_copy(&self) -> Options {
        let Parameters { hash, heap_run_blocks, layout, .. } = self.parameters;
        let map = &self.items().pool().map;
        let bytes = |blocks: u32| blocks * map.block_bytes as u32;
        Options::new().segment_bytes(map.segment_bytes).hikv(|mut hikv| {
            #[cfg(feature = "baselines")]
            {
                hikv = self.parameters.log_alike(hikv);
            }
            hikv.layout = Some(layout);
            hikv.partitions(1 << hash.partition_bits)
                .index_segment_bytes(bytes(hash.segment_blocks))
                .heap_run_bytes(bytes(heap_run_blocks))
        })
    }
}
