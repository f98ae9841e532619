//! Values that lie elsewhere because their page has room for the key only (Viper, section 4.2).

use super::*;

/// A page has room for four such records and two more keys.
const KEY_BYTES: usize = 296;
const VALUE_BYTES: usize = 520;
const RECORDS: u64 = 2000;

fn options() -> Options {
    Options::new()
        .populate_ahead_bytes(0)
        .reclaim_percent(0)
        .huge_pages(false)
        .segment_bytes(1 << 20)
}

fn fill(db: &Db, value_seed: u64) -> Model {
    let mut session = db.session();
    let mut model = Model::new();
    for number in 0..RECORDS {
        let mut key = bytes(number, KEY_BYTES);
        key[..8].copy_from_slice(&number.to_le_bytes());
        let value = bytes(value_seed + number, VALUE_BYTES);
        session.put(&key, &value).expect("room");
        model.insert(key, value);
    }
    model
}

#[test]
fn keys_fill_the_ends_of_pages_whose_values_lie_elsewhere() {
    let directory = scratch();
    let db = Db::open(directory.path(), &options()).expect("a store");
    let mut model = fill(&db, 0);
    let used = db.stats().blocks_used;
    // Without: four records of 840 bytes in each page of 4096. With: two keys of 344 bytes in the rest.
    let without = RECORDS.div_ceil(4 * 6);
    assert!(used * 100 < without * 90, "{used} blocks, where {without} hold whole records only");
    assert_eq!(contents(&db), model);
    assert_sound(&db);

    // They are records like all others.
    for (number, (key, value)) in model.iter_mut().enumerate() {
        match number % 4 {
            0 => {
                *value = bytes(7_000_000 + number as u64, VALUE_BYTES);
                assert!(!db.put(key, value).expect("room"));
            }
            1 => {
                let before = db.fetch_add_u64(key, 512, 5).expect("in place").expect("there");
                value[512..520].copy_from_slice(&(before + 5).to_le_bytes());
            }
            2 => {
                let new = bytes(number as u64, 40);
                let swapped = db.compare_and_swap(key, &*value, &new).expect("room");
                assert!(matches!(swapped, Swap::Swapped));
                *value = new;
            }
            _ => assert_eq!(db.get(key).expect("a read").as_ref(), Some(&*value)),
        }
    }
    assert_eq!(contents(&db), model);
    db.close().expect("closing");
    let db = Db::open(directory.path(), &options()).expect("the store");
    assert_eq!(contents(&db), model);
    assert_sound(&db);
    let gone: Vec<_> = model.keys().step_by(3).cloned().collect();
    for key in gone {
        assert!(db.delete(&key).expect("a delete"));
        model.remove(&key);
    }
    db.compact(1, None).expect("compaction");
    assert_eq!(contents(&db), model);
    assert_sound(&db);
}

#[test]
fn values_of_short_keys_stay_with_them() {
    // The header of a chunk would be longer than what is saved.
    let directory = scratch();
    let db = Db::open(directory.path(), &options()).expect("a store");
    let mut session = db.session();
    for number in 0..RECORDS {
        session.put(number.to_le_bytes(), bytes(number, 600)).expect("room");
    }
    // Six records of 632 bytes in a page.
    assert!(db.stats().blocks_used <= RECORDS.div_ceil(6 * 6) + 1);
}

#[test]
fn a_pool_without_a_block_for_a_chunk_takes_values_beside_their_keys() {
    let directory = scratch();
    let options = Options::new().viper(|viper| viper.geometry(SMALL)).capacity_bytes(2 * 2048);
    let options = options.populate_ahead_bytes(0).reclaim_percent(0).huge_pages(false);
    let db = Db::open(directory.path(), &options).expect("a store");
    let mut other = db.session();
    // Has the second block.
    other.put(b"other", b"value").expect("room");
    let mut session = db.session();
    let mut model = Model::new();
    for number in 0..4_u64 {
        // One and a half fit a page.
        let (key, value) = (bytes(number, 100), bytes(number, 200));
        assert!(session.put(&key, &value).expect("room for one in every page"));
        model.insert(key, value);
    }
    model.insert(b"other".to_vec(), b"value".to_vec());
    assert!(matches!(session.put(bytes(9, 100), bytes(9, 200)), Err(Error::PoolFull { .. })));
    assert_eq!(contents(&db), model);
    assert_sound(&db);
}
