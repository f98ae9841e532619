//! How much memory the table takes, and what it does to stay within.

use super::{at, finds, insert_keys, mix, place_of, table};

/// Memory for a growing number of keys: 16 bytes per slot at 0.95 full when segments split, twice
/// that right after, 16 / 0.95 / ln 2 = 24.3 on average.
#[test]
fn bytes_per_key_stay_within_bounds() {
    let table = table(1024);
    let mut curve = Vec::new();
    let (mut keys, mut target) = (0u64, 250_000.0);
    // Four doublings, so that every phase of the cycle counts the same.
    while target < 250_000.0 * 16.0 {
        insert_keys(&table, keys..target as u64);
        keys = target as u64;
        curve.push(table.bytes() as f64 / keys as f64);
        target *= 1.2;
    }
    let mean = curve.iter().sum::<f64>() / curve.len() as f64;
    assert!(mean <= 26.0, "{mean}: {curve:.1?}");
    assert!(curve.iter().all(|&bytes| bytes <= 36.0), "{curve:.1?}");
}

#[test]
fn a_segment_is_nearly_full_when_it_splits() {
    const TABLES: u64 = 100;
    let mut entries = 0;
    for number in 0..TABLES {
        let table = table(1024);
        for key in number << 32.. {
            table.insert(mix(key), place_of(key));
            if table.growth.segments() > 1 {
                break;
            }
            entries += 1;
        }
    }
    let load = f64::from(entries) / (TABLES * 1024) as f64;
    assert!(load >= 0.93, "{load}");
}

/// Splitting brings entries home, so that most lookups read one bucket although segments were full.
#[test]
fn most_entries_are_in_their_first_bucket() {
    let table = table(1024);
    let mut keys = 0;
    while table.growth.segments() < 64 {
        insert_keys(&table, [keys]);
        keys += 1;
    }
    let mut at_home = 0;
    for segment in 0..table.growth.segments() {
        table.slots(segment).for_each(|entry| {
            at_home += u64::from(table.geometry.home(entry.hash) == entry.number);
        });
    }
    let share = at_home as f64 / keys as f64;
    assert!(share > 0.9, "{share}");
}

#[test]
fn an_empty_table_is_small() {
    assert!(table(1024).bytes() <= 32 << 10);
    assert!(table(16).bytes() <= 4 << 10);
}

#[test]
fn tiny_segments_need_neither_overflow_nor_a_huge_directory() {
    for slots in [16, 32] {
        let table = table(slots);
        insert_keys(&table, 0..100_000);
        assert!(table.overflow.len() < 100, "{slots}: {} entries", table.overflow.len());
        assert!((0..100_000).all(|key| finds(&table, mix(key), place_of(key))));
        assert!(table.bytes() < 100_000 * 200, "{slots}: {} bytes", table.bytes());
    }
}

#[test]
fn reserving_builds_what_growing_would_have() {
    for keys in [1, 1000, 50_000, 300_000] {
        let (grown, reserved) = (table(1024), table(1024));
        reserved.reserve(keys).unwrap();
        let segments = reserved.growth.segments();
        for table in [&grown, &reserved] {
            insert_keys(table, 0..keys);
            assert!((0..keys).all(|key| finds(table, mix(key), place_of(key))));
            assert!((keys..2 * keys).all(|key| !finds(table, mix(key), place_of(key))));
            assert_eq!(table.len(), keys);
        }
        assert!(reserved.bytes() <= grown.bytes() * 11 / 10 + (64 << 10), "{keys}");
        let split = reserved.growth.segments() - segments;
        assert!(split <= segments / 3, "{keys}: {split} of {segments} segments split");
    }
}

#[test]
fn reserving_a_table_that_is_not_empty_changes_nothing() {
    let table = table(64);
    table.insert(3, at(3));
    table.reserve(100_000).unwrap();
    assert_eq!(table.growth.segments(), 1);
    table.remove_if(3, at(3));
    table.reserve(100_000).unwrap();
    assert!(table.growth.segments() > 1000, "empty again");
    insert_keys(&table, 0..100_000);
    assert!((0..100_000).all(|key| finds(&table, mix(key), place_of(key))));
}

/// Hashes that agree in the bits that choose a segment cannot be parted by splitting it.
#[test]
fn hashes_that_agree_do_not_exhaust_memory() {
    for shift in [40, 56] {
        let table = table(1024);
        let hash = |key: u64| mix(key) << shift;
        for key in 0..20_000 {
            table.insert(hash(key), place_of(key));
        }
        assert!((0..20_000).all(|key| finds(&table, hash(key), place_of(key))));
        assert_eq!(table.len(), 20_000);
        assert!(table.bytes() < 20_000 * 200, "{} bytes", table.bytes());
        for key in 0..20_000 {
            assert!(table.remove_if(hash(key), place_of(key)));
        }
        assert_eq!(table.len(), 0);
    }
}
