//! HiKV's free space, rebuilt beside sessions: what is in use is never taken, what is free is never lost.

#[path = "../tools/mod.rs"]
mod tools;

mod damage;
mod full;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use chimera::baselines::{KeyChange, TellChange};
use chimera::{Db, EngineInspect, EngineKind, EngineStats, HikvStats, Options, Session};
use chimera_pmem::{Environment, Hardware, SteppedEnvironment};

use tools::{Chance, assert_sound, bytes_of, contents, copy_store, key_of, scratch, value_of};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Segments of the index of 56 entries, in which items are looked at beside sessions. Nothing happens by itself.
fn options() -> Options {
    Options::new()
        .engine(EngineKind::Hikv)
        .segment_bytes(64 << 10)
        .populate_ahead_bytes(0)
        .verify_at_open(false)
        .hikv(|hikv| {
            hikv.partitions(2).index_segment_bytes(1024).heap_run_bytes(4096).walked_first(0)
        })
}

/// A store whose tasks run when they are stepped, and whose random numbers follow from a seed: those that a new store has
/// for hashes, too.
struct Stepped {
    environment: Arc<SteppedEnvironment>,
    db: Db<Hardware>,
}

impl Stepped {
    fn open(path: &Path, options: &Options) -> Self {
        let environment = Arc::new(SteppedEnvironment::new(1));
        let shared: Arc<dyn Environment> = environment.clone();
        let pmem = Hardware::new(options.hardware_options()).expect("address space");
        let db = Db::open_on(pmem, &shared, path, options).expect("a store");
        Self { environment, db }
    }

    fn step(&self, times: u64) {
        for _ in 0..times {
            assert!(self.environment.step_tasks(), "nothing is left");
        }
    }

    fn finish(&self) {
        while self.environment.step_tasks() {}
        assert!(sizes(&self.db).space_is_rebuilt);
    }
}

fn sizes(db: &Db) -> HikvStats {
    match db.stats().details {
        EngineStats::Hikv(sizes) => sizes,
        other => panic!("{other:?}"),
    }
}

/// Bytes that the items of some records take: their header, each part in whole words, all in units of 32 bytes.
fn item_bytes(model: &Model) -> u64 {
    let of = |(key, value): (&Vec<u8>, &Vec<u8>)| {
        let bytes = 24 + key.len().next_multiple_of(8) + value.len().next_multiple_of(8);
        bytes.next_multiple_of(32) as u64
    };
    model.iter().map(of).sum()
}

/// Asserts that a store whose space is rebuilt holds `model`, and that nothing else is in use.
fn assert_exact(db: &Db, model: &Model) {
    assert_sound(db);
    assert_eq!(db.len(), model.len() as u64);
    assert!(contents(db) == *model);
    let sizes = sizes(db);
    assert!(sizes.space_is_rebuilt);
    assert_eq!((sizes.space_damages, sizes.space_segments_walked), (0, sizes.index_segments));
    assert_eq!(sizes.item_bytes, item_bytes(model), "{sizes:?}");
    let EngineInspect::Hikv(inspect) = db.inspect(None).details else { panic!("another engine") };
    let runs: Vec<u64> = inspect.runs.kinds.iter().map(|kind| kind.runs).collect();
    // No dump of an order is left.
    assert_eq!(runs[runs.len() - 3..], [sizes.index_segments, sizes.heap_runs, 0]);
}

/// Some records, of which some were overwritten and deleted.
fn fill(path: &Path, options: &Options, records: u64) -> Model {
    let db = Stepped::open(path, options).db;
    let mut session = db.session();
    let mut model = Model::new();
    for number in 0..records {
        put(&mut session, &mut model, number, 1);
        if number % 3 == 0 {
            put(&mut session, &mut model, number * 7 % (number + 1), 2);
        }
        if number % 4 == 0 {
            delete(&mut session, &mut model, number / 2);
        }
    }
    drop(session);
    db.close().expect("nobody else has it");
    model
}

fn put(session: &mut Session, model: &mut Model, number: u64, version: u64) {
    let value = value_of(number, version, 8 + (number * 13 + version * 7) as usize % 120);
    let is_new = session.put(key_of(number, 16), &value).expect("room");
    assert_eq!(is_new, model.insert(key_of(number, 16), value).is_none());
}

fn delete(session: &mut Session, model: &mut Model, number: u64) {
    let was_there = session.delete(key_of(number, 16)).expect("a delete");
    assert_eq!(was_there, model.remove(&key_of(number, 16)).is_some());
}

