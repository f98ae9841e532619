//! Stores that lost records, or a part of which is older, while they were closed, without any checksum that is wrong.

use std::path::Path;

use chimera::{ChameleonOptions, Db, EngineKind, Options};

use crate::tools::media::{FIRST_SEGMENT, SUPERBLOCK, SUPERBLOCK_BYTES, change, checked_word_at};
use crate::tools::{
    assert_fails, assert_sound, bytes_of, contents, fill, filled_store, key, open, restore,
    scratch, small, value,
};

const RECORDS: u64 = 12;

/// A small store of each engine.
pub(super) fn engines() -> Vec<(EngineKind, Options)> {
    let options =
        || Options::new().segment_bytes(64 << 10).populate_ahead_bytes(0).reclaim_percent(0);
    let log_hash =
        || options().log_hash(|options| options.index_segment_bytes(1024).log_run_bytes(4096));
    let hikv =
        options().hikv(|hikv| hikv.partitions(2).index_segment_bytes(1024).heap_run_bytes(4096));
    // A MemTable has room for 14 keys, whichever shard they are in.
    let chameleon = options().chameleon(|chameleon| {
        let chameleon = chameleon.shards(2).memtable_bytes(256).levels(3).ratio(2);
        chameleon.log_run_bytes(4096).load_factors(0.9..=0.9)
    });
    let engines = vec![
        (EngineKind::Viper, options()),
        (EngineKind::Hikv, hikv),
        (EngineKind::Chameleon, chameleon),
        (EngineKind::PmemHash, log_hash()),
        (EngineKind::DramHash, log_hash()),
    ];
    let with_kind = |(kind, options): (EngineKind, Options)| (kind, options.engine(kind));
    engines.into_iter().map(with_kind).collect()
}

/// The superblock is the newer one, the segments are those of an earlier closing.
fn put_old_segments_back(
    path: &Path,
    old: &std::collections::BTreeMap<std::path::PathBuf, Vec<u8>>,
) {
    let mut mixed = old.clone();
    let newer = bytes_of(path).remove(Path::new(SUPERBLOCK)).expect("a superblock");
    mixed.insert(SUPERBLOCK.into(), newer);
    restore(path, &mixed);
}

fn assert_noticed(path: &Path, options: &Options, words: &[&str]) {
    let words: Vec<_> = words.iter().copied().chain(["damaged at byte 144"]).collect();
    for options in [options.clone(), options.clone().read_only(true)] {
        assert_fails(Db::open(path, &options), &words);
    }
    let db = open(path, &options.clone().read_only(true).salvage(true));
    assert!(db.stats().recovery.differs_from_closing);
}

#[test]
fn a_store_that_lost_its_newest_records_is_refused() {
    for (kind, options) in engines() {
        let directory = scratch();
        let path = directory.path();
        filled_store(path, &options, RECORDS);
        let old = bytes_of(path);
        let db = open(path, &options);
        assert!(db.stats().recovery.clean && !db.stats().recovery.differs_from_closing);
        fill(&mut db.session(), RECORDS..=RECORDS, 1);
        db.close().expect("nobody else has it");
        put_old_segments_back(path, &old);
        // ChameleonDB looks at its tables and its log before it counts.
        let is_counted = kind != EngineKind::Chameleon;
        let words = ["older than its closing", "closed with 13 records, and 12 were found"];
        assert_noticed(path, &options, &[words[usize::from(is_counted)]]);
        println!("{kind}");
    }
}

#[test]
fn a_store_whose_records_are_older_than_its_closing_is_refused() {
    // ChameleonDB sums up its tables, and not the log behind them.
    for (_, options) in engines().into_iter().filter(|(kind, _)| *kind != EngineKind::Chameleon) {
        let directory = scratch();
        let path = directory.path();
        filled_store(path, &options, RECORDS);
        let old = bytes_of(path);
        let db = open(path, &options);
        fill(&mut db.session(), 3..4, 2);
        db.close().expect("nobody else has it");
        put_old_segments_back(path, &old);
        assert_noticed(path, &options, &["older than its closing"]);
        restore(path, &old);
        let db = open(path, &options);
        db.put(key(100), b"value").expect("room");
        db.delete(key(5)).expect("a sound store");
        db.close().expect("nobody else has it");
        put_old_segments_back(path, &old);
        assert_noticed(path, &options, &["closed with other keys"]);
    }
}

