//! Damaged files: an error or the right value, never a wrong one, never a panic.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use chimera::{BackupOptions, Damage, Db, Error, ErrorKind, ExportOptions, Losses, Options};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{Records, assert_holds, number_of};
use crate::tools::media::change;
use crate::tools::{Chance, bytes_of, copy_store, restore, scratch};

pub(crate) const TESTS: &[Test] = tests![
    no_flipped_bit_is_a_panic,
    a_flipped_bit_is_an_error_or_does_no_harm: needs checksums,
    a_flipped_bit_of_a_value_is_found_and_salvage_keeps_the_rest: needs checksums damage_is_contained,
    what_salvage_leaves_out_is_said_by_every_report: needs checksums damage_is_contained,
    damage_that_opening_passes_over_is_said_when_it_is_come_to: needs checksums damage_is_contained,
    a_missing_file_is_an_error_or_does_no_harm,
    a_cut_file_is_an_error_or_does_no_harm,
    what_is_behind_the_end_of_a_file_does_no_harm,
    foreign_files_are_refused_or_left_alone,
];

const RECORDS: u64 = 120;
const VERSION: u64 = 2;

/// A closed store with some history, and what it holds.
fn store(configuration: &Configuration, path: &Path) -> Records {
    let db = configuration.open(path);
    let mut session = db.session();
    for version in 1..=VERSION {
        configuration.fill(&mut session, 0..RECORDS, version);
    }
    for number in (0..RECORDS).step_by(5) {
        assert!(session.delete(configuration.key(number)).expect("delete"));
    }
    drop(session);
    db.close().expect("nobody else has it");
    configuration.records((0..RECORDS).filter(|number| number % 5 != 0), VERSION)
}

/// The names of a store's files that have content.
fn names(path: &Path) -> Vec<PathBuf> {
    let files = bytes_of(path).into_iter().filter(|(_, bytes)| !bytes.is_empty());
    files.map(|(name, _)| name).collect()
}

/// Changes a store in many ways, one at a time, and opens it each time as any user might.
fn each_damage(
    configuration: &Configuration,
    mut damage: impl FnMut(&Path, &Path, &mut Chance) -> bool,
    mut check: impl FnMut(&Records, &str, chimera::Result<Db>, bool),
) {
    let (directory, victim) = (scratch(), scratch());
    let records = store(configuration, directory.path());
    let original = bytes_of(directory.path());
    copy_store(directory.path(), victim.path());
    let path = victim.path();
    for name in names(directory.path()) {
        let mut chance = Chance::new(1);
        for round in 0.. {
            restore(path, &original);
            if !damage(path, &name, &mut chance) {
                break;
            }
            let damaged = bytes_of(path);
            let about = format!("{}, round {round}", name.display());
            let plain = Options::new().create(false).huge_pages(false).populate_ahead_bytes(0);
            // As the engine does it; looking at all records first; in spite of damage.
            let ways = [plain.clone(), plain.clone().verify_at_open(true), plain.salvage(true)];
            for (options, salvage) in ways.iter().zip([false, false, true]) {
                restore(path, &damaged);
                let outcome = Db::open(path, options);
                check(&records, &about, outcome, salvage);
            }
        }
    }
}

/// Reads and writes everything; what is refused is refused.
fn exercise(configuration: &Configuration, db: &Db) {
    let _ = db.for_each(|_, _| true);
    let _ = db.check(None);
    let mut session = db.session();
    for number in 0..2 * RECORDS {
        let key = configuration.key(number);
        let _ = session.get(&key);
        let _ = session.put(&key, configuration.value(number, 9));
        let _ = session.fetch_add_u64(&key, 8, 1);
        let _ = session.delete(&key);
    }
    let _ = db.compact(1, None);
    let _ = db.stats();
    let _ = db.inspect(None);
}

/// Asserts that every record read is right; and that all of them are there, unless damage was said.
///
/// Salvage believes a damaged word that says which records are live: a record that was deleted or replaced may
/// come back by it, whole.
fn assert_right(
    configuration: &Configuration,
    records: &Records,
    about: &str,
    db: &Db,
    salvage: bool,
) {
    let is_right = |key: &[u8], found: &[u8]| {
        let number = number_of(key);
        let was_written = |version| found == configuration.value(number, version);
        records.get(key).is_some_and(|value| value == found)
            || salvage && number < RECORDS && (1..=VERSION).any(was_written)
    };
    let mut session = db.session();
    for key in records.keys() {
        match session.get(key) {
            Ok(Some(found)) => assert!(is_right(key, &found), "{about}: a wrong value"),
            Ok(None) => assert!(salvage, "{about}: key {} is gone", number_of(key)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Damaged, "{about}: {error}"),
        }
    }
    for record in db {
        match record {
            Ok((key, found)) => assert!(is_right(&key, &found), "{about}: a foreign record"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Damaged, "{about}: {error}"),
        }
    }
}