/// Asserts that a store that looks at everything when it is opened finds the same in use.
fn assert_same_when_opened_again(path: &Path, model: &Model) {
    let db = Db::open(path, &options().verify_at_open(true)).expect("a store");
    assert_exact(&db, model);
}

#[test]
fn what_is_written_between_the_steps_is_exact() {
    for seed in 0..12 {
        let directory = scratch();
        let mut model = fill(directory.path(), &options(), 700);
        let store = Stepped::open(directory.path(), &options());
        let (mut chance, mut session) = (Chance::new(seed), store.db.session());
        let before = sizes(&store.db);
        assert!(!before.space_is_rebuilt && before.index_segments >= 8, "{before:?}");
        assert_eq!((before.space_segments_walked, store.db.len()), (0, model.len() as u64));
        let mut version = 10;
        while !sizes(&store.db).space_is_rebuilt {
            for _ in 0..chance.below(50) {
                version += 1;
                // Some keys are new, so that segments are split.
                let number = chance.below(4000);
                match chance.below(3) {
                    0 => delete(&mut session, &mut model, number),
                    _ => put(&mut session, &mut model, number, version),
                }
            }
            assert_eq!(store.db.len(), model.len() as u64);
            store.environment.step_tasks();
        }
        let after = sizes(&store.db);
        assert!(after.index_segments > before.index_segments, "nothing was split");
        assert_exact(&store.db, &model);
        // What is free is used now.
        for number in 0..1000 {
            put(&mut session, &mut model, number, version + number);
        }
        assert_exact(&store.db, &model);
        drop(session);
        store.db.close().expect("nobody else has it");
        assert_same_when_opened_again(directory.path(), &model);
    }
}

#[test]
fn nothing_that_was_in_use_is_used_before_it_is_known_what_is_free() {
    let directory = scratch();
    let mut model = fill(directory.path(), &options(), 300);
    let store = Stepped::open(directory.path(), &options());
    let used = store.db.stats().blocks_used;
    let mut session = store.db.session();
    let runs = sizes(&store.db).heap_runs;
    for number in 0..40 {
        put(&mut session, &mut model, number, 50);
    }
    let sizes = sizes(&store.db);
    assert!(sizes.heap_runs > runs && store.db.stats().blocks_used > used);
    assert_eq!(sizes.item_bytes, item_bytes(&model_of(&model, 40)), "only these are known");
    store.finish();
    assert_exact(&store.db, &model);
}

/// The records of the keys below `end`.
fn model_of(model: &Model, end: u64) -> Model {
    (0..end)
        .map(|number| key_of(number, 16))
        .map(|key| (key.clone(), model[&key].clone()))
        .collect()
}

#[test]
fn a_store_closed_or_left_in_the_middle_is_whole() {
    let directory = scratch();
    let mut model = fill(directory.path(), &options(), 500);
    for steps in 0..12 {
        let store = Stepped::open(directory.path(), &options());
        store.step(steps);
        assert!(!sizes(&store.db).space_is_rebuilt);
        let mut session = store.db.session();
        for number in 0..20 {
            put(&mut session, &mut model, 20 * steps + number, 100 + steps);
            delete(&mut session, &mut model, 300 + 20 * steps + number);
        }
        assert_sound(&store.db);
        assert!(contents(&store.db) == model);
        drop(session);
        let environment = store.environment.clone();
        if steps % 2 == 0 {
            store.db.close().expect("nobody else has it");
        } else {
            drop(store.db);
        }
        assert!(!environment.step_tasks(), "no task is left");
        let copy = scratch();
        copy_store(directory.path(), copy.path());
        assert_same_when_opened_again(copy.path(), &model);
    }
}

#[test]
fn compaction_finishes_what_is_left_and_gives_back_what_is_empty() {
    let directory = scratch();
    fill(directory.path(), &options(), 500);
    let store = Stepped::open(directory.path(), &options());
    store.environment.step_tasks();
    for (key, _) in contents(&store.db) {
        assert!(store.db.delete(&key).expect("a delete"));
    }
    let before = sizes(&store.db);
    assert!(!before.space_is_rebuilt && before.heap_runs > 4);
    store.db.compact(1, None).expect("compaction");
    assert_eq!(sizes(&store.db).heap_runs, 0);
    assert_exact(&store.db, &Model::new());
    assert!(!store.environment.step_tasks() || !store.environment.step_tasks(), "the task ends");
}

