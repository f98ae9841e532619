//! Room of levels without tables is given back: what it leaves, and crashes in it.

use super::*;
use crate::engine::chameleon::runs::KINDS;
use crate::index::persistent::shard_manifest;

const KEYS: u64 = 60;

/// A store with tables in levels of both shards; what it holds.
fn grown(left_out: Option<LeftOut>) -> (Store, Model) {
    let mut store = Store::open(&[], &normal(), left_out).expect("a new store");
    let (mut model, mut chance) = (Model::new(), Chance(5));
    (0..300).for_each(|_| act(&mut store, &mut model, &mut chance, KEYS));
    assert!(level_runs(&store) > 1, "{} runs of levels", level_runs(&store));
    (store, model)
}

fn level_runs(store: &Store) -> u64 {
    let counts = store.engine.index().core().pool.count_runs(&KINDS);
    counts.kinds.iter().find(|runs| runs.kind == "chameleon.level").map_or(0, |runs| runs.runs)
}

#[test]
fn no_level_keeps_room_afterwards_and_the_next_flush_takes_some() {
    let (mut store, mut model) = grown(None);
    let free = |store: &Store| store.engine.index().core().pool.count_runs(&KINDS).free_blocks;
    let (kept, before) = (level_runs(&store), free(&store));
    store.engine.upkeep().trim().expect("room");
    assert_eq!(level_runs(&store), 0);
    assert!(free(&store) >= before + kept, "{} instead of {before}", free(&store));
    store.check(&model, KEYS);
    store.engine.upkeep().trim().expect("nothing is to be done");
    let mut chance = Chance(8);
    (0..300).for_each(|_| act(&mut store, &mut model, &mut chance, KEYS));
    assert!(level_runs(&store) > 1);
    store.check(&model, KEYS);
    store.engine.upkeep().trim().expect("room");
    let mut again = store.reopen(&normal());
    again.check(&model, KEYS);
    assert_eq!(level_runs(&again), 0);
}

/// Crashes after each step of trimming, whose next life goes on with flushes.
fn crash_in_trimming(left_out: Option<LeftOut>) {
    let (mut store, model) = grown(left_out);
    let media = store.media.clone();
    let (trimmed, photos) = media.photograph(|| store.engine.upkeep().trim());
    trimmed.expect("room");
    for (number, photo) in photos.iter().enumerate() {
        for state in photo.some_states(1, number as u64).iter().rev().take(3) {
            let opened = Store::open(&bytes_of(state), &normal(), left_out);
            let mut found = opened.expect("it opens");
            found.check(&model, KEYS);
            let (mut model, mut chance) = (model.clone(), Chance(number as u64));
            (0..80).for_each(|_| act(&mut found, &mut model, &mut chance, KEYS));
            found.check(&model, KEYS);
        }
    }
    store.check(&model, KEYS);
}

#[test]
fn a_crash_in_trimming_loses_nothing() {
    crash_in_trimming(None);
}

#[test]
fn what_is_left_out_of_trimming_is_noticed() {
    for what in [
        LeftOut::Flush(shard_manifest::sites::CURRENT),
        LeftOut::Fence(shard_manifest::sites::CURRENT),
        LeftOut::Flush(shard_manifest::sites::COPY),
    ] {
        let trimmed = std::panic::catch_unwind(|| crash_in_trimming(Some(what)));
        assert!(trimmed.is_err(), "{what:?} is not noticed");
    }
}
