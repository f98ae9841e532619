//! Damage of records that tables still lead to.

use super::super::space::Need;
use super::*;
use crate::types::error::Error;

/// Every bit of a tombstone: what a get says of it, verification says too.
#[test]
fn damage_of_a_tombstone_is_found_where_a_get_finds_it() {
    let mut store = Store::new(&normal());
    for key in 0..3 {
        store.put(key, key).expect("room");
    }
    assert!(store.delete(1).expect("room"));
    let hash = store.engine.core().hash.of(&1_u64.to_le_bytes());
    let memtable = store.shards().memtable(store.shards().number_of(hash));
    let at = memtable.iter().find(|slot| slot.hash == hash).and_then(Slot::found);
    let at = at.expect("the tombstone").offset;
    let verify = |store: &Store| verify_all(store.engine.index()).is_err();
    assert!(store.get(1).expect("sound").is_none() && !verify(&store));
    for bit in 0..4 * 64 {
        let word = at + bit / 64 * 8;
        let before = store.engine.core().pool.pmem.load_u64(word);
        store.engine.core().pool.pmem.store_u64(word, before ^ 1 << (bit % 64), sites::MARKS);
        let is_refused = store.get(1).is_err();
        assert!(is_refused && verify(&store), "bit {bit}: a get refuses it: {is_refused}");
        store.engine.core().pool.pmem.store_u64(word, before, sites::MARKS);
    }
}

#[test]
fn a_damaged_tombstone_does_not_bring_back_what_it_has_deleted() {
    let (mut store, mut model) = (Store::new(&normal()), Model::new());
    for key in 0..200 {
        store.put(key, key).expect("room");
        model.insert(key, key);
    }
    assert!(report(&store.engine).last_entries > 0);
    assert!(store.delete(3).expect("room"));
    let hash = store.engine.core().hash.of(&3_u64.to_le_bytes());
    let shard = store.shards().number_of(hash);
    let tombstone = store.shards().memtable(shard).iter().find(|slot| slot.hash == hash);
    let at = tombstone.and_then(Slot::found).expect("the tombstone").offset;
    let pmem = &store.engine.core().pool.pmem;
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

/// What a key had before is in the bypass index when its damaged record comes there.
#[test]
fn an_older_record_does_not_answer_for_a_damaged_one() {
    for word in 0..4 {
        let mut store = Store::new(&normal());
        let flush_all = |store: &Store| {
            for shard in 0..store.shards().shape().shards() {
                store
                    .engine
                    .flusher()
                    .compactor()
                    .flush(shard, &mut store.engine.index().lock_work(shard))
                    .expect("room");
            }
        };
        for key in 0..10 {
            store.put(key, key).expect("room");
        }
        flush_all(&store);
        store.put(3, 33).expect("room");
        let hash = store.engine.core().hash.of(&3_u64.to_le_bytes());
        let memtable = store.shards().memtable(store.shards().number_of(hash));
        let found = memtable.iter().find(|slot| slot.hash == hash).and_then(Slot::found);
        let at = found.expect("the newest entry").offset + word * 8;
        let pmem = &store.engine.core().pool.pmem;
        pmem.store_u64(at, !pmem.load_u64(at), sites::MARKS);
        let is_refused = |store: &mut Store| matches!(store.get(3), Err(Error::Corrupted { .. }));
        assert!(is_refused(&mut store), "word {word}: as a MemTable has it");
        flush_all(&store);
        assert!(is_refused(&mut store), "word {word}: as a bypass index has it");
        for shard in 0..store.shards().shape().shards() {
            let _refused = store.engine.flusher().compactor().merge_shard(shard, Need::Upkeep);
        }
        assert!(is_refused(&mut store), "word {word}: as a last table may have it");
        assert_eq!(store.get(4).expect("sound"), Some(4));
    }
}
