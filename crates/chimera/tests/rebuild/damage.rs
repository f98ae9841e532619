//! Damage that is found after the store was opened.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Once;

use chimera::{Db, Error};

use crate::tools::media::{SUPERBLOCK_BYTES, change, forge_superblock};
use crate::tools::{bytes_of, restore, scratch};
use crate::{Stepped, fill, options, put, sizes};

/// The name of the file that holds `bytes`, and where.
fn find(path: &Path, bytes: &[u8]) -> (String, usize) {
    let found = bytes_of(path).into_iter().find_map(|(name, all)| {
        let at = all.windows(bytes.len()).position(|window| window == bytes)?;
        Some((name.to_string_lossy().into_owned(), at))
    });
    found.expect("it is in a file")
}

fn is_damage<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::Corrupted { .. }))
}

#[test]
fn a_damaged_record_is_counted_and_its_bytes_stay() {
    let directory = scratch();
    let path = directory.path();
    let all = fill(path, &options(), 400);
    let files = bytes_of(path);
    for key in all.keys().step_by(all.len() / 4).cloned() {
        restore(path, &files);
        let number = u64::from_le_bytes(key[..8].try_into().expect("8 bytes"));
        let mut model = all.clone();
        let item = [key.clone(), model[&key].clone()].concat();
        let (name, at) = find(path, &item);
        change(path, &name, |bytes| bytes[at + 9] ^= 16);
        let damaged = bytes_of(path);
        assert!(is_damage(&Db::open(path, &options().verify_at_open(true))));
        restore(path, &damaged);
        let store = Stepped::open(path, &options());
        assert!(is_damage(&store.db.get(&key)));
        assert_eq!(sizes(&store.db).space_damages, 0, "nobody was there yet");
        store.finish();
        assert_eq!(sizes(&store.db).space_damages, 1);
        model.remove(&key);
        let mut session = store.db.session();
        for version in 2..8 {
            for other in (0..600).filter(|other| *other != number) {
                put(&mut session, &mut model, other, version);
            }
        }
        assert!(is_damage(&session.get(&key)));
        assert!(is_damage(&session.put(&key, b"a value")) && is_damage(&session.delete(&key)));
        for (key, value) in &model {
            assert_eq!(session.get(key).expect("sound").as_ref(), Some(value));
        }
        drop(session);
        assert_eq!(store.db.check(None).damages, 1);
        store.db.close().expect("nobody else has it");
        let mut damaged = item.clone();
        damaged[9] ^= 16;
        assert_eq!(find(path, &damaged), (name, at), "nobody has written there");
        let salvaged = Db::open(path, &options().salvage(true)).expect("a store");
        assert_eq!((salvaged.stats().records_damaged, salvaged.len()), (1, model.len() as u64));
    }
}

thread_local! {
    /// What this thread has logged as an error.
    static ERRORS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

struct Logger;

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if record.level() == log::Level::Error {
            ERRORS.with(|errors| errors.borrow_mut().push(record.args().to_string()));
        }
    }

    fn flush(&self) {}
}

/// The errors that `work` logs in this thread.
fn logged(work: impl FnOnce()) -> Vec<String> {
    static LOGGER: Once = Once::new();
    LOGGER.call_once(|| {
        log::set_logger(&Logger).expect("no other logger");
        log::set_max_level(log::LevelFilter::Error);
    });
    ERRORS.with(RefCell::take);
    work();
    ERRORS.with(RefCell::take)
}

#[test]
fn damage_is_logged_once_with_its_count() {
    let directory = scratch();
    let path = directory.path();
    let model = fill(path, &options(), 700);
    for key in model.keys().step_by(10) {
        let item = [key.clone(), model[key].clone()].concat();
        let (name, at) = find(path, &item);
        change(path, &name, |bytes| bytes[at + 9] ^= 16);
    }
    let count = model.len().div_ceil(10) as u64;
    let damaged = bytes_of(path);
    for closed_early in [false, true] {
        restore(path, &damaged);
        let store = Stepped::open(path, &options());
        let mut found = count;
        let errors = logged(|| {
            if closed_early {
                store.step(8);
                found = sizes(&store.db).space_damages;
                assert!((2..count).contains(&found), "{found} of {count}");
            } else {
                store.finish();
                assert_eq!(sizes(&store.db).space_damages, count);
            }
            store.db.close().expect("nobody else has it");
        });
        let text = format!("damage was found {found} times, first at byte ");
        assert!(errors.len() == 1 && errors[0].starts_with(&text), "{errors:?}");
    }
}

