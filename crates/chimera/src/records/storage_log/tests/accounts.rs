//! What the log knows of its runs: counts, sequence numbers, what a restart replays, and what it tells of losses.

use super::*;
use crate::pool::tests::media::LeftOut;
use crate::records::checksum::Summed;
use crate::records::storage_log::header::HeaderAt;
use crate::records::storage_log::layout::Head;

const ROOM: u64 = 16 * 256 - 128;
/// Bytes of a record with a value of 300 bytes, of which a run holds eleven.
const SPAN: u64 = 24 + 8 + 304;

fn fill<P: Pmem>(log: &StorageLog<P>, session: &mut Appender, count: u64) -> Vec<Appended> {
    (1..=count).map(|version| append(log, session, &record(version, 300)).unwrap()).collect()
}

fn flip<P: Pmem>(pool: &Pool<P>, at: u64, bits: u64) {
    pool.pmem.store_u64(at, pool.pmem.load_u64(at) ^ bits, SITE);
}

fn sequence_of<P: Pmem>(log: &StorageLog<P>, at: u64) -> u64 {
    let slot = log.runs.slot_of(&log.pool.map, at).unwrap();
    log.runs.lock(&*log.pool.environment).entry(slot).sequence
}

#[test]
fn what_is_dropped_counts_in_sealed_runs_alone() {
    let log = new_log(&new_pool(), 0);
    let mut session = log.begin();
    let all = fill(&log, &mut session, 15);
    for record in [&all[1], &all[2], &all[12]] {
        assert!(!log.dropped(record.at, record.bytes));
    }
    let counts = log.counts();
    assert_eq!((counts.runs, counts.bytes), (2, 2 * (ROOM + 64)));
    assert_eq!((counts.live_bytes, counts.dropped_bytes), (12 * SPAN, 2 * SPAN));
    assert_eq!(counts.replay_bytes, 11 * SPAN + ROOM);
    assert!(log.has_run_at(all[0].at) && log.has_run_at(all[14].at));
    // Of a run that is opened again they count when it is sealed.
    assert!(!log.dropped(all[13].at, SPAN));
    log.end(&mut session);
    log.seal_left();
    assert_eq!(log.counts().dropped_bytes, 4 * SPAN);
    append(&log, &mut session, &record(16, 300)).unwrap();
    assert_eq!(log.counts().dropped_bytes, 2 * SPAN);
    assert!(!log.has_run_at(0) && !log.has_run_at(all[14].at + ROOM + 4096));
}

/// Engines may name more bytes than were counted.
#[test]
fn a_place_in_the_table_that_is_used_again_begins_with_nothing() {
    let pool = new_pool();
    let log = new_log(&pool, 0);
    let mut session = log.begin();
    let mut all = fill(&log, &mut session, 1);
    for round in 0..5 {
        all.extend(fill(&log, &mut session, 11));
        let counts = log.counts();
        assert_eq!((counts.runs, counts.live_bytes), (2, 12 * SPAN), "round {round}");
        assert_eq!(log.balance(), (12, 12));
        let sealed: Vec<_> = all.drain(..11).collect();
        for record in &sealed {
            log.flushed(record.at);
            log.dropped(record.at, record.bytes + 8);
        }
        assert_eq!(log.free_ready().unwrap(), 1);
        assert!(!log.has_run_at(sealed[0].at) && log.has_run_at(all[0].at));
        assert_eq!((log.counts().runs, log.counts().live_bytes), (1, SPAN));
    }
    assert_eq!(log.runs.lock(&*pool.environment).entries.len(), 2, "two at a time");
}

