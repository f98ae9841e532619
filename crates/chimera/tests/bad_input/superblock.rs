//! Damage of the superblock and of the number of used blocks.

use std::path::Path;

use chimera::{Db, Durability, Error, ErrorKind};

use crate::tools::media::{
    COPY_STRIDE, SUPERBLOCK, SUPERBLOCK_WORDS, USED_BLOCKS_AT, change, checked_word_at, flip,
    forge_superblock, word,
};
use crate::tools::{
    assert_fails, assert_sound, bytes_of, contents, copy_store, fill, filled_store, open, restore,
    scratch, small,
};

const RECORDS: u64 = 30;

fn assert_whole(path: &Path) {
    let db = open(path, &small());
    assert_eq!(contents(&db).len() as u64, RECORDS);
    assert_sound(&db);
}

#[test]
fn a_wrong_magic_number_is_named() {
    let directory = scratch();
    filled_store(directory.path(), &small(), RECORDS);
    forge_superblock(directory.path(), &[(0, u64::from_le_bytes(*b"CHIMERA2"))]);
    let outcome = Db::open(directory.path(), &small());
    assert_fails(outcome, &["no magic number", "restore a copy"]);
}

#[test]
fn a_newer_format_is_named_also_in_one_copy() {
    let directory = scratch();
    filled_store(directory.path(), &small(), RECORDS);
    let files = bytes_of(directory.path());
    let newer = word(directory.path(), SUPERBLOCK, 8) + 1;
    forge_superblock(directory.path(), &[(1, newer)]);
    let words = ["format version 5", "reads up to 4", "use a newer program"];
    assert_fails(Db::open(directory.path(), &small()), &words);
    let forged = bytes_of(directory.path());
    for copy in [0, COPY_STRIDE] {
        restore(directory.path(), &files);
        let newer = &forged[Path::new(SUPERBLOCK)][copy..copy + 8 * SUPERBLOCK_WORDS];
        change(directory.path(), SUPERBLOCK, |bytes| {
            bytes[copy..copy + newer.len()].copy_from_slice(newer);
        });
        assert_fails(Db::open(directory.path(), &small()), &words);
    }
}

#[test]
fn each_flipped_byte_of_one_copy_is_survived_and_of_both_refused() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let files = bytes_of(path);
    for at in 0..8 * SUPERBLOCK_WORDS {
        for copy in [0, COPY_STRIDE] {
            restore(path, &files);
            flip(path, SUPERBLOCK, copy + at, 0x41);
            assert_whole(path);
        }
        restore(path, &files);
        flip(path, SUPERBLOCK, at, 0x41);
        flip(path, SUPERBLOCK, COPY_STRIDE + at, 0x41);
        assert_fails(
            Db::open(path, &small()),
            &["damaged at byte", "superblock", "restore a copy"],
        );
        assert_fails(Db::open(path, &small().salvage(true)), &["damaged at byte", "superblock"]);
    }
}

/// A store that was not closed may have grown with the last change of its superblock.
#[test]
fn one_damaged_copy_is_survived_right_after_growth() {
    let (directory, copy) = (scratch(), scratch());
    let db = open(directory.path(), &small().populate_ahead_bytes(0));
    let mut session = db.session();
    let mut records = 0;
    while db.stats().segments < 2 {
        fill(&mut session, records..=records, 1);
        records += 1;
    }
    copy_store(directory.path(), copy.path());
    let files = bytes_of(copy.path());
    for at in [0, COPY_STRIDE] {
        restore(copy.path(), &files);
        flip(copy.path(), SUPERBLOCK, at + 8, 1);
        let damaged = open(copy.path(), &small());
        assert_eq!(contents(&damaged).len() as u64, records, "copy at {at} damaged");
    }
}

#[test]
fn an_older_format_is_named_and_what_to_do() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let files = bytes_of(path);
    let version = word(path, SUPERBLOCK, 8);
    for older in 1..=3 {
        forge_superblock(path, &[(1, version - 4 + older)]);
        let found = format!("format version {older}");
        let words = [&*found, "reads version 4 alone", "export it", "import that"];
        for options in [small(), small().read_only(true), small().salvage(true)] {
            assert_fails(Db::open(path, &options), &words);
        }
        let error = Db::open(path, &small()).expect_err("an older format");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        restore(path, &files);
    }
    assert_whole(path);
}

/// Sets the used-blocks word of a copy.
fn set_used(path: &Path, copy: usize, word: u64) {
    let at = USED_BLOCKS_AT[copy];
    change(path, SUPERBLOCK, |bytes| bytes[at..at + 8].copy_from_slice(&word.to_le_bytes()));
}

/// What `check` says: how much is damaged, and where the first damage is.
fn check(path: &Path) -> (u64, Option<u64>) {
    let report = open(path, &small().read_only(true)).check(None);
    (report.damages, report.first_damage.map(|damage| damage.at))
}

