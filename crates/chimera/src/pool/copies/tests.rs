//! Which superblock is found, and what may be taken for a pool that was being made.

use std::path::Path;

use chimera_pmem::environment::OpenMode;
use chimera_pmem::{Environment, SteppedEnvironment};

use super::*;
use crate::pool::PoolGeometry;
use crate::pool::superblock::FORMAT_VERSION;
use crate::types::totals::Totals;

const FILE_WORDS: usize = (FILE_BYTES / 8) as usize;
const SECOND: usize = (COPY_STRIDE / 8) as usize;

fn superblock(sequence: u64, segments: u64) -> Superblock {
    Superblock {
        engine: 1,
        pool_id: 77,
        hash_seed: 1,
        geometry: PoolGeometry {
            segment_bytes: 128 << 10,
            block_bytes: 24 << 10,
            block_shift_bytes: 0,
        },
        sequence,
        segments,
        closing: Closing::Open,
        boot_id: 0,
        is_ordered: false,
        closed_words: [0; 2],
        totals: Totals::default(),
        area: vec![1, 2, 3],
    }
}

/// The words of a file with these copies; where there is none, zeros.
fn file_with(first: Option<&Superblock>, second: Option<&Superblock>) -> Vec<u64> {
    let mut words = vec![0; FILE_WORDS];
    for (start, copy) in [(0, first), (SECOND, second)] {
        if let Some(copy) = copy {
            words[start..start + WORDS].copy_from_slice(&copy.encode());
        }
    }
    words
}

fn find(words: &[u64], may_be_half_made: bool) -> Result<Option<Superblock>> {
    find_superblock(&|_| false, &|at| words[(at / 8) as usize], may_be_half_made)
}

#[test]
fn the_words_of_a_file_are_those_that_lie_on_it() {
    let environment = SteppedEnvironment::in_memory(1);
    let file = environment.open(Path::new("superblock"), OpenMode::CreateNew).unwrap();
    let words = file_with(Some(&superblock(2, 1)), Some(&superblock(3, 1)));
    file.write_at(0, words.as_bytes()).unwrap();
    assert_eq!(read_words(&*file).unwrap(), words);
}

#[test]
fn a_pool_that_was_being_made_is_none_where_that_is_possible() {
    let torn = |stored: usize| {
        let mut words = file_with(Some(&superblock(0, 0)), None);
        words[stored..WORDS].fill(0);
        words
    };
    for words in [torn(0), torn(1), torn(8), torn(WORDS)] {
        assert_eq!(find(&words, true).unwrap(), None);
    }
    for words in [torn(0), torn(1), torn(8)] {
        assert!(matches!(find(&words, false), Err(Error::Corrupted { .. })));
    }
    assert_eq!(find(&torn(WORDS), false).unwrap(), Some(superblock(0, 0)));
}

/// Each of these would be lost if it were taken for a pool that was being made.
#[test]
fn a_pool_that_was_made_is_found_though_one_copy_is_blank() {
    let [made, changed, grown] = [superblock(0, 0), superblock(1, 0), superblock(0, 1)];
    let later = superblock(2, 0);
    for (first, second, expected) in [
        (Some(&made), Some(&changed), &changed),
        (None, Some(&changed), &changed),
        (Some(&grown), None, &grown),
        (Some(&later), None, &later),
        (Some(&later), Some(&changed), &later),
    ] {
        for may_be_half_made in [false, true] {
            let found = find(&file_with(first, second), may_be_half_made).unwrap();
            assert_eq!(found.as_ref(), Some(expected));
        }
    }
}

#[test]
fn a_pool_of_another_format_is_none_that_was_being_made() {
    let mut words = file_with(Some(&superblock(0, 0)), None);
    for version in [FORMAT_VERSION - 1, FORMAT_VERSION + 1] {
        words[1] = u64::from(version) | 1 << 32;
        let mut copy = [0; WORDS];
        copy.copy_from_slice(&words[..WORDS]);
        seal(&mut copy);
        words[..WORDS].copy_from_slice(&copy);
        let found = find(&words, true);
        assert!(
            matches!(found, Err(Error::OlderFormat { .. } | Error::NewerFormat { .. })),
            "{found:?}"
        );
    }
}

#[test]
fn what_lies_behind_the_copies_is_no_creation_unless_it_is_the_number_of_no_block() {
    let blank = file_with(None, None);
    let found_with = |set: &[(u64, u64)]| {
        let mut words = blank.clone();
        for &(at, word) in set {
            words[(at / 8) as usize] = word;
        }
        find(&words, true)
    };
    let none = |at| (at, checked_word::encode_at(0, at));
    let [first, second] = USED_BLOCKS_AT;
    for of_creation in [&[none(first)][..], &[none(second)], &[none(first), none(second)]] {
        assert_eq!(found_with(of_creation).unwrap(), None);
    }
    for foreign in [
        // Blocks are in use.
        (first, checked_word::encode_at(3, first)),
        (second, checked_word::encode_at(3, second)),
        // The number of the other place, and a number where there is none.
        (first, checked_word::encode_at(0, second)),
        none(first + 8),
        none(2048),
        // Somebody else's bytes.
        (8 * WORDS as u64, 1),
        (COPY_STRIDE - 8, 1),
        (COPY_STRIDE + 8 * WORDS as u64, 1),
        (FILE_BYTES - 8, u64::MAX),
    ] {
        let found = found_with(&[foreign]);
        assert!(matches!(found, Err(Error::Corrupted { .. })), "{foreign:x?}: {found:?}");
    }
}