#[test]
fn sequence_numbers_go_on_behind_the_highest_one() {
    let pool = new_pool();
    let log = new_log(&pool, 0);
    let [mut one, mut other] = [log.begin(), log.begin()];
    let first = append(&log, &mut one, &record(1, 300)).unwrap();
    let second = append(&log, &mut other, &record(2, 300)).unwrap();
    assert_eq!([first, second].map(|record| sequence_of(&log, record.at)), [1, 2]);
    let next = |salvage| recover(&pool, 0, salvage).unwrap().0.runs.next_sequence();
    assert_eq!(next(false), 3);
    // One that was freed is remembered by the other one.
    log.end(&mut other);
    log.seal_left();
    log.dropped(second.at, second.bytes);
    assert_eq!(log.free_ready().unwrap(), 1);
    assert_eq!(next(false), 3);
    let third = append(&log, &mut other, &record(3, 300)).unwrap();
    assert_eq!(sequence_of(&log, third.at), 3);
    // A header that is damaged may have said how high they are.
    flip(&pool, third.at - 64, 1);
    assert_eq!(next(true), 3 + (1 << 24) + 1);
    flip(&pool, third.at - 64, 1);
    assert_eq!(next(true), 4);
}

/// A run that was opened again has a number of its own, which is the highest.
#[test]
fn the_number_of_a_run_that_was_opened_again_is_remembered_too() {
    let pool = new_pool();
    let log = new_log(&pool, 0);
    let [mut one, mut other] = [log.begin(), log.begin()];
    let mut first = fill(&log, &mut one, 3);
    let second = append(&log, &mut other, &record(4, 300)).unwrap();
    log.end(&mut one);
    log.end(&mut other);
    log.seal_left();
    first.push(append(&log, &mut one, &record(5, 300)).unwrap());
    assert_eq!(first[3].at, first[2].at + SPAN, "the fuller one");
    assert_eq!(sequence_of(&log, first[0].at), 3);
    log.end(&mut one);
    log.seal_left();
    for record in &first {
        log.flushed(record.at);
        log.dropped(record.at, record.bytes);
    }
    assert_eq!(log.free_ready().unwrap(), 1);
    let header = HeaderAt(second.at - 64).load(&pool, ROOM + 64).unwrap();
    assert_eq!((header.sequence, header.highest), (2, 3));
    assert_eq!(recover(&pool, 0, false).unwrap().0.runs.next_sequence(), 4);
}

#[test]
fn the_first_sealed_run_that_is_not_in_tables_is_named() {
    let log = new_log(&new_pool(), 0);
    let mut session = log.begin();
    let all = fill(&log, &mut session, 34);
    let unflushed = |run: u64| Unflushed {
        sequence: run + 1,
        start: all[11 * run as usize].at,
        bytes: 11 * SPAN,
    };
    let bytes = 33 * SPAN;
    assert_eq!(log.first_unflushed(bytes, 0), None);
    assert_eq!(log.first_unflushed(bytes - 1, 0), Some(unflushed(0)));
    assert_eq!(
        [1, 2, 3].map(|after| log.first_unflushed(0, after)),
        [Some(unflushed(1)), Some(unflushed(2)), None]
    );
    all[..11].iter().for_each(|record| log.flushed(record.at));
    assert_eq!(log.first_unflushed(0, 0), Some(unflushed(1)));
    all[11..33].iter().for_each(|record| log.flushed(record.at));
    assert_eq!((log.first_unflushed(0, 0), log.counts().replay_bytes), (None, ROOM));
    // What is appended to a run behind its mark.
    log.end(&mut session);
    log.seal_left();
    log.flushed(all[33].at);
    let next = append(&log, &mut session, &record(40, 300)).unwrap();
    assert_eq!(log.counts().replay_bytes, ROOM - SPAN);
    log.end(&mut session);
    log.seal_left();
    let expected = Unflushed { sequence: 5, start: next.at, bytes: SPAN };
    assert_eq!(log.first_unflushed(0, 0), Some(expected));
}

