//! What gets verify, by choice; what everything else verifies, always; the scrub.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chimera::{
    BackupOptions, Db, Durability, Error, ErrorKind, ExportOptions, Options, Swap, VerifyReads,
};
use chimera_pmem::{Environment, Hardware, SteppedEnvironment};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::at_once;
use crate::tools::{Chance, bytes_of, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    a_damaged_value_is_noticed_by_gets_as_chosen: needs checksums,
    a_damaged_value_is_noticed_by_whatever_is_no_get: needs checksums,
    a_damaged_key_or_header_is_noticed_by_each_get: needs checksums,
    a_scan_hands_out_what_lies_in_front_of_damage: needs checksums ordered,
    a_scrub_goes_on_behind_damage: needs checksums,
    a_scrub_beside_writers_finds_no_damage,
    a_check_beside_blocks_that_are_given_back_finds_no_damage: needs reclaim,
    a_scrub_in_the_background_ends_in_time_and_repeats,
    a_scrub_of_a_moment_is_the_same_each_time,
    a_store_closes_while_it_is_scrubbed,
    a_scrub_can_be_switched_off,
];

const RECORDS: u64 = 60;
/// How often a store is filled, emptied and compacted.
const ROUNDS: u64 = 300;
/// A record that is damaged.
const VICTIM: u64 = 33;

/// Options of a store whose files are its memory, so that a test can change what an open store reads.
fn options(configuration: &Configuration, mode: VerifyReads) -> Options {
    configuration.options().durability(Durability::Process).scrub_every(None).verify_reads(mode)
}

/// The value of key `number`: of any length that lies beside its key.
fn value(configuration: &Configuration, number: u64) -> Vec<u8> {
    let mut value = configuration.value(number, 1);
    if configuration.sizes().is_none() {
        value.truncate(24 + 8 * (number as usize % 4));
    }
    value
}

fn filled(configuration: &Configuration, path: &Path, mode: VerifyReads) -> Db {
    let db = open(path, &options(configuration, mode));
    for number in 0..RECORDS {
        db.put(configuration.key(number), value(configuration, number)).expect("room");
    }
    db
}

/// Flips a bit of an open store: of the byte so far behind the beginning of the value of key `number`, in its record and
/// wherever a log has a copy.
fn flip(configuration: &Configuration, path: &Path, number: u64, offset: i64) {
    let (words, mut flipped) = (value(configuration, number), 0);
    for (name, bytes) in bytes_of(path) {
        let windows = bytes.windows(words.len()).enumerate();
        for (start, _) in windows.filter(|(_, window)| *window == words) {
            let at = start.checked_add_signed(offset as isize).expect("in the file") as u64;
            let file = std::fs::File::options().read(true).write(true).open(path.join(&name));
            let (file, mut byte) = (file.expect("a file of the store"), [0]);
            file.read_exact_at(&mut byte, at).expect("a byte");
            file.write_all_at(&[byte[0] ^ 16], at).expect("a byte");
            flipped += 1;
        }
    }
    assert!(flipped > 0, "the value is in a file");
}

fn assert_damaged<T: std::fmt::Debug>(about: &str, outcome: Result<T, Error>) {
    let error = outcome.expect_err(about);
    assert_eq!(error.kind(), ErrorKind::Damaged, "{about}: {error}");
}

fn a_damaged_value_is_noticed_by_gets_as_chosen(configuration: &Configuration) {
    let (key, sound) = (configuration.key(VICTIM), configuration.key(1));
    for (mode, unnoticed_max) in
        [(VerifyReads::Always, 0), (VerifyReads::Sampled, 16), (VerifyReads::Never, 100)]
    {
        let directory = scratch();
        let db = filled(configuration, directory.path(), mode);
        assert_eq!(db.stats().verify_reads, mode);
        flip(configuration, directory.path(), VICTIM, 9);
        let mut damaged = value(configuration, VICTIM);
        damaged[9] ^= 16;
        let mut session = db.session();
        if mode == VerifyReads::Sampled {
            assert_damaged("the first get", session.get(&key));
        }
        let mut unnoticed = 0;
        while unnoticed < 100 {
            let Ok(found) = session.get(&key) else { break };
            assert_eq!(found.as_ref(), Some(&damaged), "{mode}");
            unnoticed += 1;
        }
        assert_eq!(unnoticed, unnoticed_max, "{mode}");
        // Each key that is asked for together is a get.
        let mut session = db.session();
        let keys: Vec<_> = (0..17).map(|number| if number == 0 { &sound } else { &key }).collect();
        let outcome = session.multi_get(&keys);
        assert_eq!(outcome.is_ok(), mode != VerifyReads::Always, "{mode}");
        let outcome = session.contains_key(&sound).and_then(|_| session.multi_get(&[&key; 17]));
        assert_eq!(outcome.is_ok(), mode == VerifyReads::Never, "{mode}");
        assert_eq!(session.get(&sound).expect("sound"), Some(value(configuration, 1)));
    }
}

