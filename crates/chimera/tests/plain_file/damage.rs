//! A journal that was damaged, lost, exchanged or put back to an earlier moment: no record is missing and none is older
//! without an error; and salvage keeps what came before the damage and says what is lost.

use std::collections::BTreeMap;

use chimera::{Error, RecoveryStats};
use chimera_pmem::environment::{FileProvider, MemoryFiles, OpenMode};

use super::*;
use crate::tools::{assert_fails, contents, copy_store, fill, key, open, scratch_on_disk, value};

pub(super) const STORE: &str = "store";
const PAGE: usize = 4096;
/// Where entries begin in the file.
const DATA_AT: usize = 2 * PAGE;
/// The start of the machine that stores were written in, and the next one.
const BOOT: u64 = 1;
const NEXT_BOOT: u64 = 2;

/// The files of a store, by name.
pub(super) type Left = BTreeMap<String, Vec<u8>>;
type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

pub(super) fn left_of(files: &MemoryFiles) -> Left {
    let names = files.list(Path::new(STORE)).expect("a store");
    let read = |name: &Path| {
        let file = files.open(&Path::new(STORE).join(name), OpenMode::Read).expect("listed");
        let mut bytes = vec![0; file.length().expect("a length") as usize];
        file.read_at(0, &mut bytes).expect("read");
        (name.display().to_string(), bytes)
    };
    names.iter().map(|name| read(name)).collect()
}

pub(super) fn files_of(left: &Left) -> Arc<MemoryFiles> {
    let files = MemoryFiles::new().on(Medium::File);
    files.create_directory(Path::new(STORE)).expect("made");
    for (name, bytes) in left {
        let file = files.open(&Path::new(STORE).join(name), OpenMode::CreateNew).expect("made");
        file.allocate(0, bytes.len() as u64).expect("room");
        file.write_at(0, bytes).expect("written");
    }
    Arc::new(files)
}

fn open_left(left: &Left, boot: u64, salvage: bool) -> Result<(Contents, RecoveryStats)> {
    let options = options(GROUP).salvage(salvage).read_only(boot.is_multiple_of(2));
    let (db, _environment) = open_at(boot, files_of(left), Path::new(STORE), &options)?;
    let found = contents(&db);
    Ok((found, db.stats().recovery))
}

/// What a killed store leaves at some moments: after it was opened, in the middle, at its end; and what it held last.
fn killed() -> (Vec<Left>, Contents) {
    let files = Arc::new(MemoryFiles::new().on(Medium::File));
    let (db, _environment) =
        open_at(BOOT, files.clone(), Path::new(STORE), &options(GROUP)).expect("opens");
    let mut moments = vec![left_of(&files)];
    let mut session = db.session();
    for round in 1..4 {
        fill(&mut session, 0..60, round);
        session.delete(key(round)).expect("deleted");
        moments.push(left_of(&files));
    }
    fill(&mut session, 200..205, 1);
    moments.push(left_of(&files));
    (moments, contents(&db))
}

fn closed() -> (Left, Contents) {
    let (moments, _) = killed();
    let files = files_of(moments.last().expect("some"));
    let (db, _environment) =
        open_at(BOOT, files.clone(), Path::new(STORE), &options(GROUP)).expect("opens");
    let expected = contents(&db);
    db.close().expect("nobody else has it");
    (left_of(&files), expected)
}

/// Opens what is left with this journal, for writing and for reading: everything is there, or it is an error; and with
/// salvage it opens, and says so. Whether it was an error.
fn judge(left: &Left, journal: Option<&[u8]>, boot: u64, expected: &Contents, what: &str) -> bool {
    let mut left = left.clone();
    match journal {
        Some(journal) => left.insert("journal".to_owned(), journal.to_vec()),
        None => left.remove("journal"),
    };
    let opened = open_left(&left, boot, false);
    let (salvaged, recovery) = open_left(&left, boot, true)
        .unwrap_or_else(|error| panic!("{what}: cannot be salvaged: {error}"));
    match opened {
        Ok((found, _)) => {
            assert!(found == *expected, "{what}: {} records of {}", found.len(), expected.len());
            assert!(salvaged == *expected && recovery.journal_lost_at.is_none(), "{what}");
            false
        }
        Err(Error::Corrupted { .. } | Error::NotAStore { .. }) => {
            assert!(
                recovery.journal_lost_at.is_some(),
                "{what}: salvage does not say what is lost"
            );
            true
        }
        Err(error) => panic!("{what}: another error: {error}"),
    }
}

