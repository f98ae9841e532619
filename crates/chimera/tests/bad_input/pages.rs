//! Damage of block flags, bitsets and records.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use chimera::{Db, Error, VerifyReads};

use crate::tools::media::{FIRST_SEGMENT, SUPERBLOCK_BYTES, change, checked_word_at, find, flip};
use crate::tools::{
    KEY_BYTES, SMALL, VALUE_BYTES, assert_fails, assert_sound, bytes_of, contents, fill,
    filled_store, key, open, restore, scratch, small, value,
};

const RECORDS: u64 = 25;
const HEADER_BYTES: usize = 16;
const SLOT_BYTES: usize = HEADER_BYTES + KEY_BYTES + VALUE_BYTES;

/// Where the slot of a record begins in the first segment.
fn slot_of(path: &Path, number: u64) -> usize {
    find(path, FIRST_SEGMENT, &[key(number), value(number, 1)].concat()) - HEADER_BYTES
}

fn damage_at(path: &Path) -> u64 {
    match Db::open(path, &small()) {
        Err(error @ Error::Corrupted { at, .. }) => {
            let text = error.to_string();
            assert!(text.contains(&format!("damaged at byte {at} of the pool")), "{text}");
            assert!(text.contains("run `chimera check`, restore a copy, or open with"), "{text}");
            at - SUPERBLOCK_BYTES
        }
        other => panic!("damage is not noticed: {other:?}"),
    }
}

/// Opens in spite of damage; what is served must be right. Returns how many records are gone.
fn salvaged(path: &Path) -> u64 {
    let db = open(path, &small().salvage(true));
    let left = contents(&db);
    let mut session = db.session();
    for number in 0..RECORDS {
        let found = session.get(key(number)).expect("damaged records are not served");
        assert_eq!(found.as_ref(), left.get(&key(number)), "two answers for key {number}");
        assert!(found.is_none_or(|found| found == value(number, 1)), "key {number} is wrong");
    }
    RECORDS - left.len() as u64
}

#[test]
fn each_flipped_byte_of_a_record_is_found() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let files = bytes_of(path);
    for number in [0, RECORDS - 1] {
        let slot = slot_of(path, number);
        for at in 0..SLOT_BYTES {
            restore(path, &files);
            flip(path, FIRST_SEGMENT, slot + at, 1 << (at % 8));
            assert_eq!(damage_at(path), slot as u64, "byte {at} of record {number}");
            assert_eq!(salvaged(path), 1, "byte {at} of record {number}");
        }
    }
}

#[test]
fn salvage_counts_damage_and_check_says_where() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let slots = [3, 11].map(|number| slot_of(path, number));
    for slot in slots {
        flip(path, FIRST_SEGMENT, slot + SLOT_BYTES - 1, 0x10);
    }
    for options in [small().salvage(true), small().salvage(true).read_only(true)] {
        let db = open(path, &options);
        let stats = db.stats();
        assert_eq!((stats.records, stats.records_damaged), (RECORDS - 2, 2));
        let report = db.check(None);
        assert!(!report.is_sound());
        assert_eq!(report.damages, 2);
        let first = report.first_damage.expect("there is damage");
        let at = slots[0].min(slots[1]) as u64 + SUPERBLOCK_BYTES;
        assert_eq!((first.at, first.what.contains("checksum")), (at, true));
    }
}

#[test]
fn each_flipped_byte_of_flags_and_bitsets_is_found() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let files = bytes_of(path);
    let (page_bytes, flags, bitset) = (256, 0..8, 8..16);
    for block in 0..2 {
        for at in flags.clone().chain(bitset.clone()) {
            for bits in [0x01, 0x80, 0xff] {
                restore(path, &files);
                flip(path, FIRST_SEGMENT, block * 512 + at, bits);
                let word = block * 512 + at / 8 * 8;
                assert_eq!(damage_at(path), word as u64, "byte {at} of block {block}");
                let gone = salvaged(path);
                assert!(gone <= if at < 8 { 0 } else { 5 }, "byte {at}: {gone} records are gone");
            }
        }
    }
    for at in bitset {
        restore(path, &files);
        flip(path, FIRST_SEGMENT, page_bytes + at, 4);
        assert_eq!(damage_at(path), page_bytes as u64 + 8, "byte {at} of the second page");
        assert!(salvaged(path) <= 5);
    }
}

