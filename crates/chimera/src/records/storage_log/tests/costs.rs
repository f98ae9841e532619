//! What each call flushes and fences, in which order.

use std::ops::Range;

use super::*;
use crate::pool::small::media_pool_opened;
use crate::pool::tests::media::Asked;
use crate::records::storage_log::header::HeaderAt;

/// Bytes of a run for records, and of a record with a value of 300 bytes, of which a run holds eleven.
const ROOM: u64 = 16 * 256 - 128;
const SPAN: u64 = 24 + 8 + 304;

fn new_media(batch: u32) -> (Media, Arc<Pool<Media>>, StorageLog<Media>) {
    let media = Media::default();
    let pool = media_pool(&media, &[], SEGMENT_BYTES, 1 << 20);
    let log = new_log(&pool, batch);
    (media, pool, log)
}

/// The lines of `length` bytes.
fn lines(at: u64, length: u64) -> Range<u64> {
    at / 64 * 64..(at + length).next_multiple_of(64)
}

/// A header is a line, in front of the first record of a run.
fn header_of(first: &Appended) -> Asked {
    Asked::Flush(lines(first.at - 64, 64))
}

fn flush_of(record: &Appended) -> Asked {
    Asked::Flush(lines(record.at, record.bytes))
}

fn fill(log: &StorageLog<Media>, session: &mut Appender, count: u64) -> Vec<Appended> {
    (1..=count).map(|version| append(log, session, &record(version, 300)).unwrap()).collect()
}

/// The last things that were asked.
fn last(asked: &[Asked], count: usize) -> &[Asked] {
    assert!(asked.len() >= count, "{asked:?}");
    &asked[asked.len() - count..]
}

/// Whether the header of a run that begins with this record is durable before the run is taken.
fn is_durable_first(asked: &[Asked], first: &Appended) -> bool {
    let mut before = asked.iter().take_while(|it| **it != Asked::Fence);
    before.any(|it| *it == header_of(first))
}

#[test]
fn a_session_seals_a_full_run_without_a_fence() {
    let (media, _pool, log) = new_media(0);
    let mut session = log.begin();
    let first = fill(&log, &mut session, 11);
    assert_eq!((session.room(), session.has_taken()), (ROOM - 11 * SPAN, true));
    assert_eq!((session.take_taken_bytes(), session.has_taken()), (ROOM, false));
    assert_eq!(session.take_taken_bytes(), 0);
    let (next, asked) = media.watch(|| append(&log, &mut session, &record(12, 300)).unwrap());
    assert!(is_durable_first(&asked, &next));
    let expected = [header_of(&first[0]), flush_of(&next), Asked::Fence];
    assert_eq!(last(&asked, 3), expected);
    assert!(session.has_taken());
}

#[test]
fn a_large_record_is_durable_before_what_came_before_it_is_certain() {
    for batch in BATCHES {
        let (media, _pool, log) = new_media(batch);
        let mut session = log.begin();
        let small = append(&log, &mut session, &record(1, 40)).unwrap();
        session.take_taken_bytes();
        let (large, asked) = media.watch(|| append(&log, &mut session, &record(2, 3900)).unwrap());
        let pending = [flush_of(&small), Asked::Fence];
        let pending = if batch == 0 { &[][..] } else { &pending };
        let own =
            [flush_of(&large), Asked::Fence, header_of(&large), header_of(&small), Asked::Fence];
        assert_eq!(last(&asked, pending.len() + 5), [pending, &own].concat());
        assert_eq!(session.take_taken_bytes(), large.bytes);
        assert!(is_durable_first(&asked, &large));
        // What is certain is not made so again.
        let (large, asked) = media.watch(|| append(&log, &mut session, &record(3, 3900)).unwrap());
        let own = [flush_of(&large), Asked::Fence, header_of(&large), Asked::Fence];
        assert_eq!(last(&asked, 5)[1..], own);
        assert_ne!(last(&asked, 5)[0], header_of(&small));
        assert_eq!(media.watch(|| log.certify(&mut session)).1, []);
    }
}

