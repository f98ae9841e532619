//! Large values on a plain file, by several sessions at once, beside syncs, checkpoints and pages that are given back. Then the
//! process is killed.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chimera::{ChameleonOptions, Db, Durability, EngineKind, Options, Session};
use chimera_pmem::Medium;

use super::{alone, run_child, store_of_child};

const KEYS: u64 = 16;
const ROUNDS: u64 = 20;
/// So little that pages have to be given back.
const BUDGET: u64 = 40 << 20;

fn options(engine: EngineKind) -> Options {
    let smaller = |chameleon: ChameleonOptions| chameleon.expected_keys(10_000).dram_bytes(4 << 20);
    let durability = Durability::Group { max_delay: Duration::from_millis(3) };
    let options = Options::new().engine(engine).memory_budget(BUDGET).durability(durability);
    let options = options.checkpoint_interval(Duration::from_millis(10));
    if engine == EngineKind::Chameleon { options.chameleon(smaller) } else { options }
}

/// The value of a key in a round: of 4 to 150 kB, and no whole word.
fn value(key: u64, round: u64) -> Vec<u8> {
    let mixed = (key << 32 | round).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let words = 500 + mixed % 18_250;
    let word = |number: u64| [key << 32 | round, mixed ^ number][usize::from(number > 0)];
    let mut value: Vec<u8> = (0..words).flat_map(|number| word(number).to_le_bytes()).collect();
    value.extend_from_slice(&[round as u8; 3]);
    value
}

/// Asserts that a value is one of its key as a whole; of which round.
fn round_of(key: u64, found: &[u8]) -> u64 {
    let first = u64::from_le_bytes(*found.first_chunk().expect("a word"));
    assert_eq!(first >> 32, key);
    let round = first & u64::from(u32::MAX);
    assert!(found == value(key, round), "key {key} has a mixture that begins in round {round}");
    round
}

fn overwrite(mut session: Session, keys: &[u64]) {
    for round in 0..ROUNDS {
        for &key in keys {
            session.put(key.to_le_bytes(), value(key, round)).expect("a put");
            if (key + round).is_multiple_of(5) {
                let found = session.get(key.to_le_bytes()).expect("a get").expect("it is there");
                assert_eq!(round_of(key, &found), round);
            }
        }
    }
}

/// Each value is one of those written, and none is older than one that was read before.
fn read(mut session: Session, is_done: &AtomicBool) {
    let mut rounds = [0; KEYS as usize];
    while !is_done.load(Ordering::Acquire) {
        for (key, last) in (0..).zip(&mut rounds) {
            if let Some(found) = session.get(u64::to_le_bytes(key)).expect("a get") {
                let round = round_of(key, &found);
                assert!(round >= *last, "key {key}: round {round} after {last}");
                *last = round;
            }
        }
    }
}

/// Uses a store and ends this process without closing it.
fn use_and_die(engine: EngineKind, store: &Path) -> ! {
    let db = Db::open(store, &options(engine)).expect("a store");
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(db.session(), &is_done));
        let writers = [0, 1].map(|first| {
            let keys: Vec<_> = (first..KEYS).step_by(2).collect();
            let session = db.session();
            scope.spawn(move || overwrite(session, &keys))
        });
        for writer in writers {
            writer.join().expect("a writer");
        }
        is_done.store(true, Ordering::Release);
        reader.join().expect("a reader");
    });
    println!("all is written");
    let killed = Command::new("kill").args(["-KILL", &std::process::id().to_string()]).status();
    panic!("it goes on: {killed:?}");
}

fn survives_a_kill(test: &str, engine: EngineKind) {
    if let Some(store) = store_of_child() {
        use_and_die(engine, &store);
    }
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a directory");
    let store = directory.path().join("store");
    let output = run_child("true", &format!("large_values::{test}"), &store);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(out.contains("all is written"), "{}\n{out}\n{err}", output.status);
    let db = Db::open(&store, &options(engine)).expect("it opens after a kill");
    let mut session = db.session();
    for key in 0..KEYS {
        let found = session.get(key.to_le_bytes()).expect("a get").expect("it is there");
        assert_eq!(round_of(key, &found), ROUNDS - 1);
    }
    drop(session);
    assert!(db.check(None).is_sound());
    if db.stats().medium == Medium::File {
        assert!(db.stats().journal.is_some());
    }
}

#[test]
fn large_values_of_viper_survive_a_kill_beside_checkpoints() {
    survives_a_kill("large_values_of_viper_survive_a_kill_beside_checkpoints", EngineKind::Viper);
}

#[test]
fn large_values_of_hikv_survive_a_kill_beside_checkpoints() {
    survives_a_kill("large_values_of_hikv_survive_a_kill_beside_checkpoints", EngineKind::Hikv);
}

#[test]
fn large_values_of_chameleon_survive_a_kill_beside_checkpoints() {
    survives_a_kill(
        "large_values_of_chameleon_survive_a_kill_beside_checkpoints",
        EngineKind::Chameleon,
    );
}