/// Asserts that an error of opening a store says something of use.
fn assert_says(about: &str, error: &Error) {
    let kinds = [
        ErrorKind::Damaged,
        ErrorKind::Mismatch,
        ErrorKind::Unsupported,
        ErrorKind::NotFound,
        ErrorKind::Io,
    ];
    assert!(kinds.contains(&error.kind()), "{about}: {error}");
    assert!(error.to_string().len() > 20, "{about}: {error}");
}

/// Flips one bit of a file, at so many places; most of the places have content.
fn flip(places: i32) -> impl FnMut(&Path, &Path, &mut Chance) -> bool {
    let mut left = BTreeMap::new();
    move |path, name, chance| {
        let left = left.entry(name.to_owned()).or_insert(places);
        *left -= 1;
        change(path, &name.to_string_lossy(), |bytes| {
            let content: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
            let at = match chance.below(4) {
                0 => chance.below(bytes.len() as u64) as usize,
                _ => content[chance.below(content.len() as u64) as usize],
            };
            bytes[at] ^= 1 << chance.below(8);
        });
        *left >= 0
    }
}

fn no_flipped_bit_is_a_panic(configuration: &Configuration) {
    each_damage(configuration, flip(25), |_, about, outcome, _| match outcome {
        Ok(db) => exercise(configuration, &db),
        Err(error) => assert_says(about, &error),
    });
}

fn a_flipped_bit_is_an_error_or_does_no_harm(configuration: &Configuration) {
    let (mut opened, mut refused) = (0, 0);
    each_damage(configuration, flip(100), |records, about, outcome, salvage| match outcome {
        Ok(db) => {
            opened += 1;
            assert_right(configuration, records, about, &db, salvage);
        }
        Err(error) => {
            refused += 1;
            assert_says(about, &error);
        }
    });
    assert!(opened > 50 && refused > 20, "{opened} opened, {refused} refused");
}

/// Damages the value of a key in a store with these files.
fn damage_value(
    configuration: &Configuration,
    number: u64,
    path: &Path,
    original: &BTreeMap<PathBuf, Vec<u8>>,
) {
    restore(path, original);
    // Its first words are nowhere else: they are of this key and version.
    let words = &configuration.value(number, VERSION)[..24];
    let place = original.iter().find_map(|(name, bytes)| {
        let at = bytes.windows(words.len()).position(|window| window == words)?;
        Some((name.to_string_lossy().into_owned(), at))
    });
    let (name, at) = place.expect("the value is in a file");
    change(path, &name, |bytes| bytes[at + 9] ^= 16);
}

fn what_salvage_leaves_out_is_said_by_every_report(configuration: &Configuration) {
    let (directory, copy) = (scratch(), scratch());
    let records = store(configuration, directory.path());
    let original = bytes_of(directory.path());
    let db = Db::open(directory.path(), &configuration.options().salvage(true)).expect("open");
    assert_eq!((db.losses(), db.len()), (Losses::default(), records.len() as u64));
    drop(db);
    damage_value(configuration, 12, directory.path(), &original);
    let error = Db::open(directory.path(), &configuration.options().verify_at_open(true));
    let Error::Corrupted { what, at } = error.expect_err("damage") else { panic!("not damage") };
    let options = configuration.options().salvage(true).read_only(true);
    let db = Db::open(directory.path(), &options).expect("salvage opens it");
    let losses = db.losses();
    assert_eq!((losses.count, losses.first.as_ref()), (1, Some(&Damage { at, what })));
    let stats = db.stats();
    assert_eq!((&stats.losses, &stats.recovery.losses), (&losses, &losses));
    assert_eq!(db.inspect(None).losses, losses);
    let export = db.export(&mut Vec::new(), &ExportOptions::new()).expect("export");
    assert_eq!((export.records, &export.losses), (records.len() as u64 - 1, &losses));
    let backup = db.backup(copy.path().join("copy"), &BackupOptions::new()).expect("backup");
    assert_eq!((backup.records, &backup.losses), (records.len() as u64 - 1, &losses));
    // Whoever comes to the same place again does not count it again.
    let listed = db.iter();
    assert_eq!(listed.losses(), losses);
    assert_eq!(listed.flatten().count(), records.len() - 1);
    assert_eq!(db.get(configuration.key(12)).expect("as if it were absent"), None);
    assert_eq!(db.losses(), losses);
}

fn damage_that_opening_passes_over_is_said_when_it_is_come_to(configuration: &Configuration) {
    let directory = scratch();
    let records = store(configuration, directory.path());
    let original = bytes_of(directory.path());
    damage_value(configuration, 12, directory.path(), &original);
    let options = configuration.options().salvage(true).verify_at_open(false).read_only(true);
    let way = |read: &dyn Fn(&Db) -> chimera::Result<bool>, about: &str| {
        let db = Db::open(directory.path(), &options).expect("salvage opens it");
        match read(&db) {
            Ok(is_whole) => {
                assert!(!is_whole, "{about}: the value is damaged");
                assert_eq!(db.losses().count, 1, "{about}: left out without a word");
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Damaged, "{about}: {error}"),
        }
    };
    let key = configuration.key(12);
    way(&|db| Ok(db.get(&key)?.is_some()), "get");
    way(&|db| Ok(db.session().multi_get(&[&key])?[0].is_some()), "multi_get");
    let is_all = |listed: usize| listed == records.len();
    way(&|db| Ok(is_all(db.iter().collect::<chimera::Result<Vec<_>>>()?.len())), "iter");
    way(
        &|db| {
            let report = db.export(&mut Vec::new(), &ExportOptions::new())?;
            assert_eq!(report.losses, db.losses());
            Ok(is_all(report.records as usize))
        },
        "export",
    );
}