#[test]
fn what_a_session_appended_is_made_certain_once() {
    for batch in BATCHES {
        let (media, _pool, log) = new_media(batch);
        let mut session = log.begin();
        assert_eq!(media.watch(|| log.certify(&mut session)).1, [], "it has no run");
        let first = append(&log, &mut session, &record(1, 40)).unwrap();
        for appended in [first, append(&log, &mut session, &record(2, 40)).unwrap()] {
            let ((), asked) = media.watch(|| log.certify(&mut session));
            let all = Asked::Flush(lines(first.at, 2 * first.bytes));
            let pending = [all, Asked::Fence];
            let pending = if batch == 0 { &[][..] } else { &pending };
            let is_first = appended == first;
            let own = [header_of(&first), Asked::Fence];
            let expected = if is_first { [pending, &own].concat() } else { vec![] };
            assert_eq!(asked, expected);
        }
        let third = append(&log, &mut session, &record(3, 40)).unwrap();
        let ((), asked) = media.watch(|| log.certify(&mut session));
        let pending = [flush_of(&third), Asked::Fence];
        let pending = if batch == 0 { &[][..] } else { &pending };
        assert_eq!(asked, [pending, &[header_of(&first), Asked::Fence]].concat());
    }
}

#[test]
fn a_session_that_ends_leaves_a_run_with_room_and_seals_one_without() {
    let (media, _pool, log) = new_media(0);
    // An eighth of a run is left, and less: 496 of 3968 bytes.
    for (value_bytes, is_left) in [(80, true), (88, false)] {
        let mut session = log.begin();
        let all = fill(&log, &mut session, 10);
        append(&log, &mut session, &record(11, value_bytes)).unwrap();
        assert_eq!(session.room(), if is_left { 496 } else { 488 });
        let ((), asked) = media.watch(|| log.end(&mut session));
        let seal = [header_of(&all[0]), Asked::Fence];
        assert_eq!(asked, if is_left { vec![] } else { seal.to_vec() });
        let ((), asked) = media.watch(|| log.seal_left());
        assert_eq!(asked, if is_left { seal.to_vec() } else { vec![] });
        if is_left {
            // Opened again by a session whose record fits: under a new number, durably.
            let mut other = log.begin();
            let (next, asked) = media.watch(|| append(&log, &mut other, &record(12, 400)).unwrap());
            let open = [header_of(&all[0]), Asked::Fence];
            assert_eq!(asked, [&open[..], &[flush_of(&next), Asked::Fence]].concat());
            assert_eq!(next.at, all[0].at + ROOM - 496);
        }
    }
}

#[test]
fn a_run_that_was_left_costs_nothing_to_go_on_with() {
    let (media, _pool, log) = new_media(0);
    let mut session = log.begin();
    let first = append(&log, &mut session, &record(1, 40)).unwrap();
    log.end(&mut session);
    let (next, asked) = media.watch(|| append(&log, &mut session, &record(2, 40)).unwrap());
    assert_eq!(asked, [flush_of(&next), Asked::Fence]);
    assert_eq!(next.at, first.at + first.bytes);
    // Nobody knows up to where its header says that records are certain.
    let ((), asked) = media.watch(|| log.certify(&mut session));
    assert_eq!(asked, [header_of(&first), Asked::Fence]);
    assert_eq!(media.watch(|| log.certify(&mut session)).1, []);
}

