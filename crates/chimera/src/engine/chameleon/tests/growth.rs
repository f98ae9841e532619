//! Bypass indexes that grow.

use super::*;

const KEYS: u64 = 1200;
/// Slots of a bypass index, small and large.
const SMALL: u32 = 128;
const LARGE: u32 = 1024;

/// Options of a mode, of a shape with two sizes of bypass indexes.
pub(super) fn growing(options: &Options) -> Options {
    options.clone().chameleon(|chameleon| chameleon.levels(4).ratio(4))
}

fn open(image: &[u8], options: &Options) -> Store {
    let options = growing(options).segment_bytes(256 << 10);
    Store::open(image, &options, None).expect("it opens")
}

fn slots(store: &Store) -> [u32; 2] {
    [0, 1].map(|shard| store.shards().bypass(shard).slots())
}

#[test]
fn small_bypass_indexes_grow_and_have_every_entry_in_every_mode() {
    for (seed, options) in [normal(), write_intensive(), protecting(2)].iter().enumerate() {
        let (mut store, mut model) = (open(&[], options), Model::new());
        let mut chance = Chance(seed as u64);
        assert_eq!(slots(&store), [SMALL; 2]);
        let mut sizes = Vec::new();
        for round in 0..40 {
            for _ in 0..100 {
                act(&mut store, &mut model, &mut chance, KEYS);
            }
            store.check_told();
            sizes.push(slots(&store));
            if round % 8 == 7 {
                store.check(&model, KEYS);
                let durable = store.media.photo().some_states(0, 1).swap_remove(0);
                store = open(&bytes_of(&durable), options);
                store.complete();
            }
        }
        assert!(sizes.contains(&[LARGE; 2]), "{sizes:?}");
        store.check(&model, KEYS);
    }
}

#[test]
fn a_bypass_index_that_was_emptied_stays_as_large_as_it_was() {
    let (mut store, mut model) = (open(&[], &write_intensive()), Model::new());
    let mut chance = Chance(7);
    while store.tables(0).last.is_none() || store.tables(1).last.is_none() {
        act(&mut store, &mut model, &mut chance, 3 * KEYS);
        assert!(model.len() < 2 * KEYS as usize, "a last table was to be made");
    }
    assert_eq!(slots(&store), [LARGE; 2]);
    let bytes = store.shards().bytes().1;
    for _ in 0..5000 {
        act(&mut store, &mut model, &mut chance, 3 * KEYS);
    }
    assert_eq!(store.shards().bytes().1, bytes, "tables are used again");
}

#[test]
fn a_small_store_takes_little_memory() {
    let shape = Shape::of(&ChameleonOptions::default());
    let options = Options::new().segment_bytes(8 << 20);
    let media = Media::default();
    let pool = media_pool_opened(&media, &[], 8 << 20, 8 << 20, false);
    let parameters = Parameters { shape, log_run_blocks: 64 };
    let opened = Chameleon::open(Core::new(pool, &options), parameters, &options);
    let (memtables, bypasses) = opened.expect("a new store").0.index().shards().bytes();
    let of_shards = |bytes: u64| u64::from(shape.shards()) * bytes;
    assert!((of_shards(8 << 10)..of_shards(9 << 10)).contains(&memtables), "{memtables}");
    assert!((of_shards(64 << 10)..of_shards(65 << 10)).contains(&bypasses), "{bypasses}");
}