#[test]
fn a_mark_is_found_again_and_not_made_twice() {
    let media = Media::default();
    let pool = media_pool(&media, &[], SEGMENT_BYTES, 1 << 20);
    let log = new_log(&pool, 0);
    let mut session = log.begin();
    let all = fill(&log, &mut session, 22);
    log.end(&mut session);
    all[..11].iter().for_each(|record| log.flushed(record.at));
    let again = new_log(&pool, 0);
    settled(&again, runs(&pool), false, |_| Ok(true)).unwrap();
    assert_eq!(again.counts().replay_bytes, 11 * SPAN);
    let expected = Unflushed { sequence: 2, start: all[11].at, bytes: 11 * SPAN };
    assert_eq!(again.first_unflushed(0, 0), Some(expected));
    let (third, found) = (new_log(&pool, 0), runs(&pool));
    let ((), (lines, fences)) = cost(&media, || {
        assert_eq!(settled(&third, found, false, |_| Ok(true)).unwrap().records, 11);
    });
    let may_hold = u64::from(pool.may_hold_undurable());
    assert_eq!((lines, fences), (2 * may_hold, may_hold), "the header of each");
    // All of the records, for a store that has lost its tables.
    let mut told = Vec::new();
    let fourth = new_log(&pool, 0);
    let tell = |replayed: Replayed<'_>| {
        told.push(replayed.version);
        Ok(true)
    };
    let (found, _) = fourth.recover_from(runs(&pool), false, true, tell).unwrap();
    assert_eq!((told, found.records), ((1..=22).collect::<Vec<_>>(), 22));
}

#[test]
fn runs_are_replayed_in_the_order_of_their_numbers() {
    let pool = new_pool();
    let log = new_log(&pool, 0);
    fill(&log, &mut log.begin(), 40);
    let mut runs = runs(&pool);
    runs.reverse();
    let mut told = Vec::new();
    let tell = |replayed: Replayed<'_>| {
        told.push(replayed.version);
        Ok(true)
    };
    settled(&new_log(&pool, 0), runs, false, tell).unwrap();
    assert_eq!(told, (1..=40).collect::<Vec<_>>());
}

#[test]
fn nobody_appends_to_a_run_that_is_collected() {
    let log = new_log(&new_pool(), 0);
    let mut session = log.begin();
    let all = fill(&log, &mut session, 5);
    log.end(&mut session);
    log.seal_left();
    log.dropped(all[0].at, all[0].bytes);
    // Too little of it is dead: whoever appends may take it.
    assert_eq!(log.victims(21), []);
    let sixth = append(&log, &mut session, &record(6, 300)).unwrap();
    assert_eq!(sixth.at, all[4].at + SPAN);
    log.end(&mut session);
    log.seal_left();
    let victims = log.victims(16);
    let expected = Victim { start: all[0].at, bytes: 6 * SPAN, live_bytes: 5 * SPAN };
    assert_eq!(victims, [expected]);
    let next = append(&log, &mut session, &record(7, 300)).unwrap();
    assert!(!(all[0].at..all[0].at + ROOM).contains(&next.at));
}

#[test]
fn a_victim_that_is_no_sealed_run_any_more_is_not_pinned() {
    let log = new_log(&new_pool(), 0);
    let mut session = log.begin();
    let all = fill(&log, &mut session, 2);
    let victim = Victim { start: all[0].at, bytes: 2 * SPAN, live_bytes: 2 * SPAN };
    assert!(!log.pin(&victim), "it is open");
    log.end(&mut session);
    log.seal_left();
    assert!(log.pin(&victim));
    log.unpin(&victim);
    let inside = Victim { start: all[1].at, ..victim };
    assert!(!log.pin(&inside), "no run begins there");
}

#[test]
fn what_superseded_a_record_is_durable_before_its_run_is_freed_though_nothing_was_marked() {
    let media = Media::default();
    let pool = media_pool(&media, &[], SEGMENT_BYTES, 1 << 20);
    let log = new_log(&pool, 4096);
    let [mut one, mut other] = [log.begin(), log.begin()];
    let old = append(&log, &mut one, &record(1, 3900)).unwrap();
    append(&log, &mut other, &record(2, 100)).unwrap();
    let pending = |media: &Media| cost(media, || log.sync_session(other.number())).1;
    assert!(log.dropped(old.at, old.bytes));
    assert_eq!(log.free_ready().unwrap(), 1);
    assert_eq!(pending(&media), (0, 0));
    // Where nothing is ready, nothing is made durable for that.
    append(&log, &mut other, &record(3, 100)).unwrap();
    log.runs.note_candidate();
    assert_eq!(log.free_ready().unwrap(), 0);
    let (lines, fences) = cost(&media, || log.sync_session(other.number())).1;
    assert_eq!((lines > 0, fences), (true, 1));
}

