//! References, marks, and runs that are freed and used again.

use super::*;
use crate::pool::tests::media::bytes_of;
use crate::records::storage_log::free::LogCounts;

/// A log with three sealed runs and one that is appended to, and its records.
fn filled<P: Pmem>(pool: &Arc<Pool<P>>) -> (StorageLog<P>, Vec<Vec<Appended>>) {
    let log = new_log(pool, 0);
    let mut session = log.begin();
    let mut runs: Vec<Vec<Appended>> = Vec::new();
    for version in 1.. {
        let appended = append(&log, &mut session, &record(version, 300)).unwrap();
        let slot = log.runs.slot_of(&pool.map, appended.at);
        let is_in = |run: &Vec<Appended>| log.runs.slot_of(&pool.map, run[0].at) == slot;
        if !runs.last().is_some_and(is_in) {
            if runs.len() == 4 {
                break;
            }
            runs.push(Vec::new());
        }
        runs.last_mut().expect("at least one").push(appended);
    }
    let last = runs.pop().expect("four runs");
    assert_eq!(last.len(), 11);
    let (log, ..) = {
        drop(log);
        recover(pool, 0, false).unwrap()
    };
    runs.iter().flatten().for_each(|record| log.count_reference(record.at, record.bytes));
    (log, runs)
}

fn drop_all<P: Pmem>(log: &StorageLog<P>, records: &[Appended]) -> bool {
    let dropped: Vec<_> =
        records.iter().map(|record| log.dropped(record.at, record.bytes)).collect();
    dropped.contains(&true)
}

#[test]
fn a_sealed_run_is_freed_with_its_last_reference_and_its_blocks_are_used_again() {
    let pool = new_pool();
    let log = new_log(&pool, 0);
    let mut session = log.begin();
    let all: Vec<_> = (1..=40)
        .map(|version| append(&log, &mut session, &record(version, 300)).unwrap())
        .collect();
    let (first, freed) = (&all[..11], log.freed());
    let bytes = 4 * (4096 - 64);
    let live_bytes = 40 * all[0].bytes;
    // Three runs are full, and one may be.
    let (full, open) = (11 * all[0].bytes, 4096 - 128);
    let replay_bytes = 3 * full + open;
    let counts = LogCounts { runs: 4, bytes, live_bytes, dropped_bytes: 0, replay_bytes };
    assert_eq!(log.counts(), counts);
    for record in first {
        log.flushed(record.at);
    }
    assert_eq!(log.counts(), LogCounts { replay_bytes: 2 * full + open, ..counts });
    assert_eq!(runs_in_use(&pool), 4);
    assert!(!drop_all(&log, &first[1..]));
    assert_eq!(log.free_ready().unwrap(), 0);
    assert!(log.is_unchanged(freed));
    assert!(log.dropped(first[0].at, first[0].bytes));
    assert_eq!((log.free_ready().unwrap(), runs_in_use(&pool)), (1, 3));
    assert!(!log.is_unchanged(freed), "readers find out");
    assert_eq!(log.free_ready().unwrap(), 0, "once");
    let mut other = log.begin();
    assert_eq!(append(&log, &mut other, &record(41, 300)).unwrap().at, first[0].at);
    // An open run is not freed, and is when it is sealed.
    assert!(!drop_all(&log, &all[33..]));
    assert_eq!(log.free_ready().unwrap(), 0);
    log.end(&mut session);
    log.seal_left();
    assert_eq!(log.free_ready().unwrap(), 1);
}

#[test]
fn nothing_is_freed_before_references_are_counted() {
    let pool = new_pool();
    let (log, runs) = filled(&pool);
    assert_eq!(runs_in_use(&pool), 5);
    assert!(drop_all(&log, &runs[1]));
    assert_eq!((log.free_ready().unwrap(), log.victims(0)), (0, Vec::new()));
    log.end_counting();
    // Nothing refers to the fourth and fifth one, of which the latter has the highest number.
    assert_eq!((log.free_ready().unwrap(), runs_in_use(&pool)), (3, 2));
    for record in runs[0].iter().chain(&runs[2]) {
        assert!(log.decode(record.at).is_some());
    }
    assert!(drop_all(&log, &runs[0]) && drop_all(&log, &runs[2]));
    assert_eq!(log.free_ready().unwrap(), 1, "one remembers the highest number");
}