/// An opening that fails for another reason than the comparison ends nothing: the next one compares as well.
#[test]
fn a_failed_opening_does_not_end_the_comparison() {
    for (kind, options) in engines() {
        let directory = scratch();
        let path = directory.path();
        filled_store(path, &options, RECORDS);
        let old = bytes_of(path);
        let db = open(path, &options);
        fill(&mut db.session(), 3..4, 2);
        db.close().expect("nobody else has it");
        put_old_segments_back(path, &old);
        let mixed = bytes_of(path);
        // One byte after another is flipped, until opening says that it is damaged there.
        let segment = Path::new(FIRST_SEGMENT);
        let flipped = (0..mixed[segment].len()).filter(|at| mixed[segment][*at] != 0).find(|at| {
            restore(path, &mixed);
            change(path, FIRST_SEGMENT, |bytes| bytes[*at] ^= 1);
            let said = Db::open(path, &options).err().map(|error| error.to_string());
            said.is_some_and(|said| !said.contains("damaged at byte 144"))
        });
        let flipped = flipped.unwrap_or_else(|| panic!("{kind}: no byte is in the way of opening"));
        let db = open(path, &options.clone().read_only(true).salvage(true));
        let recovery = db.stats().recovery;
        assert!(
            recovery.differs_from_closing && !recovery.losses.is_empty(),
            "{kind}: {recovery:?}"
        );
        drop(db);
        change(path, FIRST_SEGMENT, |bytes| bytes[flipped] ^= 1);
        assert_noticed(path, &options, &["older than its closing"]);
    }
}

/// What can be repaired is not changed by an opening that refuses it: lines of an earlier moment that come back find the rest
/// of the store as it was.
#[test]
fn a_refused_opening_changes_nothing_that_a_repair_needs() {
    for (kind, options) in engines() {
        let directory = scratch();
        let path = directory.path();
        filled_store(path, &options, 300);
        let old = bytes_of(path);
        let db = open(path, &options);
        fill(&mut db.session(), 100..400, 2);
        let expected = contents(&db);
        db.close().expect("nobody else has it");
        let newest = bytes_of(path);
        let segment = Path::new(FIRST_SEGMENT);
        let (older, newer) = (&old[segment], &newest[segment]);
        let pages = (0..newer.len().min(older.len())).step_by(4096);
        let mut refused = 0;
        for page in pages.filter(|page| older[*page..page + 4096] != newer[*page..page + 4096]) {
            restore(path, &newest);
            change(path, FIRST_SEGMENT, |bytes| {
                bytes[page..page + 4096].copy_from_slice(&older[page..page + 4096]);
            });
            if Db::open(path, &options).is_ok() {
                continue;
            }
            refused += 1;
            change(path, FIRST_SEGMENT, |bytes| {
                bytes[page..page + 4096].copy_from_slice(&newer[page..page + 4096]);
            });
            let db = open(path, &options);
            assert!(contents(&db) == expected, "{kind}: page {page}");
            assert_sound(&db);
        }
        assert!(refused > 1, "{kind}");
    }
}

/// ChameleonDB as above.
fn chameleon(change: impl FnOnce(ChameleonOptions) -> ChameleonOptions) -> Options {
    let chameleon = engines().into_iter().find(|(kind, _)| *kind == EngineKind::Chameleon);
    chameleon.expect("an engine").1.chameleon(change)
}

/// The same where opening makes tables of what it replays, because MemTables have less room than before: no table says how many
/// records there are before that is compared.
#[test]
fn a_refused_opening_that_would_make_tables_changes_nothing_either() {
    let with_load = |load: f64| chameleon(|chameleon| chameleon.load_factors(load..=load));
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &with_load(0.9), 150);
    let db = open(path, &with_load(0.9));
    fill(&mut db.session(), 0..18, 2);
    let expected = contents(&db);
    db.close().expect("nobody else has it");
    let whole = bytes_of(path);
    let segment = &whole[Path::new(FIRST_SEGMENT)];
    let lines = (0..segment.len()).step_by(64);
    let mut refused = 0;
    for line in lines.filter(|line| segment[*line..line + 64].iter().any(|byte| *byte != 0)) {
        restore(path, &whole);
        change(path, FIRST_SEGMENT, |bytes| bytes[line..line + 64].fill(0));
        if Db::open(path, &with_load(0.5)).is_ok() {
            continue;
        }
        refused += 1;
        change(path, FIRST_SEGMENT, |bytes| {
            bytes[line..line + 64].copy_from_slice(&segment[line..line + 64]);
        });
        let db = open(path, &with_load(0.5));
        assert!(contents(&db) == expected, "line at {line}");
        assert_sound(&db);
    }
    assert!(refused > 50, "{refused}");
}

