//! What filters promise.

use super::*;

const KINDS: [FilterKind; 2] = [FilterKind::Bloom, FilterKind::Blocked];

/// Well mixed.
fn hash(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Those of one shard of 65,536.
fn hash_of_shard(number: u64) -> u64 {
    0xabcd << 48 | hash(number) >> 16
}

/// A filter of a table with so many slots, in which so many hashes were entered.
fn filled(kind: FilterKind, slots: u32, entries: u64, hash: fn(u64) -> u64) -> Filters {
    let filters = Filters::new(kind, kind.lines_for(slots), false);
    let number = filters.take().unwrap();
    let filter = filters.filter(number, slots).unwrap();
    filter.clear();
    (0..entries).for_each(|number| filter.enter(hash(number)));
    filters
}

/// The part of hashes that are not ruled out, of so many that were not entered.
fn passed(filters: &Filters, slots: u32, count: u64, hash: fn(u64) -> u64) -> f64 {
    let filter = filters.filter(0, slots).unwrap();
    let others = (1 << 40..(1 << 40) + count).filter(|number| filter.may_have(hash(*number)));
    others.count() as f64 / count as f64
}

/// What the text of the module says of the part that is not ruled out, with so many entries in so many lines.
fn formula(kind: FilterKind, entries: u64, lines: u64) -> f64 {
    let bits = (lines * LINE_BITS) as f64;
    match kind {
        FilterKind::Bloom => {
            let hashes = f64::from(BLOOM_HASHES);
            (1.0 - (-hashes * entries as f64 / bits).exp()).powf(hashes)
        }
        FilterKind::Blocked => {
            let mean = entries as f64 * BLOCK_BITS as f64 / bits;
            let mut chance = (-mean).exp();
            let mut sum = 0.0;
            for in_block in 0..200 {
                sum += chance * (1.0 - (31.0_f64 / 32.0).powi(in_block)).powi(8);
                chance *= mean / f64::from(in_block + 1);
            }
            sum
        }
    }
}

#[test]
fn no_hash_that_was_entered_is_ruled_out() {
    for kind in KINDS {
        for (slots, hash) in [(16, hash as fn(u64) -> u64), (512, hash_of_shard), (81_920, hash)] {
            // Up to four times as many as it is made for.
            for entries in [1, u64::from(slots) * 3 / 4, u64::from(slots) * 3] {
                let filters = filled(kind, slots, entries, hash);
                let filter = filters.filter(0, slots).unwrap();
                assert!((0..entries).all(|number| filter.may_have(hash(number))));
                filter.clear();
                assert!((0..entries).all(|number| !filter.may_have(hash(number))));
            }
        }
    }
}

#[test]
fn hashes_that_were_not_entered_are_ruled_out_as_often_as_the_formula_says() {
    const SLOTS: u32 = 16_384;
    for kind in KINDS {
        let (entries, lines) = (u64::from(SLOTS) * 3 / 4, kind.lines_for(SLOTS));
        for hash in [hash as fn(u64) -> u64, hash_of_shard] {
            // With as many entries as it is made for, and with more, where there is something to count.
            let made_for = passed(&filled(kind, SLOTS, entries, hash), SLOTS, 200_000, hash);
            let expected = formula(kind, entries, lines);
            assert!((made_for - expected).abs() < 0.2 * expected + 2e-5, "{made_for} {expected}");
            for times in [2, 3] {
                let filters = filled(kind, SLOTS, times * entries, hash);
                let (found, expected) =
                    (passed(&filters, SLOTS, 100_000, hash), formula(kind, times * entries, lines));
                assert!(
                    (found / expected - 1.0).abs() < 0.1,
                    "{kind:?} {times}: {found} {expected}"
                );
            }
        }
    }
    let rate = |kind: FilterKind| formula(kind, 12_288, kind.lines_for(SLOTS));
    assert!((rate(FilterKind::Bloom) - 3.7e-6).abs() < 0.1e-6, "{}", rate(FilterKind::Bloom));
    assert!((rate(FilterKind::Blocked) - 1.3e-3).abs() < 1e-4, "{}", rate(FilterKind::Blocked));
}

#[test]
fn a_filter_takes_the_bits_of_its_kind_for_each_entry() {
    for (kind, bits) in [(FilterKind::Bloom, 26), (FilterKind::Blocked, 16)] {
        for slots in [16_u32, 512, 8192, 81_920] {
            let (found, entries) = (kind.lines_for(slots) * LINE_BITS, u64::from(slots) * 3 / 4);
            assert!(found >= bits * entries && found < bits * entries + LINE_BITS);
            assert_eq!(kind.bytes_for(slots) * 8, found);
        }
    }
    // The paper's: a billion keys in the last tables of 16,384 shards, which are three quarters full.
    let bytes = 16_384 * FilterKind::Bloom.bytes_for(81_392);
    assert!((bytes as f64 / 1e9 * 8.0 - 26.0).abs() < 0.1, "{bytes}");
    assert_eq!(FilterKind::Bloom.lines_for(1 << 30), LINES_MAX);
}

#[test]
fn places_are_used_again_and_too_long_a_filter_is_none() {
    for kind in KINDS {
        let filters = Filters::new(kind, kind.lines_for(512), false);
        let numbers: Vec<_> = (0..5).map(|_| filters.take().unwrap()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
        assert_eq!(filters.bytes(), 5 * kind.bytes_for(512));
        filters.give_back(3);
        assert_eq!(filters.take(), Ok(3));
        assert!(filters.filter(4, 512).is_some() && filters.filter(4, 256).is_some());
        assert!(filters.filter(0, 1024).is_none() && filters.filter(3, 1024).is_none());
        let sized = SizedFilters::new(kind);
        let (small, large) = (sized.take(512).unwrap(), sized.take(81_920).unwrap());
        assert!(small != 0 && large != 0 && small != large);
        assert!(sized.filter(small, 512).is_some() && sized.filter(small, 81_920).is_none());
        assert!(sized.filter(0, 512).is_none() && sized.filter(u32::MAX, 512).is_none());
        let bytes = sized.bytes();
        sized.give_back(large);
        assert_eq!((sized.take(81_920), sized.bytes()), (Ok(large), bytes));
        sized.give_back(u32::MAX);
    }
}
