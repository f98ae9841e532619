//! What the log promises to engines, and [`costs`]. Crashes are the crash lab's.

mod costs;

use chimera_pmem::{Environment, Hardware, RealEnvironment, SteppedEnvironment};

use super::*;
use crate::pool::BlockKind;
use crate::pool::small::small_pool;
use crate::records::key_hash::KeyHash;

const LOG: BlockKind = BlockKind::new(3, "log");
const AREAS: u32 = 3;
const AREA_BYTES: u32 = 320;

fn new_pool() -> Arc<Pool<Hardware>> {
    new_pool_in(Arc::new(SteppedEnvironment::in_memory(1)))
}

fn new_pool_in(environment: Arc<dyn Environment>) -> Arc<Pool<Hardware>> {
    small_pool(environment, 16 << 10, 64 << 10)
}

fn new_log(pool: &Arc<Pool<Hardware>>) -> RedoLog<Hardware> {
    let blocks = run_blocks(AREAS, AREA_BYTES, pool.map.block_bytes);
    assert_eq!(blocks, 4, "960 bytes behind a line");
    let run = pool.take_bare_run(LOG, blocks as u32).unwrap();
    RedoLog::new(pool.clone(), run, AREAS, AREA_BYTES)
}

fn hash(key: &[u8]) -> u64 {
    KeyHash::new(1).of(key)
}

fn change(key: &[u8], value: Option<&[u8]>) -> FoundChange {
    FoundChange { hash: hash(key), key: key.to_vec(), value: value.map(<[u8]>::to_vec) }
}

fn write(log: &RedoLog<Hardware>, area: usize, change: &FoundChange) {
    drop(log.write(area, change.hash, &change.key, change.value.as_deref()));
}

#[test]
fn an_area_has_its_last_change_whatever_its_length() {
    let pool = new_pool();
    let log = new_log(&pool);
    assert!((0..3).all(|area| log.read(area, hash).is_none()), "nothing was written");
    let limits = limits(Limits { key_bytes: 4096, value_bytes: 1 << 30 }, AREA_BYTES);
    assert_eq!((limits.key_bytes, limits.value_bytes), (80, 216));
    for (key_bytes, value_bytes) in [(1, 0), (80, 216), (8, 200), (9, 7), (79, 1), (80, 0)] {
        let (key, value) = (vec![key_bytes as u8; key_bytes], vec![7; value_bytes]);
        for area in 0..3 {
            let put = change(&[&key[1..], &[area as u8]].concat(), Some(&value));
            let delete = FoundChange { value: None, ..put.clone() };
            write(&log, area, &put);
            assert_eq!(log.read(area, hash), Some(put));
            write(&log, area, &delete);
            assert_eq!(log.read(area, hash), Some(delete));
        }
    }
    // Areas do not touch each other.
    for area in 0..3 {
        write(&log, area, &change(&[area as u8 + 1; 80], Some(&[area as u8; 216])));
    }
    for area in 0..3 {
        let expected = change(&[area as u8 + 1; 80], Some(&[area as u8; 216]));
        assert_eq!(log.read(area, hash), Some(expected));
    }
}

#[test]
fn areas_lie_behind_each_other_from_the_first_byte_of_the_run() {
    let pool = new_pool();
    let log = new_log(&pool);
    let start = pool.run_bytes(&log.run).offset();
    for area in 0..3 {
        write(&log, area, &change(b"key", Some(b"value")));
        let at = start + 320 * area as u64;
        assert_eq!(pool.pmem.load_u64(at), Entry::record(at, 3, 5));
    }
}

#[test]
fn emptying_an_area_changes_the_checksums_of_its_record_and_no_other_word() {
    let pool = new_pool();
    let log = new_log(&pool);
    write(&log, 0, &change(b"key", Some(b"value")));
    let words = || -> Vec<u64> {
        (0..8).map(|word| pool.pmem.load_u64(log.area_at(0) + 8 * word)).collect()
    };
    let before = words();
    log.clear_all([0].into_iter());
    let after = words();
    let changed: Vec<_> = (0..8).filter(|word| before[*word] != after[*word]).collect();
    assert_eq!(changed, [HEADER_AT as usize / 8]);
}

#[test]
fn a_change_that_was_withdrawn_is_gone() {
    let pool = new_pool();
    let log = new_log(&pool);
    let first = change(b"first", Some(b"value"));
    write(&log, 1, &first);
    log.write(1, hash(b"second"), b"second", None).withdraw();
    assert_eq!(log.read(1, hash), None);
    (0..3).for_each(|area| write(&log, area, &first));
    log.clear_all([0, 2].into_iter());
    let found = [0, 1, 2].map(|area| log.read(area, hash));
    assert_eq!(found, [None, Some(first), None]);
}

#[test]
fn every_flipped_bit_of_a_record_is_noticed() {
    let pool = new_pool();
    let log = new_log(&pool);
    for value in [Some(&b"a value of some words"[..]), Some(b""), None] {
        let expected = change(b"a key", value);
        write(&log, 2, &expected);
        let bytes = span(5, value.map_or(0, <[u8]>::len));
        for word_at in (log.area_at(2)..log.area_at(2) + bytes).step_by(8) {
            let word = pool.pmem.load_u64(word_at);
            for bit in 0..64 {
                pool.pmem.store_u64(word_at, word ^ 1 << bit, sites::RECORD);
                let found = log.read(2, hash);
                // What pads keys and values belongs to neither.
                assert!(found.is_none() || found.as_ref() == Some(&expected), "bit {bit}");
            }
            pool.pmem.store_u64(word_at, word, sites::RECORD);
        }
        assert_eq!(log.read(2, hash), Some(expected));
    }
}

