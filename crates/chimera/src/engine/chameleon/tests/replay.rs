//! A restart replays at most so many bytes.

use super::*;
use crate::engine::contract::upkeep::Step;

const SHARDS: u32 = 64;
const BYTES_MAX: u64 = 16 << 10;
/// Nothing is put into tables early.
const NO_BOUND: u64 = 1 << 40;

fn bounded(bytes_max: u64) -> Options {
    let options = options(|chameleon| chameleon.shards(SHARDS).replay_log_bytes_max(bytes_max));
    options.segment_bytes(64 << 10)
}

/// Keys of a shard.
fn keys_of(store: &Store, shard: u32) -> impl Iterator<Item = u64> + '_ {
    let hash = |key: u64| store.engine.core().hash.of(&key.to_le_bytes());
    (0..).filter(move |key| store.shards().number_of(hash(*key)) == shard)
}

/// One shard is written to all the time, each other one once. The most that a restart would have to replay.
fn write_to_one_shard(store: &mut Store, model: &mut Model) -> u64 {
    let hot: Vec<_> = keys_of(store, 0).take(20).collect();
    let cold: Vec<_> =
        (1..SHARDS).map(|shard| keys_of(store, shard).next().expect("one")).collect();
    let mut most = 0;
    for (round, cold) in (0..).zip(cold) {
        store.put(cold, 7).expect("room");
        model.insert(cold, 7);
        for (write, key) in hot.iter().cycle().take(40).enumerate() {
            let value = round * 100 + write as u64;
            store.put(*key, value).expect("room");
            model.insert(*key, value);
            most = most.max(store.engine.index().log().counts().replay_bytes);
            if (10..14).contains(&round) {
                let durable = store.media.photo().some_states(0, 1).swap_remove(0);
                assert!(bytes_of(&durable) == store.media.image(), "marks are durable on return");
            }
        }
    }
    most
}

#[test]
fn cold_shards_do_not_pin_the_log() {
    for bytes_max in [NO_BOUND, BYTES_MAX, 2 * BYTES_MAX] {
        let (mut store, mut model) = (Store::new(&bounded(bytes_max)), Model::new());
        let most = write_to_one_shard(&mut store, &mut model);
        let mut again = store.reopen(&bounded(bytes_max));
        let replayed = again.engine.opened.replayed_bytes;
        assert!(replayed <= most);
        if bytes_max == NO_BOUND {
            assert!(replayed > 3 * BYTES_MAX, "{replayed} of {most}");
        } else {
            assert!(most <= bytes_max, "{most}");
            assert!(
                replayed > bytes_max / 4,
                "not more is put into tables than has to be: {replayed}"
            );
        }
        for (key, value) in &model {
            assert_eq!(again.get(*key).expect("sound"), Some(*value));
        }
        again.complete();
        again.check_told();
    }
}

#[test]
fn restarts_one_after_the_other_replay_no_more() {
    let (mut store, mut model) = (Store::new(&bounded(NO_BOUND)), Model::new());
    write_to_one_shard(&mut store, &mut model);
    // Another bound than before: what is over it gets less.
    let mut replayed = [0; 12];
    for replayed in &mut replayed {
        store = store.reopen(&bounded(BYTES_MAX));
        *replayed = store.engine.opened.replayed_bytes;
        let keys: Vec<_> = model.keys().copied().collect();
        for key in keys.iter().cycle().take(200) {
            store.put(*key, *replayed).expect("room");
            model.insert(*key, *replayed);
        }
    }
    assert!(replayed[0] > 3 * BYTES_MAX, "{replayed:?}");
    assert!(replayed[8..].iter().all(|replayed| *replayed <= BYTES_MAX), "{replayed:?}");
    store.complete();
    store.check_told();
    assert_eq!(store.engine.index().count_records(), model.len() as u64);
    for (key, value) in &model {
        assert_eq!(store.get(*key).expect("sound"), Some(*value));
    }
}

