//! Large values go to their place alone, and are there after the end of the process; where they are not, nothing says that
//! they are.

use std::path::Path;
use std::sync::Arc;

use chimera::{Batch, Db, EngineKind, Error, Options};
use chimera_pmem::environment::MemoryFiles;
use chimera_pmem::{Medium, SteppedEnvironment};

use super::damage::{Left, files_of, left_of};
use super::{GROUP, open_at};

const STORE: &str = "store";
const SEGMENT: &str = "segment-000000";
const ENGINES: [EngineKind; 2] = [EngineKind::Hikv, EngineKind::Chameleon];
const BYTES: usize = 20_000;
const PUTS: u64 = 40;
const BOOT: u64 = 1;
const NEXT_BOOT: u64 = 2;

fn value(number: u64) -> Vec<u8> {
    (0..BYTES as u64 / 8).flat_map(|word| (number << 32 | word).to_le_bytes()).collect()
}

fn options(engine: EngineKind) -> Options {
    Options::new().engine(engine).segment_bytes(8 << 20).durability(GROUP)
}

/// A store that has taken its first runs, with nothing pending.
fn begun(files: &Arc<MemoryFiles>, engine: EngineKind) -> (Db, Arc<SteppedEnvironment>) {
    begun_with(files, &options(engine))
}

fn begun_with(files: &Arc<MemoryFiles>, options: &Options) -> (Db, Arc<SteppedEnvironment>) {
    let opened = open_at(BOOT, files.clone(), Path::new(STORE), options);
    let (db, environment) = opened.expect("a store");
    put(&db, 1000..1010);
    settle(&db, &environment);
    (db, environment)
}

/// Everything is in its place.
fn settle(db: &Db, environment: &SteppedEnvironment) {
    let pending = || db.stats().journal.expect("a journal").pending_bytes;
    // What works in the background writes, too.
    for _ in 0..10 {
        db.sync().expect("synced");
        environment.advance(10_000_000_000);
        while environment.step_tasks() {}
        if pending() == 0 {
            return;
        }
    }
    panic!("{} bytes are pending", pending());
}

fn put(db: &Db, numbers: std::ops::Range<u64>) {
    for number in numbers {
        db.put(number.to_le_bytes(), value(number)).expect("put");
    }
}

/// The values that a store has, which are right, of the first ones in the order in which they were put.
fn first_values(db: &Db) -> u64 {
    let found = |number: u64| db.get(number.to_le_bytes()).expect("read");
    let count = (0..PUTS).take_while(|number| found(*number).is_some()).count() as u64;
    for number in 0..PUTS {
        let expected = (number < count).then(|| value(number));
        assert!(found(number) == expected, "value {number} of {count}");
    }
    assert!(db.check(None).is_sound());
    count
}

#[test]
fn a_large_value_passes_no_journal_and_is_not_lost() {
    for engine in ENGINES {
        let files = Arc::new(MemoryFiles::new().on(Medium::File));
        let (db, _environment) = begun(&files, engine);
        let before = db.stats().journal.unwrap();
        put(&db, 0..PUTS);
        let after = db.stats().journal.unwrap();
        let all = PUTS * BYTES as u64;
        let direct = after.direct_bytes - before.direct_bytes;
        let appended = after.appended_bytes - before.appended_bytes;
        assert!(direct * 100 >= all * 90, "{engine:?}: {direct} of {all} bytes");
        assert!(appended * 100 <= all * 25, "{engine:?}: {appended} bytes for {all}");
        let left = left_of(&files);
        let opened = open_at(BOOT, files_of(&left), Path::new(STORE), &options(engine));
        assert_eq!(first_values(&opened.unwrap().0), PUTS, "{engine:?}");
    }
}

