//! A small store on memory that loses what was not written back, compared with a model: [`modes`], [`protect`] with dumps,
//! the bound of [`replay`], and [`crashes`] in each of their steps; [`written`] bytes, and [`threads`]. Stores without bypass
//! indexes for [`comparison`]; [`growth`] of bypass indexes; [`blind`] puts; [`full`] pools and their [`reserve`]; [`trim`]; and
//! [`damage`].

mod blind;
mod comparison;
mod crashes;
mod damage;
mod full;
mod growth;
mod modes;
mod protect;
mod replay;
mod reserve;
mod threads;
mod trim;
mod written;

use std::collections::BTreeMap;

use chimera_pmem::Pmem;

use super::*;
use crate::engine::contract::upkeep::Upkeep;
use crate::engine::options::variants::{Compaction, UpperIndex};
use crate::engine::{ChameleonMode, ChameleonOptions, Core, Engine, Options};
use crate::index::probing_table::{PersistentTable, Slot};
use crate::pool::small::media_pool_opened;
use crate::pool::tests::media::{LeftOut, Media, bytes_of};
use crate::types::error::Result;
use creation::Parameters;
use index::verify_all;
use report::report;
use shape::Shape;
use shards::Shards;
use store::ChameleonClient;

const SEGMENT_BYTES: u64 = 16 << 10;
/// A run has 896 bytes for records; those of these tests have 40, or 32.
const LOG_RUN_BLOCKS: u32 = 4;

/// What a key has; none where it was removed.
type Model = BTreeMap<u64, u64>;

/// An open store of two shards, whose MemTables have 16 slots and whose bypass indexes have 64.
struct Store {
    media: Media,
    engine: Chameleon<Media>,
    client: ChameleonClient,
}

/// Options of a mode.
fn options(change: impl FnOnce(ChameleonOptions) -> ChameleonOptions) -> Options {
    Options::new().chameleon(|chameleon| {
        change(chameleon.shards(2).memtable_bytes(256).levels(3).ratio(2).load_factors(0.7..=0.8))
    })
}

fn normal() -> Options {
    options(|chameleon| chameleon)
}

fn write_intensive() -> Options {
    options(|chameleon| chameleon.write_intensive(true))
}

impl Store {
    fn open(image: &[u8], options: &Options, left_out: Option<LeftOut>) -> Result<Self> {
        Self::open_with(LOG_RUN_BLOCKS, image, options, left_out)
    }

    /// As [`open`](Self::open), with runs of the log of so many blocks.
    fn open_with(
        log_run_blocks: u32,
        image: &[u8],
        options: &Options,
        left_out: Option<LeftOut>,
    ) -> Result<Self> {
        let media = Media::default();
        let segment_bytes = options.segment_bytes.unwrap_or(SEGMENT_BYTES);
        let read_only = options.pool.read_only;
        let pool = media_pool_opened(&media, image, segment_bytes, 1 << 20, read_only);
        media.leave_out(left_out);
        let shape = Shape::of(&options.chameleon);
        let parameters = Parameters { shape, log_run_blocks };
        let (engine, _) = Chameleon::open(Core::new(pool, options), parameters, options)?;
        let client = engine.client(0);
        Ok(Self { media, engine, client })
    }

    fn new(options: &Options) -> Self {
        Self::open(&[], options, None).expect("a new store")
    }

    /// The store as the next process finds it, after a power loss that nothing survived which was not durable.
    fn reopen(&self, options: &Options) -> Self {
        let durable = self.media.photo().some_states(0, 1).swap_remove(0);
        Self::open(&bytes_of(&durable), options, self.media.left_out()).expect("it opens")
    }

    fn shards(&self) -> &Shards<Media> {
        self.engine.index().shards()
    }

    fn put(&mut self, key: u64, value: u64) -> Result<bool> {
        self.engine.put(&mut self.client, &key.to_le_bytes(), &value.to_le_bytes())
    }