#[test]
fn its_progress_can_be_seen() {
    let directory = scratch();
    let model = fill(directory.path(), &options(), 500);
    let store = Stepped::open(directory.path(), &options());
    let metric = |name: &str| {
        let text = store.db.metrics_text();
        let line = text.lines().find(|line| line.starts_with(name)).expect("a metric").to_owned();
        line.rsplit(' ').next().expect("a number").parse::<u64>().expect("a number")
    };
    let mut walked = Vec::new();
    loop {
        let sizes = sizes(&store.db);
        assert_eq!(metric("chimera_hikv_space_rebuilt "), u64::from(sizes.space_is_rebuilt));
        assert_eq!(metric("chimera_hikv_space_walked_segments "), sizes.space_segments_walked);
        assert_eq!(metric("chimera_hikv_space_damages "), 0);
        walked.push(sizes.space_segments_walked);
        if !store.environment.step_tasks() {
            assert!(sizes.space_is_rebuilt);
            assert_eq!(sizes.space_segments_walked, sizes.index_segments);
            break;
        }
    }
    assert!(walked.is_sorted() && walked.len() > 8, "{walked:?}");
    assert_exact(&store.db, &model);
}

/// Stores that verify at open or are salvaged know it at once.
#[test]
fn nothing_is_left_to_be_done_where_everything_is_verified_at_open() {
    let directory = scratch();
    let model = fill(directory.path(), &options(), 300);
    let all = [
        options().verify_at_open(true),
        options().read_only(true).verify_at_open(true),
        options().salvage(true),
        options().ordered(true).verify_at_open(true),
    ];
    for options in all {
        let bytes = bytes_of(directory.path());
        let store = Stepped::open(directory.path(), &options);
        let sizes = sizes(&store.db);
        assert!(sizes.space_is_rebuilt);
        assert_eq!(sizes.item_bytes, item_bytes(&model));
        drop(store);
        tools::restore(directory.path(), &bytes);
    }
    let empty = scratch();
    assert!(sizes(&Stepped::open(empty.path(), &options()).db).space_is_rebuilt);
}

/// Programs that each open the store, put one record and close it, before the background task has done anything.
#[test]
fn a_put_in_each_of_many_lives_takes_no_run_each_time() {
    // Runs of 8 blocks of 2 KiB.
    let options = |first| options().hikv(|hikv| hikv.heap_run_bytes(16 << 10).walked_first(first));
    for (first, lives) in [(4096, 300), (0, 60)] {
        let directory = scratch();
        let mut model = fill(directory.path(), &options(first), 400);
        let before = sizes(&Stepped::open(directory.path(), &options(first)).db);
        for number in 0..lives {
            let store = Stepped::open(directory.path(), &options(first));
            put(&mut store.db.session(), &mut model, 1_000_000 + number, 1);
            assert_eq!(sizes(&store.db).space_is_rebuilt, first > 0);
            store.db.close().expect("nobody else has it");
        }
        let after = sizes(&Stepped::open(directory.path(), &options(first)).db);
        let bytes = after.heap_bytes - before.heap_bytes;
        // A large store takes a block each time.
        let most = if first > 0 { 2 * lives * 160 } else { lives * 2048 };
        assert!(bytes <= most, "{bytes} bytes for {lives} records");
        assert_same_when_opened_again(directory.path(), &model);
    }
}

/// Entries are walked before the first fresh run is taken, and not again before the next.
#[test]
fn a_large_store_is_not_walked_by_a_put() {
    let directory = scratch();
    let mut model = fill(directory.path(), &options(), 700);
    let store = Stepped::open(directory.path(), &options().hikv(|hikv| hikv.walked_first(100)));
    let mut walked = Vec::new();
    for number in 0..60 {
        put(&mut store.db.session(), &mut model, 1_000_000 + number, 1);
        walked.push(sizes(&store.db).space_segments_walked);
    }
    assert!(walked[0] > 0 && walked[0] <= 4 && walked.iter().all(|now| *now == walked[0]));
    store.finish();
    assert_exact(&store.db, &model);
}

/// Nothing is put into a store that is open for reading only.
#[test]
fn a_reader_finds_out_what_is_free_when_it_is_asked() {
    let directory = scratch();
    let model = fill(directory.path(), &options(), 300);
    for inspects in [false, true] {
        let store = Stepped::open(directory.path(), &options().read_only(true));
        assert!(contents(&store.db) == model);
        let before = sizes(&store.db);
        assert_eq!((before.space_is_rebuilt, before.item_bytes), (false, 0));
        if inspects {
            store.db.inspect(None);
        } else {
            assert_sound(&store.db);
        }
        let after = sizes(&store.db);
        assert_eq!((after.space_is_rebuilt, after.item_bytes), (true, item_bytes(&model)));
    }
}

