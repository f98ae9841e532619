//! Which run a session is given, how long it is, and what is kept of sessions that have ended.

use super::*;
use crate::pool::Reserve;
use crate::pool::small::journaled_pool;

/// Bytes of a run for records, and of a record with a key of 8 bytes and this value.
const ROOM: u64 = 16 * 256 - 128;
const SPAN: u64 = 24 + 8;

/// Appends records until so many bytes of the session's run are left.
fn fill_to<P: Pmem>(log: &StorageLog<P>, session: &mut Appender, room: u64) -> Appended {
    let first = append(log, session, &record(1, 0)).unwrap();
    assert_eq!(first.bytes, SPAN);
    while session.room() > room {
        let bytes = (session.room() - room).min(992);
        let left = session.room() - room - bytes;
        // What is left is nothing, or has room for a record.
        let bytes = if (1..SPAN).contains(&left) { bytes - SPAN } else { bytes };
        append(log, session, &record(2, (bytes - SPAN) as usize)).unwrap();
    }
    assert_eq!(session.room(), room);
    first
}

#[test]
fn a_session_takes_another_run_to_hold_more_than_it_has() {
    let log = new_log(&new_pool(), 0);
    for (room, is_enough) in [(992, true), (984, false)] {
        let mut session = log.begin();
        fill_to(&log, &mut session, room);
        session.take_taken_bytes();
        log.hold(&mut session, 992).unwrap();
        assert_eq!(session.has_taken(), !is_enough, "{room} bytes");
        assert_eq!(session.room(), if is_enough { room } else { ROOM });
    }
}

#[test]
fn where_there_is_no_usual_run_a_short_one_will_do() {
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    let pool = small_pool(environment, SEGMENT_BYTES, 3 * SEGMENT_BYTES);
    let log = new_log(&pool, 0);
    // Of a segment's 48 blocks 10 are left.
    append(&log, &mut log.begin(), &record(1, 1300)).unwrap();
    while append(&log, &mut log.begin(), &record(1, 3900)).is_ok() {}
    let mut session = log.begin();
    for blocks in [2, 4] {
        append(&log, &mut session, &record(2, 256 * blocks - 200)).unwrap();
        assert_eq!((session.take_taken_bytes() + 128) / 256, blocks as u64);
    }
    let refused = append(&log, &mut session, &record(3, 990)).unwrap_err();
    assert!(matches!(refused, Error::PoolFull { .. }), "{refused}");
    append(&log, &mut session, &record(3, 800)).unwrap();
    assert_eq!(session.take_taken_bytes(), 4 * 256 - 128);
}

#[test]
fn a_record_of_more_than_a_fourth_of_a_run_has_a_run_of_its_own() {
    let log = new_log(&new_pool(), 0);
    for (bytes, room) in [(992, ROOM - 992), (1000, 0)] {
        let mut session = log.begin();
        append(&log, &mut session, &record(1, (bytes - SPAN) as usize)).unwrap();
        assert_eq!(session.room(), room, "{bytes} bytes");
    }
}

#[test]
fn a_record_may_fill_its_run_to_the_last_byte() {
    let log = new_log(&new_pool(), 0);
    let mut session = log.begin();
    let first = fill_to(&log, &mut session, 500 - 500 % 8);
    let room = session.room();
    let last = append(&log, &mut session, &record(3, (room - SPAN) as usize)).unwrap();
    assert_eq!((last.at + last.bytes, session.room()), (first.at + ROOM, 0));
    let next = append(&log, &mut session, &record(4, 0)).unwrap();
    assert!(!(first.at..first.at + ROOM).contains(&next.at));
}

#[test]
fn a_run_of_the_reserve_is_not_for_puts() {
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    let pool = small_pool(environment, SEGMENT_BYTES, 2 * SEGMENT_BYTES);
    let log = new_log(&pool, 0);
    let mut session = log.begin();
    pool.set_reserve(Reserve { reclaim: RUN_BLOCKS, ..Reserve::default() });
    // Short runs in the end.
    while append(&log, &mut session, &record(1, 900)).is_ok() {}
    assert!(append(&log, &mut log.begin(), &record(2, 8)).is_err(), "the first run of a session");
    assert!(append(&log, &mut session, &record(3, 3900)).is_err(), "a run of its own");
    let mut copies = log.begin_for(Purpose::Reclaim);
    append(&log, &mut copies, &record(4, 900)).unwrap();
    assert_eq!(copies.take_taken_bytes(), ROOM);
    pool.set_reserve(Reserve::default());
    append(&log, &mut copies, &record(5, 900)).unwrap();
}

#[test]
fn a_run_for_one_record_may_be_of_the_reserve() {
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    let pool = small_pool(environment, SEGMENT_BYTES, 2 * SEGMENT_BYTES);
    let log = new_log(&pool, 0);
    pool.set_reserve(Reserve { reclaim: RUN_BLOCKS, ..Reserve::default() });
    while append(&log, &mut log.begin(), &record(1, 3900)).is_ok() {}
    let mut copies = log.begin_for(Purpose::Reclaim);
    append(&log, &mut copies, &record(2, 3900)).expect("the run of the reserve");
    assert_eq!(copies.room(), 0, "a run of its own");
}