#[test]
fn freeing_without_that_is_what_a_tool_may_do() {
    let media = Media::default();
    let pool = media_pool(&media, &[], SEGMENT_BYTES, 1 << 20);
    let log = new_log(&pool, 4096);
    let [mut one, mut other] = [log.begin(), log.begin()];
    let old = append(&log, &mut one, &record(1, 3900)).unwrap();
    append(&log, &mut other, &record(2, 100)).unwrap();
    assert!(log.dropped(old.at, old.bytes));
    media.leave_out(Some(LeftOut::Step(steps::FREE_SYNC)));
    assert_eq!(log.free_ready().unwrap(), 1);
    assert_eq!(cost(&media, || log.sync_session(other.number())).1.1, 1, "it was pending");
}

#[test]
fn what_salvage_leaves_out_is_told_with_its_place() {
    let lost = |pool: &Pool<Hardware>| {
        let lost = pool.losses();
        (lost.count, lost.first.map(|first| first.at))
    };
    let filled = || {
        let pool = new_pool();
        let log = new_log(&pool, 0);
        let mut session = log.begin();
        let all = fill(&log, &mut session, 13);
        (pool, all)
    };
    // A header.
    let (pool, all) = filled();
    flip(&pool, all[0].at - 64, 1);
    let (_, found, recovered) = recover(&pool, 0, true).unwrap();
    assert_eq!((found.len(), recovered.damaged, recovered.damaged_headers), (2, 1, 1));
    assert_eq!(lost(&pool), (1, Some(all[0].at - 64)));
    // A record of a sealed run: its key, and then its value alone.
    let (pool, all) = filled();
    flip(&pool, all[3].at + 24, 1);
    let (_, found, recovered) = recover(&pool, 0, true).unwrap();
    assert_eq!((found.len(), recovered.damaged, recovered.damaged_headers), (5, 1, 0));
    assert_eq!(lost(&pool), (1, Some(all[3].at)));
    let (pool, all) = filled();
    flip(&pool, all[3].at + 40, 1);
    let mut told = Vec::new();
    let tell = |replayed: Replayed<'_>| {
        told.push((replayed.version, replayed.is_tombstone));
        Ok(true)
    };
    let log = new_log(&pool, 0);
    let recovered = settled(&log, runs(&pool), true, tell).unwrap();
    assert_eq!((recovered.records, recovered.damaged), (13, 1));
    assert_eq!(told, (1..=13).map(|version| (version, false)).collect::<Vec<_>>());
    assert_eq!(lost(&pool), (1, Some(all[3].at)));
    // A walk tells of it, and goes on behind it.
    let mut walk = log.walk(all[0].at);
    let walked: Vec<_> =
        (0..12).map(|_| log.next(&mut walk).map(|next| next.map(|it| it.at))).collect();
    let found: Vec<_> = walked.iter().map(|it| it.as_ref().ok().copied().flatten()).collect();
    let expected = all[..11].iter().map(|record| Some(record.at).filter(|at| *at != all[3].at));
    assert_eq!(found, expected.chain([None]).collect::<Vec<_>>());
    assert!(walked[3].is_err() && walked[11].is_ok());
    // A record of an open run with others behind it.
    let (pool, all) = filled();
    flip(&pool, all[11].at + 24, 1);
    let (log, found, recovered) = recover(&pool, 0, true).unwrap();
    assert_eq!((found.len(), recovered.damaged, recovered.open_runs), (11, 1, 1));
    assert_eq!(lost(&pool), (1, Some(all[11].at)));
    let next = append(&log, &mut log.begin(), &record(20, 300)).unwrap();
    assert!(!(all[11].at..all[11].at + ROOM).contains(&next.at), "it is left alone");
}

