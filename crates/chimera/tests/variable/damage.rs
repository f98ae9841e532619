//! Words of records, descriptors and chunks that are not what was written.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use chimera::{Db, Error, Options, VerifyReads};

use super::{contents, small};
use crate::tools::media::{SUPERBLOCK_BYTES, checked_word_at};
use crate::tools::scratch;

/// Filler of values: words that are all like this are not damaged here.
const FILLER: u64 = 0xabab_abab_abab_abab;

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// Short, as long as a page, as long as a block, and as long as some.
fn value(number: u64) -> Vec<u8> {
    let mut value = vec![0xab; [40, 400, 1600, 5000, 9000][number as usize % 5]];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

const KEYS: u64 = 10;

/// Makes a store, closed in order.
fn make(path: &Path) {
    let db = Db::open(path, &small()).expect("a store");
    for number in 0..KEYS {
        db.put(key(number), value(number)).expect("room");
    }
    for number in 0..KEYS {
        // Nobody's chunks, too.
        db.put(key(number), value(number)).expect("room");
    }
    db.close().expect("closing");
}

/// Whether the store says what is wrong, and whatever it says besides is right.
fn is_noticed(path: &Path, options: &Options) -> bool {
    let db = match Db::open(path, options) {
        Ok(db) => db,
        Err(Error::Corrupted { .. }) => return true,
        Err(error) => panic!("{error}"),
    };
    let mut is_missed = db.stats().records_damaged > 0;
    for number in 0..KEYS {
        match db.get(key(number)) {
            Ok(Some(found)) => assert!(found == value(number), "key {number} has another value"),
            Ok(None) | Err(Error::Corrupted { .. }) => is_missed = true,
            Err(error) => panic!("{error}"),
        }
    }
    is_missed || !db.check(None).is_sound()
}

/// Every word that is not a value's filler is made zero, another one, and the one of the chunk or record
/// before: chains are cut, go in circles, go elsewhere.
#[test]
fn any_damaged_word_is_noticed_or_means_nothing() {
    let directory = scratch();
    let path = directory.path().join("store");
    make(&path);
    let file = path.join("segment-000000");
    let sound = std::fs::read(&file).expect("a file");
    let word = |at: usize| u64::from_le_bytes(sound[at..at + 8].try_into().expect("8 bytes"));
    let used = sound.len() - 4096;
    let words: Vec<usize> =
        (0..used).step_by(8).filter(|at| ![0, FILLER].contains(&word(*at))).collect();
    assert!(words.len() > 200, "{}", words.len());
    let (mut noticed, mut tried) = (0, 0);
    for (number, at) in words.iter().enumerate() {
        let before = word(words[number.saturating_sub(5)]);
        for new in [0, !word(*at), before, word(*at) ^ 1] {
            if new == word(*at) {
                continue;
            }
            let mut bytes = sound.clone();
            bytes[*at..*at + 8].copy_from_slice(&new.to_le_bytes());
            std::fs::write(&file, &bytes).expect("room");
            let read_only = small().read_only(true);
            tried += 1;
            noticed += u32::from(is_noticed(&path, &read_only));
            is_noticed(&path, &read_only.salvage(true));
        }
    }
    // Not so: records that were replaced, chunks of theirs, and what `check` of a place cannot tell.
    assert!(noticed * 3 > tried, "{noticed} of {tried}");
    std::fs::write(&file, &sound).expect("room");
    let db = Db::open(&path, &small()).expect("it is whole again");
    assert_eq!(contents(&db).len() as u64, KEYS);
}

/// The lengths of every record and chunk, each half as it was and the other one as another word has it: as a
/// store in two parts would leave it. Such a word never says lengths that were not written.
#[test]
fn a_torn_word_of_lengths_is_noticed_or_means_nothing() {
    const SET_AND_KEY: u64 = 0xffff;
    let directory = scratch();
    let path = directory.path().join("store");
    make(&path);
    let file = path.join("segment-000000");
    let sound = std::fs::read(&file).expect("a file");
    let word = |at: usize| u64::from_le_bytes(sound[at..at + 8].try_into().expect("8 bytes"));
    let is_checked =
        |at: &usize| word(*at) == checked_word_at(word(*at) as u32, SUPERBLOCK_BYTES + *at as u64);
    let all: Vec<usize> = (0..sound.len() - 4096).step_by(8).filter(is_checked).collect();
    let is_lengths = |at: &&usize| word(**at) & SET_AND_KEY != 0 && word(**at) >> 16 & 0xffff != 0;
    let lengths: Vec<usize> = all.iter().filter(is_lengths).copied().collect();
    assert!(lengths.len() > 30, "{}", lengths.len());
    let (mut tried, mut noticed) = (0, 0);
    for (number, at) in lengths.iter().enumerate() {
        let (own, other) = (word(*at), word(lengths[(number + 1) % lengths.len()]));
        let (low, high) = (0xffff_ffff_u64, 0xffff_ffff_u64 << 32);
        for torn in [own & low, own & high, own & low | other & high, other & low | own & high] {
            if torn == own || torn == other {
                continue;
            }
            let mut bytes = sound.clone();
            bytes[*at..*at + 8].copy_from_slice(&torn.to_le_bytes());
            std::fs::write(&file, &bytes).expect("room");
            tried += 1;
            noticed += u32::from(is_noticed(&path, &small().read_only(true)));
            is_noticed(&path, &small().read_only(true).salvage(true));
        }
    }
    // Chunks of values that were replaced are in blocks that may be free.
    assert!(tried > 60 && noticed * 10 > tried * 9, "{noticed} of {tried}");
}

/// What is damaged is left where it is, and all else can be used.
#[test]
fn a_store_with_a_cut_chain_can_be_salvaged_and_written() {
    let directory = scratch();
    let path = directory.path().join("store");
    make(&path);
    let file = path.join("segment-000000");
    let mut bytes = std::fs::read(&file).expect("a file");
    // Names of values are in descriptors and chunks; the last value's chunks were written last.
    let descriptor = key(9);
    let at = (0..bytes.len() - descriptor.len())
        .rev()
        .find(|at| bytes[*at..].starts_with(&descriptor))
        .expect("the key of the last record");
    let name_at = at + 16;
    bytes[name_at] ^= 0x10;
    std::fs::write(&file, &bytes).expect("room");
    assert!(matches!(Db::open(&path, &small()), Err(Error::Corrupted { .. })));
    let db = Db::open(&path, &small().salvage(true)).expect("the others are there");
    assert_eq!(db.stats().records_damaged, 1);
    for number in 0..KEYS {
        let found = db.get(key(number)).expect("it is left out");
        assert_eq!(found.is_some(), number != 9, "key {number}");
        db.put(key(number), value(number + 5)).expect("room");
    }
    db.compact(1, None).expect("compaction");
    for number in 0..KEYS {
        assert!(db.get(key(number)).expect("a read").expect("it was put") == value(number + 5));
    }
}

/// Words of a record with chunks are damaged while the store is open. An update of a word of its value then fails as
/// damage, which is not the caller's mistake; or it is done, and the value can be read.
#[test]
fn an_update_in_place_of_a_damaged_value_says_so() {
    let directory = scratch();
    let path = directory.path().join("store");
    let db = Db::open(&path, &small().verify_reads(VerifyReads::Never)).expect("a store");
    let bytes = 3000;
    for _ in 0..2 {
        db.put(key(0), vec![0xab; bytes]).expect("room");
        // The record names the word; the next update is in place.
        db.fetch_add_u64(key(0), 8, 1).expect("sound");
        db.fetch_add_u64(key(0), 8, 1).expect("sound");
    }
    let path = path.join("segment-000000");
    let sound = std::fs::read(&path).expect("a file");
    let word = |at: usize| u64::from_le_bytes(sound[at..at + 8].try_into().expect("8 bytes"));
    let file = File::options().write(true).open(&path).expect("a file");
    let used = sound.len() - 4096;
    let (mut refused, mut done) = (0, 0);
    for at in (0..used).step_by(8).filter(|at| ![0, FILLER].contains(&word(*at))) {
        for new in [0, !word(at), word(at) ^ 1] {
            file.write_all_at(&new.to_le_bytes(), at as u64).expect("written");
            match db.fetch_add_u64(key(0), 8, 1) {
                Ok(_) => {
                    let found = db.get(key(0)).unwrap_or_else(|error| panic!("{at}: {error}"));
                    assert_eq!(found.map(|found| found.len()), Some(bytes), "{at}");
                    done += 1;
                }
                Err(Error::Corrupted { .. }) => refused += 1,
                Err(error) => panic!("{at}: {error}"),
            }
            file.write_all_at(&word(at).to_le_bytes(), at as u64).expect("written");
        }
    }
    assert!(refused > 30 && done > 30, "{refused} refused, {done} done");
    let outside = db.fetch_add_u64(key(0), bytes, 1);
    assert!(matches!(outside, Err(Error::FieldOutOfRange { .. })), "{outside:?}");
}
