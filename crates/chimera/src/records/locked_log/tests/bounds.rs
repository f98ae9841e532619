//! How much a run holds, what may lie in it, and which run is appended to.

use super::*;
use crate::records::lengths::Entry;

/// Bytes of a run of four blocks, and of a record with a key of one byte and [`VALUE`].
const RUN_BYTES: u64 = 4 * 256 - 64;
const SPAN: u64 = 24 + 8 + 240;
const SITE: Site = Site::new("test.damage");

#[test]
fn a_record_and_the_end_behind_it_fit_the_run() {
    for (value_bytes, is_same) in [(104, true), (112, false)] {
        let pool = new_pool();
        let mut log = LockedLog::new(pool.clone(), hash(), LOG);
        let first = append(&mut log, &[0], &VALUE);
        append(&mut log, &[1], &VALUE);
        append(&mut log, &[2], &VALUE);
        // 144 bytes are left.
        let at = append(&mut log, &[3], &vec![1; value_bytes]);
        assert_eq!(at == first + 3 * SPAN, is_same, "{value_bytes} bytes");
        assert_eq!(at < first + RUN_BYTES, is_same);
        assert_eq!(runs_in_use(&pool), if is_same { 1 } else { 2 });
    }
}

#[test]
fn the_longest_key_and_value_fit_a_run_and_more_does_not() {
    let pool = new_pool();
    let mut log = LockedLog::new(pool.clone(), hash(), LOG);
    let limits = log.limits();
    // 16 blocks of 256 bytes, without the pool's line and the end: a fourth of it for the key.
    assert_eq!((limits.key_bytes, limits.value_bytes), (1006, 4024 - 24 - 1008));
    let (key, value) = (vec![1; limits.key_bytes], vec![2; limits.value_bytes]);
    let at = append(&mut log, &key, &value);
    let mut read = Vec::new();
    assert!(log.read(at, &key, &mut read, true).unwrap());
    assert_eq!(read, value);
    let longer = vec![2; limits.value_bytes + 1];
    assert!(log.append(hash().of(&key), &key, &longer).is_err());
    // Where runs are long, the lengths of a record are the limit.
    let pool = small_pool(Arc::new(SteppedEnvironment::in_memory(1)), 1 << 20, 2 << 20);
    let limits = LockedLog::new(pool, hash(), LOG).limits();
    assert_eq!((limits.key_bytes, limits.value_bytes), (4096, 0xfff0));
}

#[test]
fn a_run_that_was_filled_and_emptied_is_freed_when_another_one_is_taken() {
    let pool = new_pool();
    let mut log = LockedLog::new(pool.clone(), hash(), LOG);
    for round in 0..3 {
        let records: Vec<_> = (0..3_u8).map(|key| append(&mut log, &[key], &VALUE)).collect();
        assert_eq!(runs_in_use(&pool), 1, "round {round}");
        for at in records {
            log.retire(at).unwrap();
        }
        assert_eq!(runs_in_use(&pool), 1, "it is appended to");
    }
}

#[test]
fn an_entry_ends_where_its_run_does_at_the_latest() {
    let pool = new_pool();
    let mut log = LockedLog::new(pool.clone(), hash(), LOG);
    let at = append(&mut log, b"k", &VALUE);
    let end = at + RUN_BYTES;
    let entry = |word| {
        pool.pmem.store_u64(at, word, SITE);
        log.entry(at, end).map(|entry| entry.map(|(is_live, lengths)| (is_live, lengths.span())))
    };
    let longest = RUN_BYTES as usize - 32;
    let word = Entry::record(at, 1, longest);
    assert_eq!(entry(word).unwrap(), Some((true, RUN_BYTES)));
    assert_eq!(entry(Entry::retired(word, at)).unwrap(), Some((false, RUN_BYTES)));
    assert_eq!(entry(end_word(at)).unwrap(), None);
    let spilled = Entry::record_of_chunks(at, 1);
    let other_end = end_word(at + 8);
    let longer = Entry::record(at, 1, longest + 1);
    for word in [longer, spilled, Entry::chunk(at, 8), 0, word ^ 2, other_end] {
        let error = entry(word).unwrap_err();
        assert!(matches!(error, Error::Corrupted { at: found, .. } if found == at), "{word:#x}");
    }
}

#[test]
fn salvage_gives_up_a_run_behind_damaged_lengths_and_tells_of_it_once() {
    let pool = new_pool();
    let mut log = LockedLog::new(pool.clone(), hash(), LOG);
    let records: Vec<_> = (0..6_u8).map(|key| append(&mut log, &[key], &VALUE)).collect();
    pool.pmem.store_u64(records[1], 77, SITE);
    assert!(recover(&pool, false).is_err());
    let (mut log, keys, damaged) = recover(&pool, true).unwrap();
    assert_eq!((keys, damaged), (vec![vec![0], vec![3], vec![4], vec![5]], 1));
    let lost = pool.losses();
    assert_eq!((lost.count, lost.first.map(|first| first.at)), (1, Some(records[1])));
    // Nothing is appended behind damage, and the run is never freed.
    let at = append(&mut log, b"key", &VALUE);
    assert!(at > records[5]);
    log.retire(records[0]).unwrap();
    assert_eq!(runs_in_use(&pool), 3);
}

#[test]
fn the_run_with_the_most_room_is_appended_to() {
    for has_more in 0..3 {
        let pool = new_pool();
        let mut log = LockedLog::new(pool.clone(), hash(), LOG);
        // Each takes a run of its own.
        let sizes = [0, 1, 2].map(|run| if run == has_more { 560 } else { 640 + 80 * run });
        let records = sizes.map(|bytes| append(&mut log, b"k", &vec![1; bytes]));
        let (mut log, ..) = recover(&pool, false).unwrap();
        let at = append(&mut log, b"key", b"value");
        assert_eq!(at, records[has_more] + 32 + 560, "{has_more}");
    }
}
