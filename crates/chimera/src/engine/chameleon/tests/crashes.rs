//! Crashes after each store and fence of writes that empty MemTables in each mode, and of the next recovery.

use super::*;
use crate::index::persistent::shard_manifest;
use crate::index::probing_table;

const KEYS: u64 = 60;

/// A write, and what may be found of its key after a crash in it.
fn crash_in(store: &mut Store, model: &mut Model, chance: &mut Chance, options: &Options) {
    let before = model.clone();
    let media = store.media.clone();
    let ((), photos) = media.photograph(|| act(store, model, chance, KEYS));
    // Most writes have few steps; of those that make tables only some are looked at.
    let step = photos.len() / 24 + 1;
    for (number, photo) in photos.iter().enumerate().filter(|(number, _)| number % step == 0) {
        for state in photo.some_states(1, number as u64).iter().rev().take(3) {
            let found = Store::open(&bytes_of(state), options, media.left_out()).expect("it opens");
            check_either(found, &before, model);
        }
    }
}

/// A store has what one of two models says.
fn check_either(mut store: Store, before: &Model, after: &Model) {
    let mut found = Model::new();
    for key in 0..KEYS {
        if let Some(value) = store.get(key).expect("sound") {
            found.insert(key, value);
        }
    }
    assert!(found == *before || found == *after, "{found:?} is neither {before:?} nor {after:?}");
    store.complete();
    store.check_told();
    store.check(&found, KEYS);
}

/// A history that goes from mode to mode, crashes at the end of each, and in each step of it.
fn play(modes: &[Options], left_out: Option<LeftOut>) {
    let mut store = Store::open(&[], &modes[0], left_out).expect("a new store");
    let (mut model, mut chance) = (Model::new(), Chance(77));
    for number in 0..modes.len() {
        let next = &modes[(number + 1) % modes.len()];
        if modes[number].chameleon.get_protect.is_some() {
            store.protect(true);
        }
        for _ in 0..100 {
            crash_in(&mut store, &mut model, &mut chance, next);
        }
        store = store.reopen(next);
    }
    store.check(&model, KEYS);
}

/// So few bytes that MemTables are flushed early.
fn bounded() -> Options {
    options(|chameleon| chameleon.replay_log_bytes_max(2 << 10))
}

#[test]
fn no_crash_loses_a_write_in_any_mode() {
    let modes =
        [normal(), write_intensive(), protecting(2), normal(), write_intensive(), bounded()];
    play(&modes, None);
}

#[test]
fn whatever_is_left_out_is_noticed() {
    let all = [
        LeftOut::Store(probing_table::sites::TABLE),
        LeftOut::Flush(probing_table::sites::TABLE),
        LeftOut::Fence(sites::TABLES),
        LeftOut::Store(shard_manifest::sites::COPY),
        LeftOut::Flush(shard_manifest::sites::COPY),
        LeftOut::Store(shard_manifest::sites::CURRENT),
        LeftOut::Flush(shard_manifest::sites::CURRENT),
        LeftOut::Fence(shard_manifest::sites::CURRENT),
    ];
    let is_unnoticed = |what: &LeftOut| {
        let played = std::panic::catch_unwind(|| {
            let modes = [write_intensive(), protecting(2), normal(), write_intensive()];
            play(&modes, Some(*what));
        });
        played.is_ok()
    };
    let unnoticed: Vec<_> = all.into_iter().filter(is_unnoticed).collect();
    assert_eq!(unnoticed, []);
}