/// Every mixture of the words of two records is one of them or none.
#[test]
fn a_record_that_is_not_whole_is_none() {
    let pool = new_pool();
    let log = new_log(&pool);
    for (old, new) in [
        (change(b"key", Some(b"old value")), change(b"key", Some(b"new value"))),
        (change(b"key", Some(b"")), change(b"key", None)),
        (change(b"old", Some(b"")), change(b"new", None)),
        (change(b"old", None), change(b"new", Some(b""))),
        (change(b"old key", Some(&[1; 40])), change(b"new key", Some(&[2; 24]))),
    ] {
        let words = || -> Vec<u64> {
            (0..9).map(|word| pool.pmem.load_u64(log.area_at(0) + 8 * word)).collect()
        };
        write(&log, 0, &old);
        let before = words();
        write(&log, 0, &new);
        let after = words();
        for mask in 0..1_u32 << 9 {
            for (word, (before, after)) in before.iter().zip(&after).enumerate() {
                let chosen = if mask & 1 << word == 0 { before } else { after };
                pool.pmem.store_u64(log.area_at(0) + 8 * word as u64, *chosen, sites::RECORD);
            }
            let found = log.read(0, hash);
            let is_either = found.as_ref().is_none_or(|found| [&old, &new].contains(&found));
            assert!(is_either, "{found:?} of {mask:#b}");
        }
    }
}

/// Every mixture of the words of a record and of one that was withdrawn before it is the record or none.
#[test]
fn what_was_withdrawn_does_not_come_back_with_a_part_of_the_next_record() {
    let pool = new_pool();
    for (old, new) in [
        (change(b"key", Some(b"old value")), change(b"key", Some(b"new value"))),
        (change(b"key", Some(b"")), change(b"key", Some(b""))),
        (change(b"key", None), change(b"key", None)),
        (change(b"key", Some(b"")), change(b"key", None)),
        (change(b"old key", Some(&[1; 24])), change(b"new key", Some(&[2; 24]))),
    ] {
        // The first record of another life has the same sequence number.
        for is_other_life in [false, true] {
            let log = new_log(&pool);
            let words = |log: &RedoLog<Hardware>| -> Vec<u64> {
                (0..9).map(|word| pool.pmem.load_u64(log.area_at(0) + 8 * word)).collect()
            };
            log.write(0, old.hash, &old.key, old.value.as_deref()).withdraw();
            let (before, other) = (words(&log), new_log(&pool));
            let log = if is_other_life { other } else { log };
            for (word, number) in before.iter().zip(0..) {
                pool.pmem.store_u64(log.area_at(0) + 8 * number, *word, sites::RECORD);
            }
            write(&log, 0, &new);
            let after = words(&log);
            for mask in 0..1_u32 << 9 {
                for (word, (before, after)) in before.iter().zip(&after).enumerate() {
                    let chosen = if mask & 1 << word == 0 { before } else { after };
                    pool.pmem.store_u64(log.area_at(0) + 8 * word as u64, *chosen, sites::RECORD);
                }
                let found = log.read(0, hash);
                assert!(found.as_ref().is_none_or(|found| *found == new), "{found:?} of {mask:#b}");
            }
        }
    }
}

#[test]
fn a_record_of_another_kind_is_none() {
    let pool = new_pool();
    let log = new_log(&pool);
    let at = log.area_at(0);
    // As the item heap writes one at this place.
    let (key, value) = (b"key".as_slice(), b"value".as_slice());
    write(&log, 0, &change(key, Some(value)));
    let checksum = value_checksum(at, Summed::of(value));
    let header = RecordHeader::new(at, hash(key), 1, UncheckedWord::NONE, checksum);
    header.store(&pool.pmem, at + HEADER_AT, sites::RECORD);
    assert_eq!(log.read(0, hash), None);
    // And one that is longer than the area.
    pool.pmem.store_u64(at, Entry::record(at, 80, 217), sites::RECORD);
    assert_eq!(log.read(0, hash), None);
    pool.pmem.store_u64(at, Entry::record_of_chunks(at, 8), sites::RECORD);
    assert_eq!(log.read(0, hash), None);
}

#[test]
fn changes_of_an_area_wait_for_each_other_and_others_do_not() {
    // Whoever waits has no hook that would let the holder go on.
    let pool = new_pool_in(Arc::new(RealEnvironment::new()));
    let log = new_log(&pool);
    let held = log.write(0, hash(b"a"), b"a", None);
    drop(log.write(1, hash(b"b"), b"b", None));
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            drop(log.write(0, hash(b"c"), b"c", None));
            is_done.store(true, std::sync::atomic::Ordering::Release);
        });
        for _ in 0..100 {
            std::thread::yield_now();
            assert!(!is_done.load(std::sync::atomic::Ordering::Acquire));
        }
        assert_eq!(log.read(0, hash), Some(change(b"a", None)));
        drop(held);
    });
    assert_eq!(log.read(0, hash), Some(change(b"c", None)));
}
