use super::super::cache::{CacheModel, Touch};
use super::CacheParameters;

const HIT: Touch = Touch { hit: true, evicted: None };
const MISS: Touch = Touch { hit: false, evicted: None };

fn model(lines: u64, ways: u32, flush_keeps_line: bool) -> CacheModel {
    CacheModel::new(CacheParameters { bytes: lines * 64, ways, flush_keeps_line })
}

#[test]
fn the_least_recently_used_line_makes_room() {
    let cache = model(2, 2, true);
    assert_eq!(cache.touch(1, false), MISS);
    assert_eq!(cache.touch(2, false), MISS);
    assert_eq!(cache.touch(1, false), HIT);
    assert_eq!(cache.touch(3, false), MISS, "2 makes room");
    assert_eq!(cache.touch(1, false), HIT);
    assert_eq!(cache.touch(2, false), MISS);
}

#[test]
fn a_dirty_line_that_makes_room_is_written_back() {
    let cache = model(2, 2, true);
    cache.touch(1, true);
    cache.touch(2, false);
    assert_eq!(cache.touch(3, false), Touch { hit: false, evicted: Some(1) });
    assert_eq!(cache.touch(4, false), MISS, "2 was clean");
}

#[test]
fn loading_a_dirty_line_leaves_it_dirty() {
    let cache = model(2, 2, true);
    cache.touch(1, true);
    cache.touch(1, false);
    assert!(cache.flush(1));
}

#[test]
fn flushing_cleans_and_keeps_or_drops() {
    let keeps = model(2, 2, true);
    keeps.touch(1, true);
    assert!(keeps.flush(1));
    assert!(!keeps.flush(1), "clean by now");
    assert_eq!(keeps.touch(1, false), HIT);

    let drops = model(2, 2, false);
    drops.touch(1, true);
    assert!(drops.flush(1));
    assert!(!drops.flush(1), "gone by now");
    assert_eq!(drops.touch(1, false), MISS);
}

#[test]
fn flushing_does_not_count_as_use() {
    let cache = model(2, 2, true);
    cache.touch(1, true);
    cache.touch(2, false);
    cache.flush(1);
    cache.touch(3, false);
    assert_eq!(cache.touch(2, false), HIT);
    assert_eq!(cache.touch(1, false), MISS);
}

#[test]
fn a_line_belongs_to_the_set_of_its_number() {
    let cache = model(4, 2, true);
    for line in [0, 2, 1, 4] {
        assert_eq!(cache.touch(line, false), MISS);
    }
    assert_eq!(cache.touch(1, false), HIT, "odd lines have a set of their own");
    assert_eq!(cache.touch(2, false), HIT);
    assert_eq!(cache.touch(0, false), MISS, "4 took its place");
}

#[test]
fn there_is_room_for_a_power_of_two_of_sets() {
    for (sets, room) in [(1, 1), (2, 2), (63, 32), (64, 64), (65, 64), (130, 128), (1024, 1024)] {
        let cache = model(sets, 1, true);
        for line in 0..room {
            assert_eq!(cache.touch(line, false), MISS);
        }
        for line in 0..room {
            assert_eq!(cache.touch(line, true), HIT, "line {line} of {sets}");
        }
        for line in 0..room {
            let evicted = Touch { hit: false, evicted: Some(line) };
            assert_eq!(cache.touch(line + room, false), evicted, "of {sets}");
        }
    }
}

#[test]
fn forgotten_lines_are_not_written_back() {
    for range in [0..3, 0..1_000_000] {
        let cache = model(8, 2, true);
        for line in 0..3 {
            cache.touch(line, true);
        }
        cache.forget_all(range);
        assert!(cache.clear().is_empty());
    }
}

#[test]
fn forgetting_a_long_range_leaves_the_rest() {
    let cache = model(8, 2, true);
    cache.touch(5, true);
    cache.touch(1_000_002, true);
    cache.forget_all(10..2_000_000);
    assert_eq!(cache.touch(5, false), HIT);
    assert_eq!(cache.touch(1_000_002, false), MISS);
}

#[test]
fn clearing_returns_the_dirty_lines_in_order() {
    let cache = model(256, 2, true);
    for (line, store) in [(70, true), (3, true), (5, false), (131, true)] {
        cache.touch(line, store);
    }
    assert_eq!(cache.clear(), [3, 70, 131]);
    assert_eq!(cache.touch(5, false), MISS);
    assert_eq!(cache.touch(3, false), MISS);
}

#[test]
#[should_panic(expected = "room for at least one set")]
fn a_cache_smaller_than_a_set_is_refused() {
    model(1, 2, true);
}
