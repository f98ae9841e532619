//! Small stores on memory that loses what was not written back, compared with a model: passes of collection, a full pool, and
//! crashes after each of their steps.

use std::collections::BTreeMap;
use std::panic::catch_unwind;

use super::*;
use crate::engine::chameleon::creation::Parameters;
use crate::engine::chameleon::shape::Shape;
use crate::engine::chameleon::store::{Chameleon, ChameleonClient};
use crate::engine::chameleon::{sites, steps};
use crate::engine::{Core, Engine, Options};
use crate::pool::small::media_pool;
use crate::pool::tests::media::{LeftOut, Media, bytes_of};
use crate::records::storage_log;
use crate::types::error::Result;

const SEGMENT_BYTES: u64 = 16 << 10;
/// A run has 896 bytes for records.
const LOG_RUN_BLOCKS: u32 = 4;
const KEYS: u64 = 40;
const LARGE: u64 = 512 << 10;
const SMALL: u64 = 40 << 10;

/// What a key has.
type Model = BTreeMap<u64, u64>;

/// An open store of two shards, whose MemTables have 16 slots and whose bypass indexes have 64.
struct Store {
    media: Media,
    engine: Chameleon<Media>,
    client: ChameleonClient,
}

impl Store {
    fn open(image: &[u8], bytes: u64, batch_bytes: u32, left_out: Option<LeftOut>) -> Result<Self> {
        let options = Options::new().chameleon(|chameleon| {
            let shape = chameleon.shards(2).memtable_bytes(256).levels(3).ratio(2);
            shape.load_factors(0.7..=0.8).log_batch_bytes(batch_bytes)
        });
        let media = Media::default();
        let pool = media_pool(&media, image, SEGMENT_BYTES, bytes);
        media.leave_out(left_out);
        let shape = Shape::of(&options.chameleon);
        let parameters = Parameters { shape, log_run_blocks: LOG_RUN_BLOCKS };
        let (engine, _) = Chameleon::open(Core::new(pool, &options), parameters, &options)?;
        let client = engine.client(0);
        Ok(Self { media, engine, client })
    }

    fn new(bytes: u64, batch_bytes: u32, left_out: Option<LeftOut>) -> Self {
        Self::open(&[], bytes, batch_bytes, left_out).expect("a new store")
    }

    fn put(&mut self, key: u64, value: u64) -> Result<bool> {
        self.engine.put(&mut self.client, &key.to_le_bytes(), &value.to_le_bytes())
    }

    fn delete(&mut self, key: u64) -> Result<bool> {
        self.engine.delete(&mut self.client, &key.to_le_bytes())
    }

    fn get(&mut self, key: u64) -> Option<u64> {
        let (bytes, hash) = (key.to_le_bytes(), self.engine.core().hash.of(&key.to_le_bytes()));
        let is_there = self.engine.get(&mut self.client, hash, &bytes).expect("sound");
        let value = || self.client.shared.value[..].try_into().expect("8 bytes");
        is_there.then(|| u64::from_le_bytes(value()))
    }

    /// What it has of some keys.
    fn found(&mut self, keys: u64) -> Model {
        (0..keys).filter_map(|key| Some((key, self.get(key)?))).collect()
    }

    fn check(&mut self, model: &Model, keys: u64) {
        assert!(self.found(keys) == *model, "other keys or values than the model's");
        assert_eq!(self.engine.index().count_records(), model.len() as u64);
    }

    /// A pass, to its end.
    fn collect(&self) {
        while self.engine.collector.collect_step(1).expect("sound") != Step::Done {}
    }

    fn log_runs(&self) -> u64 {
        self.engine.index().log().counts().runs
    }
}

/// Numbers that look random.
struct Chance(u64);

impl Chance {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % below
    }
}

/// A put, or one time in four a removal.
fn act(store: &mut Store, model: &mut Model, chance: &mut Chance) {
    let (key, value) = (chance.below(KEYS), chance.below(1 << 30));
    if chance.below(4) == 0 {
        assert_eq!(store.delete(key).expect("room"), model.remove(&key).is_some());
    } else {
        assert_eq!(store.put(key, value).expect("room"), model.insert(key, value).is_none());
    }
}

