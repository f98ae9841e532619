//! Salvage of a store that is not what it was when it was closed in order, and has damage beside that: each is said once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chimera::{Db, EngineKind, Error, Losses, Options};

use super::closing::engines;
use crate::tools::media::{FIRST_SEGMENT, SUPERBLOCK, change, find};
use crate::tools::{bytes_of, fill, filled_store, key, open, restore, scratch, small_any, value};

const RECORDS: u64 = 12;
/// Where the superblock says what the store held.
const TOTALS_AT: u64 = 144;
/// From the key of a record of Viper to its value.
const KEY_BEFORE: usize = 8;

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// What salvage has left out of a store, and whether it is not what it was when it was closed.
fn salvage(path: &Path, options: &Options) -> (Losses, bool) {
    let db = open(path, &options.clone().read_only(true).salvage(true));
    let recovery = db.stats().recovery;
    assert_eq!(recovery.losses, db.losses());
    (recovery.losses, recovery.differs_from_closing)
}

/// A store that was closed with some records more, and of which everything else is as it was before: its files then, and as they
/// are.
fn older(path: &Path, options: &Options, more: u64) -> (Files, Files) {
    restore(path, &Files::new());
    filled_store(path, options, RECORDS);
    let old = bytes_of(path);
    let db = open(path, options);
    fill(&mut db.session(), RECORDS..RECORDS + more, 1);
    db.close().expect("nobody else has it");
    let newer = bytes_of(path).remove(Path::new(SUPERBLOCK)).expect("a superblock");
    let mut mixed = old.clone();
    mixed.insert(SUPERBLOCK.into(), newer);
    restore(path, &mixed);
    (old, mixed)
}

/// Flips a bit in a byte of the first segment.
fn flip(path: &Path, at: usize) {
    change(path, FIRST_SEGMENT, |bytes| bytes[at] ^= 1);
}

/// Where the value of a key lies.
fn value_at(path: &Path, number: u64) -> usize {
    find(path, FIRST_SEGMENT, &value(number, 1))
}

/// The first byte of the first segment of these files that is not zero and of which a flipped bit makes salvage leave out this, in
/// a place that may have led to records.
fn find_damage(path: &Path, options: &Options, files: &Files, what: &str) -> usize {
    restore(path, files);
    let segment = &files[Path::new(FIRST_SEGMENT)];
    let is_it = |at: &usize| {
        flip(path, *at);
        let (losses, _) = salvage(path, options);
        flip(path, *at);
        losses.first.is_some_and(|first| first.what.contains(what)) && losses.may_be_more
    };
    let found = (0..segment.len()).filter(|at| segment[*at] != 0).find(is_it);
    found.unwrap_or_else(|| panic!("no byte is in the way of {what}"))
}

/// Asserts that so many places are left out, one of which says that the others do not explain all.
#[track_caller]
fn assert_more(what: &str, (losses, differs): &(Losses, bool), count: u64) {
    assert!(*differs, "{what}: {losses:?}");
    assert_eq!(losses.count, count, "{what}: {losses:?}");
    let first = losses.first.as_ref().expect("a loss");
    assert_eq!(first.at, TOTALS_AT, "{what}: {losses:?}");
    let says = first.what.contains("by more than the other places explain");
    assert!(says && !losses.may_be_more, "{what}: {losses:?}");
}

/// Asserts that so many places are left out, and that these explain all that is missing.
#[track_caller]
fn assert_explained(what: &str, (losses, _): &(Losses, bool), count: u64) {
    assert_eq!(losses.count, count, "{what}: {losses:?}");
    let is_damage = losses.first.as_ref().is_some_and(|first| first.at != TOTALS_AT);
    assert!(is_damage && !losses.may_be_more, "{what}: {losses:?}");
}

/// Asserts that so many places are left out, and that it is not known whether these explain all that is missing.
#[track_caller]
fn assert_not_known(what: &str, (losses, differs): &(Losses, bool), count: u64) {
    assert_eq!(losses.count, count, "{what}: {losses:?}");
    let is_damage = losses.first.as_ref().is_some_and(|first| first.at != TOTALS_AT);
    assert!(*differs && is_damage && losses.may_be_more, "{what}: {losses:?}");
    assert!(losses.to_string().ends_with("is not known"), "{losses}");
}

#[test]
fn records_that_are_left_out_are_not_missed_once_more() {
    for (kind, options) in engines() {
        let directory = scratch();
        let path = directory.path();
        filled_store(path, &options, RECORDS);
        for count in 1..4 {
            flip(path, value_at(path, count));
            let salvaged = salvage(path, &options);
            assert_explained(kind.name(), &salvaged, count);
            // The others count what leads to a record.
            assert_eq!(salvaged.1, kind == EngineKind::Viper, "{kind}");
        }
    }
}