/// Of a run that was left it is not known what is certain, and all is in one that was sealed.
#[test]
fn what_is_certain_of_a_run_that_is_taken_again_is_said_once() {
    for is_sealed in [false, true] {
        let (media, _pool, log) = new_media(0);
        let mut session = log.begin();
        let first = append(&log, &mut session, &record(1, 40)).unwrap();
        log.end(&mut session);
        if is_sealed {
            log.seal_left();
        }
        log.hold(&mut session, 992).unwrap();
        assert_eq!(session.room(), ROOM - first.bytes);
        let ((), asked) = media.watch(|| log.certify(&mut session));
        let said = [header_of(&first), Asked::Fence];
        assert_eq!(asked, if is_sealed { vec![] } else { said.to_vec() });
    }
}

#[test]
fn freeing_costs_a_line_more_where_the_number_is_the_highest() {
    let (media, _pool, log) = new_media(0);
    let [mut one, mut other] = [log.begin(), log.begin()];
    let large: Vec<_> =
        (1..4).map(|version| append(&log, &mut one, &record(version, 3000)).unwrap()).collect();
    let small = append(&log, &mut other, &record(4, 40)).unwrap();
    let free = |record: &Appended| {
        log.flushed(record.at);
        assert!(log.dropped(record.at, record.bytes));
        let (freed, asked) = media.watch(|| log.free_ready().unwrap());
        assert_eq!(freed, 1);
        asked
    };
    let first = free(&large[0]);
    assert!(!first.contains(&header_of(&large[1])) && !first.contains(&header_of(&small)));
    // The run of the small one has the highest number. A later one is freed first.
    let last = append(&log, &mut one, &record(5, 3000)).unwrap();
    let asked = free(&last);
    assert_eq!(asked[1], Asked::Fence);
    let keepers = [header_of(&large[1]), header_of(&large[2]), header_of(&small)];
    assert!(keepers.contains(&asked[0]), "{asked:?}");
    assert_eq!(asked.len(), first.len() + 2);
}

#[test]
fn marking_a_run_costs_a_line_and_a_fence_of_others() {
    let (media, _pool, log) = new_media(0);
    let mut session = log.begin();
    let all = fill(&log, &mut session, 12);
    for record in &all[..10] {
        assert_eq!(media.watch(|| log.flushed(record.at)).1, []);
    }
    assert_eq!(media.watch(|| log.flushed(all[10].at)).1, [header_of(&all[0])]);
    assert_eq!(media.watch(|| log.flushed(all[11].at)).1, [], "its run is open");
    let ((), asked) = media.watch(|| log.end(&mut session));
    assert_eq!(asked, [], "it is left, with room");
    let ((), asked) = media.watch(|| log.seal_left());
    let header = header_of(&all[11]);
    assert_eq!(asked, [header.clone(), header, Asked::Fence], "sealed, and marked at once");
}

/// What the process before left open is written back and sealed.
#[test]
fn recovery_writes_back_what_it_finds_and_then_seals_it() {
    for is_killed in [true, false] {
        let (media, _pool, log) = new_media(0);
        let mut session = log.begin();
        let all = fill(&log, &mut session, 12);
        if !is_killed {
            log.end(&mut session);
            log.seal_left();
        }
        let image = media.image();
        let media = Media::default();
        let pool = media_pool(&media, &image, SEGMENT_BYTES, 1 << 20);
        let runs = runs(&pool);
        let log = new_log(&pool, 0);
        let visit = |_: Replayed<'_>| Ok(true);
        let (recovered, asked) = media.watch(|| settled(&log, runs, false, visit).unwrap());
        assert_eq!((recovered.records, recovered.bytes), (12, 12 * SPAN));
        assert_eq!(recovered.open_runs, u64::from(is_killed));
        let headers = [header_of(&all[0]), header_of(&all[11])];
        let sealed = [Asked::Fence, headers[1].clone(), Asked::Fence];
        let found = [headers[0].clone(), flush_of(&all[11]), headers[1].clone()];
        let expected = match (pool.may_hold_undurable(), is_killed) {
            (true, true) => [&found[..], &sealed].concat(),
            (true, false) => [&headers[..], &sealed[..1]].concat(),
            (false, true) => [&found[1..2], &sealed].concat(),
            (false, false) => vec![],
        };
        assert_eq!(asked, expected);
        let totals = log.totals();
        assert_eq!((recovered.totals, totals == Totals::default()), (totals, false));
        // Who reads only changes nothing.
        let media = Media::default();
        let pool = media_pool_opened(&media, &image, SEGMENT_BYTES, 1 << 20, true);
        let reader = new_log(&pool, 0);
        let runs = super::runs(&pool);
        let (recovered, asked) = media.watch(|| settled(&reader, runs, false, visit).unwrap());
        assert_eq!((recovered.records, asked), (12, vec![]));
    }
}

