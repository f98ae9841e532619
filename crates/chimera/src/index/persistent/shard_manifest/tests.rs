//! What the manifest promises. Crashes are the crash lab's.

use chimera_pmem::{Hardware, Site, SteppedEnvironment};

use super::*;
use crate::pool::BlockKind;
use crate::pool::runs::Run;
use crate::pool::small::small_pool;

const KIND: BlockKind = BlockKind::new(2, "manifest");
const SITE: Site = Site::new("test");
const SHARDS: u32 = 4;

struct Place {
    pool: Arc<Pool<Hardware>>,
    run: Run,
}

impl Place {
    fn new() -> Self {
        let environment = Arc::new(SteppedEnvironment::in_memory(1));
        let pool = small_pool(environment, 16 << 10, 64 << 10);
        let blocks = (run_bytes(SHARDS) + CACHE_LINE).div_ceil(256) as u32;
        let run = pool.take_run(KIND, blocks, |bytes| begin(&pool, bytes, SHARDS));
        let run = run.expect("room");
        Self { pool, run }
    }

    fn manifest(&self) -> ShardManifest<Hardware> {
        ShardManifest::new(self.pool.clone(), &self.run, SHARDS).expect("the run is long enough")
    }
}

fn tables(number: u64) -> ShardTables {
    let table = |part: u64| Some(TableAt { at: 4096 * number + part * 256, bytes: part << 8 });
    let (flushed_version, records) = (number, 2 * number);
    let mut tables = ShardTables { flushed_version, records, last: table(1), ..Default::default() };
    tables.dumps[0] = table(2);
    for (level, place) in tables.levels.iter_mut().enumerate() {
        *place = LevelAt { at: number * 65536 + level as u64, tables: level as u32 };
    }
    tables
}

fn change(manifest: &ShardManifest<Hardware>, shard: u32, number: u64) -> Current {
    let before = manifest.load(shard).unwrap();
    let staged = manifest.stage(shard, &before, tables(number));
    assert_eq!(manifest.load(shard).unwrap(), before, "what is staged is not in force");
    manifest.publish(shard, &staged);
    staged
}

#[test]
fn what_was_published_is_found_and_nothing_else_changes() {
    let place = Place::new();
    let manifest = place.manifest();
    assert!((0..SHARDS).all(|shard| manifest.load(shard).unwrap() == Current::default()));
    for number in 1..20 {
        let shard = number as u32 % (SHARDS - 1);
        let published = change(&manifest, shard, number);
        assert_eq!(place.manifest().load(shard).unwrap(), published);
        assert_eq!(published.tables, tables(number));
    }
    assert_eq!(manifest.load(SHARDS - 1).unwrap(), Current::default());
}

#[test]
fn copies_take_turns_also_where_epochs_go_round() {
    let place = Place::new();
    let manifest = place.manifest();
    let mut current = Current { epoch: EPOCHS - 3, ..Current::default() };
    for number in 0..8 {
        let staged = manifest.stage(0, &current, tables(number));
        assert!(staged.epoch > 0);
        assert_ne!(staged.epoch % 2, current.epoch % 2);
        manifest.publish(0, &staged);
        current = manifest.load(0).unwrap();
        assert_eq!(current, staged);
    }
    assert!(current.epoch < 8);
}

#[test]
fn damage_of_what_is_in_force_is_an_error_and_never_an_earlier_state() {
    let place = Place::new();
    let manifest = place.manifest();
    change(&manifest, 1, 7);
    let published = change(&manifest, 1, 8);
    let pmem = &place.pool.pmem;
    let copy = manifest.copy(1, published.epoch).offset();
    let current = (manifest.word_at(1), 1);
    for (at, words) in [current, (copy, COPY_WORDS)] {
        for bit in 0..64 * words {
            let at = at + bit as u64 / 64 * 8;
            let word = pmem.load_u64(at);
            pmem.store_u64(at, word ^ 1 << (bit % 64), SITE);
            assert!(matches!(manifest.load(1), Err(Error::Corrupted { .. })), "bit {bit}");
            assert!(manifest.load(0).is_ok());
            pmem.store_u64(at, word, SITE);
        }
    }
    // What is gone, or belongs to another shard, also where that has no tables.
    let (word_at, word) = (current.0, pmem.load_u64(current.0));
    for wrong in [0, pmem.load_u64(manifest.word_at(0)), pmem.load_u64(manifest.word_at(2))] {
        pmem.store_u64(word_at, wrong, SITE);
        assert!(matches!(manifest.load(1), Err(Error::Corrupted { .. })), "{wrong:#x}");
    }
    pmem.store_u64(word_at, word, SITE);
    // The other copy matters no more.
    pmem.store_u64(manifest.copy(1, published.epoch - 1).offset(), 99, SITE);
    assert_eq!(manifest.load(1).unwrap(), published);
}

#[test]
fn a_copy_of_another_shard_is_damage() {
    let place = Place::new();
    let manifest = place.manifest();
    let (one, two) = (change(&manifest, 0, 7), change(&manifest, 1, 8));
    assert_eq!(one.epoch, two.epoch);
    let mut bytes = [0; COPY_BYTES as usize];
    place.pool.pmem.read(manifest.copy(0, 1), &mut bytes);
    place.pool.pmem.copy(manifest.copy(1, 1), &bytes, SITE);
    assert!(manifest.load(1).is_err());
}

#[test]
fn a_run_that_is_too_short_has_no_manifest() {
    let place = Place::new();
    assert!(ShardManifest::new(place.pool.clone(), &place.run, 2 * SHARDS).is_none());
}

/// A right checksum does not make a number right: from one near the end of 64 bits nothing could be counted on.
#[test]
fn numbers_beyond_the_bound_are_damage() {
    for (version, records, is_damage) in [
        (NUMBER_MAX, NUMBER_MAX, false),
        (NUMBER_MAX + 1, 1, true),
        (1, NUMBER_MAX + 1, true),
        (u64::MAX, u64::MAX, true),
    ] {
        let place = Place::new();
        let manifest = place.manifest();
        let before = manifest.load(0).unwrap();
        let forged = ShardTables { flushed_version: version, records, ..tables(1) };
        manifest.publish(0, &manifest.stage(0, &before, forged));
        assert_eq!(manifest.load(0).is_err(), is_damage, "{version}, {records}");
    }
}