#[test]
fn victims_are_sealed_runs_with_much_that_is_dead() {
    let pool = new_pool();
    let (log, runs) = filled(&pool);
    log.end_counting();
    assert_eq!(log.free_ready().unwrap(), 2);
    drop_all(&log, &runs[1][..5]);
    drop_all(&log, &runs[2][..8]);
    let bytes = 11 * runs[0][0].bytes;
    let victim = |run: usize, live: u64| {
        let live_bytes = live * runs[run][0].bytes;
        Victim { start: runs[run][0].at, bytes, live_bytes }
    };
    assert_eq!(log.victims(90), []);
    assert_eq!(log.victims(50), [victim(2, 3)]);
    assert_eq!(log.victims(10), [victim(2, 3), victim(1, 6)]);
    assert_eq!(log.victims(0).len(), 3);
    // What is collected is walked, live or not.
    let mut walk = log.walk(runs[2][0].at);
    let mut walked = Vec::new();
    while let Some(next) = log.next(&mut walk).unwrap() {
        assert_eq!((next.hash, next.bytes), (hash(next.key), runs[2][0].bytes));
        walked.push((next.at, (next.version, next.key.to_vec(), next.value.map(<[u8]>::to_vec))));
    }
    let expected =
        runs[2].iter().zip(23..).map(|(place, version)| (place.at, record(version, 300)));
    assert_eq!(walked, expected.collect::<Vec<_>>());
}

/// What is held when the process ends is found by the next one, which may find nothing better.
#[test]
fn holding_takes_a_run_that_is_not_full() {
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    let pool = small_pool(environment, SEGMENT_BYTES, 2 * SEGMENT_BYTES);
    let log = new_log(&pool, 0);
    let mut session = log.begin();
    let mut places = Vec::new();
    while let Ok(place) = append(&log, &mut session, &record(1, 900)) {
        places.push(place);
    }
    log.end(&mut session);
    let mut copies = log.begin_for(Purpose::Reclaim);
    assert!(log.hold(&mut copies, 992).is_err(), "no run has room");
    // One is freed, and filled but for 1,156 bytes.
    let run_of = |place: &Appended| log.runs.slot_of(&pool.map, place.at);
    let (first, rest): (Vec<_>, Vec<_>) =
        places.iter().partition(|place| run_of(place) == run_of(&places[0]));
    drop_all(&log, &first);
    assert_eq!((rest.is_empty(), log.free_ready().unwrap()), (false, 1));
    for version in 1..=3 {
        append(&log, &mut session, &record(version, 900)).unwrap();
    }
    let room = session.room();
    assert!((992..1984).contains(&room), "{room}");
    log.end(&mut session);
    log.hold(&mut copies, 992).expect("it has room");
    assert_eq!(copies.room(), room);
}

#[test]
fn a_step_that_makes_room_opens_a_run_again_whatever_may_be_replayed() {
    let pool = new_pool();
    let (log, _) = filled(&pool);
    drop(log);
    for makes_room in [false, true] {
        let log = new_log(&pool, 0).with_open_bytes_max(0);
        let (_, unsettled) = log.recover(runs(&pool), false, |_| Ok(true)).unwrap();
        log.settle(unsettled);
        let before = log.counts().runs;
        let mut session = if makes_room { log.begin_for(Purpose::Reclaim) } else { log.begin() };
        append(&log, &mut session, &record(1, 40)).unwrap();
        assert_eq!(log.counts().runs, before + u64::from(!makes_room));
    }
}

#[test]
fn a_run_that_is_pinned_stays() {
    let pool = new_pool();
    let (log, runs) = filled(&pool);
    log.end_counting();
    log.free_ready().unwrap();
    drop_all(&log, &runs[1][1..]);
    let victim = log.victims(1)[0];
    assert!(victim.start == runs[1][0].at && log.pin(&victim));
    assert!(!drop_all(&log, &runs[1][..1]));
    assert_eq!(log.free_ready().unwrap(), 0);
    log.unpin(&victim);
    assert_eq!(log.free_ready().unwrap(), 1);
    assert!(!log.pin(&victim), "it is not there any more");
}

#[test]
fn a_run_whose_records_are_all_in_tables_is_not_replayed() {
    let media = Media::default();
    let pool = media_pool(&media, &[], SEGMENT_BYTES, 1 << 20);
    let log = new_log(&pool, 0);
    let mut session = log.begin();
    let all: Vec<_> = (1..=30)
        .map(|version| append(&log, &mut session, &record(version, 300)).unwrap())
        .collect();
    let replayed = |media: &Media| {
        let durable = media.photo().some_states(0, 1).into_iter().next().expect("a state");
        let pool = media_pool(&Media::default(), &bytes_of(&durable), SEGMENT_BYTES, 1 << 20);
        let (_log, found, recovered) = recover(&pool, 0, false).unwrap();
        assert_eq!(recovered.bytes, found.len() as u64 * all[0].bytes);
        found.into_iter().map(|(_, (version, ..))| version).collect::<Vec<_>>()
    };
    all[1..11].iter().for_each(|record| log.flushed(record.at));
    pool.pmem.fence(SITE);
    assert_eq!(replayed(&media).len(), 30);
    log.flushed(all[0].at);
    pool.pmem.fence(SITE);
    assert_eq!(replayed(&media), (12..=30).collect::<Vec<_>>());
    // Before it is sealed.
    all[22..].iter().for_each(|record| log.flushed(record.at));
    pool.pmem.fence(SITE);
    assert_eq!(replayed(&media), (12..=30).collect::<Vec<_>>());
    log.end(&mut session);
    log.seal_left();
    assert_eq!(replayed(&media), (12..=22).collect::<Vec<_>>());
    // What is appended to such a run is replayed alone.
    append(&log, &mut session, &record(31, 300)).unwrap();
    assert_eq!(replayed(&media), (12..=22).chain(31..=31).collect::<Vec<_>>());
}