/// Its checksum is right, so only the length itself tells.
#[test]
fn a_journal_whose_header_says_a_length_that_no_journal_has_is_refused() {
    let wrong = [0, 4096, (16 << 10) + 8, (1 << 30) + 4096, 1 << 62, u64::MAX - 4095, u64::MAX];
    let cut = [20 << 10, 32 << 10, 1 << 30];
    let (moments, expected) = killed();
    let left = moments.last().expect("some");
    for (capacity, reason) in wrong
        .map(|one| (one, "which no journal has"))
        .into_iter()
        .chain(cut.map(|one| (one, "it was cut")))
    {
        let mut journal = left["journal"].clone();
        for copy in [0, PAGE] {
            journal[copy + 32..copy + 40].copy_from_slice(&u64::to_le_bytes(capacity));
            let checksum = xxhash_rust::xxh3::xxh3_64(&journal[copy..copy + 72]);
            journal[copy + 72..copy + 80].copy_from_slice(&checksum.to_le_bytes());
        }
        for boot in [BOOT, NEXT_BOOT] {
            let what = format!("{capacity} bytes, boot {boot}");
            assert!(judge(left, Some(&journal), boot, &expected, &what), "{what}");
            let mut left = left.clone();
            left.insert("journal".to_owned(), journal.clone());
            assert_fails(
                open_left(&left, boot, false).map(|_| ()),
                &["the file `journal`", reason],
            );
        }
    }
}

/// Every way in which a part of the journal is damaged; how many of them are errors.
fn damage_everything(left: &Left, boot: u64, expected: &Contents) -> usize {
    let whole = &left["journal"];
    let mut errors = 0;
    let mut check = |journal: &[u8], what: &str| {
        errors += usize::from(judge(left, Some(journal), boot, expected, what));
    };
    for word in (0..whole.len()).step_by(8) {
        // Headers are looked at whole, entries in every third word.
        if word % PAGE >= 128 && word < DATA_AT || word > DATA_AT && word % 24 != 0 {
            continue;
        }
        let mut journal = whole.clone();
        journal[word + word / 24 % 8] ^= 1 << (word / 8 % 8);
        check(&journal, &format!("a flipped bit at {word}"));
        journal[word..word + 8].fill(0);
        check(&journal, &format!("a zeroed word at {word}"));
    }
    for page in (0..whole.len()).step_by(PAGE) {
        let mut journal = whole.clone();
        journal[page..page + PAGE].fill(0);
        check(&journal, &format!("a zeroed page at {page}"));
        for other in (page + PAGE..whole.len()).step_by(PAGE) {
            let mut journal = whole.clone();
            journal[page..page + PAGE].copy_from_slice(&whole[other..other + PAGE]);
            journal[other..other + PAGE].copy_from_slice(&whole[page..page + PAGE]);
            check(&journal, &format!("pages {page} and {other} exchanged"));
        }
    }
    let mut journal = whole.clone();
    journal[..DATA_AT].fill(0);
    check(&journal, "both headers zeroed");
    errors
}

#[test]
fn no_damage_of_a_killed_stores_journal_goes_unnoticed() {
    let (moments, expected) = killed();
    for left in moments.iter().skip(2) {
        // Of an earlier moment it is only known what is there when nothing is damaged.
        let (whole, recovery) = open_left(left, BOOT, false).expect("a killed store opens");
        assert_eq!(recovery.journal_lost_at, None);
        let errors = damage_everything(left, BOOT, &whole);
        assert!(errors > 100, "{errors} errors");
    }
    let last = moments.last().expect("some");
    assert_eq!(open_left(last, BOOT, false).expect("opens").0, expected);
    let check = |journal: Option<&[u8]>, what: &str| {
        assert!(judge(last, journal, BOOT, &expected, what), "{what} is not noticed");
        // Nor is it after the machine went down.
        assert!(judge(last, journal, NEXT_BOOT, &expected, what), "{what} is not noticed");
    };
    let length = last["journal"].len();
    check(None, "a missing journal");
    check(Some(&[]), "an empty journal");
    check(Some(&vec![0; length]), "a zeroed journal");
    check(Some(&[0; 100]), "a short journal");
    // As long as the machine runs on, no newest entry is missing either.
    for (number, moment) in moments.iter().take(moments.len() - 1).enumerate() {
        let older = &moment["journal"];
        let what = format!("the journal of moment {number}");
        assert!(judge(last, Some(older), BOOT, &expected, &what), "{what} is not noticed");
        for page in (DATA_AT..length).step_by(PAGE) {
            let mut journal = last["journal"].clone();
            journal[page..page + PAGE].copy_from_slice(&older[page..page + PAGE]);
            judge(last, Some(&journal), BOOT, &expected, &format!("{what}, page {page}"));
        }
    }
    for (number, moment) in moments.iter().take(3).enumerate() {
        check(Some(&moment["journal"]), &format!("the journal of moment {number}"));
    }
}

