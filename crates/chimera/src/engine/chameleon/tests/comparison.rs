//! Stores without bypass indexes: the comparison points with an LSM index.

use std::time::Duration;

use super::*;
use crate::engine::EngineType;
use crate::engine::contract::upkeep::Step;
use crate::index::table_filter::FilterKind;
use crate::types::error::Error;

const KEYS: u64 = 150;

pub(super) fn with_index(upper_index: UpperIndex) -> Options {
    options(|chameleon| chameleon.upper_index(upper_index))
}

/// Every index, the usual one first.
pub(super) fn all() -> [Options; 5] {
    [
        normal(),
        with_index(UpperIndex::Tables),
        with_index(UpperIndex::Filters(FilterKind::Bloom)),
        with_index(UpperIndex::Filters(FilterKind::Blocked)),
        with_index(UpperIndex::Pinned),
    ]
}

/// Checks all that can be read, and the tables.
fn check(store: &mut Store, model: &Model) {
    store.check(model, KEYS);
    assert_eq!(verify_all(store.engine.index()).expect("sound"), (0, 0));
    if store.shards().has_bypass() && store.shards().unbypassed() == 0 {
        store.check_told();
    }
}

fn write(store: &mut Store, model: &mut Model, chance: &mut Chance, count: u64, keys: u64) {
    (0..count).for_each(|_| act(store, model, chance, keys));
    check(store, model);
}

#[test]
fn a_store_may_have_another_index_at_every_open() {
    let all = all();
    for (first, step) in (0..all.len()).flat_map(|first| [(first, 1), (first, 2), (first, 0)]) {
        let (mut store, mut model) = (Store::new(&all[first]), Model::new());
        let mut chance = Chance((first * 3 + step) as u64);
        for round in 0..6 {
            write(&mut store, &mut model, &mut chance, 200 + 37 * round as u64, KEYS);
            let may_collect = store.shards().has_bypass();
            assert_eq!(store.engine.upkeep().reclaims(), may_collect);
            for _ in 0..1000 {
                let Step::More { .. } = store.engine.upkeep().reclaim_step(1).expect("room") else {
                    break;
                };
                assert!(may_collect, "the log is not collected");
            }
            store.engine.upkeep().end_reclaim();
            check(&mut store, &model);
            store = store.reopen(&all[(first + (round + 1) * step) % all.len()]);
            // Before anything is made of tables, and after that.
            check(&mut store, &model);
            store.complete();
            assert_eq!(store.shards().unbypassed(), 0);
            check(&mut store, &model);
        }
    }
}

/// Slots of tables above the last level whose records are gone.
fn stale_slots(store: &Store) -> u64 {
    let (engine, mut stale) = (&store.engine, 0);
    for shard in 0..engine.index().shards().shape().shards() {
        for (_, place) in engine.index().shards().upper_tables(shard) {
            let slots = Shape::slots_of(place.bytes);
            let table =
                PersistentTable::from_parts(&store.media, place.at, slots).expect("a table");
            let visited = table.for_each(&store.media, |slot| {
                let record = engine.index().log().decode(slot.found().expect("sound").offset);
                let is_there = |record| engine.index().log().is_sound(&record, slot.hash, None);
                stale += u64::from(!record.is_some_and(is_there));
                Ok(())
            });
            visited.expect("sound");
        }
    }
    stale
}

#[test]
fn slots_whose_records_a_store_with_bypass_indexes_has_freed_do_not_count() {
    let (mut store, mut model, mut chance) = (Store::new(&normal()), Model::new(), Chance(3));
    let mut writes = 0;
    while stale_slots(&store) < 5 {
        act(&mut store, &mut model, &mut chance, 30);
        writes += 1;
        assert!(writes < 5000, "no run of the log is freed");
    }
    for options in &all()[1..] {
        let (mut again, mut model, mut chance) = (store.reopen(options), model.clone(), Chance(4));
        assert!(stale_slots(&again) >= 5);
        check(&mut again, &model);
        again.complete();
        check(&mut again, &model);
        let lasts = again.engine.flusher().tables().written().last.tables;
        while again.engine.flusher().tables().written().last.tables < lasts + 2
            || stale_slots(&again) > 0
        {
            act(&mut again, &mut model, &mut chance, 30);
        }
        // All of a last table is there.
        let mut again = again.reopen(&normal());
        again.complete();
        check(&mut again, &model);
    }
}

