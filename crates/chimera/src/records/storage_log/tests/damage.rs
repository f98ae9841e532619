//! Torn ends, damage, and what earlier uses of a run left.

use super::*;

/// A pool whose one run has these records, the last one torn or not, and where the records lie.
fn pool_with(batch: u32, count: u64) -> (Arc<Pool<Hardware>>, Vec<Appended>) {
    let pool = new_pool();
    let log = new_log(&pool, batch);
    let mut session = log.begin();
    let places = (1..=count)
        .map(|version| append(&log, &mut session, &record(version, 40)).unwrap())
        .collect();
    (pool, places)
}

fn flip(pool: &Pool<Hardware>, at: u64, bit: u64) {
    pool.pmem.store_u64(at, pool.pmem.load_u64(at) ^ 1 << bit, SITE);
}

/// The header of the only run.
fn header_of(places: &[Appended]) -> u64 {
    places[0].at - HEADER_BYTES
}

#[test]
fn a_torn_end_is_cut_wherever_it_is_torn() {
    for batch in BATCHES {
        for cut in 0..9 {
            for is_prefix in [true, false] {
                for rest in [0, 0x5a5a_5a5a_5a5a_5a5a] {
                    let (pool, places) = pool_with(batch, 4);
                    let last = places[3];
                    assert_eq!(last.bytes, 72);
                    let words = if is_prefix { cut..9 } else { 0..cut };
                    let is_whole = words.is_empty();
                    words.for_each(|word| pool.pmem.store_u64(last.at + 8 * word, rest, SITE));
                    let (log, found, _) = recover(&pool, batch, false).unwrap();
                    let count = if is_whole { 4 } else { 3 };
                    let expected: Vec<_> = (1..=count).map(|version| record(version, 40)).collect();
                    assert_eq!(written(found), expected, "cut at {cut}, prefix {is_prefix}");
                    // Whatever is appended there is found, and nothing else.
                    let mut session = log.begin();
                    append(&log, &mut session, &record(9, 0)).unwrap();
                    let found = recover(&pool, batch, false).unwrap().1;
                    assert_eq!(found.len() as u64, count + 1);
                }
            }
        }
    }
}

#[test]
fn damage_before_the_end_is_an_error() {
    for record in 0..4 {
        for word in 0..9 {
            let (pool, places) = pool_with(0, 5);
            flip(&pool, places[record].at + 8 * word, 7 * word);
            assert!(is_corrupted(recover(&pool, 0, false)), "word {word} of record {record}");
        }
    }
}

#[test]
fn what_is_not_sound_at_the_end_of_a_batch_is_cut_and_before_that_an_error() {
    // 512 bytes are seven records and a part of one.
    for damaged in 0..20 {
        let (pool, places) = pool_with(512, 20);
        flip(&pool, places[damaged].at + 24, 3);
        let recovered = recover(&pool, 512, false);
        if damaged + 8 < 20 {
            assert!(is_corrupted(recovered), "record {damaged}");
        } else {
            assert_eq!(recovered.unwrap().1.len(), damaged);
        }
    }
}

#[test]
fn damage_of_what_is_certified_is_an_error_also_at_the_end() {
    for batch in BATCHES {
        for word in 0..9 {
            let pool = new_pool();
            let log = new_log(&pool, batch);
            let mut session = log.begin();
            log.certify(&mut session);
            let places = [1, 2, 3].map(|version| {
                let place = append(&log, &mut session, &record(version, 40)).unwrap();
                if version == 2 {
                    log.certify(&mut session);
                }
                place
            });
            // What comes behind it may be cut off.
            flip(&pool, places[2].at + 8 * word, 7 * word);
            assert_eq!(recover(&pool, batch, false).unwrap().1.len(), 2);
        }
        for word in 0..9 {
            let pool = new_pool();
            let log = new_log(&pool, batch);
            let mut session = log.begin();
            let append = |version| append(&log, &mut session, &record(version, 40)).unwrap();
            let places = [1, 2, 3].map(append);
            log.certify(&mut session);
            flip(&pool, places[2].at + 8 * word, 7 * word);
            assert!(is_corrupted(recover(&pool, batch, false)), "word {word}");
        }
    }
}

/// A record alone is newer than what its session has in its run: damage must not take the older one and leave the newer.
#[test]
fn what_comes_before_a_record_alone_is_certain() {
    for batch in BATCHES {
        let pool = new_pool();
        let log = new_log(&pool, batch);
        let mut session = log.begin();
        let bytes_alone = log.room_in(RUN_BLOCKS) as usize - 32;
        let before = append(&log, &mut session, &record(1, 40)).unwrap();
        append(&log, &mut session, &record(2, bytes_alone)).unwrap();
        let behind = append(&log, &mut session, &record(3, 40)).unwrap();
        log.sync_all();
        // One damaged line that has parts of both.
        flip(&pool, before.at + 24, 3);
        flip(&pool, behind.at + 24, 3);
        assert!(is_corrupted(recover(&pool, batch, false)), "batches of {batch}");
        flip(&pool, before.at + 24, 3);
        assert_eq!(recover(&pool, batch, false).unwrap().1.len(), 2, "the last one may be cut off");
    }
}