/// Where large values were overwritten the next ones go once that is written back.
#[test]
fn a_large_value_that_is_overwritten_passes_no_journal() {
    for engine in [EngineKind::Viper, EngineKind::Hikv] {
        let files = Arc::new(MemoryFiles::new().on(Medium::File));
        let (db, environment) = begun(&files, engine);
        for round in 0..6 {
            let before = db.stats().journal.unwrap();
            put(&db, 0..PUTS);
            let after = db.stats().journal.unwrap();
            let all = PUTS * BYTES as u64;
            let direct = after.direct_bytes - before.direct_bytes;
            assert!(direct * 100 >= all * 90, "{engine:?} {round}: {direct} of {all} bytes");
            assert_eq!(db.len(), PUTS + 10);
            db.sync().expect("synced");
            environment.advance(10_000_000_000);
            while environment.step_tasks() {}
        }
        // Six rounds take no more room than three.
        let used = db.stats().pmem_bytes;
        assert!(used < 3 * (PUTS + 10) * BYTES as u64, "{engine:?}: {used} bytes");
        let left = left_of(&files);
        let opened = open_at(BOOT, files_of(&left), Path::new(STORE), &options(engine));
        assert_eq!(first_values(&opened.unwrap().0), PUTS, "{engine:?}");
    }
}

/// Nobody writes back in the background here: whoever finds that as much waits as may does so.
#[test]
fn who_overwrites_faster_than_is_written_back_writes_back() {
    for engine in [EngineKind::Viper, EngineKind::Hikv] {
        let files = Arc::new(MemoryFiles::new().on(Medium::File));
        let (db, _environment) = begun(&files, engine);
        let (mut all, before) = (0, db.stats().journal.unwrap());
        for _ in 0..40 {
            put(&db, 0..PUTS);
            all += PUTS * BYTES as u64;
        }
        let after = db.stats().journal.unwrap();
        let direct = after.direct_bytes - before.direct_bytes;
        assert!(direct * 100 >= all * 90, "{engine:?}: {direct} of {all} bytes");
        // What waits is 1 MiB, and a run, at most.
        let used = db.stats().pmem_bytes;
        assert!(used < 12 << 20, "{engine:?}: {used} bytes");
        let left = left_of(&files);
        let opened = open_at(BOOT, files_of(&left), Path::new(STORE), &options(engine));
        assert_eq!(first_values(&opened.unwrap().0), PUTS, "{engine:?}");
    }
}

/// Room that waits is no room lost: a store of a fixed size takes as many large values again as it was emptied of.
#[test]
fn what_waits_is_room_in_a_full_store() {
    for engine in [EngineKind::Viper, EngineKind::Hikv] {
        let files = Arc::new(MemoryFiles::new().on(Medium::File));
        let options = options(engine).capacity_bytes(8 << 20);
        let opened = open_at(BOOT, files, Path::new(STORE), &options);
        let (db, _environment) = opened.expect("a store");
        let fill = || {
            (0..10_000)
                .take_while(|number: &u64| db.put(number.to_le_bytes(), value(*number)).is_ok())
        };
        let count = fill().count() as u64;
        assert!(count > 200, "{engine:?}: {count}");
        for _ in 0..3 {
            for number in 0..count {
                db.delete(number.to_le_bytes()).expect("deleted");
            }
            let again = fill().count() as u64;
            assert!(again * 100 >= count * 97, "{engine:?}: {again} of {count}");
            assert!(
                (0..again)
                    .all(|number| db.get(number.to_le_bytes()).unwrap() == Some(value(number)))
            );
        }
    }
}

/// A full store of a fixed size, and then without some values that lie side by side: they wait, and are fewer than may.
fn full_but_for(engine: EngineKind, values: u64) -> Db {
    let files = Arc::new(MemoryFiles::new().on(Medium::File));
    let options = options(engine).capacity_bytes(8 << 20);
    let (db, _environment) = open_at(BOOT, files, Path::new(STORE), &options).expect("a store");
    let put = |number: &u64| db.put(number.to_le_bytes(), value(*number)).is_ok();
    let count = (0..10_000).take_while(put).count() as u64;
    for number in count / 2..count / 2 + values {
        assert!(db.delete(number.to_le_bytes()).expect("deleted"));
    }
    db
}