#[test]
fn heads_of_no_record_behind_the_end_are_no_damage_up_to_a_bound() {
    // Keys of so many bytes each, in a run of which all behind the first record is free.
    let recovered = |lengths: &[usize]| {
        let pool = new_pool();
        let log = new_log(&pool, 0);
        let first = append(&log, &mut log.begin(), &record(1, 0)).unwrap();
        for (number, key_bytes) in (1..).zip(lengths) {
            let at = first.at + first.bytes + 32 * number;
            let head = Head::new(at, 1, 7, (77, *key_bytes), None);
            for (word, value) in (0..).zip(head.words()) {
                pool.pmem.store_u64(at + 8 * word, value, SITE);
            }
        }
        recover(&pool, 0, false).is_ok()
    };
    let bound = 2 * (ROOM as usize - 32);
    assert!(recovered(&[1000]));
    assert!(recovered(&[bound / 4, bound / 4, bound / 4, bound / 4]));
    assert!(!recovered(&[bound / 4, bound / 4, bound / 4, bound / 4 + 1]));
    assert!(recovered(&[3000, 3900, 3900, 3900]), "what reaches beyond the run is no head");
}

#[test]
fn a_head_lies_in_the_pool_with_all_its_record() {
    let pool = new_pool();
    let log = new_log(&pool, 0);
    let end = pool.pmem.mapped();
    let at = end - 320;
    for (value_bytes, is_inside) in [(288, true), (289, false)] {
        let value = vec![0; value_bytes];
        let head = Head::new(at, 1, 7, (77, 8), Some(Summed::of(&value)));
        for (word, value) in (0..).zip(head.words()) {
            pool.pmem.store_u64(at + 8 * word, value, SITE);
        }
        assert_eq!(log.decode(at).is_some(), is_inside, "{value_bytes}");
    }
    assert_eq!((log.decode(end - 16), log.decode(end)), (None, None));
}

#[test]
fn a_value_is_verified_where_that_is_asked_for_and_the_rest_always() {
    let pool = new_pool();
    let log = new_log(&pool, 0);
    let appended = append(&log, &mut log.begin(), &record(1, 30)).unwrap();
    let (key, mut value) = (record(1, 30).1, vec![1; 3]);
    flip(&pool, appended.at + 32, 1);
    assert!(log.read(appended.at, (hash(&key), &key), &mut value, true).is_err());
    value = vec![1; 300];
    let found = log.read(appended.at, (hash(&key), &key), &mut value, false).unwrap();
    let mut expected = record(1, 30).2.unwrap();
    expected[0] ^= 1;
    assert_eq!((found.map(|record| record.version()), value), (Some(1), expected));
    // The version is covered with the key.
    flip(&pool, appended.at + 16, 2);
    assert!(log.find(appended.at, hash(&key), &key).is_err());
    assert!(log.find(appended.at, hash(b"another"), b"another!").is_err());
}

#[test]
fn numbers_of_a_header_are_bounded() {
    let pool = new_pool();
    let log = new_log(&pool, 0);
    let at = append(&log, &mut log.begin(), &record(1, 0)).unwrap().at - 64;
    let highest = (1 << 39) - 1;
    for (sequence, is_right) in [(1, true), (highest, true), (highest + 1, false)] {
        HeaderAt(at).begin(&pool, sequence, 0, SITE);
        let loaded = HeaderAt(at).load(&pool, ROOM + 64);
        assert_eq!(loaded.is_ok_and(|header| header.sequence == sequence), is_right);
        HeaderAt(at).begin(&pool, 1, 0, SITE);
        HeaderAt(at).mark_highest(&pool, sequence, SITE);
        let loaded = HeaderAt(at).load(&pool, ROOM + 64);
        assert_eq!(loaded.is_ok_and(|header| header.highest == sequence), is_right);
    }
}
