//! Crashes after each store and fence of writes that empty MemTables in each mode, and of the next recovery.

use super::*;

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
        for _ in 0..100 {
            crash_in(&mut store, &mut model, &mut chance, next);
        }
        store = store.reopen(next);
    }
    store.check(&model, KEYS);
}

#[test]
fn no_crash_loses_a_write_in_any_mode() {
    play(&[normal(), write_intensive(), normal(), write_intensive(), write_intensive()], None);
}
