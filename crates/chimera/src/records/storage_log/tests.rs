//! What the log promises to engines: [`damage`] and crashes ([`crashes`]), [`sessions`] with batches, [`space`] that is
//! freed, and a [`model`].

mod accounts;
mod costs;
mod crashes;
mod damage;
mod model;
mod sessions;
mod space;
mod taking;

use chimera_pmem::{Hardware, RealEnvironment, Site, SteppedEnvironment};

use super::*;
use crate::pool::Purpose;
use crate::pool::runs::FoundRun;
use crate::pool::small::{media_pool, small_pool};
use crate::pool::tests::media::Media;
use crate::types::error::{Error, Result};

const LOG: BlockKind = BlockKind::new(1, "log");
/// Stores of a test, as if by nobody.
const SITE: Site = Site::new("test");

/// Segments of 48 blocks of 256 bytes.
const SEGMENT_BYTES: u64 = 16 << 10;
/// A run has 3968 bytes for records. Those of more than 992 bytes get a run of their own.
const RUN_BLOCKS: u32 = 16;
const BATCHES: [u32; 2] = [0, 512];

type Key = Vec<u8>;
type Value = Vec<u8>;
/// Version, key, value; none for a tombstone.
type Written = (u64, Key, Option<Value>);

impl<P: Pmem> StorageLog<P> {
    /// Records of all runs that are to be in tables and are not, and those that are referred to, for engines' tests.
    /// None below zero.
    pub(crate) fn balance(&self) -> (u64, u64) {
        let table = self.runs.lock(&*self.pool.environment);
        table.iter().fold((0, 0), |(unflushed, referred), (slot, _)| {
            let balance = self.runs.get(slot).balance();
            let count = |count: i64| u64::try_from(count).expect("told once");
            (unflushed + count(balance.0), referred + count(balance.1))
        })
    }
}

fn new_pool() -> Arc<Pool<Hardware>> {
    small_pool(Arc::new(SteppedEnvironment::in_memory(1)), SEGMENT_BYTES, 1 << 20)
}

fn hash(key: &[u8]) -> u64 {
    KeyHash::new(1).of(key)
}

fn new_log<P: Pmem>(pool: &Arc<Pool<P>>, batch: u32) -> StorageLog<P> {
    StorageLog::new(pool.clone(), KeyHash::new(1), LOG, RUN_BLOCKS, batch)
}

fn append<P: Pmem>(
    log: &StorageLog<P>,
    to: &mut Appender,
    (version, key, value): &Written,
) -> Result<Appended> {
    let (hash, value) = (hash(key), value.as_deref());
    log.append(to, &NewRecord { hash, version: *version, key, value })
}

fn read<P: Pmem>(log: &StorageLog<P>, at: u64, key: &[u8]) -> Result<Option<Written>> {
    let mut value = Vec::new();
    let record = log.read(at, (hash(key), key), &mut value, true)?;
    Ok(record
        .map(|record| (record.version(), key.to_vec(), (!record.is_tombstone()).then_some(value))))
}

/// A record with a key and a value of this many bytes.
fn record(version: u64, value_bytes: usize) -> Written {
    (version, version.to_le_bytes().to_vec(), Some(vec![version as u8 ^ 0x5a; value_bytes]))
}

/// A record of any small size, or a tombstone.
fn sample(version: u64) -> Written {
    let key = [&version.to_le_bytes()[..], &vec![0x5a; version as usize % 29]].concat();
    let value = vec![version as u8; (version * 37 % 700) as usize];
    (version, key, (version % 7 != 3).then_some(value))
}

/// The runs of a pool.
fn runs<P: Pmem>(pool: &Pool<P>) -> Vec<crate::pool::runs::Run> {
    let mut runs = Vec::new();
    pool.recover_runs(&[LOG], false, |run| {
        let FoundRun::InUse(run) = run else { panic!("a word of a run is damaged") };
        runs.push(run);
        Ok(())
    })
    .unwrap();
    runs
}

