//! What a crash leaves of a block that is handed out, and of a segment that is added.

use super::*;
use crate::pool::copies::find_superblock;
use crate::pool::superblock::COPY_STRIDE;
use crate::pool::tests::media::{ENGINE, Photo};
use crate::pool::{USED_BLOCKS_AT, checked_word};

const MARK: u64 = 7;

fn states(photos: &[Photo]) -> impl Iterator<Item = Vec<u64>> {
    photos.iter().flat_map(|photo| photo.some_states(64, 1))
}

/// What each of the words says.
fn used_in(state: &[u64]) -> [Option<u32>; 2] {
    USED_BLOCKS_AT.map(|at| checked_word::decode_at(state[(at / 8) as usize], at))
}

/// How many segments are in force.
fn segments_in(state: &[u64]) -> u64 {
    let word = |at: u64| state[(at / 8) as usize];
    find_superblock(&|_| false, &word, false).unwrap().expect("a superblock").segments
}

#[test]
fn a_block_in_use_was_prepared_and_one_that_was_handed_out_is_in_use() {
    let pool = open(&Watched::default(), &options(4));
    pool.grow_beyond(0).unwrap();
    for number in 0..3 {
        let at = pool.map.block_at(number);
        let (block, photos) = pool.pmem.photograph(|| {
            pool.take_block(Purpose::Put, |block| {
                assert_eq!(block, number);
                pool.pmem.store_u64(at, MARK, ENGINE);
                pool.pmem.flush(pool.extent(at, 8), ENGINE);
            })
        });
        assert_eq!(block.unwrap(), number);
        let (before, after) = (Some(number as u32), Some(number as u32 + 1));
        for state in states(&photos) {
            for used in used_in(&state) {
                assert!(used == before || used == after, "{used:?} blocks are in use");
                assert!(used == before || state[(at / 8) as usize] == MARK, "not prepared");
            }
        }
        for state in states(&[pool.pmem.photo()]) {
            assert_eq!(used_in(&state), [after; 2]);
        }
    }
}

#[test]
fn a_segment_in_force_has_its_header_and_both_copies_of_the_superblock_say_so() {
    let pool = open(&Watched::default(), &options(4));
    for index in 0..2_u64 {
        let header_at = pool.map.base + index * SEGMENT_BYTES + pool.map.header_in_segment();
        let header = (header_at / 8) as usize..(header_at / 8) as usize + segment::WORDS;
        let expected = segment::encode(pool.superblock().pool_id, index);
        let first = index * PER_SEGMENT;
        while pool.ready_blocks() < first {
            pool.grow_beyond(pool.ready_blocks()).unwrap();
        }
        let (grown, photos) = pool.pmem.photograph(|| pool.grow_beyond(first));
        grown.unwrap();
        for state in states(&photos) {
            let segments = segments_in(&state);
            assert!(segments == index || segments == index + 1, "{segments} segments");
            assert!(segments == index || state[header.clone()] == expected, "no header");
        }
        for state in states(&[pool.pmem.photo()]) {
            assert_eq!(state[header.clone()], expected);
            for copy in [0, COPY_STRIDE] {
                let mut damaged = state.clone();
                damaged[(copy / 8) as usize] ^= 1;
                assert_eq!(segments_in(&damaged), index + 1);
            }
        }
    }
    let image = pool.pmem.image();
    let found = small::media_pool(&Media::default(), &image, SEGMENT_BYTES, 64 * BLOCK_BYTES);
    assert_eq!(found.superblock().segments, 2);
}