#[test]
fn nothing_is_absorbed_and_modes_are_refused() {
    for options in &all()[1..] {
        let options = options.clone().chameleon(|chameleon| chameleon.compaction_threads(1));
        let (mut store, mut model, mut chance) = (Store::new(&options), Model::new(), Chance(2));
        write(&mut store, &mut model, &mut chance, 1000, KEYS);
        let report = report(&store.engine);
        let written = &report.written;
        assert!(written.flushes.tables > 20 && written.upper.tables > 0 && written.last.tables > 1);
        assert_eq!((written.absorbed, report.bypass_entries, report.shards_ahead), (0, 0, 0));
        // A place that is used again keeps nothing of its last filter.
        let expected =
            if store.shards().helpers().filter_kind().is_some() { 290..=300 } else { 0..=0 };
        assert!(expected.contains(&ruled_out_of_last(&store, 300)));
        let with_modes = [
            options.clone().chameleon(|chameleon| chameleon.write_intensive(true)),
            options.clone().chameleon(|chameleon| chameleon.get_protect(Some(Duration::ZERO))),
        ];
        for options in with_modes {
            let refused = <Type as EngineType>::plan(&options).err();
            assert!(matches!(refused, Some(Error::InvalidOptions(_))), "{refused:?}");
        }
        assert!(<Type as EngineType>::plan(&options).is_ok());
    }
}

/// How many of so many hashes the filter of a last table rules out.
fn ruled_out_of_last(store: &Store, hashes: u64) -> usize {
    let (index, shard) = (store.shards(), store.shards().shard(0));
    let slots = Shape::slots_of(shard.last().expect("a last table").bytes);
    let all = (1..=hashes).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    all.filter(|hash| index.helpers().rules_out_last(shard.helper(), slots, *hash)).count()
}

#[test]
fn statistics_say_what_leads_gets_and_what_it_takes() {
    let mut bits = Vec::new();
    for options in all() {
        let (mut store, mut model, mut chance) = (Store::new(&options), Model::new(), Chance(2));
        assert_eq!(report(&store.engine).filter_bits_per_key, None);
        write(&mut store, &mut model, &mut chance, 1000, KEYS);
        let report = report(&store.engine);
        assert_eq!(report.upper_index, options.chameleon.upper_index);
        assert_eq!(report.shards_bypassed, 2);
        let slots = u64::from(store.shards().shape().bypass_slots());
        match report.upper_index {
            UpperIndex::Bypass => assert!(report.upper_index_bytes >= 2 * slots * 16),
            // As much as bypass indexes: 2 tables of 16 slots and 1 of 32 for each shard. 4 bytes for each table beside.
            UpperIndex::Pinned => {
                assert_eq!(report.upper_index_bytes - 260, 2 * slots * 16 + 6 * 4);
            }
            UpperIndex::Tables => assert_eq!(report.upper_index_bytes, 260),
            UpperIndex::Filters(_) => assert!(report.upper_index_bytes >= 8 * 64),
        }
        bits.push(report.filter_bits_per_key);
    }
    // Tables of these stores are so small that their filters are rounded up by much.
    assert!(bits[2] > bits[3] && bits[3] > Some(16.0), "{bits:?}");
    assert_eq!((bits[0], bits[1], bits[4]), (None, None, None));
}

/// Which places of tables gets look at: in tables and in copies, for so many hashes.
fn looks(store: &Store, shard: u32, hashes: u64) -> (u64, u64) {
    let (mut in_tables, mut in_copies) = (0, 0);
    for hash in (1..=hashes).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
        for (upper, _) in store.shards().upper_tables(shard) {
            match store.shards().helpers().look(upper, hash) {
                baselines::Look::InTable => in_tables += 1,
                baselines::Look::InCopy(_) => in_copies += 1,
                baselines::Look::Nowhere => {}
            }
        }
    }
    (in_tables, in_copies)
}