/// Pools that have little room from the start: each put is done or refused, and what was done is there.
#[test]
fn puts_in_pools_of_any_size_come_to_an_end() {
    let mut counts = Vec::new();
    for blocks in (70..200).step_by(3) {
        let mut store = Store::new(blocks * 256, 0, None);
        let put = |store: &mut Store, key: &u64| match store.put(*key, *key) {
            Ok(is_new) => is_new,
            Err(Error::PoolFull { .. }) => false,
            Err(error) => panic!("{error}"),
        };
        let done: Vec<u64> = (0..2000).take_while(|key| put(&mut store, key)).collect();
        store.check(&done.iter().map(|key| (*key, *key)).collect(), 2000);
        counts.push(done.len());
    }
    assert!(counts.last() > Some(&200), "{counts:?}");
}

#[test]
fn a_pass_leaves_the_runs_that_are_needed_and_the_next_one_does_nothing() {
    for batch_bytes in [0, 256] {
        let mut store = Store::new(LARGE, batch_bytes, None);
        let (mut model, mut chance) = (Model::new(), Chance(5));
        for _ in 0..20 {
            for _ in 0..100 {
                act(&mut store, &mut model, &mut chance);
            }
            store.collect();
            store.check(&model, KEYS);
            // Records of 40 bytes; the run of the session, and what is less than a run too much.
            let needed = (model.len() as u64 * 40).div_ceil(896);
            assert!(store.log_runs() <= needed + 3, "{} runs for {needed}", store.log_runs());
            let moved = store.engine.collector.stats().moved_records;
            store.collect();
            assert_eq!(store.engine.collector.stats().moved_records, moved, "for nothing");
        }
        assert!(store.engine.collector.stats().moved_records > 100);
    }
}

/// Crashes after some steps of `work`: what is there then is what `before` or what `after` says.
fn crash_in(
    store: &mut Store,
    (bytes, batch_bytes): (u64, u32),
    states: usize,
    work: impl FnOnce(&mut Store) -> (Model, Model),
) {
    let media = store.media.clone();
    let ((before, after), photos) = media.photograph(|| work(store));
    let step = photos.len() / states + 1;
    for (number, photo) in photos.iter().enumerate().filter(|(number, _)| number % step == 0) {
        for state in photo.some_states(1, number as u64).iter().rev().take(3) {
            let opened = Store::open(&bytes_of(state), bytes, batch_bytes, media.left_out());
            let mut found = opened.expect("it opens");
            let there = found.found(KEYS);
            assert!(
                there == before || there == after,
                "{there:?}: neither {before:?} nor {after:?}"
            );
            assert_eq!(found.engine.index().count_records(), there.len() as u64);
            // The next life goes on from there.
            found.collect();
            found.check(&there, KEYS);
        }
    }
}

/// A history with passes, and crashes in them. With batches all is made durable before.
fn play(batch_bytes: u32, left_out: Option<LeftOut>) {
    let mut store = Store::new(LARGE, batch_bytes, left_out);
    let (mut model, mut chance) = (Model::new(), Chance(9));
    for round in 0..8 {
        for _ in 0..90 {
            act(&mut store, &mut model, &mut chance);
        }
        store.check(&model, KEYS);
        store.engine.sync();
        crash_in(&mut store, (LARGE, batch_bytes), 60, |store| {
            store.collect();
            (model.clone(), model.clone())
        });
        if round % 2 == 1 {
            let durable = store.media.photo().some_states(0, 1).swap_remove(0);
            let opened = Store::open(&bytes_of(&durable), LARGE, batch_bytes, left_out);
            store = opened.expect("it opens");
        }
        store.check(&model, KEYS);
    }
}

#[test]
fn a_crash_in_a_pass_loses_nothing_and_brings_nothing_back() {
    play(0, None);
    play(256, None);
}

#[test]
fn what_is_left_out_of_a_pass_is_noticed() {
    let left_out = [
        (0, LeftOut::Step(steps::COLLECT_CURRENT)),
        (0, LeftOut::Fence(sites::TABLES)),
        (0, LeftOut::Flush(storage_log::sites::RECORD)),
        (256, LeftOut::Flush(storage_log::sites::BATCH)),
    ];
    let is_unnoticed = |(batch_bytes, what): &&(u32, LeftOut)| {
        catch_unwind(|| play(*batch_bytes, Some(*what))).is_ok()
    };
    let unnoticed: Vec<_> = left_out.iter().filter(is_unnoticed).collect();
    assert_eq!(unnoticed, Vec::<&(u32, LeftOut)>::new());
}