/// What was deleted and waits is room for a batch, too.
#[test]
fn what_waits_is_room_for_a_batch() {
    for engine in [EngineKind::Viper, EngineKind::Hikv] {
        let db = full_but_for(engine, 48);
        let mut batch = Batch::new();
        batch.put(b"one", value(1)).put(0_u64.to_le_bytes(), value(1));
        db.write(&batch).unwrap_or_else(|error| panic!("{engine:?}: {error}"));
        assert!(db.get(b"one").unwrap() == Some(value(1)), "{engine:?}");
    }
}

/// And for a value that is longer than the runs of those before it.
#[test]
fn what_waits_is_room_for_a_longer_value() {
    for engine in [EngineKind::Viper, EngineKind::Hikv] {
        let db = full_but_for(engine, 48);
        let long = value(0).repeat(20);
        db.put(b"long", &long).unwrap_or_else(|error| panic!("{engine:?}: {error}"));
        assert!(db.get(b"long").unwrap() == Some(long), "{engine:?}");
    }
}

/// A store of large values that were deleted and compacted takes little, while it is open.
#[test]
fn what_waits_is_little_when_all_is_deleted() {
    let files = Arc::new(MemoryFiles::new().on(Medium::File));
    let (db, _environment) = begun(&files, EngineKind::Hikv);
    put(&db, 0..1000);
    for number in (0..1010_u64).rev() {
        db.delete(number.to_le_bytes()).expect("deleted");
    }
    db.compact(20, None).expect("compacted");
    let used = db.stats().pmem_bytes;
    assert!(used < 3 << 20, "{used} bytes");
}

/// Changes a byte of a value where it lies.
fn damage(left: &mut Left, number: u64) {
    let segment = left.get_mut(SEGMENT).expect("a segment");
    let piece = &value(number)[1000..1100];
    let at = segment.windows(piece.len()).position(|bytes| bytes == piece).expect("its place");
    segment[at] ^= 1;
}

/// What no sync has covered may be missing after a power loss, from the first value on that is not whole; and without one
/// that is damage.
#[test]
fn a_value_that_is_not_in_its_place_ends_what_is_there() {
    for engine in ENGINES {
        let files = Arc::new(MemoryFiles::new().on(Medium::File));
        // Of what is stored to fresh blocks until the next sync no entry says what it is.
        let by_entries = options(engine).written_once(None, false);
        let (db, _environment) = begun_with(&files, &by_entries);
        put(&db, 0..PUTS);
        let mut left = left_of(&files);
        damage(&mut left, PUTS - 1);
        let open = |boot, salvage| {
            let options = options(engine).salvage(salvage);
            open_at(boot, files_of(&left), Path::new(STORE), &options)
        };
        let error = open(BOOT, false).map(|_| ()).expect_err("no power was lost").to_string();
        assert!(error.contains("says of the other files is not there"), "{engine:?}: {error}");
        assert_eq!(first_values(&open(BOOT, true).unwrap().0), PUTS - 1, "{engine:?}, salvage");
        assert_eq!(first_values(&open(NEXT_BOOT, false).unwrap().0), PUTS - 1, "{engine:?}");
    }
}

/// What is known to be durable is no end of what is there: its damage is told, by whoever reads it.
#[test]
fn a_value_that_was_synced_and_is_damaged_is_an_error() {
    for engine in ENGINES {
        let files = Arc::new(MemoryFiles::new().on(Medium::File));
        let (db, _environment) = begun(&files, engine);
        put(&db, 0..30);
        db.sync().unwrap();
        put(&db, 30..PUTS);
        let mut left = left_of(&files);
        damage(&mut left, 20);
        let opened = open_at(NEXT_BOOT, files_of(&left), Path::new(STORE), &options(engine));
        let (db, _environment) = match opened {
            Ok(opened) => opened,
            // A log that is replayed is read.
            Err(error) => {
                assert!(matches!(error, Error::Corrupted { .. }), "{engine:?}: {error}");
                continue;
            }
        };
        assert!(db.get(20_u64.to_le_bytes()).is_err(), "{engine:?}");
        assert!(db.get(39_u64.to_le_bytes()).unwrap() == Some(value(39)), "{engine:?}");
    }
}