#[test]
fn each_flipped_bit_of_one_number_of_used_blocks_is_survived_and_of_both_refused() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let files = bytes_of(path);
    for bit in 0..64 {
        for at in USED_BLOCKS_AT {
            restore(path, &files);
            flip(path, SUPERBLOCK, at + bit / 8, 1 << (bit % 8));
            assert_eq!(check(path), (1, Some(at as u64)), "bit {bit}");
            assert_whole(path);
            assert!(
                bytes_of(path)[Path::new(SUPERBLOCK)][at..][..8]
                    == files[Path::new(SUPERBLOCK)][at..][..8]
            );
        }
        restore(path, &files);
        for at in USED_BLOCKS_AT {
            flip(path, SUPERBLOCK, at + bit / 8, 1 << (bit % 8));
        }
        let words = ["damaged at byte 1024", "number of used blocks", "restore a copy"];
        assert_fails(Db::open(path, &small()), &words);
    }
    restore(path, &files);
    assert_eq!(check(path), (0, None));
    assert_whole(path);
}

#[test]
fn a_number_of_used_blocks_that_is_gone_elsewhere_or_too_high_does_not_count() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let files = bytes_of(path);
    let used = USED_BLOCKS_AT.map(|at| word(path, SUPERBLOCK, at));
    let too_high = USED_BLOCKS_AT.map(|at| checked_word_at(1000, at as u64));
    // Zeros, which is what lost storage reads as, and the word of another place.
    for wrong in [[0, 0], [used[1], used[0]], too_high] {
        for (copy, word) in wrong.into_iter().enumerate() {
            restore(path, &files);
            set_used(path, copy, word);
            assert_whole(path);
        }
        restore(path, &files);
        set_used(path, 0, wrong[0]);
        set_used(path, 1, wrong[1]);
        for options in [small(), small().read_only(true), small().salvage(true)] {
            assert_fails(Db::open(path, &options), &["number of used blocks"]);
        }
    }
}

/// Both are stored before one fence: a crash leaves one of them as it was.
#[test]
fn of_two_numbers_of_used_blocks_the_higher_one_counts() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let used = word(path, SUPERBLOCK, USED_BLOCKS_AT[0]) as u32;
    let files = bytes_of(path);
    for (copy, at) in USED_BLOCKS_AT.into_iter().enumerate() {
        restore(path, &files);
        set_used(path, copy, checked_word_at(used - 1, at as u64));
        assert_eq!(check(path), (0, None), "an interrupted change is no damage");
        assert_whole(path);
        let both = USED_BLOCKS_AT.map(|at| word(path, SUPERBLOCK, at));
        assert_eq!(
            both,
            USED_BLOCKS_AT.map(|at| checked_word_at(used, at as u64)),
            "brought in line"
        );
    }
}

/// Each page of the superblock's file alone is enough.
#[test]
fn a_zeroed_page_of_the_superblock_is_survived_reported_and_repaired() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let files = bytes_of(path);
    for copy in [0, COPY_STRIDE] {
        restore(path, &files);
        change(path, SUPERBLOCK, |bytes| bytes[copy..copy + COPY_STRIDE].fill(0));
        assert_eq!(check(path), (2, Some(copy as u64)));
        assert_eq!(check(path), (2, Some(copy as u64)), "a reader repairs nothing");
        assert_whole(path);
        assert_eq!(check(path), (0, None));
    }
    restore(path, &files);
    change(path, SUPERBLOCK, |bytes| bytes.fill(0));
    assert_fails(Db::open(path, &small()), &["superblock", "restore a copy"]);
}

#[test]
fn exchanged_pages_of_the_superblock_are_damage() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let files = bytes_of(path);
    change(path, SUPERBLOCK, |bytes| bytes.rotate_left(COPY_STRIDE));
    for options in [small(), small().read_only(true), small().salvage(true)] {
        assert_fails(
            Db::open(path, &options),
            &["in the place of the other one", "restore a copy"],
        );
    }
    // One page in both places: the other copy is gone.
    for copy in [0, COPY_STRIDE] {
        restore(path, &files);
        change(path, SUPERBLOCK, |bytes| {
            bytes.copy_within(copy..copy + COPY_STRIDE, COPY_STRIDE - copy);
        });
        assert_eq!(check(path), (2, Some((COPY_STRIDE - copy) as u64)));
        assert_whole(path);
    }
}

