//! Viper as an [`Engine`]: what the rest of the store calls.

use std::ops::RangeInclusive;

use chimera_pmem::Pmem;

use super::creation::hash_geometry;
use super::inspect::inspect;
use super::reclaim::Reclaim;
use super::records::{Records, no_index_memory};
use super::recovery::Recovery;
use super::space::{Client, Space};
use super::store::Viper;
use super::upkeep::ViperUpkeep;
use super::write::{NewValue, Writer};
use super::{Inspect, Stats, Type};
use crate::engine::contract::client::{self, SharedClient};
use crate::engine::contract::listed::Listed;
use crate::engine::contract::reports::{Dram, EngineFigures, Reports};
use crate::engine::{Core, Engine, Options, Recovered};
use crate::index::volatile::extendible_hash::ExtendibleHash;
use crate::metrics::{Exposition, Kind};
use crate::pool::Reserve;
use crate::pool::runs::Piece;
use crate::records::unchecked_word::UncheckedWord;
use crate::records::vpage::{PageParameters, Pages};
use crate::types::error::Result;
use crate::types::progress::Progress;
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
    type Upkeep<'a> = ViperUpkeep<'a, P, V>;

    fn takes(parameters: &PageParameters) -> bool {
        V::takes(parameters)
    }

    fn open(
        core: Core<P>,
        parameters: PageParameters,
        options: &Options,
    ) -> Result<(Self, Recovered)> {
        let environment = core.environment().clone();
        let pages = V::of(&core.pool, &parameters)?;
        let hash_geometry = hash_geometry(&options.viper)?;
        core.pool.set_reserve(reserve(V::RESERVE_BLOCKS, core.pool.blocks_max()));
        let blocks = core.pool.used_blocks();
        let index = ExtendibleHash::new(hash_geometry, options.huge_pages, environment);
        let index = index.map_err(no_index_memory)?;
        let at = options.counter_at.map(|at| at as usize);
        let counter = at.map_or(UncheckedWord::NONE, UncheckedWord::at);
        let records = Records::new(Space::new(core, pages, options.huge_pages), index);
        let (recovered, shadowed) = Recovery::new(&records, options).run(blocks, options)?;
        let writer = Writer::new(records, shadowed, counter);
        Ok((Self { parameters, writer, reclaim: Reclaim::default() }, recovered))
    }

    #[inline(always)]
    fn core(&self) -> &Core<P> {
        self.records().core()
    }

    fn client(&self, number: u32) -> Client {
        Client::new(number)
    }

    /// Pages that nobody appends to any more are sealed.
    fn certify(&self, client: &mut Client) {
        self.records().space().leave(client);
    }

    fn end(&self, client: &mut Client) {
        self.records().space().leave(client);
    }

    #[inline(always)]
    fn check_key(&self, key: &[u8]) -> Result<()> {
        self.records().pages().check_key(key)
    }

    #[inline(always)]
    fn check_value(&self, value: &[u8]) -> Result<()> {
        self.records().pages().check_value(value)
    }

    #[inline]
    fn prefetch_to_put(&self, hash: u64) {
        self.records().index().prefetch_to_change(hash);
    }

    #[inline]
    fn prefetch_to_get(&self, hash: u64) {
        self.records().index().prefetch(hash);
    }

    fn prefetch_records(&self, hashes: &[u64]) {
        let (pool, pages) = (self.records().pool(), self.records().pages());
        for location in hashes.iter().filter_map(|hash| self.records().index().peek(*hash)) {
            pool.pmem.prefetch(pages.whole(pool, &pages.place_of(location)));
        }
    }

    #[inline(never)]
    fn put(&self, client: &mut Client, key: &[u8], value: &[u8]) -> Result<bool> {
        self.writer.put(client, key, self.writer.new_value(value))
    }

    fn put_counter(
        &self,
        client: &mut Client,
        key: &[u8],
        value: &[u8],
        at: usize,
    ) -> Result<bool> {
        let unchecked = UncheckedWord::at(at);
        self.writer.put(client, key, NewValue { bytes: value, unchecked })
    }

    #[inline(never)]
    fn get(&self, client: &mut Client, hash: u64, key: &[u8]) -> Result<bool> {
        self.records().get_hashed(client, hash, key)
    }

    #[inline]
    fn read(&self, client: &mut Client, hash: u64, key: &[u8]) -> Result<bool> {
        self.records().read_hashed(client, hash, key)
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
        let verify = verify && self.records().pages().is_checked();
        self.writer.replace(client, hash, key, expected, new, verify)
    }

    fn insert(&self, client: &mut Client, hash: u64, key: &[u8], value: &[u8]) -> Result<bool> {
        self.writer.insert(client, hash, key, value)
    }

    fn remove_if(
        &self,
        client: &mut Client,
        hash: u64,
        key: &[u8],
        expected: &[u8],
    ) -> Result<Swap> {
        let verify = self.records().pages().is_checked();
        self.writer.remove_if(client, hash, key, expected, verify)
    }

    #[inline]
    fn update_word(
        &self,
        client: &mut Client,
        key: &[u8],
        at: usize,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>> {
        self.writer.update_word(client, key, at, change)
    }

    #[inline(never)]
    fn delete(&self, client: &mut Client, key: &[u8]) -> Result<bool> {
        self.writer.delete(client, key)
    }

    fn list(
        &self,
        client: &mut Client,
        from: u64,
        take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()> {
        self.records().list(client, from, take)
    }

    fn list_keys(
        &self,
        _: &mut Client,
        positions: RangeInclusive<u64>,
        take: impl FnMut(&[u8]),
    ) -> Result<()> {
        self.records().list_keys(&positions, take)
    }

    fn take_piece(&self, _bytes: u64) -> Result<Piece> {
        self.records().space().take_piece()
    }

    fn free_piece(&self, piece: Piece) -> Result<()> {
        self.records().space().free_piece(&piece)
    }

    fn take_found_pieces(&self) -> Vec<Piece> {
        self.records().space().take_found_pieces()
    }

    fn change_piece(&self, piece: &Piece, work: &dyn Fn()) {
        self.records().space().change_piece(piece, work);
    }

    fn records(&self) -> u64 {
        self.records().index().len()
    }

    fn kind(&self) -> StreamKind {
        let PageParameters { key_bytes, value_bytes, .. } = self.parameters;
        StreamKind { key_bytes, value_bytes }
    }

    fn totals(&self) -> Totals {
        self.records().totals()
    }

    fn upkeep(&self) -> ViperUpkeep<'_, P, V> {
        ViperUpkeep(self)
    }
}

