//! Pools that get full.

use super::tools::media::{crafted, hash_seed};
use super::*;

/// Blocks of the pool.
const BLOCKS: u64 = 32;

/// Puts small records by a new session until the pool is full; how many there are.
fn fill(db: &Db) -> usize {
    let mut session = db.session();
    (0..1_000_000_u64)
        .find(|number| match session.put(number.to_le_bytes(), [1; 90]) {
            Ok(_) => false,
            Err(Error::PoolFull { .. }) => true,
            Err(error) => panic!("{error}"),
        })
        .expect("the pool gets full") as usize
}

/// Values that find no room leave what room there is to others, whichever session tried and how often.
#[test]
fn puts_that_find_no_room_use_none() {
    let options = small().capacity_bytes(BLOCKS * 2048 + (64 << 10));
    let directory = scratch();
    let untouched = fill(&Db::open(directory.path().join("first"), &options).expect("a store"));
    assert!(untouched > 100, "{untouched}");
    for large in [2_500, 40_000, 200_000] {
        let path = directory.path().join(format!("{large}"));
        let db = Db::open(path, &options).expect("a store");
        let mut taken = 0;
        for number in 0..300_u64 {
            let key = [&number.to_le_bytes()[..], b"large"].concat();
            match db.session().put(&key, vec![7; large]) {
                Ok(_) => taken += 1,
                Err(Error::PoolFull { .. }) => assert_eq!(db.get(&key).expect("a read"), None),
                Err(error) => panic!("{error}"),
            }
        }
        assert!(taken < 100, "{taken} of {large} bytes");
        for number in 0..300_u64 {
            db.delete([&number.to_le_bytes()[..], b"large"].concat()).expect("a delete");
        }
        let now = fill(&db);
        assert!(
            now * 20 >= untouched * 19,
            "{now} records after {large} bytes, {untouched} before"
        );
        assert_sound(&db);
    }
}

/// Writes that are refused once their chunks are written leave the room of these to others.
#[test]
fn values_that_are_refused_use_no_room() {
    const REFUSED: u64 = 300;
    let directory = scratch();
    let db = Db::open(directory.path(), &small()).expect("a store");
    let seed = hash_seed(directory.path());
    let mut taken = 0;
    while db.put(crafted(seed, taken), []).is_ok() {
        taken += 1;
    }
    let before = db.stats().blocks_used;
    for number in taken..taken + REFUSED {
        let refused = db.session().put(crafted(seed, number), vec![7; 10_000]);
        assert!(matches!(refused, Err(Error::KeyCollisions)), "{refused:?}");
    }
    // Those of one value, and one for records.
    let most = before + 10_000 / 1_900 + 3;
    assert!(db.stats().blocks_used <= most, "{before} blocks, then {}", db.stats().blocks_used);
    assert_sound(&db);
}