#[test]
fn sessions_that_each_have_a_run_keep_the_bound() {
    let mut store = Store::new(&bounded(BYTES_MAX));
    let (mut model, mut chance) = (Model::new(), Chance(6));
    let mut others: Vec<_> = (1..40).map(|number| store.engine.client(number)).collect();
    for round in 0..4000_u64 {
        // Now and then all sessions write, and then one alone.
        let other = chance.below(4 * others.len() as u64) as usize;
        let in_use = others.get_mut(other).filter(|_| round % 1000 < 300);
        let (key, client) = (chance.below(600), in_use.unwrap_or(&mut store.client));
        let (key_bytes, value) = (key.to_le_bytes(), round.to_le_bytes());
        store.engine.put(client, &key_bytes, &value).expect("room");
        model.insert(key, round);
        let most = store.engine.index().log().counts().replay_bytes;
        assert!(most <= BYTES_MAX, "{most} after {round}");
        if round % 500 == 450 {
            let again = store.reopen(&bounded(BYTES_MAX));
            assert!(again.engine.opened.replayed_bytes <= most);
        }
    }
    store.check_told();
    let mut again = store.reopen(&bounded(BYTES_MAX));
    for (key, value) in &model {
        assert_eq!(again.get(*key).expect("sound"), Some(*value));
    }
}

#[test]
fn what_is_collected_keeps_the_bound() {
    let mut store = Store::new(&bounded(BYTES_MAX));
    let (mut model, mut chance) = (Model::new(), Chance(8));
    for write in 0..4000 {
        let key = chance.below(600);
        store.put(key, write).expect("room");
        model.insert(key, write);
    }
    let mut most = 0;
    while store.engine.collector.collect_step(1).expect("sound") != Step::Done {
        most = most.max(store.engine.index().log().counts().replay_bytes);
    }
    let moved = store.engine.collector.stats().moved_records;
    assert!(moved > 400, "{moved} records were copied, which take more than the bound");
    assert!(most <= BYTES_MAX, "{most}");
    let mut again = store.reopen(&bounded(BYTES_MAX));
    for (key, value) in &model {
        assert_eq!(again.get(*key).expect("sound"), Some(*value));
    }
}

#[test]
fn what_is_ahead_becomes_a_last_table_when_the_bound_holds_again() {
    let bound = |write_intensive| {
        let options = bounded(BYTES_MAX);
        options.chameleon(|chameleon| {
            let threshold = Some(ChameleonOptions::GET_PROTECT_PUBLISHED);
            chameleon.write_intensive(write_intensive).get_protect(threshold)
        })
    };
    let (mut store, mut model) = (Store::new(&bound(true)), Model::new());
    let most = write_to_one_shard(&mut store, &mut model);
    assert!(most > 3 * BYTES_MAX, "this mode has no bound");
    let (mut store, mut model) = (Store::new(&bound(false)), Model::new());
    store.protect(true);
    let cold: Vec<_> = keys_of(&store, 5).skip(100).take(30).collect();
    for key in cold {
        store.put(key, 5).expect("room");
        model.insert(key, 5);
    }
    let most = write_to_one_shard(&mut store, &mut model);
    assert!(most > 3 * BYTES_MAX && report(&store.engine).shards_ahead > 0, "nor this one");
    store.protect(false);
    // The MemTable of the shard has nothing old, so what is old is in its bypass index alone.
    let hot: Vec<_> = keys_of(&store, 0).take(20).collect();
    let last = keys_of(&store, 5).nth(129).expect("one");
    for (write, key) in hot.iter().cycle().take(2000).enumerate() {
        let key = if write % 10 == 0 { last } else { *key };
        store.put(key, write as u64).expect("room");
        model.insert(key, write as u64);
    }
    assert!(store.engine.index().lock_work(5).ahead.is_none());
    let report = report(&store.engine);
    assert!(report.replay_log_bytes <= BYTES_MAX, "{}", report.replay_log_bytes);
    assert!(report.written.last.tables > 0);
    store.check_told();
    let mut again = store.reopen(&bound(false));
    for (key, value) in &model {
        assert_eq!(again.get(*key).expect("sound"), Some(*value));
    }
}
