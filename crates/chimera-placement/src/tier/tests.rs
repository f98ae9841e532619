use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::arena::Arena;
use crate::heap::Share;
use crate::region::RegionOptions;

fn tier(capacity: usize, bytes: u64, is_compressed: bool) -> (tempfile::TempDir, Tier) {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().to_owned();
    let arena = Arena::open(&RegionOptions { directory, bytes, require_dax: false }).unwrap();
    let heap = Arc::new(Heap::new(Arc::new(arena), Share::ALL, None));
    (scratch, Tier::new(heap, capacity, is_compressed))
}

fn found(tier: &Tier, key: &[u8], take: bool) -> Option<Vec<u8>> {
    tier.lookup(key, take, <[u8]>::to_vec)
}

/// Bytes that shrink to about half.
fn block(seed: u8, length: usize) -> Vec<u8> {
    let noise = |at: usize| (at.wrapping_mul(0x9e37_79b9) >> 11) as u8 ^ seed;
    (0..length).map(|at| if at % 100 < 50 { noise(at) } else { seed }).collect()
}

#[test]
fn blocks_come_back_compressed_or_not() {
    for is_compressed in [false, true] {
        let (_scratch, tier) = tier(4 << 20, 8 << 20, is_compressed);
        for seed in 0..100 {
            assert!(tier.insert(&[seed], &block(seed, 4096)));
        }
        for seed in 0..100 {
            assert_eq!(found(&tier, &[seed], false), Some(block(seed, 4096)));
        }
        let report = tier.report();
        assert_eq!((report.blocks, report.raw_bytes), (100, 409_600));
        assert_eq!(report.pmem_bytes < 300_000, is_compressed, "{report:?}");
        assert_eq!((report.hits, report.misses, report.inserts), (100, 0, 100));
    }
}

#[test]
fn a_block_that_is_taken_is_gone() {
    let (_scratch, tier) = tier(4 << 20, 8 << 20, false);
    tier.insert(b"one", &block(1, 100));
    assert_eq!(found(&tier, b"one", true), Some(block(1, 100)));
    assert_eq!(found(&tier, b"one", true), None);
    tier.insert(b"two", &block(2, 100));
    tier.erase(b"two");
    assert_eq!(found(&tier, b"two", false), None);
    assert_eq!(tier.report().pmem_bytes, 0);
    assert_eq!(tier.heap().report().pmem_bytes, 0);
}

/// A block that never has room takes nobody else's.
#[test]
fn a_block_that_is_too_large_gives_up_no_other() {
    let (_scratch, tier) = tier(SHARDS * 4096 * 4, 8 << 20, false);
    for seed in 0..100 {
        tier.insert(&[seed], &block(seed, 1024));
    }
    let before = tier.report();
    for seed in 100..200 {
        assert!(!tier.insert(&[seed], &block(seed, 4096 * 4 + 1)));
    }
    let after = tier.report();
    assert_eq!((after.blocks, after.evictions), (before.blocks, before.evictions));
}

#[test]
fn a_block_that_is_renewed_goes_last() {
    let (_scratch, tier) = tier(SHARDS * 4096, 8 << 20, false);
    assert!(!tier.renew(b"first"));
    tier.insert(b"first", &block(0, 1024));
    for number in 0..1000_u32 {
        assert!(tier.renew(b"first"), "{number}");
        tier.insert(&number.to_le_bytes(), &block(1, 1024));
    }
    assert_eq!(found(&tier, b"first", false), Some(block(0, 1024)));
}

#[test]
fn the_least_recently_used_block_goes_first() {
    let (_scratch, tier) = tier(SHARDS * 4096 * 4, 8 << 20, false);
    let key = |number: u32| number.to_le_bytes();
    tier.insert(b"hot", &block(0, 4096));
    for number in 0..1000 {
        tier.insert(&key(number), &block(1, 4096));
        assert!(found(&tier, b"hot", false).is_some(), "used before each of {number}");
    }
    let report = tier.report();
    assert_eq!(report.evictions, 1001 - report.blocks);
    assert!(report.pmem_bytes <= tier.capacity() as u64);
    assert_eq!(found(&tier, &key(0), false), None);
}

