//! Get-Protect Mode: dumps come and go.

use super::*;

const KEYS: u64 = 400;

fn dumps(store: &Store, shard: u32) -> usize {
    store.tables(shard).dumps.iter().flatten().count()
}

/// Writes until each shard has so many dumps. How many changes of a shard's tables there were.
fn write_until_dumped(
    store: &mut Store,
    model: &mut Model,
    chance: &mut Chance,
    count: usize,
) -> u64 {
    let mut changes = 0;
    while (0..2).any(|shard| dumps(store, shard) < count) {
        let before = [store.tables(0), store.tables(1)];
        act(store, model, chance, KEYS);
        let after = [store.tables(0), store.tables(1)];
        for (before, after) in before.into_iter().zip(after) {
            let is_dumped = before.dumps != after.dumps && before.last == after.last;
            let is_merged = before.last != after.last && after.dumps.iter().all(Option::is_none);
            changes += u64::from(before != after);
            assert!(before == after || is_dumped || is_merged);
            assert!(before == after || after.levels.iter().all(|level| level.tables == 0));
        }
        store.check_told();
    }
    changes
}

#[test]
fn a_full_bypass_index_is_dumped_as_often_as_may_be_and_then_merged() {
    for dumps_max in [1, 2, 4] {
        let (mut store, mut model) = (Store::new(&protecting(dumps_max)), Model::new());
        let mut chance = Chance(dumps_max.into());
        for _ in 0..600 {
            act(&mut store, &mut model, &mut chance, KEYS);
        }
        store.protect(true);
        write_until_dumped(&mut store, &mut model, &mut chance, dumps_max as usize);
        store.check(&model, KEYS);
        let before = store.engine.flusher().tables().written();
        let mut merged = false;
        for _ in 0..1000 {
            act(&mut store, &mut model, &mut chance, KEYS);
            store.check_told();
            assert!((0..2).all(|shard| dumps(&store, shard) <= dumps_max as usize));
            merged |= (0..2).any(|shard| dumps(&store, shard) == 0);
        }
        let after = store.engine.flusher().tables().written();
        assert!(merged && after.last.tables > before.last.tables);
        assert_eq!((after.flushes, after.upper), (before.flushes, before.upper));
        store.check(&model, KEYS);
    }
}

#[test]
fn dumps_are_read_after_a_restart_and_vanish_in_the_normal_mode() {
    let (mut store, mut model, mut chance) = (Store::new(&protecting(3)), Model::new(), Chance(9));
    store.protect(true);
    write_until_dumped(&mut store, &mut model, &mut chance, 2);
    for options in [normal().read_only(true), normal(), protecting(1)] {
        let mut again = store.reopen(&options);
        assert!((0..2).all(|shard| dumps(&again, shard) >= 2));
        again.check(&model, KEYS);
        again.complete();
        again.check(&model, KEYS);
    }
    let mut store = store.reopen(&normal());
    store.complete();
    let lasts = [store.tables(0).last, store.tables(1).last];
    while (0..2).any(|shard| store.tables(shard).last == lasts[shard as usize]) {
        act(&mut store, &mut model, &mut chance, KEYS);
        store.check_told();
    }
    assert!((0..2).all(|shard| dumps(&store, shard) == 0));
    store.check(&model, KEYS);
}

#[test]
fn normal_work_goes_on_when_the_mode_ends() {
    let (mut store, mut model, mut chance) = (Store::new(&protecting(1)), Model::new(), Chance(4));
    store.protect(true);
    write_until_dumped(&mut store, &mut model, &mut chance, 1);
    let before = store.engine.flusher().tables().written();
    assert_eq!(before.flushes.tables, 0);
    store.protect(false);
    while store.upper_tables() == 0 || (0..2).any(|shard| dumps(&store, shard) > 0) {
        act(&mut store, &mut model, &mut chance, KEYS);
        store.check_told();
    }
    let report = report(&store.engine);
    assert!(report.written.flushes.tables > 0 && report.mode == ChameleonMode::Normal);
    assert_eq!(report.protect_switches, 2);
    store.check(&model, KEYS);
}

#[test]
fn gets_end_the_mode_that_gets_began() {
    let (mut store, mut model, mut chance) = (Store::new(&protecting(1)), Model::new(), Chance(4));
    act(&mut store, &mut model, &mut chance, KEYS);
    store.protect(true);
    // One in 64 is timed, and the clock stands still: 992 and then some.
    for get in 0..64 * 992 {
        store.get(get % KEYS).expect("sound");
    }
    assert_eq!(report(&store.engine).mode, ChameleonMode::GetProtect);
    for get in 0..64 * 32 {
        store.get(get % KEYS).expect("sound");
    }
    assert_eq!(report(&store.engine).mode, ChameleonMode::Normal);
}
