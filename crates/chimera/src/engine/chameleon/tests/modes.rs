//! Where MemTables go in each mode, and what a restart makes of it.

use super::*;

const KEYS: u64 = 150;

/// Many writes, with what must hold after each.
fn write(store: &mut Store, model: &mut Model, chance: &mut Chance, count: u64) {
    for _ in 0..count {
        act(store, model, chance, KEYS);
        store.check_told();
    }
    store.check(model, KEYS);
}

#[test]
fn every_record_is_told_of_once_in_every_mode_and_between_them() {
    let all = [normal(), write_intensive()];
    for (first, second) in [(0, 1), (1, 0), (1, 1), (0, 0)] {
        let (mut store, mut model) = (Store::new(&all[first]), Model::new());
        let mut chance = Chance(first as u64 * 2 + second as u64);
        for round in 0..6 {
            write(&mut store, &mut model, &mut chance, 250 + 37 * round);
            store = store.reopen(&all[if round % 2 == 0 { second } else { first }]);
            store.check(&model, KEYS);
            store.complete();
            store.check_told();
            store.check(&model, KEYS);
        }
    }
}

#[test]
fn write_intensive_mode_makes_no_tables_but_last_ones() {
    let (mut store, mut model, mut chance) =
        (Store::new(&write_intensive()), Model::new(), Chance(5));
    let (mut lasts, mut kept) = (0, 0);
    for _ in 0..1000 {
        let before = [store.tables(0), store.tables(1)];
        act(&mut store, &mut model, &mut chance, KEYS);
        let after = [store.tables(0), store.tables(1)];
        for (before, after) in before.into_iter().zip(after) {
            let is_new = before.last != after.last;
            lasts += u32::from(is_new);
            kept += u32::from(before == after);
            assert!(is_new || before == after, "the manifest changes with the last table alone");
        }
        assert_eq!(store.upper_tables(), 0);
    }
    assert!(lasts > 10 && kept > 1900, "{lasts} {kept}");
    let entries: Vec<_> = (0..2).map(|shard| store.shards().bypass(shard).len()).collect();
    assert!(entries.iter().any(|entries| *entries > 16), "more than a MemTable has: {entries:?}");
}

#[test]
fn levels_that_were_there_stay_until_the_last_one_is_made() {
    let (mut store, mut model, mut chance) = (Store::new(&normal()), Model::new(), Chance(8));
    while store.tables(0).levels[1].tables == 0 || store.tables(1).levels[0].tables == 0 {
        act(&mut store, &mut model, &mut chance, KEYS);
    }
    let mut store = store.reopen(&write_intensive());
    store.complete();
    let mut was_ahead = false;
    for shard in [0, 1] {
        let before = store.tables(shard);
        while store.tables(shard) == before {
            act(&mut store, &mut model, &mut chance, KEYS);
            store.check_told();
            let work = store.engine.index().lock_work(shard);
            was_ahead |= work.ahead.is_some() && !work.superseded.is_empty();
        }
        let after = store.tables(shard);
        assert!(after.last.is_some() && after.levels.iter().all(|level| level.tables == 0));
        assert!(after.flushed_version > before.flushed_version);
    }
    assert!(was_ahead);
    store.check(&model, KEYS);
}

#[test]
fn a_restart_replays_bypass_indexes_in_either_mode_and_for_readers() {
    let (mut store, mut model, mut chance) =
        (Store::new(&write_intensive()), Model::new(), Chance(3));
    let ahead = |store: &Store| {
        (0..2).all(|shard| {
            store.engine.index().lock_work(shard).ahead.is_some_and(|ahead| ahead.version > 40)
        })
    };
    while !ahead(&store) {
        act(&mut store, &mut model, &mut chance, KEYS);
    }
    let read_only = write_intensive().read_only(true);
    for options in [write_intensive(), normal(), read_only] {
        let mut again = store.reopen(&options);
        assert!(again.engine.opened.replayed_bytes > 40 * 40);
        again.check(&model, KEYS);
        again.complete();
        again.check(&model, KEYS);
    }
}

#[test]
fn a_reader_has_room_for_whatever_the_last_writer_had_in_memory() {
    // The fullest MemTables, and bypass indexes of two of them.
    let full = |options: Options| {
        options.chameleon(|chameleon| chameleon.levels(2).load_factors(0.875..=0.875))
    };
    let mut store = Store::new(&full(write_intensive()));
    let (mut model, mut most) = (Model::new(), 0);
    for key in 0..150 {
        store.put(key, key).expect("room");
        model.insert(key, key);
        let mut reader = store.reopen(&full(write_intensive()).read_only(true));
        reader.check(&model, 150);
        let in_memory =
            |shard| store.shards().memtable(shard).len() + store.shards().bypass(shard).len();
        most = most.max(in_memory(0)).max(in_memory(1));
    }
    assert!(most > 32, "{most} are more than a bypass index has slots");
}