#[test]
fn no_damage_of_a_closed_stores_journal_loses_anything() {
    let (left, expected) = closed();
    damage_everything(&left, BOOT, &expected);
    for journal in [None, Some(&[][..]), Some(&vec![0; left["journal"].len()][..])] {
        assert!(!judge(&left, journal, BOOT, &expected, "nobody misses it"));
    }
    let (moments, _) = killed();
    for moment in &moments {
        // Of another store, even.
        let journal = Some(&moment["journal"][..]);
        judge(&left, journal, BOOT, &expected, "a journal of another store");
    }
}

#[test]
fn the_journal_of_an_earlier_life_is_refused() {
    let (moments, _) = killed();
    let last = moments.last().expect("some");
    let files = files_of(last);
    let open = || open_at(BOOT, files.clone(), Path::new(STORE), &options(GROUP));
    let (db, _environment) = open().expect("opens");
    fill(&mut db.session(), 300..303, 1);
    let (next, expected) = (left_of(&files), contents(&db));
    drop(db);
    for boot in [BOOT, NEXT_BOOT] {
        assert!(judge(&next, Some(&last["journal"]), boot, &expected, "of the life before"));
    }
    let (db, _environment) = open_at(BOOT, files_of(&next), Path::new(STORE), &options(GROUP))
        .expect("the right journal");
    assert_eq!(contents(&db), expected);
    // Of a store that was closed in order, too.
    let files = files_of(&next);
    open_at(BOOT, files.clone(), Path::new(STORE), &options(GROUP))
        .expect("opens")
        .0
        .close()
        .expect("closed");
    let closed = left_of(&files);
    for boot in [BOOT, NEXT_BOOT] {
        assert!(judge(&closed, Some(&next["journal"]), boot, &expected, "of before the close"));
    }
}

#[test]
fn what_says_that_a_journal_is_in_use_is_needed_in_one_copy() {
    let (moments, expected) = killed();
    let last = moments.last().expect("some");
    for copies in [&[2048][..], &[6144], &[2048, 6144]] {
        for how in [|_: u8| 0, |old: u8| old ^ 0x40] {
            let mut left = last.clone();
            let superblock = left.get_mut("superblock").expect("there");
            for at in copies {
                superblock[*at..at + 32].iter_mut().for_each(|byte| *byte = how(*byte));
            }
            match open_left(&left, BOOT, false) {
                Ok((found, _)) => assert!(copies.len() == 1 && found == expected),
                Err(error) => {
                    assert!(
                        copies.len() == 2 && error.to_string().contains("`superblock`"),
                        "{error}"
                    );
                    open_left(&left, BOOT, true).expect("salvaged");
                }
            }
        }
    }
}

#[test]
fn salvage_keeps_what_came_before_the_damage() {
    let (moments, expected) = killed();
    let last = moments.last().expect("some");
    let journal = &last["journal"];
    // The value of the last record, in the last entry.
    let newest = value(204, 1);
    let at = journal.windows(newest.len()).rposition(|window| window == newest).expect("there");
    let mut left = last.clone();
    left.get_mut("journal").expect("there")[at] ^= 1;
    for boot in [BOOT, BOOT + 2] {
        let opened = open_left(&left, boot, false);
        let is_killed = boot == BOOT;
        assert_eq!(opened.is_err(), is_killed, "after a power loss it was never durable");
        let (found, recovery) = open_left(&left, boot, true).expect("salvaged");
        let missing = expected.keys().filter(|key| !found.contains_key(*key)).count();
        assert_eq!((missing, found.len()), (1, expected.len() - 1));
        assert_eq!(recovery.journal_lost_at.is_some(), is_killed);
        if is_killed {
            assert!((1..4).contains(&recovery.journal_entries_lost), "{recovery:?}");
            assert!((100..800).contains(&recovery.journal_bytes_lost), "{recovery:?}");
            let lost_at = recovery.journal_lost_at.expect("noted") as usize;
            assert!((at - 300..=at).contains(&lost_at), "{lost_at} for {at}");
        }
    }
    // It goes on from there, and what was given up is not missed any more.
    let files = files_of(&left);
    let open = |salvage: bool| {
        open_at(BOOT, files.clone(), Path::new(STORE), &options(GROUP).salvage(salvage))
    };
    let (db, _environment) = open(true).expect("salvaged");
    fill(&mut db.session(), 400..410, 1);
    drop(db);
    let (db, _environment) = open(false).expect("in order");
    assert_eq!(contents(&db).len(), expected.len() - 1 + 10);
}