/// Fields that no program would have written, with checksums that are right.
#[test]
fn impossible_fields_are_refused() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let files = bytes_of(path);
    let pair = |low: u64, high: u64| low | high << 32;
    let forgeries = [
        (1, pair(0, 1)),
        (1, pair(1, 1)),
        (1, pair(4, 0)),
        (1, pair(4, 0xffff)),
        (4, 0),
        (4, 4096),
        (4, 16385),
        (4, u64::MAX),
        (4, 1 << 62),
        (5, pair(0, 0)),
        (5, pair(256, 0)),
        (5, pair(1024, 0)),
        (5, pair(512, 256)),
        (5, pair(512, 1)),
        (5, pair(0xffff_ffff, 0xffff_ffff)),
        (7, 0),
        (7, 1 << 40),
        (7, u64::MAX),
        (8, 0),
        (8, 4),
        (16, 0),
        (16, 2),
        (16, 4),
        (16, 31),
        (16, u64::MAX),
        (21, pair(0, 2)),
        (21, pair(256, 0)),
        (21, pair(256, 9)),
        (21, pair(100, 2)),
        (21, pair(512, 1)),
        (21, pair(0xffff_ffff, 0xffff_ffff)),
        (22, pair(0, 24)),
        (22, pair(5000, 24)),
        (22, pair(8, 0xffff_ffff)),
        (22, pair(0xffff_ffff, 0xffff_ffff)),
        (22, pair(8, 300)),
        (23, 0),
        (23, 3),
        (23, u64::MAX),
    ];
    for (number, forged) in forgeries {
        restore(path, &files);
        forge_superblock(path, &[(number, forged)]);
        for options in [small(), small().salvage(true), small().read_only(true)] {
            let outcome = Db::open(path, &options);
            assert!(outcome.is_err(), "word {number} forged to {forged:#x} is accepted");
        }
    }
}

/// A superblock that says there is a journal, beside which there is none.
#[test]
fn a_missing_journal_is_named() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let files = bytes_of(path);
    forge_superblock(path, &[(8, 3)]);
    for options in [small(), small().read_only(true), small().durability(Durability::Process)] {
        assert_fails(Db::open(path, &options), &["`journal` is missing", "put it back"]);
    }
    drop(Db::open(path, &small().salvage(true)).expect("what is left"));
    restore(path, &files);
    assert_whole(path);
}

/// No sequence number is the last one: a store that opens opens again.
#[test]
fn sequence_numbers_wrap() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    for sequence in [(1 << 62) - 1, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX - 1, u64::MAX] {
        forge_superblock(path, &[(6, sequence)]);
        for round in 0..3 {
            let db = open(path, &small());
            // At first both copies have the same number.
            assert!(round == 0 || db.stats().recovery.clean, "an old copy is in force");
            assert_eq!(contents(&db).len() as u64, RECORDS);
            db.close().expect("nobody else has it");
        }
    }
}

#[test]
fn a_cut_extended_or_missing_superblock_is_named() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let files = bytes_of(path);
    for length in [0, 1, 128, 4096, 8191, 8193, 1 << 20] {
        change(path, SUPERBLOCK, |bytes| bytes.resize(length, 0));
        let words = ["`superblock`", "instead of 8192", "cut or extended"];
        assert_fails(Db::open(path, &small()), &words);
        restore(path, &files);
    }
    std::fs::remove_file(path.join(SUPERBLOCK)).expect("the file is there");
    assert_fails(Db::open(path, &small()), &["`superblock` is missing", "put it back"]);
    assert!(!path.join(SUPERBLOCK).exists(), "no new superblock may hide the old segments");
    restore(path, &files);
    change(path, SUPERBLOCK, |bytes| bytes.fill(0));
    assert_fails(Db::open(path, &small()), &["superblock", "restore a copy"]);
    restore(path, &files);
    assert_whole(path);
}

/// A failed open, whatever the reason, must leave a store as it was: above all closed in order.
#[test]
fn a_refused_open_changes_nothing() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let superblock = || bytes_of(path).remove(Path::new(SUPERBLOCK));
    let before = superblock();
    let outcome = Db::open(path, &small().fixed_size(8, 32));
    assert!(matches!(outcome, Err(Error::Mismatch { .. })), "{outcome:?}");
    assert!(superblock() == before, "a mismatch changes the superblock");
    drop(open(path, &small()));
    assert!(open(path, &small()).stats().recovery.clean);
}

/// Creation may be interrupted at any moment: there is nothing to lose yet, and nothing may be in the
/// way of a second attempt.
#[test]
fn an_interrupted_creation_is_begun_again() {
    let directory = scratch();
    let path = directory.path();
    // Fails after the file of the superblock was made.
    let impossible = chimera::Options::new()
        .viper(|viper| viper.layout(chimera::baselines::RecordLayout::Published));
    assert_fails(Db::open(path, &impossible), &["published layout", "fixed size"]);
    let outcome = Db::open(path, &chimera::Options::new().create(false));
    assert!(matches!(outcome, Err(Error::NotFound { .. })), "{outcome:?}");
    filled_store(path, &small(), RECORDS);
    assert_whole(path);
}