/// With real threads: the task, two writers of their own keys, and a reader of keys that stay.
#[test]
fn threads_that_write_meanwhile_lose_nothing() {
    for _ in 0..4 {
        let directory = scratch();
        let mut model = fill(directory.path(), &options(), 3000);
        let db = Db::open(directory.path(), &options()).expect("a store");
        let written = thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|writer| {
                    let (db, mut model) = (&db, model.clone());
                    scope.spawn(move || {
                        let mut session = db.session();
                        for round in 0..3 {
                            for number in (writer..2000).step_by(2) {
                                put(&mut session, &mut model, number, 20 + round);
                                if number % 3 == round {
                                    delete(&mut session, &mut model, number);
                                }
                            }
                        }
                        model
                    })
                })
                .collect();
            let mut session = db.session();
            for number in (2000..3000).chain(2000..3000) {
                let key = key_of(number, 16);
                assert_eq!(session.get(&key).expect("sound").as_ref(), model.get(&key));
            }
            writers.into_iter().map(|writer| writer.join().expect("no panic")).collect::<Vec<_>>()
        });
        for number in 0..2000 {
            let key = key_of(number, 16);
            match written[number as usize % 2].get(&key) {
                Some(value) => drop(model.insert(key, value.clone())),
                None => drop(model.remove(&key)),
            }
        }
        db.compact(1, None).expect("compaction");
        assert_exact(&db, &model);
        db.close().expect("nobody else has it");
        assert_same_when_opened_again(directory.path(), &model);
    }
}

/// Told of an overwrite, it ends the walk, and has another thread fill the room that is free then.
struct EndsTheWalk {
    environment: Arc<SteppedEnvironment>,
    db: Mutex<Option<Db<Hardware>>>,
    done: AtomicBool,
}

impl TellChange for EndsTheWalk {
    fn changed(&self, _: &[u8], change: KeyChange) {
        if change != KeyChange::Replaced || self.done.swap(true, Ordering::Relaxed) {
            return;
        }
        let db = self.db.lock().expect("no panic").clone().expect("open");
        while self.environment.step_tasks() {}
        assert!(sizes(&db).space_is_rebuilt);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut session = db.session();
                for number in 10_000..10_200 {
                    session.put(key_of(number, 16), value_of(number, 1, 24)).expect("room");
                }
            });
        });
    }
}

/// Between the change of an entry and the end of the put the walk ends, and room is given out again.
#[test]
fn the_room_of_an_old_item_is_freed_before_somebody_else_can_have_it() {
    let directory = scratch();
    // Keys whose hashes follow from a seed: none of those that the other thread puts shares a lock with a victim.
    let store = Stepped::open(directory.path(), &options());
    let mut model = Model::new();
    let mut session = store.db.session();
    for number in 0..400 {
        let value = value_of(number, 1, 24);
        session.put(key_of(number, 16), &value).expect("room");
        model.insert(key_of(number, 16), value);
    }
    drop(session);
    drop(store);
    for victim in [0, 77, 399] {
        let environment = Arc::new(SteppedEnvironment::new(1));
        let done = AtomicBool::new(false);
        let told = EndsTheWalk { environment: environment.clone(), db: Mutex::default(), done };
        let (told, shared) = (Arc::new(told), environment.clone() as Arc<dyn Environment>);
        let options = options().tell_changes(told.clone());
        let pmem = Hardware::new(options.hardware_options()).expect("address space");
        let db = Db::open_on(pmem, &shared, directory.path(), &options).expect("a store");
        assert!(!sizes(&db).space_is_rebuilt);
        *told.db.lock().expect("no panic") = Some(db.clone());
        put(&mut db.session(), &mut model, victim, 2);
        assert!(told.done.load(Ordering::Relaxed));
        model.extend((10_000..10_200).map(|number| (key_of(number, 16), value_of(number, 1, 24))));
        // What was freed twice would be given out again.
        for number in 20_000..20_200 {
            put(&mut db.session(), &mut model, number, 1);
        }
        assert_exact(&db, &model);
        *told.db.lock().expect("no panic") = None;
    }
}
