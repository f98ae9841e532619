//! Batches, and sessions on several threads.

use super::*;

/// What a power loss leaves at this moment, where nothing is durable but what has to be.
fn after_power_loss(media: &Media) -> Vec<Written> {
    let durable = media.photo().some_states(0, 1).into_iter().next().expect("a state");
    let image = crate::pool::tests::media::bytes_of(&durable);
    let pool = media_pool(&Media::default(), &image, SEGMENT_BYTES, 1 << 20);
    written(recover(&pool, 512, false).unwrap().1)
}

#[test]
fn a_record_of_a_batch_can_be_read_before_it_is_durable_and_anybody_can_make_it_so() {
    let media = Media::default();
    let pool = media_pool(&media, &[], SEGMENT_BYTES, 1 << 20);
    let log = new_log(&pool, 512);
    let [mut one, mut other] = [log.begin(), log.begin()];
    let first = append(&log, &mut one, &record(1, 32)).unwrap();
    append(&log, &mut other, &record(2, 32)).unwrap();
    assert_eq!(read(&log, first.at, &record(1, 32).1).unwrap(), Some(record(1, 32)));
    assert_eq!(after_power_loss(&media), []);
    std::thread::scope(|scope| {
        scope.spawn(|| log.sync_session(one.number()));
    });
    assert_eq!(after_power_loss(&media), [record(1, 32)]);
    log.sync_session(one.number());
    assert_eq!(after_power_loss(&media), [record(1, 32)]);
    log.sync_session(other.number());
    assert_eq!(after_power_loss(&media), [record(1, 32), record(2, 32)]);
    append(&log, &mut one, &record(3, 32)).unwrap();
    append(&log, &mut other, &record(4, 32)).unwrap();
    assert_eq!(after_power_loss(&media).len(), 2);
    log.sync_all();
    assert_eq!(after_power_loss(&media).len(), 4);
    append(&log, &mut one, &record(5, 32)).unwrap();
    log.end(&mut one);
    assert_eq!(after_power_loss(&media).len(), 5);
}

#[test]
fn a_session_is_durable_before_it_appends_to_another_run() {
    let media = Media::default();
    let pool = media_pool(&media, &[], SEGMENT_BYTES, 1 << 20);
    let log = new_log(&pool, 512);
    let mut session = log.begin();
    append(&log, &mut session, &record(1, 32)).unwrap();
    append(&log, &mut session, &record(2, 3000)).unwrap();
    assert_eq!(after_power_loss(&media).len(), 2, "a run of its own");
    for version in 3..200 {
        append(&log, &mut session, &record(version, 100)).unwrap();
        let left: Vec<_> = after_power_loss(&media).iter().map(|(version, ..)| *version).collect();
        let prefix: Vec<_> = (1..=left.len() as u64).collect();
        assert_eq!(left, prefix, "a prefix survives");
        assert!(version - left.len() as u64 <= 4, "at most a batch is lost");
    }
}

#[test]
fn many_threads_append_and_make_each_other_durable() {
    for batch in BATCHES {
        // Holders of locks run beside those who wait.
        let environment = Arc::new(RealEnvironment::with_seed(1));
        let pool = small_pool(environment, SEGMENT_BYTES, 1 << 20);
        let log = new_log(&pool, batch);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let log = &log;
                scope.spawn(move || {
                    let mut session = log.begin();
                    for round in 0..300_u64 {
                        let written = sample(1 + round * 4 + thread);
                        let appended = append(log, &mut session, &written).unwrap();
                        if round % 16 == thread {
                            log.sync_all();
                            log.sync_session(session.number().map(|number| (number + 1) % 4));
                            log.sync_session(session.number());
                        }
                        assert_eq!(read(log, appended.at, &written.1).unwrap(), Some(written));
                    }
                    log.end(&mut session);
                });
            }
        });
        let found = recover(&pool, batch, false).unwrap().1;
        let expected: Vec<_> = (1..=1200).map(sample).collect();
        assert_eq!(written(found), expected);
    }
}
