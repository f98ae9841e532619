//! What each call flushes and fences, in which order, and that what it leaves is durable.

use std::ops::Range;

use chimera_pmem::Extent;

use super::*;
use crate::pool::small::media_pool;
use crate::pool::tests::media::{Asked, Media, bytes_of};

const SITE: Site = Site::new("test");
const SEGMENT_BYTES: u64 = 8192;
/// Bytes of a record with a key of one byte and [`VALUE`].
const SPAN: u64 = 24 + 8 + 240;

fn new_log() -> (Media, Arc<Pool<Media>>, LockedLog<Media>) {
    let media = Media::default();
    let pool = media_pool(&media, &[], SEGMENT_BYTES, 1 << 20);
    let log = LockedLog::new(pool.clone(), hash(), LOG);
    (media, pool, log)
}

fn append(log: &mut LockedLog<Media>, key: u8, value: &[u8]) -> u64 {
    log.append(hash().of(&[key]), &[key], value).unwrap()
}

/// The lines of `length` bytes.
fn lines(at: u64, length: u64) -> Range<u64> {
    at / 64 * 64..(at + length).next_multiple_of(64)
}

/// A log that takes over the runs that the pool has, and the keys of its live records.
fn recover(pool: &Arc<Pool<Media>>) -> Result<(LockedLog<Media>, Vec<u8>)> {
    let mut log = LockedLog::new(pool.clone(), hash(), LOG);
    let mut keys = Vec::new();
    pool.recover_runs(&[LOG], false, |run| {
        let FoundRun::InUse(run) = run else { panic!("a word of a run is damaged") };
        keys.extend(log.recover_run(run, false)?.records.iter().map(|record| record.key[0]));
        Ok(())
    })?;
    Ok((log, keys))
}

#[test]
fn a_record_is_durable_before_the_word_that_makes_it_live() {
    let (media, _pool, mut log) = new_log();
    append(&mut log, 0, &VALUE);
    for key in 1..3 {
        media.take_published();
        let (at, asked) = media.watch(|| append(&mut log, key, &VALUE));
        // All but the first word, and the end behind it.
        let record = Asked::Flush(lines(at + 8, SPAN));
        let word = Asked::Flush(lines(at, 8));
        assert_eq!(asked, [record, Asked::Fence, word.clone(), Asked::Fence]);
        assert_eq!(media.take_published(), [(at, vec![(at + 8, at + SPAN)])]);
        assert_eq!(media.load_u64(at + SPAN), end_word(at + SPAN));
        let ((), asked) = media.watch(|| log.retire(at).unwrap());
        assert_eq!(asked, [word, Asked::Fence]);
    }
}

#[test]
fn a_run_begins_with_an_end_that_is_durable_before_the_run_is_taken() {
    let (media, pool, mut log) = new_log();
    let (at, asked) = media.watch(|| append(&mut log, 1, &VALUE));
    assert!(asked.contains(&Asked::Flush(lines(at, 8))));
    let photos = media.photograph(|| append(&mut log, 2, &[1; 700])).1;
    let mut taken = 0;
    for photo in photos {
        for words in photo.some_states(20, 1) {
            let media = Media::default();
            let reopened = media_pool(&media, &bytes_of(&words), SEGMENT_BYTES, 1 << 20);
            let (_, keys) = recover(&reopened).unwrap();
            assert!(keys == [1] || keys == [1, 2], "{keys:?}");
            taken += u64::from(reopened.count_runs(&[LOG]).kinds[0].runs == 2 && keys.len() == 1);
        }
    }
    assert!(taken > 0, "a crash came between");
    assert_eq!(pool.count_runs(&[LOG]).kinds[0].runs, 2);
}

#[test]
fn no_crash_loses_or_invents_a_record() {
    let (media, _pool, mut log) = new_log();
    let mut live: Vec<(u8, u64)> = Vec::new();
    for key in 0..12_u8 {
        let before: Vec<u8> = live.iter().map(|(key, _)| *key).collect();
        let value = vec![key; 40 * usize::from(key % 5)];
        let ((), photos) = media.photograph(|| {
            if key % 3 == 2 {
                let (_, at) = live.remove(usize::from(key) % live.len());
                log.retire(at).unwrap();
            } else {
                let at = append(&mut log, key, &value);
                live.push((key, at));
            }
        });
        let after: Vec<u8> = live.iter().map(|(key, _)| *key).collect();
        for photo in photos {
            for words in photo.some_states(10, u64::from(key)) {
                let reopened =
                    media_pool(&Media::default(), &bytes_of(&words), SEGMENT_BYTES, 1 << 20);
                let (_, mut keys) = recover(&reopened).unwrap();
                keys.sort_unstable();
                assert!(keys == before || keys == after, "{keys:?}, {before:?}, {after:?}");
            }
        }
        let done = media.photo().some_states(10, u64::from(key));
        for words in done {
            let reopened = media_pool(&Media::default(), &bytes_of(&words), SEGMENT_BYTES, 1 << 20);
            let (_, mut keys) = recover(&reopened).unwrap();
            keys.sort_unstable();
            assert_eq!(keys, after, "durable on return");
        }
    }
}

/// A process that was killed may have stored what it did not write back.
#[test]
fn what_recovery_finds_is_durable_afterwards() {
    let (media, _pool, mut log) = new_log();
    let at = append(&mut log, 1, &VALUE);
    let old = media.photo();
    append(&mut log, 2, &VALUE);
    let image = media.image();
    let media = Media::default();
    let pool = media_pool(&media, &image, SEGMENT_BYTES, 1 << 20);
    media.was_killed(old);
    let ((_, keys), asked) = media.watch(|| recover(&pool).unwrap());
    assert_eq!(keys, [1, 2]);
    let whole = Asked::Flush(lines(at, 2 * SPAN));
    let is_durable = asked.windows(2).any(|both| *both == [whole.clone(), Asked::Fence]);
    assert!(is_durable, "up to the end of the log: {asked:?}");
    // Nothing is there to be written back in a run without records, nor by who reads only.
    let (media, pool, mut log) = new_log();
    let begin = |bytes: Extent| media.store_u64(bytes.offset(), end_word(bytes.offset()), SITE);
    let _run = pool.take_run(LOG, 4, begin).unwrap();
    let ((_, keys), asked) = media.watch(|| recover(&pool).unwrap());
    assert_eq!((keys, asked.len()), (vec![], recovered_pool_alone(&media, &pool)));
    append(&mut log, 1, &VALUE);
    let image = media.image();
    let media = Media::default();
    let pool = crate::pool::small::media_pool_opened(&media, &image, SEGMENT_BYTES, 1 << 20, true);
    assert_eq!(media.watch(|| recover(&pool).unwrap().1), (vec![1], vec![]));
}

/// How much the pool asks for while it finds its runs.
fn recovered_pool_alone(media: &Media, pool: &Arc<Pool<Media>>) -> usize {
    media.watch(|| pool.recover_runs(&[LOG], false, |_| Ok(())).unwrap()).1.len()
}