/// Fills a small pool with new keys; how many.
fn fill_up(store: &mut Store, model: &mut Model) -> u64 {
    for key in 0.. {
        match store.put(key, 7 * key) {
            Ok(is_new) => assert!(is_new && model.insert(key, 7 * key).is_none()),
            Err(error) => {
                assert!(matches!(error, Error::PoolFull { .. }), "{error}");
                return key;
            }
        }
    }
    unreachable!("no pool is that large")
}

#[test]
fn a_full_pool_takes_deletes_and_has_room_again_and_again() {
    for batch_bytes in [0, 256] {
        let mut store = Store::new(SMALL, batch_bytes, None);
        for round in 0..6 {
            let mut model = Model::new();
            let count = fill_up(&mut store, &mut model);
            assert!(count > 200, "{count} keys in round {round}");
            store.check(&model, count);
            // From the front, from the back, and every second one first.
            let mut keys: Vec<_> = (0..count).collect();
            match round % 3 {
                0 => {}
                1 => keys.reverse(),
                _ => keys.sort_by_key(|key| (key % 2, *key)),
            }
            for key in keys {
                assert!(
                    store
                        .delete(key)
                        .unwrap_or_else(|error| panic!("round {round}, {key} of {count}: {error}"))
                );
                model.remove(&key);
            }
            store.check(&model, count);
        }
    }
}

#[test]
fn values_change_in_a_full_pool_where_others_were_deleted() {
    let mut store = Store::new(SMALL, 0, None);
    let mut model = Model::new();
    let (count, mut chance) = (fill_up(&mut store, &mut model), Chance(3));
    for key in (0..count).step_by(3) {
        assert!(store.delete(key).expect("a delete"));
        model.remove(&key);
    }
    // Room is gained as it is needed.
    for _ in 0..2_000 {
        let key = chance.below(count) / 3 * 3 + 1;
        let value = chance.below(1 << 30);
        if model.contains_key(&key) {
            assert!(!store.put(key, value).expect("room is gained"));
            model.insert(key, value);
        }
    }
    store.check(&model, count);
}

#[test]
fn a_crash_in_a_full_pool_loses_nothing() {
    let mut store = Store::new(SMALL, 0, None);
    let mut model = Model::new();
    let count = fill_up(&mut store, &mut model);
    let media = store.media.clone();
    for key in 0..count {
        let before = model.clone();
        let (deleted, photos) = media.photograph(|| store.delete(key));
        assert!(deleted.expect("a delete"));
        model.remove(&key);
        if photos.len() < 64 {
            continue;
        }
        // Last tables were made, and moved.
        let step = photos.len() / 12 + 1;
        for photo in photos.iter().step_by(step) {
            let state = photo.some_states(1, key).pop().expect("a state");
            let mut found = Store::open(&bytes_of(&state), SMALL, 0, None).expect("it opens");
            let there = found.found(count);
            assert!(there == before || there == model, "key {key}");
            let next = found.delete(count - 1).expect("deletes go on");
            assert_eq!(next, there.contains_key(&(count - 1)));
        }
    }
    store.check(&model, count);
}

#[test]
fn deletes_in_a_full_pool_make_room_for_others() {
    for batch_bytes in [0, 256] {
        // In a few pools as small as this, one of 20, what is free lies in pieces that are too short for a table.
        let mut store = Store::new(44 << 10, batch_bytes, None);
        let mut model = Model::new();
        let count = fill_up(&mut store, &mut model);
        for round in 0..4 {
            for key in (0..count).filter(|key| key % 4 != 0) {
                assert_eq!(store.delete(key).expect("a delete"), model.remove(&key).is_some());
            }
            store.collect();
            store.check(&model, count);
            for key in (0..count).filter(|key| key % 4 == 1 || key % 4 == 2) {
                let is_new = store.put(key, round).unwrap_or_else(|error| {
                    panic!("round {round}, key {key} of {count}, batches of {batch_bytes}: {error}")
                });
                assert!(is_new && model.insert(key, round).is_none());
            }
            store.check(&model, count);
        }
    }
}