#[test]
fn an_older_part_is_a_loss_of_its_own_beside_damage() {
    for (kind, options) in engines() {
        for more in [1, 3] {
            let directory = scratch();
            let path = directory.path();
            older(path, &options, more);
            let (losses, differs) = salvage(path, &options);
            assert!(differs && losses.count == 1 && !losses.may_be_more, "{kind}: {losses:?}");
            for count in 1..3 {
                flip(path, value_at(path, count));
                assert_more(kind.name(), &salvage(path, &options), count + 1);
            }
        }
    }
}

/// The number of records is right, and so are their keys.
#[test]
fn an_older_value_is_a_loss_of_its_own_beside_damage() {
    // ChameleonDB sums up its tables, and not the log behind them.
    for (kind, options) in engines().into_iter().filter(|(kind, _)| *kind != EngineKind::Chameleon)
    {
        let directory = scratch();
        let path = directory.path();
        filled_store(path, &options, RECORDS);
        let mut old = bytes_of(path);
        let db = open(path, &options);
        fill(&mut db.session(), 5..6, 2);
        db.close().expect("nobody else has it");
        let newer = bytes_of(path).remove(Path::new(SUPERBLOCK)).expect("a superblock");
        old.insert(SUPERBLOCK.into(), newer);
        restore(path, &old);
        flip(path, value_at(path, 3));
        let salvaged = salvage(path, &options);
        assert_more(kind.name(), &salvaged, 2);
        let first = salvaged.0.first.expect("a loss");
        assert!(first.what.contains("a part of the store is older"), "{kind}: {first:?}");
    }
}

/// Of the record it is known where it lies.
#[test]
fn a_record_whose_key_is_damaged_is_not_missed_once_more() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small_any(), RECORDS);
    flip(path, value_at(path, 3) - KEY_BEFORE);
    let salvaged = salvage(path, &small_any());
    assert_explained("one key", &salvaged, 1);
    assert!(salvaged.1);
    // Of two it is not known whether they were these.
    flip(path, value_at(path, 4) - KEY_BEFORE);
    assert_not_known("two keys", &salvage(path, &small_any()), 2);

    older(path, &small_any(), 1);
    flip(path, value_at(path, 3) - KEY_BEFORE);
    assert_more("a key and an older part", &salvage(path, &small_any()), 2);
    flip(path, value_at(path, 4) - KEY_BEFORE);
    assert_more("two keys and an older part", &salvage(path, &small_any()), 3);
}

/// A slot of the index that is damaged may have led to a record.
#[test]
fn a_damaged_entry_explains_one_record_at_most() {
    let kinds = [EngineKind::Hikv, EngineKind::PmemHash];
    for (kind, options) in engines().into_iter().filter(|(kind, _)| kinds.contains(kind)) {
        let directory = scratch();
        let path = directory.path();
        let (old, mixed) = older(path, &options, 1);
        let at = find_damage(path, &options, &old, "an entry of the index");
        flip(path, at);
        assert_not_known(kind.name(), &salvage(path, &options), 1);
        restore(path, &mixed);
        flip(path, at);
        assert_more(kind.name(), &salvage(path, &options), 2);
    }
}

/// A part that is damaged as a whole may have led to any number of records.
#[test]
fn a_part_that_is_lost_may_explain_everything() {
    for (kind, options) in engines() {
        let directory = scratch();
        let path = directory.path();
        let (old, mixed) = older(path, &options, 3);
        let what = match kind {
            EngineKind::Viper => "lengths of a record",
            EngineKind::Hikv | EngineKind::PmemHash => "segment of the index",
            EngineKind::Chameleon => "manifest",
            _ => "run of the log",
        };
        let at = find_damage(path, &options, &old, what);
        for files in [old, mixed] {
            restore(path, &files);
            flip(path, at);
            let salvaged = salvage(path, &options);
            assert_not_known(kind.name(), &salvaged, salvaged.0.count);
        }
    }
}

/// What salvage has left out it counts when it closes the store as the next opening does. Where it removed the record or wrote
/// over it, its log may still have it.
#[test]
fn a_store_that_was_salvaged_is_not_found_to_differ() {
    for (kind, options) in engines() {
        for step in ["nothing", "delete", "put"] {
            let directory = scratch();
            let path = directory.path();
            filled_store(path, &options, RECORDS);
            flip(path, value_at(path, 3));
            let db = open(path, &options.clone().salvage(true));
            match step {
                "delete" => drop(db.delete(key(3)).expect("its key is sound")),
                "put" => drop(db.put(key(3), value(3, 2)).expect("room")),
                _ => {}
            }
            db.close().expect("nobody else has it");
            for _ in 0..2 {
                let (losses, differs) = salvage(path, &options);
                assert!(!differs && losses.count <= 1, "{kind}, {step}: {losses:?}");
            }
            match Db::open(path, &options) {
                Ok(_) => {}
                Err(Error::Corrupted { at, .. }) => assert_ne!(at, TOTALS_AT, "{kind}, {step}"),
                Err(error) => panic!("{kind}, {step}: {error}"),
            }
        }
    }
}
