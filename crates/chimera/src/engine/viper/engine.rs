//! Viper as an [`Engine`]: what the rest of the store calls.

use std::ops::RangeInclusive;

use chimera_pmem::Pmem;

use super::{Client, Stats, Type, Viper};
use crate::engine::report::EngineFigures;
use crate::engine::shared::client::{self, SharedClient};
use crate::engine::shared::listing::Listed;
use crate::engine::shared::maintenance::Step;
use crate::engine::shared::scrub::{Point, Scrubbed};
use crate::engine::{Core, Engine, EngineInspect, EngineStats, Options, Recovered};
use crate::metrics::{Exposition, Kind};
use crate::records::vpage::{PageParameters, Pages};
use crate::types::check::CheckReport;
use crate::types::error::Result;
use crate::types::progress::Progress;
use crate::types::stats::ReclaimStats;
use crate::types::stream::StreamKind;
use crate::types::swap::Swap;
use crate::types::totals::Totals;

impl client::Client for Client {
    #[inline(always)]
    fn shared(&mut self) -> &mut SharedClient {
        &mut self.shared
    }

    #[inline(always)]
    fn shared_ref(&self) -> &SharedClient {
        &self.shared
    }
}

impl<P: Pmem, V: Pages> Engine<P> for Viper<P, V> {
    type Type = Type;
    type Client = Client;

    fn takes(parameters: &PageParameters) -> bool {
        V::takes(parameters)
    }

    fn open(
        core: Core<P>,
        parameters: PageParameters,
        options: &Options,
    ) -> Result<(Self, Recovered)> {
        Self::recovered(core, parameters, options)
    }

    #[inline(always)]
    fn core(&self) -> &Core<P> {
        &self.core
    }

    fn client(&self, number: u32) -> Client {
        Client::new(number)
    }

    fn end(&self, client: &mut Client) {
        client.leave(self);
    }

    #[inline(always)]
    fn check_key(&self, key: &[u8]) -> Result<()> {
        self.pages.check_key(key)
    }

    #[inline(always)]
    fn check_value(&self, value: &[u8]) -> Result<()> {
        self.pages.check_value(value)
    }

    #[inline]
    fn prefetch_to_put(&self, hash: u64) {
        self.index.prefetch_to_change(hash);
    }

    #[inline(never)]
    fn put(&self, client: &mut Client, key: &[u8], value: &[u8]) -> Result<bool> {
        self.put(client, key, value)
    }

    #[inline(never)]
    fn get(&self, client: &mut Client, hash: u64, key: &[u8]) -> Result<bool> {
        self.get_hashed(client, hash, key)
    }

    #[inline]
    fn read(&self, client: &mut Client, hash: u64, key: &[u8]) -> Result<bool> {
        self.read_hashed(client, hash, key)
    }

    fn read_many<K: AsRef<[u8]>>(
        &self,
        client: &mut Client,
        keys: &[K],
        take: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        self.read_many(client, keys, take)
    }

    fn replace(
        &self,
        client: &mut Client,
        hash: u64,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
        verify: bool,
    ) -> Result<Swap> {
        self.replace(client, hash, key, expected, new, verify && self.pages.is_checked())
    }

    #[inline]
    fn update_word(
        &self,
        client: &mut Client,
        key: &[u8],
        at: usize,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>> {
        self.update_word(client, key, at, change)
    }

    #[inline(never)]
    fn delete(&self, client: &mut Client, key: &[u8]) -> Result<bool> {
        self.delete(client, key)
    }

    fn list(
        &self,
        client: &mut Client,
        from: u64,
        take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()> {
        self.list(client, from, take)
    }

    fn list_keys(
        &self,
        _: &mut Client,
        positions: RangeInclusive<u64>,
        take: impl FnMut(&[u8]),
    ) -> Result<()> {
        self.list_keys(&positions, take)
    }

    fn records(&self) -> u64 {
        self.index.len()
    }

    fn kind(&self) -> StreamKind {
        let PageParameters { key_bytes, value_bytes, .. } = self.parameters;
        StreamKind { key_bytes, value_bytes }
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.index.for_each(|hash, location| totals.add(hash, location.raw()));
        totals
    }

    fn reclaim_step(&self, free_percent: u32) -> Result<Step> {
        self.reclaim_step(free_percent)
    }

    fn end_reclaim(&self) {
        self.end_reclaim();
    }

    fn reclaim_stats(&self) -> ReclaimStats {
        self.reclaim_stats()
    }

    fn scrub_step(&self, from: Point, report: &mut CheckReport) -> Scrubbed {
        self.scrub_step(from, report)
    }

    fn inspect(&self, progress: Option<&Progress>) -> EngineInspect {
        EngineInspect::Viper(Box::new(self.inspect_blocks(progress)))
    }

    fn stats(&self) -> EngineFigures {
        let PageParameters { geometry, layout, .. } = self.parameters;
        let (records_per_page, records_per_block) = self.pages.capacities();
        EngineFigures {
            blocks_free: self.blocks.queued(),
            dram_index_bytes: self.index.bytes(),
            dram_table_bytes: self.blocks.bytes() + self.keys.bytes(),
            details: EngineStats::Viper(Stats {
                layout,
                page_bytes: geometry.page_bytes,
                pages_per_block: geometry.pages_per_block,
                records_per_page,
                records_per_block,
                index_segments: self.index.shape().segments,
            }),
        }
    }

    fn write_metrics(&self, text: &mut Exposition) {
        let PageParameters { geometry, layout, .. } = self.parameters;
        let help = "How Viper's records and pages lie in persistent memory.";
        text.family("chimera_viper", Kind::Info, help).sample(
            &[
                ("layout", &format!("{layout:?}").to_lowercase()),
                ("page_bytes", &geometry.page_bytes.to_string()),
                ("pages_per_block", &geometry.pages_per_block.to_string()),
            ],
            true,
        );
    }

    fn options_alike(&self) -> Options {
        let PageParameters { geometry, layout, key_bytes, value_bytes } = self.parameters;
        let options = Options::new().viper(|viper| viper.layout(layout).geometry(geometry));
        if key_bytes == 0 { options } else { options.fixed_size(key_bytes, value_bytes) }
    }
}
