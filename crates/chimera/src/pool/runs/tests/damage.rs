//! Words that are not what was written.

use chimera_pmem::Fenced;

use super::*;

/// A pool with runs in two segments, and its image.
fn image() -> Vec<u8> {
    let pool = new_pool();
    let [a, b, c] = [6, 7, 9].map(|blocks| take(&pool, LOG, blocks).unwrap());
    assert_eq!([a.first(), b.first(), c.first()], [0, 6, 16]);
    for run in [&a, &b, &c] {
        fill(&pool, run);
    }
    pool.free_run(a).unwrap();
    pool.pmem.image()
}

fn place(block: u64) -> usize {
    let pool = open(&[]).unwrap();
    pool.map.block_at(block) as usize
}

fn with_word(block: u64, word: u64) -> Vec<u8> {
    let mut image = image();
    image[place(block)..][..8].copy_from_slice(&word.to_le_bytes());
    image
}

fn assert_refused(image: &[u8], block: u64, what: &str) {
    match recover(&open(image).unwrap()) {
        Err(Error::Corrupted { what: said, at }) => {
            assert!(said.contains(what), "{said}");
            assert_eq!(at, place(block) as u64);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_flipped_bit_of_a_word_is_an_error_with_its_place() {
    let image = image();
    for block in [0, 6, 13, 16] {
        for bit in 0..64 {
            let mut damaged = image.clone();
            damaged[place(block) + bit / 8] ^= 1 << (bit % 8);
            assert_refused(&damaged, block, "damaged");
        }
    }
}

#[test]
fn words_that_cannot_be_are_errors() {
    let assert_refused = |block, word: BlockWord, what| {
        assert_refused(&with_word(block, word.encode(place(block) as u64)), block, what);
    };
    assert_refused(6, BlockWord::run(9, 7), "kind");
    // Beyond the used blocks, and beyond the segment.
    assert_refused(16, BlockWord::run(LOG.code(), 10), "length");
    assert_refused(6, BlockWord::run(LOG.code(), 11), "length");
    assert_refused(0, BlockWord::run(BlockKind::FREE.code(), RUN_BLOCKS_MAX), "length");
    assert_refused(6, BlockWord::run(0, 7), "kind");
    let run = BlockWord::run(LOG.code(), 7).encode(0) as u32;
    assert_refused(6, BlockWord::decode_unchecked(u64::from(run | 1)), "kind");
}

#[test]
fn a_word_that_was_lost_or_is_that_of_another_run_is_an_error() {
    let image = image();
    let of_another = u64::from_le_bytes(image[place(16)..][..8].try_into().unwrap());
    for word in [0, of_another] {
        assert_refused(&with_word(6, word), 6, "damaged");
    }
}

#[test]
fn salvage_goes_on_with_the_next_segment_and_reuses_nothing_that_is_damaged() {
    let pool = open(&with_word(6, 12345)).unwrap();
    assert_eq!(pool.count_runs(&KINDS).damaged_blocks, 10);
    let mut found = Vec::new();
    let visit = |run| {
        found.push(run);
        Ok(())
    };
    pool.recover_runs(&KINDS, true, visit).unwrap();
    let behind = Run { first: 16, blocks: 9, code: LOG.code(), emptied: Fenced::default() };
    assert_eq!(found, [FoundRun::Damaged(6..16), FoundRun::InUse(behind)]);
    assert_eq!(pool.free_runs.lock().unwrap().all(), [(0, 6)]);
    assert_eq!(take(&pool, TABLE, 7).unwrap().first(), 25);
}

#[test]
fn a_run_whose_word_was_damaged_is_not_freed() {
    let pool = new_pool();
    let [a, _b] = [6, 7].map(|blocks| take(&pool, LOG, blocks).unwrap());
    pool.pmem.store_u64(pool.map.block_at(0), 12345, media::ENGINE);
    assert!(matches!(pool.free_run(a), Err(Error::Corrupted { at, .. }) if at == 8192));
    assert_eq!(pool.free_runs.lock().unwrap().all(), []);
}

#[test]
fn what_the_visitor_says_ends_the_walk() {
    let pool = open(&image()).unwrap();
    let mut visited = 0;
    let done = pool.recover_runs(&KINDS, false, |_| {
        visited += 1;
        Err(Error::KeyCollisions)
    });
    assert!(matches!(done, Err(Error::KeyCollisions)));
    assert_eq!(visited, 1);
}