/// Whatever byte of a block is flipped: it is found, or it does not matter.
#[test]
fn each_byte_of_a_block_is_found_or_does_not_matter() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let files = bytes_of(path);
    for at in 0..512 {
        restore(path, &files);
        flip(path, FIRST_SEGMENT, at, 0x24);
        match Db::open(path, &small()) {
            Err(Error::Corrupted { at: found, .. }) => {
                let page = at as u64 / 256 * 256 + SUPERBLOCK_BYTES;
                assert!((page..page + 256).contains(&found), "byte {at} is reported at {found}");
                salvaged(path);
            }
            Err(other) => panic!("byte {at}: {other}"),
            Ok(db) => {
                assert_sound(&db);
                drop(db);
                assert_eq!(salvaged(path), 0, "byte {at}");
            }
        }
    }
}

/// What salvage lets one do to a store with damaged flags and bitsets: errors are fine, panics, hangs
/// and wrong values are not.
#[test]
fn a_salvaged_store_takes_writes_or_refuses_them() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let files = bytes_of(path);
    for at in (0..16).chain(256 + 8..256 + 16) {
        restore(path, &files);
        flip(path, FIRST_SEGMENT, at, 0x11);
        let db = open(path, &small().salvage(true));
        let mut session = db.session();
        for number in 0..2 * RECORDS {
            let put = session.put(key(number), value(number, 2)).is_ok();
            if let Some(found) = session.get(key(number)).expect("what was entered is sound") {
                let version = if found == value(number, 1) { 1 } else { 2 };
                assert_eq!(found, value(number, version));
                assert!(!put || version == 2, "an acknowledged put of {number} is gone");
            }
            let _ = session.fetch_add_u64(key(number), 0, 0);
            let _ = session.delete(key(number / 2));
        }
        drop(session);
        let _ = db.check(None);
        db.close().expect("nobody else has it");
        drop(open(path, &small().salvage(true)));
    }
}

/// What was written to a salvaged store is there at the next opening, and what was refused is as it
/// was: a put that cannot retire the old record is refused before anything has changed.
#[test]
fn a_salvaged_store_opens_again_with_what_was_acknowledged() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let files = bytes_of(path);
    let mut refused = 0;
    for at in 8..16 {
        for bits in [1, 0x10, 0xff] {
            restore(path, &files);
            flip(path, FIRST_SEGMENT, at, bits);
            let db = open(path, &small().salvage(true));
            let before = contents(&db);
            let mut session = db.session();
            let mut expected = before.clone();
            for number in 0..RECORDS {
                match session.put(key(number), value(number, 2)) {
                    Ok(_) => drop(expected.insert(key(number), value(number, 2))),
                    Err(error) => {
                        assert!(matches!(error, Error::Corrupted { .. }), "{error}");
                        refused += 1;
                    }
                }
            }
            drop(session);
            assert!(contents(&db) == expected, "a refused put has changed something");
            db.close().expect("nobody else has it");
            for _ in 0..2 {
                let db = open(path, &small().salvage(true));
                assert!(contents(&db) == expected, "byte {at}, bits {bits:x}");
            }
        }
    }
    assert!(refused > 0, "no put met a damaged word");
}