fn a_damaged_value_is_noticed_by_whatever_is_no_get(configuration: &Configuration) {
    for mode in VerifyReads::ALL {
        let directory = scratch();
        let db = filled(configuration, directory.path(), mode);
        flip(configuration, directory.path(), VICTIM, 9);
        let key = configuration.key(VICTIM);
        let mut damaged = value(configuration, VICTIM);
        damaged[9] ^= 16;
        let mut session = db.session();
        for round in 0..3 {
            let about = |what| format!("{mode}, round {round}: {what}");
            let change = |value: &mut Vec<u8>| value[0] ^= 1;
            assert_damaged(&about("update"), session.update(&key, change));
            assert_damaged(&about("addition"), session.fetch_add_u64(&key, 0, 1));
            let swap = session.compare_and_swap(&key, &damaged, value(configuration, VICTIM));
            assert_damaged(&about("swap"), swap);
            assert_damaged(&about("listing"), db.for_each(|_, _| true));
            let iterated: Result<Vec<_>, _> = db.iter().collect();
            assert_damaged(&about("iterator"), iterated);
            let (mut stream, copy) = (Vec::new(), scratch());
            let exported = db.export(&mut stream, &ExportOptions::new());
            assert_damaged(&about("export"), exported);
            let backup = db.backup(copy.path().join("copy"), &BackupOptions::new());
            assert_damaged(&about("backup"), backup);
            assert_eq!(db.check(None).damages, 1, "{mode}");
            let scrub = db.scrub(None);
            assert_eq!(scrub.passes, 2 * (round + 1), "{mode}");
            assert_eq!(scrub.damages, scrub.passes, "{mode}");
            let last = scrub.last_pass.expect("a pass has ended");
            assert_eq!((last.damages, last.records), (1, RECORDS - 1), "{mode}");
            assert!(last.first_damage.is_some());
        }
        // The store goes on, and the record can be written.
        assert!(!session.put(&key, value(configuration, VICTIM)).expect("a put"));
        let swap = session.compare_and_swap(&key, value(configuration, VICTIM), &damaged);
        assert_eq!(swap.expect("a swap"), Swap::Swapped);
        assert!(db.check(None).is_sound());
    }
}

fn a_damaged_key_or_header_is_noticed_by_each_get(configuration: &Configuration) {
    let key = configuration.key(VICTIM);
    let key_at = -(key.len().next_multiple_of(8) as i64);
    // A byte of the key, of its checksum, of the version.
    for offset in [key_at, key_at - 16, key_at - 8] {
        for mode in VerifyReads::ALL {
            let directory = scratch();
            let db = filled(configuration, directory.path(), mode);
            flip(configuration, directory.path(), VICTIM, offset);
            let mut session = db.session();
            for _ in 0..20 {
                assert_damaged(&format!("{mode}, byte {offset}"), session.get(&key));
                assert_damaged(&format!("{mode}, byte {offset}"), session.multi_get(&[&key]));
            }
            assert!(db.scrub(None).damages > 0, "{mode}, byte {offset}");
        }
    }
}

fn a_scan_hands_out_what_lies_in_front_of_damage(configuration: &Configuration) {
    let directory = scratch();
    let ordered = options(configuration, VerifyReads::Always).ordered(true);
    let db = open(directory.path(), &ordered);
    let mut session = db.session();
    let record = |number| (configuration.key(number), value(configuration, number));
    let mut expected: Vec<_> = (0..RECORDS).map(record).collect();
    session.multi_put(&expected).expect("room");
    expected.sort();
    let victim = configuration.key(VICTIM);
    flip(configuration, directory.path(), VICTIM, 9);
    let at = expected.iter().position(|(key, _)| *key == victim).expect("it is there");
    let (front, back) = (&expected[..at], &expected[at + 1..]);
    // From either end, first the sound records, then the damage, then nothing.
    let mut scan = session.scan(..).expect("ordered");
    let found: Vec<_> = scan.by_ref().map_while(Result::ok).collect();
    assert!(found == front, "{} instead of {at} records", found.len());
    assert!(scan.next().is_none() && scan.next_back().is_none());
    let mut scan = session.scan(..).expect("ordered");
    let found: Vec<_> = scan.by_ref().rev().map_while(Result::ok).collect();
    assert!(found.iter().eq(back.iter().rev()), "{} records from the end", found.len());
    assert_damaged("a scan", session.scan(..).expect("ordered").collect::<Result<Vec<_>, _>>());
    // Without copies, too; and who stops in front of the damage does not hear of it.
    let mut handed = 0;
    let count = |session: &mut chimera::Session, most, handed: &mut usize| {
        session.scan_with(.., most, |_, _| {
            *handed += 1;
            true
        })
    };
    assert_damaged("scan_with", count(&mut session, usize::MAX, &mut handed));
    assert_eq!(handed, at);
    assert_eq!(count(&mut session, at, &mut handed).expect("sound"), at);
    let mut left = at;
    let stopped = session.scan_with(.., usize::MAX, |_, _| {
        left -= 1;
        left > 0
    });
    assert_eq!(stopped.expect("sound"), at);
    // Behind the damage scans go on.
    let found = session.scan(victim[..].to_vec()..).expect("ordered").count();
    assert_eq!(found, 1, "the damage, and nothing behind it");
    let behind = session.scan((std::ops::Bound::Excluded(victim), std::ops::Bound::Unbounded));
    assert_eq!(behind.expect("ordered").map_while(Result::ok).count(), back.len());
}

