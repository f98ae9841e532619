//! Damage of records that tables still lead to.

use super::*;
use crate::types::error::Error;

#[test]
fn a_damaged_tombstone_does_not_bring_back_what_it_has_deleted() {
    let (mut store, mut model) = (Store::new(&normal()), Model::new());
    for key in 0..200 {
        store.put(key, key).expect("room");
        model.insert(key, key);
    }
    assert!(store.engine.report().last_entries > 0);
    assert!(store.delete(3).expect("room"));
    let hash = store.engine.core.hash.of(&3_u64.to_le_bytes());
    let shard = store.engine.index.number_of(hash);
    let tombstone = store.engine.index.memtable(shard).iter().find(|slot| slot.hash == hash);
    let at = tombstone.and_then(Slot::found).expect("the tombstone").offset;
    let pmem = &store.engine.core.pool.pmem;
    // A bit of the key, which the head of the record says nothing of.
    let key_at = at + 24;
    pmem.store_u64(key_at, pmem.load_u64(key_at) ^ 1, sites::MARKS);
    assert!(matches!(store.get(3), Err(Error::Corrupted { .. })));
    // The next tables are full of entries that make the tombstone go to the last one.
    let mut refused = 0;
    for key in 200..2000 {
        refused += u32::from(store.put(key, key).is_err());
        let got = store.get(3);
        assert!(matches!(got, Err(Error::Corrupted { .. })), "{got:?} after {key}");
    }
    assert!(refused > 0, "the shard takes no puts once its tables cannot be put together");
}
