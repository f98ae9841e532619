//! Many keys with two live copies each, as many interrupted overwrites would leave them.

use std::path::Path;

use chimera::{Geometry, Options};

use crate::tools::media::{
    FIRST_SEGMENT, SUPERBLOCK, SUPERBLOCK_BYTES, change, forge_superblock, key_check, value_check,
    word,
};
use crate::tools::{
    SMALL, assert_sound, bytes_of, contents, copy_store, fill, key, open, restore, scratch,
    small_with, value,
};

/// Blocks of 40 records, 800 to a segment: more blocks than a recovery thread takes at once.
const GEOMETRY: Geometry = Geometry { pages_per_block: 8, segment_bytes: 2 << 20, ..SMALL };
const BLOCK_BYTES: usize = 8 * 256;
const KEYS: u64 = 24_000;
const SLOT_BYTES: usize = 48;

/// A kind of store.
struct Kind {
    options: Options,
    records_per_block: u64,
    /// In front of what a slot has: the lengths.
    before_bytes: usize,
}

fn kinds() -> [Kind; 2] {
    let any = small_with(GEOMETRY);
    let fixed = any.clone().fixed_size(8, 24);
    [
        Kind { options: fixed, records_per_block: 40, before_bytes: 0 },
        Kind { options: any, records_per_block: 32, before_bytes: 8 },
    ]
}

/// Keys with two copies: nine of each block, too few for the block to be used again.
fn doubled() -> impl Iterator<Item = u64> {
    (0..KEYS).filter(|number| number % 40 < 9)
}

/// The version that counts for a key: 1 where there is one copy; else 2, in a later block, or for
/// some keys 3, in the earlier one.
fn winner(number: u64) -> u64 {
    match (number % 40 < 9, number % 2) {
        (false, _) => 1,
        (true, 0) => 2,
        (true, _) => 3,
    }
}

/// A store in which all of `doubled` have two live copies.
fn store(path: &Path, kind: &Kind) {
    let old = scratch();
    let db = open(path, &kind.options);
    let mut session = db.session();
    fill(&mut session, 0..KEYS, 1);
    copy_store(path, old.path());
    fill(&mut session, doubled(), 2);
    drop(session);
    db.close().expect("nobody else has it");
    // The first blocks as they were, with the bits of the old copies set.
    let old = bytes_of(old.path()).remove(Path::new(FIRST_SEGMENT)).expect("a segment");
    let seed = word(path, SUPERBLOCK, 8 * 3);
    change(path, FIRST_SEGMENT, |bytes| {
        let end = (KEYS / kind.records_per_block) as usize * BLOCK_BYTES;
        bytes[..end].copy_from_slice(&old[..end]);
        for slot in slots_of_version_1(&old[..end]) {
            let number = u64::from_le_bytes(bytes[slot + 16..slot + 24].try_into().expect("8"));
            if winner(number) == 3 {
                write_record(bytes, slot, slot - kind.before_bytes, seed, number);
            }
        }
    });
    // As if the process had been killed: a store that was closed in order has no copies.
    forge_superblock(path, &[(8, 2), (18, 0), (19, 0), (20, 0)]);
}

/// Where the records of the first blocks are.
fn slots_of_version_1(blocks: &[u8]) -> Vec<usize> {
    let starts = (0..blocks.len() - SLOT_BYTES).step_by(8);
    starts
        .filter(|at| {
            let number = u64::from_le_bytes(blocks[at + 16..at + 24].try_into().expect("8"));
            number < KEYS && blocks[at + 24..at + 48] == value(number, 1)
        })
        .collect()
}

/// A version above all that were given.
const HIGH: u64 = 1 << 40;

/// Makes the record in a slot, or in a log from `begin` on, one of a higher version, with the third value and the right checksums.
fn write_record(segment: &mut [u8], slot: usize, begin: usize, seed: u64, number: u64) {
    let place = SUPERBLOCK_BYTES + begin as u64;
    let (version, value) = (HIGH, value(number, 3));
    let key_check = key_check(place, version, seed, &key(number));
    segment[slot..slot + 4].copy_from_slice(&key_check.to_le_bytes());
    segment[slot + 4..slot + 8].copy_from_slice(&value_check(place, &value).to_le_bytes());
    segment[slot + 8..slot + 16].copy_from_slice(&version.to_le_bytes());
    segment[slot + 24..slot + 48].copy_from_slice(&value);
}

#[test]
fn hole_01_the_newest_copy_wins_whichever_thread_finds_it_first() {
    for kind in kinds() {
        the_newest_copy_wins(&kind);
    }
}

fn the_newest_copy_wins(kind: &Kind) {
    let directory = scratch();
    let path = directory.path();
    store(path, kind);
    let files = bytes_of(path);
    let copies = doubled().count() as u64;
    for threads in [1, 2, 3, 8] {
        restore(path, &files);
        // A reader first: it may clear nothing, and serves the same.
        for read_only in [true, false] {
            let db =
                open(path, &kind.options.clone().recovery_threads(threads).read_only(read_only));
            let recovery = db.stats().recovery;
            assert_eq!(recovery.duplicates_cleared, copies);
            assert_eq!(recovery.records, KEYS);
            assert!(threads == 1 || recovery.threads > 1, "recovery was not parallel");
            let found = contents(&db);
            for number in 0..KEYS {
                let expected = value(number, winner(number));
                assert_eq!(found[&key(number)], expected, "key {number}, {threads} threads");
            }
            assert_sound(&db);
            if read_only {
                assert!(bytes_of(path) == files, "a reader changed the store");
            }
        }
        let db = open(path, &kind.options);
        assert_eq!(db.stats().recovery.duplicates_cleared, 0, "not cleared for good");
        assert_eq!(contents(&db).len() as u64, KEYS);
    }
}