/// An old record whose bit has come up again by damage loses against the newer one, but cannot be
/// cleared: a delete of the newer one would bring it back at the next open.
#[test]
fn a_delete_that_would_bring_back_an_old_record_is_refused() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let at = slot_of(path, 0);
    let db = open(path, &small());
    db.put(key(0), value(0, 2)).expect("there is room");
    db.close().expect("nobody else has it");
    let page = at / SMALL.page_bytes as usize * SMALL.page_bytes as usize;
    // Behind the flags and a word of bits.
    let slot = (at - page - 16) / SLOT_BYTES;
    flip(path, FIRST_SEGMENT, page + 8, 1 << slot);
    for _ in 0..2 {
        let db = open(path, &small().salvage(true));
        assert_eq!(db.get(key(0)).expect("it is sound"), Some(value(0, 2)));
        assert_fails(db.delete(key(0)), &["would come back after a delete"]);
        assert_eq!(db.get(key(0)).expect("it is sound"), Some(value(0, 2)));
    }
    let db = open(path, &small().salvage(true));
    db.put(key(0), value(0, 3)).expect("an overwrite wins at every open");
    drop(db);
    let db = open(path, &small().salvage(true));
    assert_eq!(db.get(key(0)).expect("it is sound"), Some(value(0, 3)));
}

/// A value whose check is damaged is not acknowledged as what it looks like.
#[test]
fn a_swap_of_a_damaged_value_is_refused() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let check_of_the_value = slot_of(path, 3) + 4;
    flip(path, FIRST_SEGMENT, check_of_the_value, 1);
    let db = open(path, &small().verify_at_open(false));
    for new in [value(3, 1), value(3, 2)] {
        let swap = db.compare_and_swap(key(3), value(3, 1), &new);
        assert_fails(swap, &["does not match its checksum"]);
    }
    assert_fails(db.get(key(3)), &["does not match its checksum"]);
    assert_eq!(db.get(key(4)).expect("its neighbour"), Some(value(4, 1)));
}

/// Blocks that were never handed out are zeros, unless somebody has changed the file: what is written to
/// them must stay all the same, and nothing else may come up.
#[test]
fn a_fresh_block_that_is_not_blank_is_cleared_before_it_is_used() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let stats = open(path, &small()).stats();
    let block_bytes = (SMALL.page_bytes * SMALL.pages_per_block) as usize;
    let index_flag = 4;
    let at = |block: u64| SUPERBLOCK_BYTES + block * block_bytes as u64;
    let first = at(stats.blocks_used);
    let of_block = [checked_word_at(index_flag, first), checked_word_at(1, first + 8)];
    let not_blank = [of_block, [u64::MAX, 0], [0, u64::MAX]];
    change(path, FIRST_SEGMENT, |bytes| {
        for (block, words) in (stats.blocks_used as usize..).zip(not_blank) {
            for (number, word) in words.into_iter().enumerate() {
                let at = block * block_bytes + 8 * number;
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
        }
    });
    let db = open(path, &small());
    let mut session = db.session();
    let all = RECORDS + 6 * u64::from(stats.viper().expect("Viper").records_per_block);
    fill(&mut session, RECORDS..all, 1);
    assert!(db.stats().blocks_used > stats.blocks_used + 4);
    drop(session);
    db.close().expect("nobody else has it");
    let db = open(path, &small());
    assert_sound(&db);
    assert_eq!(contents(&db).len() as u64, all);
}

#[test]
fn beside_a_damaged_value_others_are_updated() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    flip(path, FIRST_SEGMENT, slot_of(path, 4) + SLOT_BYTES - 3, 2);
    let db = open(path, &small().salvage(true));
    let mut session = db.session();
    let mut changed = value(3, 1);
    for add in [1, 2] {
        let was = u64::from_le_bytes(changed[8..16].try_into().expect("8 bytes"));
        assert_eq!(session.fetch_add_u64(key(3), 8, add).expect("sound"), Some(was));
        changed[8..16].copy_from_slice(&was.wrapping_add(add).to_le_bytes());
        assert_eq!(session.get(key(4)).expect("left out"), None);
    }
    drop(session);
    db.close().expect("nobody else has it");
    let db = open(path, &small().salvage(true));
    assert_eq!(db.get(key(4)).expect("left out"), None);
    assert_eq!(db.get(key(3)).expect("sound"), Some(changed));
    assert_eq!(db.check(None).damages, 1);
}

