//! Puts that do not look whether their key is there: what gets, listings and removals say is right all the same, and the
//! number of records is, once the last tables are made.

use super::*;
use crate::engine::chameleon::space::Need;

const KEYS: u64 = 60;

fn blind(change: impl FnOnce(ChameleonOptions) -> ChameleonOptions) -> Options {
    options(|chameleon| change(chameleon).blind_puts(true))
}

/// As `act`, but that nothing is asked of what a put says.
fn act_blindly(store: &mut Store, model: &mut Model, chance: &mut Chance) {
    let (key, value) = (chance.below(KEYS), chance.below(1 << 30));
    if chance.below(5) == 0 {
        assert_eq!(store.delete(key).expect("room"), model.remove(&key).is_some());
    } else {
        let is_new = store.put(key, value).expect("room");
        assert!(model.insert(key, value).is_some() || is_new, "it was not there");
    }
    assert!(store.engine.index().count_records() >= model.len() as u64, "none is left out");
}

/// Makes all that a shard has into its last table.
fn merge_all(store: &Store) {
    for shard in 0..store.shards().shape().shards() {
        store.engine.flusher().compactor().merge_shard(shard, Need::Growth).expect("room");
    }
}

#[test]
fn gets_listings_and_removals_are_right() {
    for (number, options) in [
        blind(|chameleon| chameleon),
        blind(|chameleon| chameleon.write_intensive(true)),
        blind(|chameleon| chameleon.compaction(Compaction::LevelByLevel)),
        blind(|chameleon| chameleon.upper_index(UpperIndex::Tables)),
        blind(|chameleon| chameleon.upper_index(UpperIndex::Pinned)),
        blind(|chameleon| chameleon.get_protect(Some(std::time::Duration::ZERO)).dumps_max(2)),
    ]
    .into_iter()
    .enumerate()
    {
        let (mut store, mut model) = (Store::new(&options), Model::new());
        let mut chance = Chance(number as u64);
        for _ in 0..40 {
            (0..40).for_each(|_| act_blindly(&mut store, &mut model, &mut chance));
            for key in 0..KEYS {
                let value = model.get(&key).copied();
                assert_eq!(store.get(key).expect("sound"), value, "{options:?}: key {key}");
            }
        }
        merge_all(&store);
        // Counted anew, and listed.
        store.check(&model, KEYS);
        if store.shards().has_bypass() {
            store.check_told();
        }
    }
}

#[test]
fn a_put_knows_what_the_memtable_has_and_nothing_else() {
    let mut store = Store::new(&blind(|chameleon| chameleon));
    assert!(store.put(1, 1).expect("room"));
    assert!(!store.put(1, 2).expect("room"), "the MemTable has it");
    assert_eq!(store.engine.index().count_records(), 1);
    merge_all(&store);
    assert!(store.put(1, 3).expect("room"), "the last table has it, which is not asked");
    assert_eq!(store.engine.index().count_records(), 2);
    assert!(store.delete(1).expect("room"));
    assert!(!store.delete(1).expect("room"));
    merge_all(&store);
    assert_eq!(store.engine.index().count_records(), 0);
}

/// Whatever the options were in the lives before: what is durable is found, and counted once all is in last tables.
#[test]
fn a_store_may_be_blind_in_some_lives_and_not_in_others() {
    let mut model = Model::new();
    let mut chance = Chance(9);
    let mut store = Store::new(&normal());
    for life in 0..20_u64 {
        let is_blind = life % 3 != 0;
        store = store.reopen(&if is_blind { blind(|chameleon| chameleon) } else { normal() });
        store.complete();
        for _ in 0..30 {
            act_blindly(&mut store, &mut model, &mut chance);
        }
        for key in 0..KEYS {
            assert_eq!(store.get(key).expect("sound"), model.get(&key).copied(), "key {key}");
        }
        if life % 5 == 4 {
            merge_all(&store);
            store.check(&model, KEYS);
        }
    }
}