/// The store may be opened with another size of batches than it was written with.
#[test]
fn the_batch_is_that_of_the_run() {
    let (pool, places) = pool_with(512, 20);
    flip(&pool, places[18].at + 24, 3);
    assert_eq!(recover(&pool, 0, false).unwrap().1.len(), 18);
    let (pool, places) = pool_with(0, 20);
    flip(&pool, places[18].at + 24, 3);
    assert!(is_corrupted(recover(&pool, 512, false)));
}

#[test]
fn a_sealed_run_is_sound_up_to_its_tail() {
    for record in 0..5 {
        for word in 0..9 {
            let (pool, places) = pool_with(0, 5);
            drop(recover(&pool, 0, false).unwrap());
            flip(&pool, places[record].at + 8 * word, 7 * word);
            assert!(is_corrupted(recover(&pool, 0, false)), "word {word} of record {record}");
            let (log, found, recovered) = recover(&pool, 0, true).unwrap();
            // Behind a damaged value the walk goes on; behind a damaged head nobody knows where.
            let left = if word < 4 { record } else { 4 };
            assert_eq!((found.len(), recovered.damaged), (left, 1));
            assert!(is_corrupted(read(
                &log,
                places[record].at,
                &super::record(record as u64 + 1, 40).1
            )));
            // Nobody appends to the run, and it is never freed.
            let mut session = log.begin();
            let next = append(&log, &mut session, &super::record(9, 0)).unwrap();
            assert_ne!(
                log.runs.slot_of(&pool.map, next.at),
                log.runs.slot_of(&pool.map, places[0].at)
            );
            log.end_counting();
            assert_eq!((log.free_ready().unwrap(), log.victims(0)), (0, Vec::new()));
        }
    }
}

#[test]
fn every_flipped_bit_of_a_record_that_is_read_is_noticed() {
    let (pool, places) = pool_with(0, 3);
    let log = recover(&pool, 0, false).unwrap().0;
    let (at, expected) = (places[1].at, record(2, 40));
    for bit in 0..8 * places[1].bytes {
        flip(&pool, at + bit / 64 * 8, bit % 64);
        assert!(is_corrupted(read(&log, at, &expected.1)), "bit {bit}");
        flip(&pool, at + bit / 64 * 8, bit % 64);
    }
    assert_eq!(read(&log, at, &expected.1).unwrap(), Some(expected));
}

#[test]
fn every_flipped_bit_of_a_header_is_noticed() {
    for seals in [false, true] {
        let (pool, places) = pool_with(0, 5);
        if seals {
            let (log, found, _) = recover(&pool, 0, false).unwrap();
            for (at, _) in &found {
                log.flushed(*at);
            }
        }
        for word in 0..5 {
            for bit in 0..64 {
                flip(&pool, header_of(&places) + 8 * word, bit);
                assert!(is_corrupted(recover(&pool, 0, false)), "bit {bit} of word {word}");
                flip(&pool, header_of(&places) + 8 * word, bit);
            }
        }
        let (_log, found, _) = recover(&pool, 0, false).unwrap();
        assert_eq!(found.len(), if seals { 0 } else { 5 });
    }
}

#[test]
fn salvage_leaves_a_run_with_a_damaged_header_alone() {
    let (pool, places) = pool_with(0, 5);
    flip(&pool, header_of(&places), 3);
    let (log, found, recovered) = recover(&pool, 0, true).unwrap();
    assert_eq!((found.len(), recovered.damaged, recovered.damaged_headers), (0, 1, 1));
    let mut session = log.begin();
    append(&log, &mut session, &record(9, 0)).unwrap();
    log.end_counting();
    assert_eq!(log.free_ready().unwrap(), 0);
    flip(&pool, header_of(&places), 3);
    assert_eq!(recover(&pool, 0, false).unwrap().1.len(), 6);
}

/// A tail, a mark or a number with a right check that cannot be.
#[test]
fn headers_that_nobody_writes_are_refused() {
    let set = |pool: &Pool<Hardware>, places: &[Appended], what: u64| {
        let header = header::HeaderAt(header_of(places));
        match what {
            0 => header.seal(pool, 0, SITE),
            1 => header.seal(pool, 1 << 20, SITE),
            2 => header.mark_flushed(pool, HEADER_BYTES + 8, SITE),
            3 => header.open(pool, (1 << 40) - 1, 0, HEADER_BYTES, SITE),
            _ => header.mark_highest(pool, (1 << 40) - 1, SITE),
        }
    };
    for what in 0..5 {
        let (pool, places) = pool_with(0, 3);
        set(&pool, &places, what);
        assert!(is_corrupted(recover(&pool, 0, false)), "{what}");
    }
    // In the middle of a record.
    let (pool, places) = pool_with(0, 3);
    header::HeaderAt(header_of(&places)).seal(&pool, HEADER_BYTES + 80, SITE);
    assert!(is_corrupted(recover(&pool, 0, false)));
}