/// Recovers and settles a log.
fn settled<P: Pmem>(
    log: &StorageLog<P>,
    runs: Vec<crate::pool::runs::Run>,
    salvage: bool,
    visit: impl FnMut(Replayed<'_>) -> Result<bool>,
) -> Result<Recovered> {
    let (recovered, unsettled) = log.recover(runs, salvage, visit)?;
    log.settle(unsettled);
    Ok(recovered)
}

/// What recovery replays: offset and record, by version.
type Found = Vec<(u64, Written)>;

/// A log that takes over the runs of a pool, and what is replayed.
fn recover<P: Pmem>(
    pool: &Arc<Pool<P>>,
    batch: u32,
    salvage: bool,
) -> Result<(StorageLog<P>, Found, Recovered)> {
    let log = new_log(pool, batch);
    let mut places = Vec::new();
    let (recovered, unsettled) = log.recover(runs(pool), salvage, |replayed| {
        assert_eq!(replayed.hash, hash(replayed.key));
        assert!(replayed.bytes.is_multiple_of(8));
        places.push((replayed.at, replayed.key.to_vec(), replayed.is_tombstone));
        Ok(true)
    })?;
    log.settle(unsettled);
    assert_eq!(recovered.records, places.len() as u64);
    let mut found = Vec::new();
    for (at, key, is_tombstone) in places {
        // Of a record whose value is damaged salvage tells.
        let Some(written) =
            read(&log, at, &key).or_else(|error| if salvage { Ok(None) } else { Err(error) })?
        else {
            continue;
        };
        assert_eq!(is_tombstone, written.2.is_none());
        found.push((at, written));
    }
    found.sort_by_key(|(_, (version, ..))| *version);
    Ok((log, found, recovered))
}

fn written(found: Found) -> Vec<Written> {
    found.into_iter().map(|(_, written)| written).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "the result of a call")]
fn is_corrupted<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Corrupted { .. }))
}

fn runs_in_use<P: Pmem>(pool: &Pool<P>) -> u64 {
    pool.count_runs(&[LOG]).kinds[0].runs
}

#[test]
fn records_of_every_size_come_back_by_their_offset_and_key() {
    for batch in BATCHES {
        let log = new_log(&new_pool(), batch);
        let mut session = log.begin();
        let mut places: Vec<(Appended, Written)> = Vec::new();
        for version in 1..300 {
            let appended = append(&log, &mut session, &sample(version)).unwrap();
            assert!(appended.at.is_multiple_of(8));
            places.push((appended, sample(version)));
        }
        for (Appended { at, bytes }, written) in &places {
            assert_eq!(read(&log, *at, &written.1).unwrap().as_ref(), Some(written));
            let record = log.find(*at, hash(&written.1), &written.1).unwrap().unwrap();
            assert_eq!((record.bytes(), record.version()), (*bytes, written.0));
            assert!(log.key_is(&record, &written.1) && !log.key_is(&record, b"other"));
            let mut key = Vec::new();
            log.read_key(&record, &mut key);
            assert_eq!(key, written.1);
            assert!(log.find(*at, hash(&written.1), b"another key").unwrap().is_none());
            assert!(is_corrupted(read(&log, *at, b"another key")), "nothing of its hash was there");
        }
        places.sort_by_key(|(appended, _)| appended.at);
        let is_apart =
            |pair: &[(Appended, Written)]| pair[0].0.at + pair[0].0.bytes <= pair[1].0.at;
        assert!(places.windows(2).all(is_apart));
    }
}

#[test]
fn what_was_appended_is_replayed_after_reopening() {
    for batch in BATCHES {
        for ends in [true, false] {
            let pool = new_pool();
            let mut all = Vec::new();
            for life in 0..4 {
                let (log, found, recovered) = recover(&pool, batch, false).unwrap();
                assert_eq!(written(found), all, "life {life}");
                assert_eq!(recovered.damaged, 0);
                let mut sessions = [log.begin(), log.begin()];
                for _ in 0..40 {
                    let next = sample(all.len() as u64 + 1);
                    append(&log, &mut sessions[all.len() % 2], &next).unwrap();
                    all.push(next);
                }
                if ends {
                    for session in &mut sessions {
                        log.end(session);
                    }
                    log.seal_left();
                }
            }
        }
    }
}

