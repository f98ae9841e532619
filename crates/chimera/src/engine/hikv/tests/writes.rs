//! What writes cost and free, and what they tell.

use std::sync::{Arc, Mutex};

use super::*;
use crate::engine::{KeyChange, TellChange};

/// Lines flushed and fences of an operation.
fn cost(store: &mut Store, model: &mut Model, what: Do) -> (u64, u64) {
    let before = store.media.counts();
    store.act(what, model).expect("room");
    let after = store.media.counts();
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn an_operation_costs_the_fences_that_are_published() {
    for (parameters, more) in [(PARAMETERS, 0), (LOGGED, 1)] {
        let (mut store, mut model) = (Store::new(parameters), Model::new());
        // Room in the heap and in the index.
        store.all([Put(1, 8), Put(2, 8)], &mut model);
        let fences = [Put(3, 8), Put(3, 24), Delete(3), Delete(3)]
            .map(|what| cost(&mut store, &mut model, what).1);
        assert_eq!(fences, [2 + more, 2 + more, 1 + more, 0], "{parameters:?}");
    }
}

#[test]
fn an_operation_flushes_its_item_and_its_entry() {
    let (mut store, mut model) = (Store::new(PARAMETERS), Model::new());
    store.all([Put(1, 8)], &mut model);
    // An item of 64 bytes may begin in the middle of a line.
    let put = cost(&mut store, &mut model, Put(2, 32)).0;
    assert!((2..=3).contains(&put), "{put} lines");
    assert_eq!(cost(&mut store, &mut model, Delete(2)).0, 1);
}

#[test]
fn whatever_is_written_what_is_in_use_is_what_the_records_need() {
    let (mut store, mut model) = (Store::new(PARAMETERS), Model::new());
    let mut word = 1_u64;
    for round in 0..1200_usize {
        word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let (key, bytes) = ((word >> 40) % KEYS, (word >> 33) as usize % 60);
        let what = if word >> 60 < 6 { Delete(key) } else { Put(key, bytes) };
        store.act(what, &mut model).expect("room");
        if round % 40 == 0 {
            store.check_space(&model);
        }
        if round % 150 == 149 {
            assert_eq!(store.contents().expect("sound"), model);
            store = store.reopen(&if round % 300 == 149 { looking() } else { looking_later() });
        }
    }
    assert_eq!(store.contents().expect("sound"), model);
    store.check_space(&model);
    assert!(
        store.engine.items().index().segments() > 6,
        "{} segments",
        store.engine.items().index().segments()
    );
}

#[test]
fn a_put_that_is_refused_changes_nothing_and_keeps_no_room() {
    let (mut store, mut model) = (Store::new(PARAMETERS), Model::new());
    let refused = (0..KEYS).cycle().zip(0_usize..).find_map(|(key, round)| {
        let (before, bytes) = (model.clone(), 200 + round);
        let error = store.act(Put(key, bytes), &mut model).err()?;
        model = before;
        Some(error)
    });
    assert!(matches!(refused, Some(Error::PoolFull { .. })), "{refused:?}");
    assert_eq!(store.contents().expect("sound"), model);
    store.check_space(&model);
    let reopened = &mut store.reopen(&looking());
    assert_eq!(reopened.contents().expect("sound"), model, "what was refused is nowhere");
    // A delete makes room for what was refused, and for more of the same.
    let key = *model.keys().next().expect("records");
    for _ in 0..20 {
        store.act(Delete(key), &mut model).expect("no room is needed");
        store.act(Put(key, 180), &mut model).expect("room");
    }
    assert_eq!(store.contents().expect("sound"), model);
    store.check_space(&model);
}

/// What an add-on was told.
#[derive(Debug, Default)]
struct Told(Mutex<Vec<KeyChange>>);

impl TellChange for Told {
    fn changed(&self, _key: &[u8], change: KeyChange) {
        self.0.lock().expect("nobody panics with it").push(change);
    }
}

#[test]
fn an_insert_that_fails_is_told_and_taken_back() {
    let told = Arc::new(Told::default());
    let options = looking().tell_changes(told.clone());
    let mut store = Store::open(&[], PARAMETERS, &options).expect("a new store");
    let mut model = Model::new();
    store.all([Put(1, 8), Put(1, 9), Delete(1), Delete(1)], &mut model);
    let take = || std::mem::take(&mut *told.0.lock().expect("nobody panics with it"));
    assert_eq!(take(), [KeyChange::Inserted, KeyChange::Replaced, KeyChange::Removed]);
    let mut records = 0_i64;
    for key in 0..400 {
        let done = store.engine.put(&mut store.client, &u64::to_le_bytes(key), &[7; 200]);
        records += i64::from(done.is_ok());
        let sum = take().iter().fold(0, |sum, change| match change {
            KeyChange::Inserted => sum + 1,
            KeyChange::Removed => sum - 1,
            KeyChange::Replaced => sum,
        });
        assert_eq!(sum, i64::from(done.is_ok()), "key {key}");
    }
    assert!((20..400).contains(&records), "{records} records");
    assert_eq!(store.engine.records() as i64, records);
}