    /// Gets seem to take very long, or no time at all.
    fn protect(&self, is_on: bool) {
        let (protect, took_ns) = (self.engine.flusher().modes(), if is_on { 1 << 40 } else { 0 });
        let mut sampler = protect.sampler();
        // Those that a session hands over first may be enough. Windows of 1024 gets follow, and none has begun at the end.
        (0..32 + 2 * 1024).for_each(|_| protect.note(&mut sampler, took_ns, 0));
        assert_eq!(protect.mode() == ChameleonMode::GetProtect, is_on);
    }

    fn delete(&mut self, key: u64) -> Result<bool> {
        self.engine.delete(&mut self.client, &key.to_le_bytes())
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let bytes = key.to_le_bytes();
        let is_there =
            self.engine.get(&mut self.client, self.engine.core().hash.of(&bytes), &bytes)?;
        let value = || self.client.shared.value[..].try_into().expect("8 bytes");
        Ok(is_there.then(|| u64::from_le_bytes(value())))
    }

    /// Makes every bypass index complete.
    fn complete(&self) {
        while let crate::engine::contract::upkeep::Step::More { .. } =
            self.engine.flusher().complete_one()
        {}
    }

    fn check(&mut self, model: &Model, keys: u64) {
        for key in 0..keys {
            assert_eq!(self.get(key).expect("sound"), model.get(&key).copied(), "key {key}");
        }
        assert_eq!(self.engine.index().count_records(), model.len() as u64);
        let mut listed = Model::new();
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        let listing = self.engine.list(&mut self.client, 0, |record| {
            listed.insert(word(record.key), word(record.value)).is_none()
        });
        listing.expect("sound");
        assert_eq!(listed, *model);
    }

    /// The log was told once of each record that is in a table, and of each that nothing refers to. Bypass indexes are
    /// complete.
    fn check_told(&self) {
        let (engine, mut unflushed, mut referred) = (&self.engine, 0, 0);
        for number in 0..engine.index().shards().shape().shards() {
            let (work, shard) =
                (engine.index().lock_work(number), engine.index().shards().shard(number));
            let (memtable, bypass) =
                (engine.index().shards().memtable(number), engine.index().shards().bypass(number));
            let is_new = |slot: &Slot| {
                let record = engine.index().log().decode(slot.found().expect("sound").offset);
                record.expect("there").version() > work.current.tables.flushed_version
            };
            let ahead = bypass.iter().filter(is_new).count() as u64;
            assert_eq!(ahead > 0, work.ahead.is_some());
            unflushed += u64::from(memtable.len()) + ahead;
            referred += u64::from(memtable.len() + bypass.len()) + work.superseded.len() as u64;
            for place in shard.dumps().chain(shard.last()) {
                let (pmem, slots) = (&engine.core().pool.pmem, Shape::slots_of(place.bytes));
                let table = PersistentTable::from_parts(pmem, place.at, slots).expect("a table");
                referred += u64::from(table.entries(pmem).expect("sound"));
            }
        }
        assert_eq!(engine.index().log().balance(), (unflushed, referred));
    }

    fn tables(&self, shard: u32) -> crate::index::persistent::shard_manifest::ShardTables {
        self.engine.index().lock_work(shard).current.tables
    }

    /// Tables above the last level, of all shards.
    fn upper_tables(&self) -> u32 {
        let shards = 0..self.shards().shape().shards();
        shards.flat_map(|shard| self.tables(shard).levels).map(|level| level.tables).sum()
    }
}

/// Gets are protected when they [seem](Store::protect) to be slow.
fn protecting(dumps_max: u32) -> Options {
    let threshold = Some(ChameleonOptions::GET_PROTECT_PUBLISHED);
    options(|chameleon| chameleon.get_protect(threshold).dumps_max(dumps_max))
}

/// Numbers that look random.
struct Chance(u64);

impl Chance {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % below
    }
}

/// A put, or one time in five a removal, of one of so many keys.
fn act(store: &mut Store, model: &mut Model, chance: &mut Chance, keys: u64) {
    let (key, value) = (chance.below(keys), chance.below(1 << 30));
    if chance.below(5) == 0 {
        assert_eq!(store.delete(key).expect("room"), model.remove(&key).is_some());
    } else {
        assert_eq!(store.put(key, value).expect("room"), model.insert(key, value).is_none());
    }
}