fn a_scrub_goes_on_behind_damage(configuration: &Configuration) {
    let directory = scratch();
    let db = filled(configuration, directory.path(), VerifyReads::Never);
    let whole = db.scrub(None);
    assert_eq!((whole.records, whole.damages), (RECORDS, 0));
    let bytes = (0..RECORDS)
        .map(|number| configuration.key(number).len() + value(configuration, number).len());
    assert_eq!(whole.bytes, bytes.sum::<usize>() as u64);
    let victims = [0, 1, 2, 20, 33, 34, 58, 59];
    for number in victims {
        flip(configuration, directory.path(), number, 17);
    }
    let last = db.scrub(None).last_pass.expect("a pass has ended");
    assert_eq!(last.damages, victims.len() as u64);
    assert_eq!(last.records, RECORDS - victims.len() as u64);
}

fn a_scrub_beside_writers_finds_no_damage(configuration: &Configuration) {
    let directory = scratch();
    let options = configuration.options().reclaim_percent(20).scrub_every(None);
    let db = open(directory.path(), &options);
    let (writers, keys, is_over) = (3, 12, AtomicBool::new(false));
    configuration.fill(&mut db.session(), 0..keys, 1);
    at_once(2, |thread| {
        if thread == 1 {
            while !is_over.load(Ordering::Acquire) {
                let scrub = db.scrub(None);
                assert_eq!(scrub.damages, 0, "{:?}", scrub.last_pass);
            }
            return;
        }
        at_once(writers, |writer| {
            let (mut session, mut chance) = (db.session(), Chance::new(writer));
            for version in 2..20_000 {
                let number = chance.below(keys);
                let key = configuration.key(number);
                match chance.below(8) {
                    0 => drop(session.delete(&key).expect("a delete")),
                    1..4 => drop(session.fetch_add_u64(&key, 8, 1).expect("an addition")),
                    4 => drop(session.update(&key, |value| value.reverse()).expect("an update")),
                    _ => {
                        let value = configuration.value(number, version << 8 | writer);
                        session.put(&key, &value).expect("room");
                    }
                }
            }
        });
        is_over.store(true, Ordering::Release);
    });
    assert!(db.stats().scrub.passes > 0);
    assert!(db.check(None).is_sound());
}

/// A block that is being verified may be given back meanwhile, and its storage to the file system: then it is zeros.
fn a_check_beside_blocks_that_are_given_back_finds_no_damage(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &configuration.still());
    let is_over = AtomicBool::new(false);
    at_once(2, |thread| {
        if thread == 1 {
            while !is_over.load(Ordering::Acquire) {
                let report = db.check(None);
                assert_eq!(report.damages, 0, "{report:?}");
            }
            return;
        }
        for version in 0..ROUNDS {
            let mut session = db.session();
            configuration.fill(&mut session, 0..RECORDS, version);
            for number in 0..RECORDS {
                assert!(session.delete(configuration.key(number)).expect("a delete"));
            }
            drop(session);
            db.compact(1, None).expect("compaction");
        }
        is_over.store(true, Ordering::Release);
    });
    assert!(db.check(None).is_sound());
}

/// A store in memory, scrubbed every 64 seconds of a clock that stands still.
fn stepped(configuration: &Configuration) -> (Db, Arc<SteppedEnvironment>) {
    let environment = Arc::new(SteppedEnvironment::in_memory(7));
    let shared: Arc<dyn Environment> = environment.clone();
    let options = configuration.options().scrub_every(EVERY).anonymous(1 << 20);
    let pmem = Hardware::new(options.hardware_options()).expect("address space");
    let db = Db::open_on(pmem, &shared, Path::new(""), &options).expect("a new store");
    configuration.fill(&mut db.session(), 0..500, 1);
    while environment.step_tasks() {}
    (db, environment)
}