/// Tools tell what is appended to make room from what others append.
#[test]
fn what_is_appended_to_make_room_is_flushed_at_a_site_of_its_own() {
    use crate::pool::tests::media::LeftOut;
    for batch in BATCHES {
        let media = Media::default();
        let log = new_log(&media_pool(&media, &[], SEGMENT_BYTES, 1 << 20), batch);
        let copies = (log.begin_for(Purpose::Reclaim), sites::KEPT);
        for (mut session, site) in [(log.begin(), sites::RECORD), copies] {
            append(&log, &mut session, &record(1, 8)).unwrap();
            media.leave_out(Some(LeftOut::Flush(site)));
            let (_, (lines, fences)) =
                cost(&media, || append(&log, &mut session, &record(2, 8)).unwrap());
            let is_alone = u64::from(batch == 0);
            assert_eq!((lines, fences), (0, is_alone), "its flush is left out");
            media.leave_out(None);
        }
    }
}

#[test]
fn numbers_of_sessions_that_ended_are_given_again() {
    let log = new_log(&new_pool(), 512);
    let mut sessions: Vec<_> = (0..3).map(|_| log.begin()).collect();
    for (number, session) in (0..).zip(&mut sessions) {
        append(&log, session, &record(1, 8)).unwrap();
        assert_eq!(session.number(), Some(number));
    }
    log.end(&mut sessions[1]);
    assert_eq!(sessions[1].number(), None);
    for expected in [1, 3] {
        let mut session = log.begin();
        append(&log, &mut session, &record(1, 8)).unwrap();
        assert_eq!(session.number(), Some(expected));
    }
}

/// What is pending is what a session appended since, also where its next run lies before the one that it had.
#[test]
fn nothing_is_pending_in_a_run_that_a_session_turns_to() {
    let media = Media::default();
    let pool = media_pool(&media, &[], SEGMENT_BYTES, 1 << 20);
    let log = new_log(&pool, 512);
    let [mut one, mut other] = [log.begin(), log.begin()];
    let first = append(&log, &mut one, &record(1, 8)).unwrap();
    append(&log, &mut other, &record(2, 8)).unwrap();
    fill_to(&log, &mut other, 64);
    log.end(&mut one);
    log.hold(&mut other, 992).unwrap();
    assert_eq!(other.room(), ROOM - first.bytes, "the run that was left");
    assert_eq!(cost(&media, || log.sync_session(other.number())).1, (0, 0));
    let last = append(&log, &mut other, &record(3, 8)).unwrap();
    let lines = chimera_pmem::Extent::new_checked(last.at, last.bytes).lines().count() as u64;
    assert_eq!(cost(&media, || log.sync_all()).1, (lines, 1));
}

#[test]
fn fresh_runs_are_shorter_where_much_is_open() {
    let lengths = |open_bytes_max: u64| {
        let pool = new_pool();
        let log = new_log(&pool, 0).with_open_bytes_max(open_bytes_max);
        let mut sessions: Vec<_> = (0..4).map(|_| log.begin()).collect();
        let taken = sessions.iter_mut().map(|session| {
            append(&log, session, &record(1, 300)).unwrap();
            (session.take_taken_bytes() + 128) / 256
        });
        let taken: Vec<_> = taken.collect();
        (taken, log.counts().replay_bytes)
    };
    // Half of what is left, in whole blocks of 256 bytes; two of them have room for the record.
    assert_eq!(lengths(u64::MAX).0, [16; 4]);
    assert_eq!(lengths(1 << 20).0, [16; 4]);
    assert_eq!(lengths(8448), (vec![16, 8, 5, 2], 7424));
    assert_eq!(lengths(8447), (vec![16, 8, 4, 3], 7424));
    assert_eq!(lengths(8191).0, [15, 8, 4, 3]);
    assert_eq!(lengths(0), (vec![2; 4], 4 * 384));
}

#[test]
fn a_sealed_run_is_opened_again_as_far_as_a_restart_may_replay() {
    for (more, is_opened) in [(0, true), (1, false)] {
        let pool = new_pool();
        let log = new_log(&pool, 0);
        let mut session = log.begin();
        append(&log, &mut session, &record(1, 1000)).unwrap();
        let first = append(&log, &mut session, &record(2, 0)).unwrap();
        drop(log);
        // All of it is replayed that it may ever hold.
        let log = new_log(&pool, 0).with_open_bytes_max(ROOM - more);
        settled(&log, runs(&pool), false, |_| Ok(true)).unwrap();
        let next = append(&log, &mut log.begin(), &record(3, 40)).unwrap();
        assert_eq!(next.at == first.at + first.bytes, is_opened, "{more}");
        // A step that makes room takes it nevertheless.
        let copy = append(&log, &mut log.begin_for(Purpose::Reclaim), &record(4, 8)).unwrap();
        assert_eq!(copy.at == first.at + first.bytes, !is_opened, "{more}");
    }
}

#[test]
fn limits_are_those_of_the_longest_run() {
    let limits = new_log(&new_pool(), 0).limits();
    // 48 blocks of 256 bytes, without two lines: a fourth of that for the key.
    assert_eq!((limits.key_bytes, limits.value_bytes), (3040, 12_160 - 24 - 3040));
    let long = small_pool(Arc::new(SteppedEnvironment::in_memory(1)), 1 << 20, 2 << 20);
    assert_eq!(new_log(&long, 0).limits().key_bytes, 4096);
}

/// A run that is sealed can be freed, and its blocks be written to by others: the line of its header must not be fenced after
/// that.
#[test]
fn with_a_journal_nothing_of_a_sealed_run_is_left_to_be_fenced() {
    let (pool, _environment) = journaled_pool(16 << 10);
    let log = new_log(&pool, 0);
    let mut session = log.begin();
    fill_to(&log, &mut session, 32);
    log.hold(&mut session, 992).unwrap();
    let appended = || pool.pmem.journal().unwrap().figures().appended_bytes;
    let before = appended();
    pool.pmem.fence(SITE);
    assert_eq!(appended(), before);
}