/// A power loss takes back that a run was used, and leaves what was stored there. The next life begins the run again, with the
/// same number: its log does not go on into the records that were lost.
#[test]
fn what_a_lost_life_stored_to_a_new_run_is_no_record() {
    for engine in [EngineKind::Chameleon, EngineKind::DramHash] {
        let short = |number: u64| value(number)[..104].to_vec();
        let put = |db: &Db, number: u64| {
            db.put(number.to_le_bytes(), short(number)).expect("put");
        };
        let files = Arc::new(MemoryFiles::new().on(Medium::File));
        let opened = open_at(BOOT, files.clone(), Path::new(STORE), &options(engine));
        let (db, environment) = opened.expect("a store");
        settle(&db, &environment);
        let durable = left_of(&files);
        (0..3).for_each(|number| put(&db, number));
        let mut left = left_of(&files);
        let is_stored = left[SEGMENT].windows(104).any(|bytes| bytes == short(2));
        assert!(is_stored, "{engine:?}: it passes no journal");
        for name in ["journal", "superblock"] {
            left.insert(name.to_owned(), durable[name].clone());
        }
        // The machine starts anew, and the next process is killed behind its first put.
        let files = files_of(&left);
        let opened = open_at(NEXT_BOOT, files.clone(), Path::new(STORE), &options(engine));
        let (db, _environment) = opened.expect("nothing is damaged");
        assert_eq!(first_values(&db), 0, "{engine:?}");
        put(&db, 0);
        let files = files_of(&left_of(&files));
        let opened = open_at(NEXT_BOOT, files, Path::new(STORE), &options(engine));
        let (db, _environment) = opened.expect("nothing is damaged");
        for number in 0..3_u64 {
            let found = db.get(number.to_le_bytes()).expect("read");
            assert_eq!(found, (number == 0).then(|| short(0)), "{engine:?}, {number}");
        }
        assert!(db.check(None).is_sound(), "{engine:?}");
    }
}

/// So it is of runs that were free: what was emptied and written back is used as what is new.
#[test]
fn what_a_lost_life_stored_to_a_free_run_is_no_record() {
    let options = options(EngineKind::Chameleon)
        .chameleon(|tuning| tuning.log_run_bytes(256 << 10))
        .journal_bytes(1 << 20);
    let files = Arc::new(MemoryFiles::new().on(Medium::File));
    let opened = open_at(BOOT, files.clone(), Path::new(STORE), &options);
    let (db, environment) = opened.expect("a store");
    // The last run is in use, and those before have nothing that lives.
    put(&db, 1000..1100);
    put(&db, 1000..1100);
    put(&db, 2000..2010);
    settle(&db, &environment);
    let used = db.stats().pmem_bytes;
    // Both lives begin with a run.
    drop((db, environment));
    let opened = open_at(BOOT, files.clone(), Path::new(STORE), &options);
    let (db, environment) = opened.expect("a store");
    settle(&db, &environment);
    let durable = left_of(&files);
    put(&db, 0..PUTS);
    assert_eq!(db.stats().pmem_bytes, used, "runs that were free are used");
    let mut left = left_of(&files);
    // The first line of a record passes the journal where its page is in memory.
    let is_stored = |number: &u64| {
        let begin = &value(*number)[..64];
        left[SEGMENT].windows(64).any(|bytes| bytes == begin)
    };
    assert!((20..PUTS).filter(is_stored).count() > 16, "they pass no journal");
    for name in ["journal", "superblock"] {
        left.insert(name.to_owned(), durable[name].clone());
    }
    // The next life begins them again, with the same numbers, and is killed.
    for puts in [0, 1, 14, 25, 30] {
        let files = files_of(&left);
        let opened = open_at(NEXT_BOOT, files.clone(), Path::new(STORE), &options);
        let (db, _environment) = opened.expect("nothing is damaged");
        put(&db, 0..puts);
        let files = files_of(&left_of(&files));
        let opened = open_at(NEXT_BOOT, files, Path::new(STORE), &options);
        let (db, _environment) = opened.expect("nothing is damaged");
        assert_eq!(first_values(&db), puts);
    }
}