#[test]
fn records_that_replay_kept_count_as_not_in_tables() {
    let pool = new_pool();
    let log = new_log(&pool, 0);
    let mut session = log.begin();
    let all: Vec<_> = (1..=10)
        .map(|version| append(&log, &mut session, &record(version, 300)).unwrap())
        .collect();
    let again = new_log(&pool, 0);
    // Those with odd versions are in tables.
    let (_, unsettled) =
        again.recover(runs(&pool), false, |replayed| Ok(replayed.version % 2 == 0)).unwrap();
    again.settle(unsettled);
    for record in all.iter().skip(1).step_by(2).take(4) {
        again.flushed(record.at);
    }
    assert_eq!(recover(&pool, 0, false).unwrap().2.records, 10);
    again.flushed(all[9].at);
    assert_eq!(recover(&pool, 0, false).unwrap().2.records, 0);
    // Replay kept none of them.
    append(&again, &mut again.begin(), &record(11, 300)).unwrap();
    let third = new_log(&pool, 0);
    let (_, unsettled) = third.recover(runs(&pool), false, |_| Ok(false)).unwrap();
    third.settle(unsettled);
    assert_eq!(recover(&pool, 0, false).unwrap().2.records, 0);
}

/// Numbers are given once: what was freed last has the highest one, and its bytes are still there.
#[test]
fn a_sequence_number_is_given_once_though_its_run_is_freed() {
    let pool = new_pool();
    let log = new_log(&pool, 0);
    let [mut one, mut other] = [log.begin(), log.begin()];
    append(&log, &mut one, &record(1, 300)).unwrap();
    let all: Vec<_> =
        (2..12).map(|version| append(&log, &mut other, &record(version, 300)).unwrap()).collect();
    log.end(&mut other);
    log.seal_left();
    drop_all(&log, &all);
    assert_eq!(log.free_ready().unwrap(), 1);
    // The next life takes a run at the same place.
    let log = recover(&pool, 0, false).unwrap().0;
    let [mut one, mut other] = [log.begin(), log.begin()];
    append(&log, &mut one, &record(20, 300)).unwrap();
    assert_eq!(append(&log, &mut other, &record(21, 300)).unwrap().at, all[0].at);
    let found: Vec<_> =
        recover(&pool, 0, false).unwrap().1.into_iter().map(|(_, (version, ..))| version).collect();
    assert_eq!(found, [1, 20, 21]);
}

#[test]
fn a_run_with_the_highest_number_stays_while_no_other_one_can_remember_it() {
    let pool = new_pool();
    let log = new_log(&pool, 0);
    let mut session = log.begin();
    let large = append(&log, &mut session, &record(1, 3000)).unwrap();
    assert!(drop_all(&log, &[large]));
    assert_eq!(log.free_ready().unwrap(), 0);
    append(&log, &mut session, &record(2, 100)).unwrap();
    assert_eq!((log.free_ready().unwrap(), runs_in_use(&pool)), (1, 1));
}

/// With batches the record that superseded another one may be pending when the old one's run is freed.
#[test]
fn what_superseded_a_record_is_durable_before_its_run_is_freed_or_marked() {
    for frees in [true, false] {
        let media = Media::default();
        let pool = media_pool(&media, &[], SEGMENT_BYTES, 1 << 20);
        let log = new_log(&pool, 4096);
        let [mut one, mut other] = [log.begin(), log.begin()];
        let old = append(&log, &mut one, &record(1, 3000)).unwrap();
        append(&log, &mut other, &record(2, 100)).unwrap();
        let successors = |image: &[u64]| {
            let pool = media_pool(&Media::default(), &bytes_of(image), SEGMENT_BYTES, 1 << 20);
            recover(&pool, 0, false).unwrap().1.len()
        };
        log.flushed(old.at);
        if frees {
            log.dropped(old.at, old.bytes);
            assert_eq!(log.free_ready().unwrap(), 1);
        }
        for state in media.photo().some_states(50, 3) {
            assert!(successors(&state) >= 1, "neither the old record nor its successor");
        }
    }
}