/// A salvage that is refused after the journal was looked at has given up nothing: the store is as damaged as before.
#[test]
fn a_salvage_that_fails_accepts_no_loss() {
    let (moments, expected) = killed();
    let last = moments.last().expect("some");
    let mut flipped = last.clone();
    let newest = value(204, 1);
    let journal = flipped.get_mut("journal").expect("there");
    let at = journal.windows(newest.len()).rposition(|window| window == newest).expect("there");
    journal[at] ^= 1;
    let mut older = last.clone();
    older.insert("journal".to_owned(), moments[1]["journal"].clone());
    let mut missing = last.clone();
    missing.remove("journal");
    let mut headers = last.clone();
    headers.get_mut("journal").expect("there")[..DATA_AT].fill(0x5a);
    for (what, left) in
        [("flipped", flipped), ("older", older), ("missing", missing), ("headers", headers)]
    {
        let files = files_of(&left);
        let open = |options: &Options| {
            open_at(BOOT, files.clone(), Path::new(STORE), options).map(|(db, _)| db)
        };
        let (plain, salvage) = (options(GROUP), options(GROUP).salvage(true));
        let other = salvage.clone().engine(chimera::EngineKind::Hikv);
        // Once more, as a second attempt finds what the first one has left.
        for _ in 0..2 {
            assert!(open(&plain).is_err(), "{what}");
            let refused = open(&other).expect_err("it has another engine");
            assert!(matches!(refused, Error::Mismatch { .. }), "{what}: {refused}");
        }
        let refused = open(&plain).expect_err(what).to_string();
        assert!(refused.contains("no opening with salvage has ended"), "{what}: {refused}");
        let reader = open(&salvage.clone().read_only(true)).expect("readable");
        assert!(reader.stats().recovery.journal_lost_at.is_some(), "{what}");
        drop(reader);
        let db = open(&salvage).expect(what);
        assert!(db.stats().recovery.journal_lost_at.is_some(), "{what}");
        let found = contents(&db);
        assert!(found.keys().all(|key| expected.contains_key(key)) || what != "flipped");
        db.close().expect("nobody else has it");
        assert_eq!(contents(&open(&plain).expect(what)), found, "{what}");
    }
}

#[test]
fn a_salvage_without_a_journal_accepts_a_loss_when_it_has_ended() {
    let (directory, copy) = (scratch_on_disk(), scratch_on_disk());
    // Nothing is written back while the files are copied.
    let db = open(directory.path(), &options(GROUP).journal_bytes(32 << 20));
    if !is_plain(&db) {
        return;
    }
    fill(&mut db.session(), 0..60, 1);
    copy_store(directory.path(), copy.path());
    std::fs::remove_file(copy.path().join("journal")).expect("removed");
    let process = options(Durability::Process);
    for options in [&process, &options(GROUP)] {
        let salvage = options.clone().salvage(true);
        let refused = Db::open(copy.path(), &salvage.clone().engine(chimera::EngineKind::Hikv));
        assert!(matches!(refused, Err(Error::Mismatch { .. })));
        let refused = Db::open(copy.path(), options).expect_err("the journal is lost").to_string();
        assert!(refused.contains("no opening with salvage has ended"), "{refused}");
    }
    let db = open(copy.path(), &process.clone().salvage(true));
    assert!(db.stats().recovery.journal_lost_at.is_some());
    let found = contents(&db);
    db.close().expect("nobody else has it");
    for options in [&process, &options(GROUP)] {
        assert_eq!(contents(&open(copy.path(), options)), found);
    }
}

#[test]
fn after_a_power_loss_only_what_was_not_synced_may_be_missing() {
    let files = Arc::new(MemoryFiles::new().on(Medium::File));
    let (db, _environment) =
        open_at(BOOT, files.clone(), Path::new(STORE), &options(GROUP)).expect("opens");
    fill(&mut db.session(), 0..20, 1);
    db.sync().expect("synced");
    let synced = contents(&db);
    // One entry at least says that the others are durable.
    fill(&mut db.session(), 20..24, 1);
    let (left, all) = (left_of(&files), contents(&db));
    let (mut errors, mut losses) = (0, 0);
    for word in (DATA_AT..left["journal"].len()).step_by(8) {
        let mut left = left.clone();
        left.get_mut("journal").expect("there")[word + 3] ^= 8;
        match open_left(&left, NEXT_BOOT, false) {
            Ok((found, _)) => {
                losses += usize::from(found != all);
                assert!(
                    synced.iter().all(|(key, value)| found.get(key) == Some(value)),
                    "byte {word}"
                );
                assert!(
                    found.iter().all(|(key, value)| all.get(key) == Some(value)),
                    "byte {word}"
                );
            }
            Err(error) => {
                assert!(error.to_string().contains("was durable"), "{error}");
                errors += 1;
            }
        }
    }
    assert!(errors > 50 && losses > 50, "{errors} errors, {losses} losses");
}