impl<P: Pmem, V: Pages> Reports<P> for Viper<P, V> {
    type Stats = Stats;
    type Inspect = Inspect;

    fn inspect(&self, progress: Option<&Progress>) -> Inspect {
        inspect(self.records(), progress)
    }

    fn dram(&self) -> Dram {
        let records = self.records();
        Dram { index_bytes: records.index().bytes(), table_bytes: records.table_bytes() }
    }

    fn stats(&self) -> EngineFigures<Stats> {
        let geometry = self.parameters.geometry;
        let records = self.records();
        let (records_per_page, records_per_block) = records.pages().capacities();
        EngineFigures {
            blocks_free: records.space().blocks().queued(),
            details: Stats {
                #[cfg(feature = "baselines")]
                layout: self.parameters.layout,
                page_bytes: geometry.page_bytes,
                pages_per_block: geometry.pages_per_block,
                records_per_page,
                records_per_block,
                index_segments: records.index().shape().segments,
            },
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

    fn options_for_copy(&self) -> Options {
        let PageParameters { geometry, layout, key_bytes, value_bytes } = self.parameters;
        let mut options = Options::new().viper(|viper| viper.geometry(geometry));
        options.viper.layout = Some(layout);
        if key_bytes == 0 { options } else { options.fixed_size(key_bytes, value_bytes) }
    }
}

/// Of the blocks that a pool may have, one in so many is in reserve, at most.
const RESERVE_PART: u64 = 32;

/// The [reserve](crate::pool::Reserve) of a pool of so many blocks: those that reclamation fills before it has emptied others.
/// A delete takes none.
fn reserve(blocks: u32, blocks_max: u64) -> Reserve {
    let reclaim = u64::from(blocks).min(blocks_max / RESERVE_PART) as u32;
    Reserve { reclaim, ..Reserve::default() }
}