const EVERY: Duration = Duration::from_secs(64);

/// Moves the clock on, a second at a time.
fn advance(environment: &SteppedEnvironment, seconds: u64) {
    for _ in 0..seconds {
        environment.advance(1_000_000_000);
        while environment.step_tasks() {}
    }
}

fn a_scrub_in_the_background_ends_in_time_and_repeats(configuration: &Configuration) {
    let (db, environment) = stepped(configuration);
    let scrub = db.stats().scrub;
    assert_eq!((scrub.passes, scrub.records, scrub.last_pass), (0, 0, None));
    assert_eq!(scrub.pass_done_ratio, Some(0.0), "it rests first");
    let text = db.metrics_text();
    assert!(text.contains("\nchimera_scrub_last_pass_end_seconds 0\n"), "never: {text}");
    advance(&environment, 25);
    let scrub = db.stats().scrub;
    assert!((1..500).contains(&scrub.records), "in small steps: {scrub:?}");
    let done = scrub.pass_done_ratio.expect("there is a scrub");
    assert!((0.3..0.7).contains(&done), "by time: {scrub:?}");
    advance(&environment, 39);
    let scrub = db.stats().scrub;
    assert_eq!((scrub.passes, scrub.records, scrub.damages), (1, 500, 0));
    let last = scrub.last_pass.expect("it has ended");
    assert_eq!((last.records, last.bytes), (500, scrub.bytes));
    let ended = last.ended_unix_seconds;
    let text = db.metrics_text();
    let lines = [
        "chimera_scrub_passes_total 1".to_owned(),
        "chimera_scrub_records_total 500".to_owned(),
        format!("chimera_scrub_verified_bytes_total {}", scrub.bytes),
        "chimera_scrub_damages_total 0".to_owned(),
        format!("chimera_scrub_last_pass_end_seconds {ended}"),
        "chimera_scrub_last_pass_records 500".to_owned(),
        "chimera_scrub_pass_done_ratio 0".to_owned(),
    ];
    for line in lines {
        assert!(text.contains(&format!("\n{line}\n")), "{line}: {text}");
    }
    for pass in 2..5 {
        advance(&environment, EVERY.as_secs());
        let scrub = db.stats().scrub;
        assert_eq!((scrub.passes, scrub.records), (pass, 500 * pass));
        let last = scrub.last_pass.expect("it has ended");
        assert_eq!(last.ended_unix_seconds, ended + EVERY.as_secs() * (pass - 1));
    }
    db.close().expect("nobody else has it");
    environment.advance(u64::MAX / 4);
    assert!(!environment.step_tasks(), "no task is left");
}

fn a_scrub_of_a_moment_is_the_same_each_time(configuration: &Configuration) {
    let run = || {
        let (db, environment) = stepped(configuration);
        let steps = (0..150).map(|_| {
            advance(&environment, 1);
            format!("{:?}", db.stats().scrub)
        });
        steps.collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

fn a_store_closes_while_it_is_scrubbed(configuration: &Configuration) {
    let directory = scratch();
    let options = configuration.options().scrub_every(Duration::from_millis(1));
    let db = open(directory.path(), &options);
    configuration.fill(&mut db.session(), 0..500, 1);
    // A pass that begins with all records there.
    let before = db.stats().scrub.passes;
    while db.stats().scrub.passes < before + 2 {
        std::thread::yield_now();
    }
    let last = db.stats().scrub.last_pass.expect("passes have ended");
    assert_eq!((last.records, last.damages), (500, 0));
    assert!(last.ended_unix_seconds > 1_700_000_000, "by the calendar");
    db.close().expect("nobody else has it");
    let db = open(directory.path(), &Options::new().read_only(true).scrub_every(EVERY));
    assert!(db.stats().recovery.clean);
    assert_eq!(db.stats().scrub.passes, 0, "counted from the opening on");
}

fn a_scrub_can_be_switched_off(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &configuration.options().scrub_every(None));
    assert_eq!(db.stats().scrub.pass_done_ratio, None);
    assert!(!db.metrics_text().contains("chimera_scrub_pass_done_ratio"));
    assert_eq!(db.scrub(None).passes, 1, "on demand");
    drop(db);
    let refused = Db::open(directory.path(), &configuration.options().scrub_every(Duration::ZERO));
    assert!(matches!(refused, Err(Error::InvalidOptions(_))), "{refused:?}");
}