#[test]
fn bytes_of_an_earlier_use_are_never_records() {
    for batch in BATCHES {
        let pool = new_pool();
        let log = new_log(&pool, batch);
        let mut session = log.begin();
        let old: Vec<_> = (1..=60)
            .map(|version| append(&log, &mut session, &record(version, 40)).unwrap())
            .collect();
        let first: Vec<_> =
            old.iter().take_while(|appended| appended.at < old[0].at + 3900).collect();
        for appended in &first {
            log.dropped(appended.at, appended.bytes);
        }
        assert_eq!(log.free_ready().unwrap(), 1);
        // In the same place, with records of the same length, and one less than there were.
        let mut other = log.begin();
        let new: Vec<_> = (101..100 + first.len() as u64)
            .map(|version| append(&log, &mut other, &record(version, 40)).unwrap().at)
            .collect();
        assert!(new.iter().zip(&first).all(|(new, old)| *new == old.at));
        let found = recover(&pool, batch, false).unwrap().1;
        assert!(found.iter().all(|(at, (version, ..))| *version > 100 || *at > old[0].at + 3900));
        assert_eq!(found.len(), new.len() + old.len() - first.len());
    }
}

/// A batch was cut in front of records that are whole. They do not come back when the gap is filled.
#[test]
fn what_was_cut_stays_cut_when_the_run_is_appended_to_again() {
    let (pool, places) = pool_with(512, 6);
    flip(&pool, places[3].at, 5);
    let (log, found, _) = recover(&pool, 512, false).unwrap();
    assert_eq!(found.len(), 3);
    let mut session = log.begin();
    let filled = append(&log, &mut session, &record(4, 40)).unwrap();
    assert_eq!(filled, places[3]);
    let found = recover(&pool, 512, false).unwrap().1;
    assert_eq!(found.len(), 4);
}

#[test]
fn nothing_that_lies_in_a_run_makes_recovery_panic_or_hang() {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{RngCore, SeedableRng};
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    for round in 0..400 {
        let (pool, places) = pool_with(if round % 2 == 0 { 0 } else { 512 }, 30);
        if round % 3 == 0 {
            drop(recover(&pool, 0, false).unwrap());
        }
        for _ in 0..=random.next_u64() % 8 {
            let from = header_of(&places) + random.next_u64() % 300 * 8;
            let word = pool.pmem.load_u64(places[0].at + random.next_u64() % 9 * 8);
            for word_at in 0..=random.next_u64() % 4 {
                let values = [word, random.next_u64(), u64::MAX, 0];
                let value = values[(random.next_u64() % 4) as usize];
                pool.pmem.store_u64(from + 8 * word_at, value, SITE);
            }
        }
        for salvage in [false, true] {
            let Ok((log, ..)) = recover(&pool, 0, salvage) else { continue };
            for place in &places {
                drop(log.read(place.at, (1, b"key"), &mut Vec::new(), true));
                let mut walk = log.walk(place.at);
                while let Ok(Some(_)) = log.next(&mut walk) {}
            }
        }
    }
}

/// A whole run of words that look like heads of records with the longest keys.
#[test]
fn looking_behind_the_end_is_bounded() {
    let (pool, places) = pool_with(0, 1);
    let head = layout::Head::new(0, 1, 1, (0, 2000), None);
    let word = head.words()[0];
    let end = header_of(&places) + 4096 - 64;
    for at in (places[0].at + places[0].bytes..end).step_by(8) {
        pool.pmem.store_u64(at, word, SITE);
    }
    assert!(is_corrupted(recover(&pool, 0, false)));
}

#[test]
fn hostile_places_are_refused() {
    let (pool, places) = pool_with(0, 3);
    let log = recover(&pool, 0, false).unwrap().0;
    for at in [0, 1, 12, 1 << 40, u64::MAX, u64::MAX - 7, places[0].at + 4, places[0].at + 8] {
        assert!(is_corrupted(read(&log, at, b"key")), "{at}");
        log.prefetch(at);
        assert!(!log.dropped(u64::MAX - 7, 8));
        log.flushed(1 << 40);
    }
    let longest = layout::Head::new(
        0,
        1,
        1,
        (0, 8),
        Some(crate::records::checksum::Summed { bytes: &vec![0; 8 << 20], sum: 0 }),
    );
    for (word, number) in longest.words().into_iter().zip(0..) {
        pool.pmem.store_u64(places[0].at + 8 * number, word, SITE);
    }
    assert!(is_corrupted(read(&log, places[0].at, b"key")), "beyond the pool");
}
