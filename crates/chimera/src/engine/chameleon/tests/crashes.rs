//! Crashes after each store and fence of writes that empty MemTables in each mode, and of the next recovery.

use std::panic::AssertUnwindSafe;

use super::*;
use crate::index::persistent::shard_manifest;

const KEYS: u64 = 60;

/// A write, and what may be found of its key after a crash in it.
fn crash_in(store: &mut Store, model: &mut Model, chance: &mut Chance, options: &Options) {
    let before = model.clone();
    let media = store.media.clone();
    let ((), photos) = media.photograph(|| act(store, model, chance, KEYS));
    // Most writes have few steps. Of those that make tables some are looked at, and the last, which put tables in force.
    let step = photos.len() / 24 + 1;
    let is_looked_at = |number: usize| number.is_multiple_of(step) || number + 12 > photos.len();
    for (number, photo) in photos.iter().enumerate().filter(|(number, _)| is_looked_at(*number)) {
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
    if store.shards().has_bypass() {
        store.check_told();
    }
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
fn no_crash_loses_a_write_with_any_index() {
    let [normal, tables, bloom, blocked, pinned] = comparison::all();
    play(
        &[tables.clone(), pinned.clone(), bloom, normal.clone(), pinned, blocked, normal, tables],
        None,
    );
}

#[test]
fn whatever_is_left_out_is_noticed() {
    let all = [
        LeftOut::Store(sites::FLUSH),
        LeftOut::Flush(sites::FLUSH),
        LeftOut::Store(sites::UPPER),
        LeftOut::Flush(sites::UPPER),
        LeftOut::Store(sites::LAST),
        LeftOut::Flush(sites::LAST),
        LeftOut::Fence(sites::TABLES),
        LeftOut::Store(shard_manifest::sites::COPY),
        LeftOut::Flush(shard_manifest::sites::COPY),
        LeftOut::Store(shard_manifest::sites::CURRENT),
        LeftOut::Flush(shard_manifest::sites::CURRENT),
        LeftOut::Fence(shard_manifest::sites::CURRENT),
    ];
    let modes = [write_intensive(), protecting(2), normal(), write_intensive()];
    assert_eq!(unnoticed(&all, &modes), []);
}

/// Bypass indexes of two MemTables, so that they are full soon.
#[test]
fn whatever_is_left_out_of_a_dump_is_noticed() {
    let small = |options: Options| options.chameleon(|chameleon| chameleon.levels(2));
    let modes = [protecting(1), protecting(2), normal(), protecting(2)].map(small);
    play(&modes, None);
    let all = [LeftOut::Store(sites::DUMP), LeftOut::Flush(sites::DUMP)];
    assert_eq!(unnoticed(&all, &modes), []);
}

fn unnoticed(all: &[LeftOut], modes: &[Options]) -> Vec<LeftOut> {
    let played = |what| std::panic::catch_unwind(AssertUnwindSafe(|| play(modes, Some(what))));
    let is_unnoticed = |what: &&LeftOut| played(**what).is_ok();
    all.iter().filter(is_unnoticed).copied().collect()
}