/// Nothing needs to be written back where stores survive no power loss anyway, and nothing of a run without records.
#[test]
fn recovery_writes_back_no_more_than_it_has_to() {
    let (media, _pool, log) = new_media(0);
    let [mut one, mut other] = [log.begin(), log.begin()];
    log.hold(&mut one, 992).unwrap();
    let image_of_empty = media.image();
    let first = append(&log, &mut one, &record(1, 40)).unwrap();
    let image_of_open = media.image();
    log.hold(&mut other, 992).unwrap();
    log.end(&mut one);
    log.end(&mut other);
    log.seal_left();
    let image_of_sealed = media.image();
    let recovered = |media: Media, image: &[u8]| {
        let pool = media_pool(&media, image, SEGMENT_BYTES, 1 << 20);
        let (log, runs) = (new_log(&pool, 0), runs(&pool));
        media.watch(|| settled(&log, runs, false, |_| Ok(true)).unwrap()).1
    };
    let header = header_of(&first);
    let seal = [header.clone(), Asked::Fence];
    // What has no records is marked at once.
    let marked = [&seal[..], std::slice::from_ref(&header)].concat();
    assert_eq!(recovered(Media::on_tmpfs(), &image_of_empty), marked);
    assert_eq!(recovered(Media::on_tmpfs(), &image_of_sealed), []);
    let found = [flush_of(&first), Asked::Fence];
    assert_eq!(recovered(Media::on_tmpfs(), &image_of_open), [&found[..], &seal].concat());
    let found = [header.clone(), Asked::Fence];
    assert_eq!(recovered(Media::default(), &image_of_empty), [&found[..], &marked].concat());
}

#[test]
fn a_record_is_loaded_ahead_with_its_head() {
    let (media, pool, log) = new_media(0);
    let appended = append(&log, &mut log.begin(), &record(1, 300)).unwrap();
    let ((), asked) = media.watch(|| log.prefetch(appended.at));
    assert_eq!(asked, [Asked::Ahead(lines(appended.at, 64))]);
    let ((), asked) = media.watch(|| log.prefetch(media.mapped()));
    assert_eq!(asked, [], "nothing lies there");
    assert!(!log.has_batches() && new_log(&pool, 1).has_batches());
}

#[test]
fn the_header_of_a_run_says_what_is_certain_sealed_and_flushed() {
    let (_media, pool, log) = new_media(0);
    let mut session = log.begin();
    let all = fill(&log, &mut session, 11);
    let header = |first: &Appended| HeaderAt(first.at - 64).load(&pool, ROOM + 64).unwrap();
    let state = |first: &Appended| {
        let found = header(first);
        (found.state.is_sealed, found.state.tail, found.flushed)
    };
    assert_eq!(state(&all[0]), (false, 64, 0));
    log.certify(&mut session);
    assert_eq!(state(&all[0]), (false, 64 + 11 * SPAN, 0));
    append(&log, &mut session, &record(12, 300)).unwrap();
    assert_eq!(state(&all[0]), (true, 64 + 11 * SPAN, 0));
    for record in &all {
        log.flushed(record.at);
    }
    assert_eq!(state(&all[0]), (true, 64 + 11 * SPAN, 64 + 11 * SPAN));
}