#[test]
fn runs_that_are_not_full_are_appended_to_again() {
    for batch in BATCHES {
        let pool = new_pool();
        for life in 0..20 {
            let log = recover(&pool, batch, false).unwrap().0;
            for session in 0..3 {
                let mut appender = log.begin();
                append(&log, &mut appender, &record(1 + life * 3 + session, 8)).unwrap();
                log.end(&mut appender);
            }
            assert_eq!(runs_in_use(&pool), 1, "life {life}");
        }
        let (_log, found, recovered) = recover(&pool, batch, false).unwrap();
        assert_eq!((found.len(), recovered.open_runs), (60, 1));
    }
}

#[test]
fn a_large_record_has_a_run_of_its_own() {
    for batch in BATCHES {
        let pool = new_pool();
        let log = new_log(&pool, batch);
        let mut session = log.begin();
        let limits = log.limits();
        let small = append(&log, &mut session, &record(1, 100)).unwrap();
        let large = (2, vec![7; limits.key_bytes], Some(vec![9; limits.value_bytes]));
        let Appended { at, .. } = append(&log, &mut session, &large).unwrap();
        assert_eq!(read(&log, at, &large.1).unwrap().as_ref(), Some(&large));
        let next = append(&log, &mut session, &record(3, 100)).unwrap();
        assert_eq!(next.at, small.at + small.bytes, "the session goes on where it was");
        let (_log, found, recovered) = recover(&pool, batch, false).unwrap();
        assert_eq!(written(found), [record(1, 100), large, record(3, 100)]);
        assert_eq!((recovered.runs, recovered.open_runs), (2, 1));
    }
}

#[test]
fn a_full_pool_is_an_error_that_changes_nothing() {
    let pool = small_pool(Arc::new(SteppedEnvironment::in_memory(1)), SEGMENT_BYTES, 48 << 10);
    let log = new_log(&pool, 0);
    let mut session = log.begin();
    let mut count = 0;
    let error = loop {
        match append(&log, &mut session, &record(count + 1, 300)) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::PoolFull { .. }), "{error}");
    assert!(count > 60);
    assert!(append(&log, &mut session, &record(count + 1, 5000)).is_err());
    // There is room for a small one.
    append(&log, &mut session, &record(count + 1, 0)).unwrap();
    assert_eq!(recover(&pool, 0, false).unwrap().1.len() as u64, count + 1);
}

/// Lines flushed and fences of `work`.
fn cost<T>(media: &Media, work: impl FnOnce() -> T) -> (T, (u64, u64)) {
    let before = media.counts();
    let done = work();
    let after = media.counts();
    (done, (after.0 - before.0, after.1 - before.1))
}

#[test]
fn a_record_costs_its_lines_and_one_fence() {
    let media = Media::default();
    let pool = media_pool(&media, &[], SEGMENT_BYTES, 1 << 20);
    let log = new_log(&pool, 0);
    let mut session = log.begin();
    // The run begins with 128 bytes that are no records.
    append(&log, &mut session, &record(1, 32)).unwrap();
    for version in 2..30 {
        let (appended, costs) =
            cost(&media, || append(&log, &mut session, &record(version, 32)).unwrap());
        let lines = chimera_pmem::Extent::new_checked(appended.at, 64).lines();
        assert_eq!((appended.bytes, costs), (64, (lines.count() as u64, 1)));
    }
}

#[test]
fn a_batch_costs_its_lines_and_one_fence() {
    let media = Media::default();
    let pool = media_pool(&media, &[], SEGMENT_BYTES, 1 << 20);
    let log = new_log(&pool, 512);
    let mut session = log.begin();
    append(&log, &mut session, &record(1, 32)).unwrap();
    for version in 2..=32 {
        let (_, costs) = cost(&media, || append(&log, &mut session, &record(version, 32)).unwrap());
        assert_eq!(costs, if version % 8 == 0 { (8, 1) } else { (0, 0) }, "record {version}");
    }
    append(&log, &mut session, &record(33, 32)).unwrap();
    assert_eq!(cost(&media, || log.sync_session(session.number())).1, (1, 1));
    assert_eq!(cost(&media, || log.sync_all()).1, (0, 0));
}
