//! Items of sparse runs move: what it costs, what it leaves, and crashes in it.

use chimera_pmem::Pmem;

use super::*;
use crate::records::item_heap::sites;

/// Bytes for items in a run.
const RUN_BYTES: u64 = 512 - 64;

/// A store of which most of many runs is free; what it holds.
fn sparse(parameters: Parameters) -> (Store, Model) {
    let (mut store, mut model) = (Store::new(parameters), Model::new());
    store.all((0..KEYS).map(|key| Put(key, 40)), &mut model);
    store.all((0..KEYS).filter(|key| key % 4 != 0).map(Delete), &mut model);
    (store, model)
}

fn compact(store: &Store, percent: u32) -> Result<()> {
    while store.engine.upkeep().reclaim_step(percent)? != Step::Done {}
    Ok(())
}

fn runs(store: &Store) -> u64 {
    store.engine.items().heap().counts().0
}

#[test]
fn a_pass_leaves_the_runs_that_items_need_and_the_next_one_moves_nothing() {
    for parameters in [PARAMETERS, LOGGED] {
        let (mut store, model) = sparse(parameters);
        let before = runs(&store);
        compact(&store, 30).expect("room");
        let stats = store.engine.upkeep().reclaim_stats();
        let needed = (model.len() as u64 * 96).div_ceil(RUN_BYTES);
        assert!(runs(&store) <= needed + 1 && before > needed + 2, "{} of {before}", runs(&store));
        assert!(stats.moved_records > 0 && stats.moved_bytes == stats.moved_records * 48);
        assert!(stats.blocks_freed >= 2 * (before - runs(&store)), "{stats:?}");
        assert_eq!(store.contents().expect("sound"), model);
        store.check_space(&model);
        compact(&store, 30).expect("room");
        let again = store.engine.upkeep().reclaim_stats();
        assert_eq!((again.moved_records, again.passes), (stats.moved_records, 2), "{again:?}");
        assert_eq!(store.reopen(&looking()).contents().expect("sound"), model);
    }
}

#[test]
fn what_is_too_full_stays() {
    let (store, _) = sparse(PARAMETERS);
    compact(&store, 90).expect("room");
    assert_eq!(store.engine.upkeep().reclaim_stats().moved_records, 0);
}

/// As an overwrite: the item, its entry, and the run that becomes free.
#[test]
fn an_item_that_is_moved_costs_two_fences() {
    let (store, _) = sparse(PARAMETERS);
    let before = store.media.counts().1;
    compact(&store, 30).expect("room");
    let stats = store.engine.upkeep().reclaim_stats();
    let (fences, freed) = (store.media.counts().1 - before, stats.blocks_freed / 2);
    // Runs are taken with 3 fences at most, and freed with 1.
    let most = 2 * stats.moved_records + 4 * freed;
    assert!((2 * stats.moved_records..=most).contains(&fences), "{fences} fences, {stats:?}");
}

#[test]
fn a_crash_in_a_pass_leaves_each_item_once() {
    for parameters in [PARAMETERS, LOGGED] {
        crash_in_a_pass(parameters);
    }
}

fn crash_in_a_pass(parameters: Parameters) {
    let (mut store, model) = sparse(parameters);
    let media = store.media.clone();
    let (compacted, photos) = media.photograph(|| compact(&store, 30));
    compacted.expect("room");
    assert!(photos.len() > 40, "{} moments", photos.len());
    for (number, photo) in photos.iter().enumerate() {
        for state in photo.some_states(2, number as u64).iter().rev().take(2) {
            let options = if number % 2 == 0 { looking() } else { looking_later() };
            let opened = Store::open(&bytes_of(state), parameters, &options);
            let mut found = opened.expect("it opens");
            assert_eq!(found.contents().expect("sound"), model, "moment {number}");
            found.check_space(&model);
            compact(&found, 1).expect("room");
            assert_eq!(found.contents().expect("sound"), model, "moment {number}");
            found.check_space(&model);
        }
    }
    assert_eq!(store.contents().expect("sound"), model);
}

/// A damaged value gets no checksum that is right: its run stays.
#[test]
fn a_damaged_item_is_not_moved() {
    let (store, model) = sparse(PARAMETERS);
    let items = store.engine.items();
    let hash = items.core().hash.of(&0_u64.to_le_bytes());
    let at = items.index().peek(hash).expect("it is there");
    let item = items.heap().decode(at).expect("sound");
    let last = items.heap().extent(&item).end() - 8;
    store.media.store_u64(last, !store.media.load_u64(last), sites::ITEM);
    compact(&store, 30).expect("others move");
    assert_eq!(items.index().peek(hash), Some(at));
    let report = scrub::check(&store.engine, None);
    assert_eq!((report.damages, report.records), (1, model.len() as u64 - 1));
}

/// Where there is no room for what moves, the pass ends, and what is free in its runs is room.
#[test]
fn a_pass_in_a_full_pool_ends_and_loses_nothing() {
    let (mut store, mut model) = (Store::new(PARAMETERS), Model::new());
    let refused = (0..400).find_map(|key| {
        let before = model.clone();
        let error =
            store.act(Put(key % KEYS, 300 + 100 * (key / KEYS) as usize), &mut model).err()?;
        model = before;
        Some(error)
    });
    assert!(matches!(refused, Some(Error::PoolFull { .. })), "{refused:?}");
    for key in (0..KEYS).step_by(3) {
        store.act(Delete(key), &mut model).expect("no room is needed");
        compact(&store, 1).expect("a full pool is no failure");
        store.check_space(&model);
    }
    assert_eq!(store.contents().expect("sound"), model);
    store.all((0..KEYS).step_by(3).map(|key| Put(key, 40)), &mut model);
    store.engine.upkeep().end_reclaim();
    store.check_space(&model);
}
