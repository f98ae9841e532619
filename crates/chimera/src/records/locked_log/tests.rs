//! What the log promises to engines: [`costs`] of each call, [`bounds`] of runs and records. Crashes are the crash lab's, too.

mod bounds;
mod costs;

use chimera_pmem::{Hardware, Site, SteppedEnvironment};

use super::*;
use crate::pool::runs::FoundRun;
use crate::pool::small::small_pool;
use crate::types::error::{Error, Result};

const LOG: BlockKind = BlockKind::new(1, "log");
/// So long that a run of four blocks has room for three records.
const VALUE: [u8; 240] = [7; 240];

/// A pool with segments of 16 blocks of 256 bytes, of which a run takes four or more.
fn new_pool() -> Arc<Pool<Hardware>> {
    small_pool(Arc::new(SteppedEnvironment::in_memory(1)), 8192, 1 << 20)
}

fn hash() -> KeyHash {
    KeyHash::new(1)
}

fn append(log: &mut LockedLog<Hardware>, key: &[u8], value: &[u8]) -> u64 {
    log.append(hash().of(key), key, value).unwrap()
}

/// A log that takes over the runs of a pool; keys of the live records, and how many are damaged.
fn recover(
    pool: &Arc<Pool<Hardware>>,
    salvage: bool,
) -> Result<(LockedLog<Hardware>, Vec<Vec<u8>>, u64)> {
    let mut log = LockedLog::new(pool.clone(), hash(), LOG);
    let (mut keys, mut damaged) = (Vec::new(), 0);
    pool.recover_runs(&[LOG], false, |run| {
        let FoundRun::InUse(run) = run else { panic!("a word of a run is damaged") };
        let found = log.recover_run(run, salvage)?;
        keys.extend(found.records.into_iter().map(|record| record.key));
        damaged += found.damaged;
        Ok(())
    })?;
    log.choose_run();
    log.free_empty_runs()?;
    Ok((log, keys, damaged))
}

fn runs_in_use(pool: &Pool<Hardware>) -> u64 {
    pool.count_runs(&[LOG]).kinds[0].runs
}

#[test]
fn a_record_is_read_by_its_offset_and_key_until_it_is_retired() {
    let mut log = LockedLog::new(new_pool(), hash(), LOG);
    let (at, other) = (append(&mut log, b"key", b"value"), append(&mut log, b"other", b""));
    let mut value = Vec::new();
    assert!(log.read(at, b"key", &mut value, true).unwrap());
    assert_eq!(value, b"value");
    assert!(log.read(other, b"other", &mut value, true).unwrap());
    assert_eq!(value, b"");
    assert!(!log.read(other, b"key", &mut value, true).unwrap(), "of another key");
    log.retire(at).unwrap();
    assert!(!log.read(at, b"key", &mut value, true).unwrap(), "retired");
    assert!(log.read(other, b"other", &mut value, true).unwrap());
}

#[test]
fn a_run_is_freed_with_its_last_live_record_unless_it_is_appended_to() {
    let pool = new_pool();
    let mut log = LockedLog::new(pool.clone(), hash(), LOG);
    let records: Vec<_> = (0..7_u8).map(|key| append(&mut log, &[key], &VALUE)).collect();
    assert_eq!(runs_in_use(&pool), 3);
    records[..2].iter().for_each(|at| log.retire(*at).unwrap());
    assert_eq!(runs_in_use(&pool), 3, "one record of the first run is live");
    log.retire(records[2]).unwrap();
    assert_eq!(runs_in_use(&pool), 2);
    log.retire(records[6]).unwrap();
    assert_eq!(runs_in_use(&pool), 2, "the third run is appended to");
}

#[test]
fn recovery_finds_what_is_live_and_appends_behind_it() {
    let pool = new_pool();
    let mut log = LockedLog::new(pool.clone(), hash(), LOG);
    let records: Vec<_> = (0..5_u8).map(|key| append(&mut log, &[key], &VALUE)).collect();
    log.retire(records[1]).unwrap();
    let (mut log, keys, damaged) = recover(&pool, false).unwrap();
    assert_eq!((keys, damaged), (vec![vec![0], vec![2], vec![3], vec![4]], 0));
    let at = append(&mut log, b"key", &VALUE);
    assert_eq!(at, records[4] + (records[4] - records[3]), "behind the last record");
    assert!(log.version(at) > log.version(records[4]));
    assert_eq!(runs_in_use(&pool), 2);
}

#[test]
fn recovery_leaves_a_run_in_which_nothing_is_live_to_be_freed() {
    let pool = new_pool();
    let mut log = LockedLog::new(pool.clone(), hash(), LOG);
    let at = append(&mut log, b"key", b"value");
    log.retire(at).unwrap();
    assert_eq!(runs_in_use(&pool), 1);
    let (_log, keys, _) = recover(&pool, false).unwrap();
    assert!(keys.is_empty());
    assert_eq!(runs_in_use(&pool), 0);
}

#[test]
fn a_damaged_record_is_an_error_and_with_salvage_its_run_is_kept() {
    let pool = new_pool();
    let mut log = LockedLog::new(pool.clone(), hash(), LOG);
    let records: Vec<_> = (0..3_u8).map(|key| append(&mut log, &[key], &VALUE)).collect();
    // Of its key.
    pool.pmem.store_u64(records[1] + 24, 99, Site::new("test.damage"));
    let is_damage = |error: Error| matches!(error, Error::Corrupted { at, .. } if at == records[1]);
    assert!(is_damage(log.read(records[1], &[1], &mut Vec::new(), true).unwrap_err()));
    assert!(is_damage(recover(&pool, false).err().expect("damage")));
    let (mut log, keys, damaged) = recover(&pool, true).unwrap();
    assert_eq!((keys, damaged), (vec![vec![0], vec![2]], 1));
    // So that another run is appended to.
    append(&mut log, b"key", &VALUE);
    log.retire(records[0]).unwrap();
    log.retire(records[2]).unwrap();
    assert_eq!(runs_in_use(&pool), 2);
}