#[test]
fn a_block_that_cannot_be_written_leaves_nothing() {
    for is_compressed in [false, true] {
        let (_scratch, tier) = tier(4 << 20, 8 << 20, is_compressed);
        assert!(!tier.insert_with(b"key", 4096, &mut |_| false));
        assert!(!tier.insert(&[0; 25], &block(1, 100)), "the key is too long");
        assert_eq!(found(&tier, &[0; 25], false), None);
        let report = tier.report();
        assert_eq!((report.refused, report.blocks, tier.heap().report().pmem_bytes), (2, 0, 0));
    }
}

#[test]
fn limits_are_kept() {
    let (_scratch, tier) = tier(1 << 20, 4 << 20, false);
    assert!(!tier.insert(b"larger than a shard", &block(0, 1 << 20)));
    assert_eq!(tier.report().refused, 1);
    for number in 0..2000_u32 {
        tier.insert(&number.to_le_bytes(), &block(0, 4096));
        assert!(tier.heap().report().pmem_bytes <= (1 << 20) + 4096);
    }
    tier.set_capacity(SHARDS * 8192);
    assert!(tier.report().pmem_bytes <= (SHARDS * 8192) as u64);
    assert_eq!(tier.capacity(), SHARDS * 8192);
}

#[test]
fn a_full_arena_makes_it_give_up_blocks_or_refuse() {
    let (_scratch, tier) = tier(64 << 20, 4 << 20, false);
    for number in 0..3000_u32 {
        tier.insert(&number.to_le_bytes(), &block(3, 4096));
    }
    let report = tier.report();
    assert!(report.evictions > 1000 && report.blocks > 900, "{report:?}");
    assert_eq!(found(&tier, &2999_u32.to_le_bytes(), false), Some(block(3, 4096)));
}

/// Blocks of another size have the arena: each block that wants in costs one of them at most.
#[test]
fn a_block_without_room_in_fragments_gives_up_one_block_at_most() {
    let (_scratch, tier) = tier(64 << 20, 4 << 20, false);
    let key = |number: u32| number.to_le_bytes();
    for number in 0..6000 {
        tier.insert(&key(number), &block(3, 1024));
    }
    let before = tier.report();
    let taken = (6000..6100).filter(|number| tier.insert(&key(*number), &block(4, 8192))).count();
    let after = tier.report();
    assert!(after.evictions - before.evictions <= 100, "{before:?} {after:?}");
    assert_eq!(after.refused - before.refused, 100 - taken as u64);
    assert_eq!(after.inserts - before.inserts, taken as u64);
    // Whoever gives up the rest gets in.
    let taken = (6100..20_000).filter(|number| tier.insert(&key(*number), &block(4, 8192))).count();
    assert!(taken > 8000, "{taken}, {:?}", tier.report());
}

/// Blocks of two sizes have the arena: a block takes the place of one of its size.
#[test]
fn a_block_takes_the_memory_of_one_of_its_size() {
    let (_scratch, tier) = tier(64 << 20, 4 << 20, false);
    let insert = |number: u32| {
        let length = if number.is_multiple_of(2) { 1024 } else { 4096 };
        tier.insert(&number.to_le_bytes(), &block(number as u8, length))
    };
    for number in 0..8000 {
        insert(number);
    }
    let before = tier.report();
    let taken = (8000..16_000).filter(|number| insert(*number)).count();
    let after = tier.report();
    assert!(taken > 7800 && after.evictions - before.evictions <= 8000, "{taken}, {after:?}");
}

#[test]
fn a_block_that_never_has_room_gives_up_no_other_where_the_arena_is_full() {
    let (_scratch, tier) = tier(64 << 20, 4 << 20, false);
    for number in 0..3000_u32 {
        tier.insert(&number.to_le_bytes(), &block(3, 4096));
    }
    let before = tier.report();
    assert!(!tier.insert(b"larger than a shard", &block(0, (4 << 20) + 1)));
    tier.erase(&2999_u32.to_le_bytes());
    assert!(!tier.insert_with(b"not written", 4096, &mut |_| false));
    let after = tier.report();
    assert_eq!((after.evictions, after.blocks), (before.evictions, before.blocks - 1));
    assert_eq!(after.refused, before.refused + 2);
}

