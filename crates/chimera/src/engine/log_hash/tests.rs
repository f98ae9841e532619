//! Crashes after each store and fence of puts and deletes, and what a restart makes of the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::dram_hash::VolatileIndex;
use super::index::LogIndex;
use super::pmem_hash::PersistentIndex;
use super::*;
use crate::engine::shared::scrub;
use crate::engine::{Engine, Options};
use crate::pool::Pool;
use crate::pool::small::media_pool;
use crate::pool::tests::media::{Media, Photo, bytes_of};
use crate::types::error::{Error, Result};

const SEGMENT_BYTES: u64 = 16 << 10;
const CAPACITY: u64 = 256 << 10;
/// Segments of the index of 24 slots; runs of the log with room for 3968 bytes.
const PARAMETERS: Parameters = Parameters { index_segment_blocks: 2, log_run_blocks: 16 };
/// States that are tried of each photograph.
const STATES: usize = 3;

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// A put of a value with so many bytes, or a delete, of a key with this number.
#[derive(Clone, Copy, Debug)]
enum Do {
    Put(u64, usize),
    Delete(u64),
}

use Do::{Delete, Put};

struct Store<I> {
    media: Media,
    pool: Arc<Pool<Media>>,
    engine: LogHash<Media, I>,
    client: LogHashClient,
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

fn value(number: u64, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|byte| (byte as u64 * 7 + number * 31 + bytes as u64) as u8).collect()
}

impl<I: LogIndex<Media>> Store<I> {
    fn open(image: &[u8], options: &Options) -> Result<Self> {
        let media = Media::default();
        let pool = media_pool(&media, image, SEGMENT_BYTES, CAPACITY);
        Self::take_over(media, pool, options)
    }

    fn take_over(media: Media, pool: Arc<Pool<Media>>, options: &Options) -> Result<Self> {
        let core = Core::new(pool.clone(), options);
        let engine = <LogHash<Media, I> as Engine<Media>>::open(core, PARAMETERS, options)?.0;
        let client = engine.client(0);
        Ok(Self { media, pool, engine, client })
    }

    fn act(&mut self, what: Do, records: &mut Records) -> Result<()> {
        match what {
            Put(number, bytes) => {
                let value = value(number, bytes);
                let is_new = self.engine.put(&mut self.client, &key(number), &value)?;
                assert_eq!(is_new, records.insert(key(number), value).is_none());
            }
            Delete(number) => {
                let was_there = self.engine.delete(&mut self.client, &key(number))?;
                assert_eq!(was_there, records.remove(&key(number)).is_some());
            }
        }
        Ok(())
    }

    /// What is there, if listing, lookups and verification agree.
    fn contents(&mut self) -> Result<Records> {
        let mut records = Records::new();
        self.engine.list(&mut self.client, 0, |listed| {
            assert!(records.insert(listed.key.to_vec(), listed.value.to_vec()).is_none());
            true
        })?;
        for number in 0..40 {
            let hash = self.engine.core.hash.of(&key(number));
            let found = self.engine.read(&mut self.client, hash, &key(number))?;
            let found = found.then_some(&self.client.shared.value);
            assert_eq!(found, records.get(&key(number)));
        }
        let report = scrub::check(&self.engine, None);
        assert_eq!((report.damages, report.records), (0, records.len() as u64));
        assert_eq!(self.engine.records(), records.len() as u64);
        Ok(records)
    }

    /// A store of what the processors see.
    fn reopen(&self) -> Self {
        Self::open(&self.media.image(), &Options::new()).unwrap()
    }
}

/// Recovers what a crash left, goes on, and recovers again.
fn check_state<I: LogIndex<Media>>(state: &[u64], expected: &[Records]) -> Result<()> {
    let mut store = Store::<I>::open(&bytes_of(state), &Options::new())?;
    let mut records = store.contents()?;
    assert!(expected.contains(&records), "{} records", records.len());
    for what in [Put(33, 60), Delete(3), Put(3, 70), Put(34, 80), Delete(34)] {
        store.act(what, &mut records)?;
    }
    let durable = store.media.photo().some_states(0, 1).swap_remove(0);
    assert_eq!(Store::<I>::open(&bytes_of(&durable), &Options::new())?.contents()?, records);
    Ok(())
}

