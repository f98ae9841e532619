//! Seeded random damage of a valid store's files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chimera::Db;

use crate::tools::media::{SUPERBLOCK_BYTES, checked_word, checked_word_at, forge_superblock};
use crate::tools::{
    Chance, SMALL, bytes_of, copy_store, fill, from_environment, key, open, restore, scratch,
    small, value, version_of,
};

const KEYS: u64 = 200;
const VERSIONS: u64 = 3;

/// A store with some history: overwritten and deleted records, partly filled blocks, an owned block.
fn store(path: &Path) {
    let db = open(path, &small());
    let mut session = db.session();
    for version in 1..=VERSIONS {
        fill(&mut session, 0..KEYS, version);
        for number in (0..KEYS).filter(|number| number % 3 == version % 3) {
            session.delete(key(number)).expect("it is there");
        }
    }
    drop(session);
    db.close().expect("nobody else has it");
}

/// Damages the files of a store in one of many ways.
fn damage(chance: &mut Chance, path: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    let names: Vec<_> = files.keys().cloned().collect();
    let name = &names[chance.below(names.len() as u64) as usize];
    let bytes = files.get_mut(name).expect("a file of the store");
    let length = bytes.len().max(1) as u64;
    let at = chance.below(length) as usize;
    let span = |chance: &mut Chance, most: u64| {
        let span = 1 + chance.below(most) as usize;
        at..(at + span).min(length as usize)
    };
    match chance.below(9) {
        0 | 1 if !bytes.is_empty() => bytes[at] ^= 1 << chance.below(8),
        2 if !bytes.is_empty() => span(chance, 64).for_each(|at| bytes[at] = chance.word() as u8),
        3 if !bytes.is_empty() => bytes[span(chance, 2000)].fill(0),
        4 if !bytes.is_empty() => bytes[span(chance, 2000)].fill(0xff),
        5 => {
            // Blocks, pages or words over others.
            let unit = [8, 48, 256, 512][chance.below(4) as usize];
            let units = length / unit;
            if units > 1 {
                let from = (chance.below(units) * unit) as usize;
                let to = (chance.below(units) * unit) as usize;
                bytes.copy_within(from..from + unit as usize, to);
            }
        }
        6 => bytes.truncate(at),
        7 if bytes.len() >= 8 => {
            // A valid word with a number of its own: flags, bitsets, used blocks.
            let at = at.min(bytes.len() - 8) / 8 * 8;
            let number = chance.below(64) as u32;
            let word = match name.to_str().and_then(|name| name.strip_prefix("segment-")) {
                Some(segment) => {
                    let segment: u64 = segment.parse().expect("the number of a segment");
                    let base = SUPERBLOCK_BYTES + segment * SMALL.segment_bytes;
                    checked_word_at(number, base + at as u64)
                }
                None => checked_word(number),
            };
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        _ => {
            restore(path, files);
            let word = 1 + chance.below(11) as usize;
            let forged = if chance.below(2) == 0 { chance.below(10_000) } else { chance.word() };
            if files.get(Path::new("superblock")).is_some_and(|bytes| bytes.len() == 8192) {
                forge_superblock(path, &[(word, forged)]);
                *files = bytes_of(path);
            }
        }
    }
}

/// Reads and writes everything; what comes back must have been written.
fn exercise(db: &Db, writes: bool) {
    let stats = db.stats();
    if (stats.key_bytes, stats.value_bytes) != (8, 24) {
        // Forged sizes: there are no right values any more.
        let _ = db.for_each(|_, _| true);
        let _ = db.check(None);
        return;
    }
    let mut session = db.session();
    let numbers: BTreeMap<_, _> = (0..2 * KEYS).map(|number| (key(number), number)).collect();
    let _ = db.for_each(|key, value| {
        let number = numbers.get(key).expect("a key that was written");
        let version = version_of(*number, value);
        assert!((1..=VERSIONS).contains(&version), "key {number} has version {version}");
        true
    });
    for number in 0..KEYS {
        if let Ok(Some(found)) = session.get(key(number)) {
            assert!((1..=VERSIONS).contains(&version_of(number, &found)));
        }
    }
    let _ = db.check(None);
    if writes {
        for number in 0..2 * KEYS {
            let put = session.put(key(number), value(number, 4)).is_ok();
            match session.get(key(number)) {
                Ok(Some(found)) if put => assert_eq!(found, value(number, 4)),
                Ok(None) if put => panic!("an acknowledged put of {number} is gone"),
                Ok(_) | Err(_) => {}
            }
            if number % 5 == 0 {
                let _ = session.delete(key(number));
            }
        }
        let _ = db.check(None);
    }
}

#[test]
fn random_damage_is_refused_or_does_no_harm() {
    let (directory, victim) = (scratch(), scratch());
    store(directory.path());
    copy_store(directory.path(), victim.path());
    let path = victim.path();
    let original = bytes_of(directory.path());
    let rounds = from_environment("CHIMERA_TEST_FUZZ_ROUNDS", 1500);
    let first = from_environment("CHIMERA_TEST_FUZZ_FIRST", 0);
    let (mut opened, mut refused) = (0, 0);
    for round in first..first + rounds {
        let mut chance = Chance::new(round);
        let mut files = original.clone();
        for _ in 0..=chance.below(3) {
            damage(&mut chance, path, &mut files);
        }
        // For whoever has to find out about a panic.
        let _announce = Announce(round);
        for options in [small().read_only(true), small(), small().salvage(true)] {
            restore(path, &files);
            let options = options.verify_at_open(chance.below(4) != 0);
            let options = if chance.below(2) == 0 { options } else { options.recovery_threads(2) };
            let writes = chance.below(2) == 0;
            match Db::open(path, &options) {
                Ok(db) => {
                    opened += 1;
                    exercise(&db, writes);
                }
                Err(error) => {
                    refused += 1;
                    assert!(error.to_string().len() > 20, "{error}");
                }
            }
        }
    }
    assert!(opened > rounds / 4 && refused > rounds / 4, "{opened} opened, {refused} refused");
}

/// Says which round it was that a panic ended.
struct Announce(u64);

impl Drop for Announce {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in round {}: CHIMERA_TEST_FUZZ_FIRST={} repeats it", self.0, self.0);
        }
    }
}