/// ChameleonDB as above, whose puts do not look for their key.
fn blind() -> Options {
    chameleon(|chameleon| chameleon.blind_puts(true))
}

/// Puts that did not look have counted some keys twice. Opening makes tables of what a later life has left in bypass indexes,
/// and finds as many records as that life has said, also where it ends before they are counted anew.
#[test]
fn records_that_blind_puts_counted_twice_are_no_difference() {
    let directory = scratch();
    let path = directory.path();
    let blind = blind();
    (0..2).for_each(|_| filled_store(path, &blind, 40));
    let seeing = chameleon(|chameleon| chameleon);
    let db = open(path, &seeing.clone().chameleon(|chameleon| chameleon.write_intensive(true)));
    fill(&mut db.session(), 40..90, 1);
    let counted = db.stats().records;
    assert!(counted > 90, "some are counted twice: {counted}");
    db.close().expect("nobody else has it");
    let db = open(path, &seeing);
    assert_eq!(db.stats().recovery.records, counted);
    assert_eq!(contents(&db).len(), 90);
    assert_sound(&db);
}

/// What salvage says of a store that was closed without a count names no number of records.
#[test]
fn a_loss_of_a_store_without_a_count_names_none() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &blind(), RECORDS);
    let old = bytes_of(path);
    let db = open(path, &blind());
    fill(&mut db.session(), RECORDS..=RECORDS, 1);
    db.close().expect("nobody else has it");
    put_old_segments_back(path, &old);
    change(path, FIRST_SEGMENT, |bytes| {
        let value = value(3, 1);
        let at = bytes.windows(value.len()).position(|part| part == value);
        bytes[at.expect("a value")] ^= 1;
    });
    let db = open(path, &blind().read_only(true).salvage(true));
    let losses = db.stats().recovery.losses;
    let said = losses.to_string();
    assert!(losses.count == 2 && said.contains("older than its closing"), "{said}");
}

/// A checked word as bytes.
pub(super) fn checked_word(number: u32, place: u64) -> [u8; 8] {
    checked_word_at(number, place).to_le_bytes()
}

/// The bits of a page that say that no slot is live are right by themselves.
#[test]
fn records_whose_bits_were_cleared_are_missed() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), 3);
    change(path, FIRST_SEGMENT, |bytes| {
        let place = |at: usize| SUPERBLOCK_BYTES + at as u64;
        let is_bits = |at: &usize| bytes[*at..at + 8] == checked_word(0b111, place(*at));
        let at = (0..bytes.len()).step_by(8).find(is_bits).expect("a page with three records");
        bytes[at..at + 8].copy_from_slice(&checked_word(0b101, place(at)));
    });
    assert_noticed(path, &small(), &["closed with 3 records, and 2 were found"]);
    // What is left is closed in order, and is what the store holds from then on.
    let db = open(path, &small().salvage(true));
    db.close().expect("nobody else has it");
    let db = open(path, &small());
    assert_eq!(contents(&db).len(), 2);
    assert_sound(&db);
}

/// A store that was not closed in order says nothing of what it held.
#[test]
fn a_store_that_was_not_closed_is_not_compared() {
    for (_, options) in engines() {
        let (directory, copy) = (scratch(), scratch());
        filled_store(directory.path(), &options, RECORDS);
        let db = open(directory.path(), &options);
        fill(&mut db.session(), RECORDS..RECORDS + 3, 1);
        crate::tools::copy_store(directory.path(), copy.path());
        let again = open(copy.path(), &options);
        assert!(!again.stats().recovery.clean);
        assert_eq!(contents(&again).len() as u64, RECORDS + 3);
    }
}