fn check_photo<I: LogIndex<Media>>(photo: &Photo, expected: &[Records], seed: u64) {
    let states = photo.some_states(STATES, seed);
    let step = states.len().div_ceil(STATES);
    for state in states.iter().rev().step_by(step) {
        check_state::<I>(state, expected).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// The process is killed and the machine goes on: what the next one finds stays through a power loss.
fn check_killed<I: LogIndex<Media>>(photo: &Photo, expected: &[Records]) {
    let seen = photo.states().and_then(Iterator::last);
    let seen = seen.unwrap_or_else(|| photo.some_states(0, 1).swap_remove(1));
    let media = Media::default();
    let pool = media_pool(&media, &bytes_of(&seen), SEGMENT_BYTES, CAPACITY);
    media.was_killed(photo.clone());
    let mut store = Store::<I>::take_over(media.clone(), pool, &Options::new()).unwrap();
    let found = store.contents().unwrap();
    assert!(expected.contains(&found));
    check_photo::<I>(&media.photo(), &[found], 1);
}

/// New keys until segments of the index are split, overwrites, deletes, and keys that come back.
fn history() -> Vec<Do> {
    let mut history: Vec<_> = (0..24).map(|number| Put(number, 40 + 8 * number as usize)).collect();
    history.extend([Put(3, 900), Put(5, 1200), Delete(7), Put(7, 10), Delete(7), Delete(30)]);
    history.extend([Delete(3), Put(3, 9), Put(24, 0), Delete(24)]);
    history
}

fn crash_everywhere<I: LogIndex<Media>>() {
    let mut store = Store::<I>::open(&[], &Options::new()).unwrap();
    let mut records = Records::new();
    for (number, what) in history().into_iter().enumerate() {
        if (2..16).contains(&number) {
            store.act(what, &mut records).unwrap();
            continue;
        }
        let (before, media) = (records.clone(), store.media.clone());
        let (acted, photos) = media.photograph(|| store.act(what, &mut records));
        acted.unwrap();
        let expected = [before, records.clone()];
        // Of long changes, as splits, some crashes: the index has tests of its own.
        for (number, photo) in photos.iter().enumerate().step_by(1 + photos.len() / 16) {
            check_photo::<I>(photo, &expected, number as u64);
        }
        check_killed::<I>(
            &photos.get(photos.len() / 2).unwrap_or(&media.photo()).clone(),
            &expected,
        );
        check_photo::<I>(&media.photo(), &expected[1..], 0);
    }
    assert_eq!(store.contents().unwrap(), records);
}

#[test]
fn no_crash_loses_or_invents_a_record_of_pmem_hash() {
    crash_everywhere::<PersistentIndex<Media>>();
}

#[test]
fn no_crash_loses_or_invents_a_record_of_dram_hash() {
    crash_everywhere::<VolatileIndex>();
}

fn versions_go_on<I: LogIndex<Media>>() {
    let (mut store, mut records) =
        (Store::<I>::open(&[], &Options::new()).unwrap(), Records::new());
    // Each life appends to the runs of the ones before, so records of a key are not in the order of runs.
    for life in 0..12 {
        for what in [Put(1, 30 + life), Delete(1), Put(2, 50 + life), Put(1, 40 + life)] {
            store.act(what, &mut records).unwrap();
        }
        if life % 3 == 1 {
            store.act(Delete(1), &mut records).unwrap();
        }
        store.engine.end(&mut store.client);
        store = store.reopen();
        assert_eq!(store.contents().unwrap(), records, "life {life}");
    }
}

#[test]
fn the_last_write_of_a_key_counts_in_every_life() {
    versions_go_on::<PersistentIndex<Media>>();
    versions_go_on::<VolatileIndex>();
}

#[test]
fn a_write_costs_what_is_published() {
    fn costs<I: LogIndex<Media>>() -> [(u64, u64); 3] {
        let mut store = Store::<I>::open(&[], &Options::new()).unwrap();
        let mut records = Records::new();
        // The next record begins a line.
        (0..3).for_each(|number| store.act(Put(number, 32), &mut records).unwrap());
        [Put(9, 24), Put(9, 25), Delete(9)].map(|what| {
            let before = store.media.counts();
            store.act(what, &mut records).unwrap();
            let after = store.media.counts();
            (after.0 - before.0, after.1 - before.1)
        })
    }
    let fences = |costs: [(u64, u64); 3]| costs.map(|(_, fences)| fences);
    assert_eq!(fences(costs::<PersistentIndex<Media>>()), [2, 2, 1]);
    assert_eq!(fences(costs::<VolatileIndex>()), [1, 1, 1]);
    let lines = |costs: [(u64, u64); 3]| costs.map(|(lines, _)| lines);
    let (pmem, dram) = (costs::<PersistentIndex<Media>>(), costs::<VolatileIndex>());
    assert_eq!(lines(pmem)[0], lines(dram)[0] + 1);
    assert_eq!(lines(pmem)[2], 1);
}

#[test]
fn a_full_store_refuses_writes_and_keeps_what_it_has() {
    fn fill<I: LogIndex<Media>>() {
        let mut store = Store::<I>::open(&[], &Options::new()).unwrap();
        let mut records = Records::new();
        let error = (0..).find_map(|round| {
            let mut refused = None;
            for number in 0..40 {
                let before = records.clone();
                if let Err(error) = store.act(Put(number, 300 + round), &mut records) {
                    records = before;
                    refused = Some(error);
                }
            }
            refused
        });
        assert!(matches!(error, Some(Error::PoolFull { .. })), "{error:?}");
        assert_eq!(store.contents().unwrap(), records);
        assert_eq!(store.reopen().contents().unwrap(), records, "what was refused is nowhere");
    }
    fill::<PersistentIndex<Media>>();
    fill::<VolatileIndex>();
}

#[test]
fn an_entry_that_leads_out_of_the_log_is_damage() {
    let mut store = Store::<PersistentIndex<Media>>::open(&[], &Options::new()).unwrap();
    let mut records = Records::new();
    (0..10).for_each(|number| store.act(Put(number, 40), &mut records).unwrap());
    let run = store.pool.take_bare_run(SEGMENT, 1).unwrap();
    let elsewhere = store.pool.run_bytes(&run);
    let (hash, pool) = (store.engine.core.hash.of(&key(4)), store.pool.clone());
    let old = store.engine.find_same_hash(hash).unwrap()[0];
    let record = crate::records::storage_log::Appended { at: elsewhere.offset(), bytes: 64 };
    assert!(store.engine.index.swap(hash, old, record).unwrap());
    pool.free_run(run).unwrap();
    let image = store.media.image();
    let opened = Store::<PersistentIndex<Media>>::open(&image, &Options::new());
    assert!(matches!(opened.map(|_| ()), Err(Error::Corrupted { .. })));
    let salvaging = Options::new().salvage(true);
    let mut salvaged = Store::<PersistentIndex<Media>>::open(&image, &salvaging).unwrap();
    records.remove(&key(4));
    assert_eq!(salvaged.engine.records(), 9);
    let refused = salvaged.act(Put(20, 5), &mut Records::new());
    assert!(matches!(refused, Err(Error::Poisoned { .. })));
}

/// Damage of the last record looks like the end of the log, so the next one is written there. The entry leads to another key then.
#[test]
fn a_later_record_in_its_place_does_not_hide_that_one_was_damaged() {
    let mut store = Store::<PersistentIndex<Media>>::open(&[], &Options::new()).unwrap();
    let mut records = Records::new();
    (0..4).for_each(|number| store.act(Put(number, 40), &mut records).unwrap());
    let mut image = store.media.image();
    let last = value(3, 40);
    let place = |bytes: &[u8], wanted: &[u8]| {
        bytes.windows(wanted.len()).position(|bytes| bytes == wanted).unwrap()
    };
    let at = place(&image, &last);
    image[at + 9] ^= 16;
    let mut store = Store::<PersistentIndex<Media>>::open(&image, &Options::new()).unwrap();
    let hash = store.engine.core.hash.of(&key(3));
    let is_refused = |store: &mut Store<_>| {
        let read = store.engine.read(&mut store.client, hash, &key(3));
        matches!(read, Err(Error::Corrupted { .. }))
    };
    assert!(is_refused(&mut store));
    store.act(Put(7, 40), &mut records).unwrap();
    assert_eq!(
        place(&store.media.image(), &value(7, 40)),
        at,
        "it is written over the damaged one"
    );
    assert!(is_refused(&mut store));
    let deleted = store.engine.delete(&mut store.client, &key(3));
    assert!(matches!(deleted, Err(Error::Corrupted { .. })), "{deleted:?}");
}

/// A get takes the key's lock where others leave it no moment without a change: it has to say the same there.
#[test]
fn a_damaged_value_is_absent_to_a_get_under_the_lock_too() {
    let mut store = Store::<PersistentIndex<Media>>::open(&[], &Options::new()).unwrap();
    let mut records = Records::new();
    (0..4).for_each(|number| store.act(Put(number, 40), &mut records).unwrap());
    let mut image = store.media.image();
    let wanted = records.remove(&key(2)).unwrap();
    let at = image.windows(wanted.len()).position(|bytes| bytes == wanted).unwrap();
    image[at + 9] ^= 16;
    let salvaging = Options::new().salvage(true);
    let mut store = Store::<PersistentIndex<Media>>::open(&image, &salvaging).unwrap();
    let mut get = |number| {
        let key = key(number);
        let hash = store.engine.core.hash.of(&key);
        store.engine.read_locked(&mut store.client, hash, &key).expect("as if it were absent")
    };
    assert!(get(1) && !get(2));
    assert_eq!(store.pool.losses().count, 1);
}
