//! The walk that finds free space, with writes between any two of its steps.

use super::*;

/// Records in so many segments of the index that the walk has many steps.
fn filled() -> (Store, Model) {
    let (mut store, mut model) = (Store::new(PARAMETERS), Model::new());
    store.all((0..30).map(|key| Put(key, 8 + key as usize % 5 * 9)), &mut model);
    store.all((0..30).step_by(4).map(Delete), &mut model);
    (store, model)
}

#[test]
fn a_write_between_any_two_steps_leaves_what_is_in_use_exact() {
    let (before, filled) = filled();
    let steps = (1..).take_while(|steps| {
        let store = before.reopen(&looking_later());
        store.walk(*steps);
        store.engine.upkeep().is_rebuilding()
    });
    let steps = steps.count() as u64 + 2;
    assert!(steps > 4, "{steps} steps");
    // Of keys that were walked, of such as were not, and new ones, which split segments that were walked or not.
    let writes: Vec<Vec<Do>> = vec![
        (0..30).map(|key| Put(key, 20)).collect(),
        (0..30).map(Delete).collect(),
        (1..30).step_by(2).flat_map(|key| [Delete(key), Put(key, 33)]).collect(),
        (30..44).map(|key| Put(key, 12)).collect(),
        (0..6).flat_map(|key| [Put(key, 50), Put(key, 6), Put(key, 51)]).collect(),
    ];
    for first in 0..steps {
        for writes in &writes {
            let (mut store, mut model) = (before.reopen(&looking_later()), filled.clone());
            assert!(store.engine.upkeep().is_rebuilding());
            store.walk(first);
            let (some, rest) = writes.split_at(writes.len() / 2);
            store.all(some.iter().copied(), &mut model);
            store.walk(1);
            store.all(rest.iter().copied(), &mut model);
            store.check_space(&model);
            assert_eq!(store.contents().expect("sound"), model, "{first} steps");
            let mut again = store.reopen(&looking());
            assert_eq!(again.contents().expect("sound"), model);
            again.check_space(&model);
        }
    }
}

/// Until it is known what is free, nothing is written where something may be.
#[test]
fn new_items_go_to_fresh_runs_until_the_walk_has_ended() {
    let (before, mut model) = filled();
    let mut store = before.reopen(&looking_later());
    let found = store.engine.items().heap().counts().0;
    store.all([Put(31, 8), Put(32, 8)], &mut model);
    assert!(store.engine.items().heap().counts().0 > found, "a run more");
    store.check_space(&model);
    let runs = store.engine.items().heap().counts().0;
    store.all([Put(33, 8)], &mut model);
    assert_eq!(
        store.engine.items().heap().counts().0,
        runs,
        "the rooms of removed items are known"
    );
}

/// Whoever finds the pool full makes the steps that are left.
#[test]
fn a_pool_is_full_only_when_the_walk_has_ended() {
    let (mut store, mut model) = (Store::new(PARAMETERS), Model::new());
    let refused = (0..).find_map(|key| store.act(Put(key, 60), &mut model).err());
    assert!(matches!(refused, Some(Error::PoolFull { .. })), "{refused:?}");
    // Not all of a run: that would be given back, and known to be free at once.
    store.all((0..40).step_by(5).map(Delete), &mut model);
    let mut reopened = store.reopen(&looking_later());
    assert!(reopened.engine.upkeep().is_rebuilding());
    for key in (0..40).step_by(5) {
        reopened.act(Put(key, 58), &mut model).expect("the rooms of the removed items");
    }
    assert!(!reopened.engine.upkeep().is_rebuilding(), "it was not needed: the test is too small");
    reopened.check_space(&model);
    assert_eq!(reopened.contents().expect("sound"), model);
}