fn a_flipped_bit_of_a_value_is_found_and_salvage_keeps_the_rest(configuration: &Configuration) {
    let directory = scratch();
    let records = store(configuration, directory.path());
    let original = bytes_of(directory.path());
    for number in (1..RECORDS).step_by(11).filter(|number| number % 5 != 0) {
        let key = configuration.key(number);
        let damage = || damage_value(configuration, number, directory.path(), &original);
        damage();
        let error = Db::open(directory.path(), &configuration.options().verify_at_open(true));
        let error = error.expect_err("damage");
        assert!(matches!(error, Error::Corrupted { .. }), "{error}");
        let db = Db::open(directory.path(), &configuration.options().salvage(true));
        let db = db.expect("salvage opens it");
        assert_eq!(db.get(&key).expect("as if it were absent"), None);
        assert_eq!(db.stats().records_damaged, 1);
        let mut left = records.clone();
        left.remove(&key);
        for (key, value) in &left {
            assert_eq!(db.get(key).expect("get").as_ref(), Some(value));
        }
        assert_eq!(db.len(), left.len() as u64);
        drop(db);
        // Found by a read as well, where opening does not look at values.
        damage();
        let options = configuration.options().verify_at_open(false).read_only(true);
        if let Ok(db) = Db::open(directory.path(), &options) {
            let error = db.get(&key).expect_err("damage");
            assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
            assert!(!db.check(None).is_sound());
        }
    }
}

/// Does damage, and expects that the store is right as it was, or refused.
fn right_or_refused(
    configuration: &Configuration,
    damage: impl FnMut(&Path, &Path, &mut Chance) -> bool,
) {
    each_damage(configuration, damage, |records, about, outcome, salvage| match outcome {
        Ok(db) => assert_right(configuration, records, about, &db, salvage),
        Err(error) => assert_says(about, &error),
    });
}

fn a_missing_file_is_an_error_or_does_no_harm(configuration: &Configuration) {
    let mut removed = BTreeSet::new();
    let remove = |path: &Path, name: &Path, _: &mut Chance| {
        std::fs::remove_file(path.join(name)).expect("a file of the store");
        removed.insert(name.to_owned())
    };
    right_or_refused(configuration, remove);
}

fn a_cut_file_is_an_error_or_does_no_harm(configuration: &Configuration) {
    let mut rounds = BTreeMap::new();
    let cut = |path: &Path, name: &Path, chance: &mut Chance| {
        let round = rounds.entry(name.to_owned()).or_insert(0);
        *round += 1;
        change(path, &name.to_string_lossy(), |bytes| {
            let length = match *round {
                1 => 0,
                2 => bytes.len() - 1,
                3 => bytes.len() / 2,
                _ => chance.below(bytes.len() as u64) as usize,
            };
            bytes.truncate(length);
        });
        *round <= 12
    };
    right_or_refused(configuration, cut);
}

fn what_is_behind_the_end_of_a_file_does_no_harm(configuration: &Configuration) {
    let mut rounds = BTreeMap::new();
    let extend = |path: &Path, name: &Path, chance: &mut Chance| {
        let round = rounds.entry(name.to_owned()).or_insert(0);
        *round += 1;
        change(path, &name.to_string_lossy(), |bytes| {
            let more = [1, 8, 4096, 70_000][*round % 4];
            bytes.extend((0..more).map(|_| chance.word() as u8));
        });
        *round <= 4
    };
    right_or_refused(configuration, extend);
}

fn foreign_files_are_refused_or_left_alone(configuration: &Configuration) {
    let mut rounds = BTreeMap::new();
    let replace = |path: &Path, name: &Path, chance: &mut Chance| {
        let round = rounds.entry(name.to_owned()).or_insert(0);
        *round += 1;
        change(path, &name.to_string_lossy(), |bytes| match *round {
            1 => bytes.fill(0),
            2 => bytes.fill(0xff),
            _ => bytes.fill_with(|| chance.word() as u8),
        });
        *round <= 4
    };
    right_or_refused(configuration, replace);
    // Beside the store's own files.
    let directory = scratch();
    let records = store(configuration, directory.path());
    let letter = directory.path().join("letter");
    std::fs::write(&letter, "dear").expect("a file");
    assert_holds(&configuration.open(directory.path()), &records);
    assert_eq!(std::fs::read(&letter).expect("still there"), b"dear");
}