/// Written anew, a damaged value would get a checksum that is right.
#[test]
fn a_damaged_value_is_not_written_anew_for_an_update() {
    for verify_reads in VerifyReads::ALL {
        let directory = scratch();
        let path = directory.path();
        filled_store(path, &small(), RECORDS);
        flip(path, FIRST_SEGMENT, slot_of(path, 4) + SLOT_BYTES - 3, 2);
        let db = open(path, &small().verify_at_open(false).verify_reads(verify_reads));
        let mut session = db.session();
        for at in [0, 8, 16] {
            let words = &["damaged at byte", "checksum", "restore a copy"];
            assert_fails(session.fetch_add_u64(key(4), at, 1), words);
            assert_fails(session.compare_and_swap_u64(key(4), at, 1, 2), words);
        }
        let words = &["damaged at byte", "checksum"];
        assert_fails(session.fetch_add_u64(key(4), 4, 1), words);
        assert_fails(session.update(key(4), |value| value[0] ^= 1), words);
        assert_fails(session.update(key(4), |value| value.fill(7)), words);
        let mut damaged = value(4, 1);
        damaged[VALUE_BYTES - 3] ^= 2;
        assert_fails(session.compare_and_swap(key(4), &damaged, &damaged), words);
        assert_fails(session.compare_and_swap(key(4), &damaged, value(4, 2)), words);
        assert_eq!(db.check(None).damages, 1);
    }
}

#[test]
fn a_damaged_value_is_found_when_it_is_read_and_healed_by_a_put() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    flip(path, FIRST_SEGMENT, slot_of(path, 4) + SLOT_BYTES - 3, 2);
    let db = open(path, &small().verify_at_open(false));
    let mut session = db.session();
    assert_fails(session.get(key(4)), &["damaged at byte", "checksum", "restore a copy"]);
    assert_fails(session.multi_get(&[key(3), key(4)]), &["damaged at byte"]);
    assert_fails(session.update(key(4), |_| ()), &["damaged at byte"]);
    assert_fails(db.for_each(|_, _| true), &["damaged at byte"]);
    assert_eq!(session.get(key(3)).expect("not damaged"), Some(value(3, 1)));
    assert_eq!(db.check(None).damages, 1);
    session.put(key(4), value(4, 2)).expect("a new value replaces it");
    assert_eq!(session.get(key(4)).expect("healed"), Some(value(4, 2)));
    assert_sound(&db);
}

#[test]
fn damage_while_a_store_is_open_is_found() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), RECORDS);
    let slot = slot_of(path, 6);
    let db = open(path, &small());
    let mut session = db.session();
    let file = File::options().read(true).write(true).open(path.join(FIRST_SEGMENT));
    let file = file.expect("the segment is there");
    for at in 0..SLOT_BYTES {
        let mut byte = [0];
        file.read_exact_at(&mut byte, (slot + at) as u64).expect("read");
        let good = byte;
        byte[0] ^= 0x20;
        file.write_all_at(&byte, (slot + at) as u64).expect("written");
        let found = session.get(key(6));
        let is_key = (HEADER_BYTES..HEADER_BYTES + KEY_BYTES).contains(&at);
        // A key that is not there any more is not found.
        assert!(found.is_err() || is_key && matches!(found, Ok(None)), "byte {at}: {found:?}");
        let report = db.check(None);
        assert_eq!(report.first_damage.map(|damage| damage.at), Some(slot as u64 + 8192));
        file.write_all_at(&good, (slot + at) as u64).expect("written");
        assert_eq!(session.get(key(6)).expect("whole again"), Some(value(6, 1)));
    }
    assert_sound(&db);
}