#[test]
fn a_block_that_is_read_stays_until_its_reader_is_done() {
    let (_scratch, tier) = tier(4 << 20, 4 << 20, false);
    tier.insert(b"read", &block(9, 4096));
    let result = tier.lookup(b"read", false, |bytes| {
        tier.erase(b"read");
        for number in 0..2000_u32 {
            tier.insert(&number.to_le_bytes(), &block(7, 4096));
        }
        bytes == block(9, 4096)
    });
    assert_eq!(result, Some(true));
}

/// A block that is used while its thread is ending, when what the thread keeps for tiers is gone.
struct UsedAtTheEnd(Arc<Tier>);

impl Drop for UsedAtTheEnd {
    fn drop(&mut self) {
        let at_end = SCRATCH.try_with(|_| ()).is_err();
        let kept = found(&self.0, b"before", false) == Some(block(1, 4096));
        self.0.insert(if at_end && kept { b"at end" } else { b"wrong" }, &block(2, 4096));
    }
}

thread_local! {
    static USED_AT_THE_END: std::cell::RefCell<Option<UsedAtTheEnd>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn a_thread_that_is_ending_may_use_a_tier() {
    let (_scratch, tier) = tier(1 << 20, 4 << 20, true);
    let tier = Arc::new(tier);
    let shared = Arc::clone(&tier);
    let thread = std::thread::spawn(move || {
        // What is made first goes last.
        USED_AT_THE_END.set(Some(UsedAtTheEnd(Arc::clone(&shared))));
        shared.insert(b"before", &block(1, 4096));
    });
    thread.join().unwrap();
    assert_eq!(found(&tier, b"at end", false), Some(block(2, 4096)));
}

/// Whoever reads a block may use the tier meanwhile.
#[test]
fn a_reader_may_come_back() {
    let (_scratch, tier) = tier(1 << 20, 4 << 20, true);
    tier.insert(b"one", &block(1, 4096));
    let both = tier.lookup(b"one", false, |one| {
        assert!(tier.insert(b"two", &block(2, 5000)));
        (one.to_vec(), found(&tier, b"two", false))
    });
    assert_eq!(both, Some((block(1, 4096), Some(block(2, 5000)))));
    let inserted = tier.insert_with(b"three", 4096, &mut |bytes| {
        bytes.copy_from_slice(&block(3, 4096));
        found(&tier, b"two", false) == Some(block(2, 5000))
    });
    assert!(inserted);
    assert_eq!(found(&tier, b"three", false), Some(block(3, 4096)));
}

#[test]
fn threads_share_a_tier() {
    let (_scratch, tier) = tier(1 << 20, 4 << 20, true);
    std::thread::scope(|scope| {
        for thread in 0..8_u32 {
            let tier = &tier;
            scope.spawn(move || {
                for round in 0..1500_u32 {
                    let number = (round * 7919 + thread) % 400;
                    let key = number.to_le_bytes();
                    match found(tier, &key, round % 3 == 0) {
                        Some(bytes) => assert_eq!(bytes, block(number as u8, 4096)),
                        None => drop(tier.insert(&key, &block(number as u8, 4096))),
                    }
                }
            });
        }
    });
    let report = tier.report();
    assert_eq!(tier.heap().report().pmem_bytes, report.pmem_bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Whatever is found is what was inserted last under its key.
    #[test]
    fn it_is_a_cache(steps in prop::collection::vec((0..40_u8, 0..3_u8, 1..9000_usize), 1..300), is_compressed: bool) {
        let (_scratch, tier) = tier(256 << 10, 4 << 20, is_compressed);
        let mut model = HashMap::new();
        for (seed, (key, what, length)) in steps.into_iter().enumerate() {
            match what {
                0 => {
                    model.remove(&key);
                    if tier.insert(&[key], &block(seed as u8, length)) {
                        model.insert(key, block(seed as u8, length));
                    } else {
                        tier.erase(&[key]);
                    }
                }
                1 => {
                    let found = found(&tier, &[key], false);
                    prop_assert!(found.is_none() || found.as_ref() == model.get(&key));
                }
                _ => {
                    tier.erase(&[key]);
                    prop_assert_eq!(found(&tier, &[key], false), None);
                }
            }
            prop_assert!(tier.report().pmem_bytes <= 256 << 10);
        }
    }
}