#[test]
fn every_upper_table_has_its_place_in_either_compaction() {
    for compaction in [Compaction::Direct, Compaction::LevelByLevel] {
        for options in &all()[1..] {
            let options = options
                .clone()
                .segment_bytes(64 << 10)
                .chameleon(|chameleon| chameleon.levels(4).ratio(4).compaction(compaction));
            let (mut store, mut model) = (Store::new(&options), Model::new());
            let mut most = 0;
            for key in 0..2200 {
                store.put(key, key).expect("room");
                model.insert(key, key);
                let tables = store.shards().upper_tables(0).count() as u64;
                most = most.max(tables);
                if key % 100 == 0 {
                    let found = looks(&store, 0, 50);
                    match options.chameleon.upper_index {
                        UpperIndex::Tables => assert_eq!(found, (50 * tables, 0)),
                        UpperIndex::Pinned => assert_eq!(found, (0, 50 * tables)),
                        _ => assert!(found.0 <= 3 && found.1 == 0, "{found:?}"),
                    }
                }
            }
            assert_eq!(most, 10, "of {compaction:?}: 4, and 3 of each level behind it");
            store.check(&model, 2200);
        }
    }
}

#[test]
fn a_compaction_level_by_level_goes_on_where_it_was_interrupted() {
    let with = |compaction, upper_index| {
        let options = options(|chameleon| chameleon.levels(4).load_factors(0.85..=0.85));
        options.chameleon(|it| it.compaction(compaction).upper_index(upper_index))
    };
    let first = with(Compaction::LevelByLevel, UpperIndex::Bypass);
    let (mut store, mut model, mut found) = (Store::new(&first), Model::new(), 0);
    for key in 0..300 {
        let is_near = (0..2).any(|shard| {
            let levels = store.tables(shard).levels;
            levels[0].tables == 2 && levels[1].tables == 1
        });
        let media = store.media.clone();
        model.insert(key, key);
        if !is_near {
            store.put(key, key).expect("room");
            continue;
        }
        let (_, photos) = media.photograph(|| store.put(key, key).expect("room"));
        let states = photos.iter().step_by(4).map(|photo| photo.some_states(0, 1).swap_remove(0));
        for state in states {
            for upper_index in [UpperIndex::Bypass, UpperIndex::Tables] {
                for compaction in [Compaction::Direct, Compaction::LevelByLevel] {
                    let options = with(compaction, upper_index);
                    let again = Store::open(&bytes_of(&state), &options, None).expect("it opens");
                    let is_full = |shard| again.tables(shard).levels[1].tables == 2;
                    if (0..2).any(is_full) {
                        found += 1;
                        go_on(again, model.clone(), key);
                    }
                }
            }
        }
    }
    assert!(found >= 4, "no compaction was interrupted: {found}");
}

/// Writes new keys to a store that may lack the key that was put when it crashed. Whatever index it has, one with a bypass
/// index can be opened on it at any time.
fn go_on(mut store: Store, mut model: Model, crashed: u64) {
    let slots = store.shards().shape().bypass_slots();
    let mut fullest = (0, None);
    for key in crashed..crashed + 150 {
        store.put(key, key).expect("room");
        model.insert(key, key);
        let above = (0..2).filter_map(|shard| store.shards().upper_entries(shard)).max();
        if above > Some(fullest.0) {
            let bypass = options(|chameleon| chameleon.levels(4));
            fullest = (above.unwrap_or(0), Some((store.reopen(&bypass), model.clone(), key)));
        }
    }
    assert!(fullest.0 <= slots, "{} entries for {slots} slots", fullest.0);
    let (mut again, then, last) = fullest.1.expect("a table");
    again.complete();
    assert_eq!(again.shards().unbypassed(), 0);
    again.check(&then, last + 1);
    store.check(&model, crashed + 150);
    assert_eq!(verify_all(store.engine.index()).expect("sound"), (0, 0));
}
