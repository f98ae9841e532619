//! A small store on memory that loses what was not written back, compared with a model: what [`writes`] cost, free and tell;
//! [`crashes`] in each of their steps, with steps left out; the [`walk`] that finds free space beside them; [`reclaim`]; the
//! [`log`]; [`salvage`].

mod crashes;
mod log;
mod reclaim;
mod salvage;
mod walk;
mod writes;

use std::collections::BTreeMap;

use super::*;
use crate::engine::shared::scrub;
use crate::engine::{Core, Engine, Options};
use crate::pool::small::media_pool;
use crate::pool::tests::media::{LeftOut, Media, Photo, bytes_of};
use crate::records::item_heap::item_bytes;
use crate::types::error::{Error, Result};
use crate::types::layout::RecordLayout;

use crate::engine::contract::client::SharedClient;
use crate::engine::contract::upkeep::{Step, Upkeep};
use crate::index::persistent::partitioned_hash::HashShape;
use creation::Parameters;
use kinds::kinds;

const SEGMENT_BYTES: u64 = 8192;
/// Room for five segments of the pool.
const CAPACITY: u64 = 48 << 10;
/// Two partitions whose segments have 8 entries; runs of 512 bytes for items.
const PARAMETERS: Parameters = Parameters {
    hash: HashShape { partition_bits: 1, segment_blocks: 1 },
    heap_run_blocks: 2,
    layout: RecordLayout::Checked,
    log_area_bytes: None,
};
/// The same, with a write-ahead log.
const LOGGED: Parameters = Parameters { log_area_bytes: Some(1024), ..PARAMETERS };

type Model = BTreeMap<u64, Vec<u8>>;

/// A put of a value with so many bytes, or a delete, of a key.
#[derive(Clone, Copy, Debug)]
enum Do {
    Put(u64, usize),
    Delete(u64),
}

use Do::{Delete, Put};

/// An open store.
struct Store {
    media: Media,
    engine: Hikv<Media>,
    client: SharedClient,
}

/// What a put stores; no two lengths have a common beginning.
fn value(number: u64, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|byte| (byte as u64 * 7 + number * 31 + bytes as u64) as u8).collect()
}

/// Items are looked at when the store is opened.
fn looking() -> Options {
    Options::new().verify_at_open(true)
}

/// Items are looked at later, beside what the test does.
fn looking_later() -> Options {
    Options::new().verify_at_open(false).hikv(|hikv| hikv.walked_first(0))
}

impl Store {
    fn open(image: &[u8], parameters: Parameters, options: &Options) -> Result<Self> {
        Self::open_without(image, parameters, options, None)
    }

    fn open_without(
        image: &[u8],
        parameters: Parameters,
        options: &Options,
        left_out: Option<LeftOut>,
    ) -> Result<Self> {
        let media = Media::default();
        let pool = media_pool(&media, image, SEGMENT_BYTES, CAPACITY);
        media.leave_out(left_out);
        Self::take_over(media, Core::new(pool, options), parameters, options)
    }

    fn take_over(
        media: Media,
        core: Core<Media>,
        parameters: Parameters,
        options: &Options,
    ) -> Result<Self> {
        let engine = <Hikv<Media> as Engine<Media>>::open(core, parameters, options)?.0;
        let client = engine.client(0);
        Ok(Self { media, engine, client })
    }

    fn new(parameters: Parameters) -> Self {
        Self::open(&[], parameters, &looking()).expect("a new store")
    }

    /// The store after a power loss that nothing survived which was not durable.
    fn reopen(&self, options: &Options) -> Self {
        let durable = self.media.photo().some_states(0, 1).swap_remove(0);
        Self::open(&bytes_of(&durable), self.engine.parameters, options).expect("it opens")
    }

    fn act(&mut self, what: Do, model: &mut Model) -> Result<()> {
        match what {
            Put(key, bytes) => {
                let value = value(key, bytes);
                let is_new = self.engine.put(&mut self.client, &key.to_le_bytes(), &value)?;
                assert_eq!(is_new, model.insert(key, value).is_none(), "{what:?}");
            }
            Delete(key) => {
                let was_there = self.engine.delete(&mut self.client, &key.to_le_bytes())?;
                assert_eq!(was_there, model.remove(&key).is_some(), "{what:?}");
            }
        }
        Ok(())
    }

    fn all(&mut self, history: impl IntoIterator<Item = Do>, model: &mut Model) {
        history.into_iter().for_each(|what| self.act(what, model).expect("room"));
    }

    /// What is there, if listing, lookups, counts and verification agree.
    fn contents(&mut self) -> Result<Model> {
        let mut model = Model::new();
        self.engine.list(&mut self.client, 0, |listed| {
            let key = u64::from_le_bytes(listed.key.try_into().expect("8 bytes"));
            assert!(model.insert(key, listed.value.to_vec()).is_none(), "listed twice");
            true
        })?;
        for key in 0..KEYS {
            let bytes = key.to_le_bytes();
            let hash = self.engine.items().core().hash.of(&bytes);
            let found = self.engine.read(&mut self.client, hash, &bytes)?;
            assert_eq!(found.then_some(&self.client.value), model.get(&key), "key {key}");
        }
        let report = scrub::check(&self.engine, None);
        assert_eq!((report.damages, report.records), (0, model.len() as u64));
        assert_eq!(self.engine.records(), model.len() as u64);
        Ok(model)
    }

    /// What free space is known to be must be what the records leave: nothing leaks, and nothing is free twice.
    fn check_space(&self, model: &Model) {
        while self.engine.upkeep().rebuild_step() != Step::Done {}
        let bytes =
            |value: &Vec<u8>| item_bytes(self.engine.parameters.layout, 8, value.len() as u32);
        let items: u64 = model.values().map(bytes).sum();
        let (runs, _, used) = self.engine.items().heap().counts();
        assert_eq!(used, items, "bytes of items");
        let of_kind = |kind: &str| {
            let counts = self.engine.items().pool().count_runs(kinds(&self.engine.parameters));
            let of_kind = counts.kinds.iter().find(|runs| runs.kind == kind);
            of_kind.map_or(0, |runs| runs.runs)
        };
        assert_eq!(of_kind("hikv.heap"), runs, "runs of items");
        assert_eq!(
            of_kind("hikv.hash"),
            self.engine.items().index().segments(),
            "runs of the index"
        );
    }

    /// As many steps of the walk, if there are so many.
    fn walk(&self, steps: u64) {
        for _ in 0..steps {
            if self.engine.upkeep().rebuild_step() == Step::Done {
                return;
            }
        }
    }
}

/// Keys of these tests are below.
const KEYS: u64 = 48;

/// New keys until segments split, overwrites that move and that free runs, deletes, and keys that come back.
fn history() -> Vec<Do> {
    let mut history: Vec<_> = (0..14).map(|key| Put(key, 8 + 8 * key as usize)).collect();
    history.extend([Put(3, 400), Put(5, 8), Delete(7), Put(7, 10), Delete(7), Delete(30)]);
    history.extend([Put(3, 9), Put(24, 0), Delete(24), Put(25, 430), Put(25, 440), Delete(25)]);
    history
}