#[test]
fn a_damaged_entry_is_refused_when_the_store_is_opened() {
    let directory = scratch();
    let path = directory.path();
    fill(path, &options(), 400);
    let files = bytes_of(path);
    let mut refused = 0;
    for (name, bytes) in &files {
        // Lines of the index: four slots, of which the second words have their highest bits set.
        let lines = (0..bytes.len() / 64).filter(|line| {
            let slot = |slot: usize| &bytes[64 * line + 16 * slot..64 * line + 16 * slot + 16];
            (0..4).all(|number| slot(number)[15] & 0x80 > 0 && slot(number)[8..13] != [0; 5])
        });
        for line in lines.step_by(5) {
            restore(path, &files);
            change(path, &name.to_string_lossy(), |bytes| bytes[64 * line + 10] ^= 4);
            refused += u64::from(is_damage(&Db::open(path, &options())));
        }
    }
    assert!(refused > 3, "{refused} refused");
}

/// Where byte `at` of a file lies in the pool.
fn place(name: &Path, at: usize) -> u64 {
    let number = name.to_string_lossy().strip_prefix("segment-").and_then(|it| it.parse().ok());
    number.map_or(0, |number: u64| SUPERBLOCK_BYTES + (number << 16)) + at as u64
}

/// The position of the slot at `slot_at`, as docs/FORMAT.md has it.
fn position(slot_at: u64, signature: u64, at: u64) -> u64 {
    let mixed = signature
        .wrapping_add(slot_at)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(at.wrapping_mul(0xd6e8_feb8_6659_fd93));
    at | mixed >> 49 << 48 | 1 << 63
}

/// A reader looks at no item when it opens the store.
#[test]
fn two_entries_of_one_item_are_found_by_a_reader_that_checks() {
    let directory = scratch();
    let path = directory.path();
    fill(path, &options(), 400);
    let files = bytes_of(path);
    let mut found = 0;
    for (name, bytes) in &files {
        for (at, signature, leads_to) in entries(name, bytes).into_iter().step_by(40) {
            // A slot of the same bucket that is empty.
            let bucket = at / 64 * 64;
            let mut slots = (bucket..bucket + 64).step_by(16);
            let is_empty = |slot: &usize| {
                let word = (place(name, *slot) | 0x2b5d << 48).to_le_bytes();
                bytes[slot + 8..slot + 16] == word
            };
            let Some(empty) = slots.find(is_empty) else { continue };
            restore(path, &files);
            change(path, &name.to_string_lossy(), |bytes| {
                let forged = position(place(name, empty), signature, leads_to);
                bytes.copy_within(at..at + 8, empty);
                bytes[empty + 8..empty + 16].copy_from_slice(&forged.to_le_bytes());
            });
            // As if the process had been killed: of a store that was closed in order opening counts the entries.
            forge_superblock(path, &[(8, 2), (9, 0), (18, 0), (19, 0), (20, 0)]);
            let db = Db::open(path, &options().read_only(true)).expect("a store");
            let report = db.check(None);
            assert!(report.damages > 0 && report.first_damage.is_some(), "{report:?}");
            assert!(!db.check(None).is_sound(), "the second time, too");
            found += 1;
        }
    }
    assert!(found > 2, "{found} forged");
}

/// Offsets in `bytes` of the slots with an entry, its signature and where it leads to.
fn entries(name: &Path, bytes: &[u8]) -> Vec<(usize, u64, u64)> {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let entry = |at: usize| {
        let (signature, found) = (word(at), word(at + 8));
        let leads_to = found & ((1 << 48) - 1);
        (leads_to > 0 && found == position(place(name, at), signature, leads_to))
            .then_some((at, signature, leads_to))
    };
    (0..bytes.len() / 16).filter_map(|slot| entry(16 * slot)).collect()
}

#[test]
fn an_entry_that_leads_to_no_place_of_an_item_is_refused_when_the_store_is_opened() {
    let directory = scratch();
    let path = directory.path();
    fill(path, &options(), 400);
    let files = bytes_of(path);
    let (name, all) = files
        .iter()
        .map(|(name, bytes)| (name, entries(name, bytes)))
        .max_by_key(|(_, all)| all.len())
        .expect("a file");
    assert!(all.len() > 100, "{} entries", all.len());
    let mut refused = 0_u64;
    for (at, signature, leads_to) in all.iter().step_by(20) {
        // Between two units, before the first run of items, behind the last one.
        for forged in [leads_to + 8, 4096, 1 << 30] {
            restore(path, &files);
            let word = position(place(name, *at), *signature, forged).to_le_bytes();
            change(path, &name.to_string_lossy(), |bytes| {
                bytes[at + 8..at + 16].copy_from_slice(&word);
            });
            refused += u64::from(is_damage(&Db::open(path, &options())));
        }
        // An entry that was split off means nothing, wherever it leads to.
        assert!(refused.is_multiple_of(3), "{refused} refused");
    }
    assert!(refused > 6, "{refused} refused");
}
