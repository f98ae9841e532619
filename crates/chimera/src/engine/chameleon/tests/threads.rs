//! Compactions at once, and sessions beside each other.

use std::sync::Arc;
use std::thread;

use chimera_pmem::{Hardware, RealEnvironment};

use super::*;
use crate::pool::small::small_pool;

const KEYS: u64 = 400;

#[test]
fn where_the_budget_is_spent_memtables_go_to_bypass_indexes() {
    let with_budget = options(|chameleon| chameleon.compaction_threads(1));
    let (mut store, mut model, mut chance) = (Store::new(&with_budget), Model::new(), Chance(2));
    while !store.engine.flusher().compactor().needs_compaction(&store.engine.index().lock_work(0)) {
        act(&mut store, &mut model, &mut chance, KEYS);
    }
    let engine = &store.engine;
    let before = engine.flusher().tables().written();
    let permit = engine.flusher().compactor().wait();
    let mut client = engine.client(1);
    let is_of_first = |key: &u64| {
        engine.index().shards().number_of(engine.core().hash.of(&key.to_le_bytes())) == 0
    };
    for key in (KEYS..).filter(is_of_first).take(30) {
        let put = engine.put(&mut client, &key.to_le_bytes(), &key.to_le_bytes());
        assert!(put.expect("room"));
        model.insert(key, key);
    }
    let after = engine.flusher().tables().written();
    assert_eq!((after.upper, after.last), (before.upper, before.last));
    assert!(after.absorbed >= 2 && report(engine).shards_ahead == 1);
    drop(permit);
    store.check_told();
    while store.engine.index().lock_work(0).ahead.is_some() {
        act(&mut store, &mut model, &mut chance, KEYS);
    }
    store.check_told();
    store.check(&model, 2 * KEYS);
}

#[test]
fn sessions_beside_each_other_keep_all_writes_in_every_mode() {
    let bounded =
        options(|chameleon| chameleon.compaction_threads(1).replay_log_bytes_max(32 << 10));
    let modes = [bounded, write_intensive(), protecting(2)];
    for (number, options) in modes.iter().enumerate() {
        write_beside_each_other(options, number == 2);
    }
}

#[test]
fn sessions_beside_each_other_keep_all_writes_while_bypass_indexes_grow() {
    for (options, protects) in
        [(normal(), false), (write_intensive(), false), (protecting(2), true)]
    {
        write_beside_each_other(&growth::growing(&options), protects);
    }
}

#[test]
fn sessions_beside_each_other_keep_all_writes_with_every_index() {
    for options in &comparison::all()[1..] {
        write_beside_each_other(options, false);
        let with_budget = options.clone().chameleon(|chameleon| chameleon.compaction_threads(1));
        write_beside_each_other(&with_budget, false);
    }
}

fn write_beside_each_other(options: &Options, protects: bool) {
    let environment = Arc::new(RealEnvironment::with_seed(1));
    let pool = small_pool(environment, 64 << 10, 4 << 20);
    let shape = Shape::of(&options.chameleon);
    let parameters = Parameters { shape, log_run_blocks: LOG_RUN_BLOCKS };
    let opened = Chameleon::<Hardware>::open(Core::new(pool, options), parameters, options);
    let engine = opened.expect("a new store").0;
    thread::scope(|scope| {
        for session in 0..4_u32 {
            let engine = &engine;
            scope.spawn(move || write_own_keys(engine, session, protects));
        }
    });
    assert_eq!(engine.index().count_records(), 4 * KEYS / 4);
}

/// Each session has a fourth of the keys, and finds its own last write whenever it looks.
fn write_own_keys(engine: &Chameleon<Hardware>, session: u32, protects: bool) {
    let mut client = engine.client(session);
    let mut chance = Chance(session.into());
    let mut model = Model::new();
    let (protect, mut sampler) = (engine.flusher().modes(), engine.flusher().modes().sampler());
    for round in 0..3000 {
        let (key, value) = (chance.below(KEYS / 4) * 4 + u64::from(session), round);
        engine.put(&mut client, &key.to_le_bytes(), &u64::to_le_bytes(value)).expect("room");
        model.insert(key, value);
        let key = chance.below(KEYS / 4) * 4 + u64::from(session);
        let bytes = key.to_le_bytes();
        let hash = engine.core().hash.of(&bytes);
        let found = engine.get(&mut client, hash, &bytes).expect("sound");
        let value = found.then(|| client.shared.value.clone());
        assert_eq!(value, model.get(&key).map(|value| value.to_le_bytes().to_vec()));
        if protects && round % 500 < 250 {
            // The mode comes and goes.
            let took_ns = if round % 1000 < 500 { 1 << 40 } else { 0 };
            for _ in 0..32 {
                protect.note(&mut sampler, took_ns, 0);
            }
        }
    }
    engine.end(&mut client);
}
