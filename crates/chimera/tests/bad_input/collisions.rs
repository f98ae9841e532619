//! Keys that were crafted to have one 64-bit hash.

use chimera::Error;
use chimera::baselines::RecordLayout;

use crate::tools::media::{crafted, forge_superblock, hash_seed};
use crate::tools::{assert_fails, assert_sound, contents, key_of, open, scratch, small_with};

/// Bytes of keys and values.
const SIZES: (u32, u32) = (32, 8);
/// More than a store takes: 64, and those that have a slot in a bucket.
const MANY: u64 = 5000;

fn options() -> chimera::Options {
    let geometry = chimera::Geometry { segment_bytes: 1 << 20, ..crate::tools::SMALL };
    small_with(geometry).fixed_size(SIZES.0, SIZES.1)
}

#[test]
fn puts_of_crafted_keys_are_refused_beyond_a_limit() {
    for layout in [RecordLayout::Checked, RecordLayout::Published] {
        let directory = scratch();
        let options = options().viper(|viper| viper.layout(layout));
        let db = open(directory.path(), &options);
        let seed = hash_seed(directory.path());
        let put = |number: u64, value: u64| {
            db.put(crafted(seed, number), value.to_le_bytes()).map(|_| number)
        };
        let taken: Vec<_> = (0..MANY).map_while(|number| put(number, 1).ok()).collect();
        let count = taken.len() as u64;
        assert!((64..=72).contains(&count), "{count} keys of one hash");
        for _ in 0..500 {
            let refused = put(count, 1);
            assert!(matches!(refused, Err(Error::KeyCollisions)), "{refused:?}");
            assert_fails(refused, &["same 64-bit hash", "use another key"]);
        }
        assert!(db.stats().blocks_used < 30, "refused puts use no space");
        // Everybody else is served, and those who are there as well.
        db.put(key_of(1, 32), [3; 8]).expect("another hash");
        put(0, 2).expect("an overwrite");
        assert!(db.delete(crafted(seed, count - 1)).expect("a delete"));
        put(count, 1).expect("a delete makes room");
        put(count - 1, 1).expect_err("no more than before");
        assert_eq!(contents(&db).len() as u64, count + 1);
        assert_sound(&db);
        db.close().expect("nobody else has it");
        let db = open(directory.path(), &options);
        assert_eq!(contents(&db).len() as u64, count + 1);
        assert_eq!(db.get(crafted(seed, 0)).expect("there"), Some(2_u64.to_le_bytes().to_vec()));
        assert_sound(&db);
    }
}

/// An order that is made while keys of one hash move and go has all that are there.
#[test]
fn crafted_keys_are_all_gathered_into_an_order() {
    let directory = scratch();
    let db = open(directory.path(), &options());
    let seed = hash_seed(directory.path());
    for number in 0..70 {
        db.put(crafted(seed, number), [1; 8]).expect("fewer than the limit");
    }
    db.close().expect("nobody else has it");
    for round in 2..12 {
        let db = open(directory.path(), &options().ordered(true));
        std::thread::scope(|scope| {
            let scanned = scope.spawn(|| db.scan(..).expect("ordered").map(Result::unwrap).count());
            for number in 0..60 {
                db.put(crafted(seed, number), [round; 8]).expect("an overwrite");
                // These come and go.
                db.delete(crafted(seed, 60 + number % 10)).expect("a delete");
                db.put(crafted(seed, 60 + number % 10), [round; 8]).expect("room");
            }
            assert!(scanned.join().expect("no panic") >= 60);
        });
        let keys: Vec<_> = db.scan(..).expect("ordered").map(|record| record.unwrap().0).collect();
        let mut expected: Vec<_> = (0..70).map(|number| crafted(seed, number)).collect();
        expected.sort_unstable();
        assert_eq!(keys, expected);
    }
}

/// In the published layout nothing ties a record to the hash, so the seed alone makes them collide.
#[test]
fn a_crafted_store_is_refused_and_salvaged_in_part() {
    let directory = scratch();
    let path = directory.path();
    let options = options().viper(|viper| viper.layout(RecordLayout::Published));
    let seed = 12345;
    let db = open(path, &options);
    let mut session = db.session();
    for number in 0..MANY {
        session.put(crafted(seed, number), [7; 8]).expect("with this seed they differ");
    }
    drop(session);
    db.close().expect("nobody else has it");
    forge_superblock(path, &[(3, seed)]);

    for threads in [1, 2] {
        let refused = chimera::Db::open(path, &options.clone().recovery_threads(threads));
        assert!(matches!(refused, Err(Error::Corrupted { .. })), "{refused:?}");
        assert_fails(refused, &["one 64-bit hash", "open with salvage"]);
    }
    let db = open(path, &options.salvage(true));
    let records = contents(&db).len() as u64;
    assert!((72..=80).contains(&records), "{records} salvaged");
    assert_eq!(db.stats().records_damaged, MANY - records);
    let refused = db.put(key_of(1, 32), [1; 8]);
    assert_fails(refused, &["refuses writes", "have one 64-bit hash"]);
    let report = db.check(None);
    assert_eq!(report.records, MANY);
    assert!(!report.is_sound(), "records that cannot be found are damage");
}
