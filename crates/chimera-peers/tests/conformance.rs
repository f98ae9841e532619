//! Each store behind the traits keeps what it was given: before and after it is closed, opened and compacted.

#![expect(clippy::unwrap_used, reason = "whatever fails here fails the test")]

use std::collections::BTreeMap;
use std::path::Path;

use chimera_bench::measure::StoreSession;
use chimera_peers::job::{Durability, Job, StoreKind};
use chimera_peers::stores::{Chimera, Fjall, Lmdb, Peer, Redb, RocksDb};

/// Small values, and such that are stored apart from their keys where a store does that.
const VALUE_BYTES: [usize; 2] = [100, 20_000];
const DURABILITIES: [Durability; 3] =
    [Durability::Operation, Durability::Window, Durability::Process];

/// One of each engine, and one of them with an order: the workspace has their own tests.
const OURS: [StoreKind; 3] = [StoreKind::Hikv, StoreKind::Chameleon, StoreKind::ViperOrdered];

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(number: u64) -> Vec<u8> {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().repeat(2)
}

fn value(number: u64, version: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at as u64 + number * 7) as u8 ^ version).collect()
}

fn job(store: StoreKind, path: &Path, durability: Durability, value_bytes: usize) -> Job {
    Job {
        store,
        path: path.join(store.name()),
        durability,
        value_bytes,
        records: 100,
        threads: 1,
        cache_bytes: 8 << 20,
        seed: 42,
        data_limit_bytes: None,
    }
}

fn assert_holds<S: Peer>(store: &S, job: &Job, model: &Model, when: &str) {
    let what = format!("{} {} {} {when}", job.store, job.durability, job.value_bytes);
    let mut listed = Model::new();
    store
        .for_each(|key, value| assert!(listed.insert(key.to_vec(), value.to_vec()).is_none()))
        .unwrap();
    assert_eq!(listed.len(), model.len(), "{what}");
    assert!(listed == *model, "{what}: another listing");
    assert_eq!(store.footprint().records, model.len() as u64, "{what}");
    let mut session = store.session();
    for (key, value) in model {
        let is_right = session.get_with(key, |found| found == value).unwrap();
        assert_eq!(is_right, Some(true), "{what}: {key:?}");
    }
    assert_eq!(session.get_with(&key(1 << 40), <[u8]>::len).unwrap(), None, "{what}");
    if job.store.is_ordered() {
        for start in [key(3), key(1 << 41), vec![0; 16], vec![0xff; 16]] {
            for count in [1, 10, 1000] {
                let mut found = Vec::new();
                let records =
                    session.scan(&start, count, |value| found.push(value.to_vec())).unwrap();
                let expected: Vec<_> =
                    model.range(start.clone()..).take(count).map(|it| it.1.clone()).collect();
                assert_eq!(records, expected.len(), "{what}");
                assert!(found == expected, "{what}: another scan");
            }
        }
    }
}

fn keeps_what_it_was_given<S: Peer>(kinds: &[StoreKind], durabilities: &[Durability]) {
    for kind in kinds.iter().copied() {
        for durability in durabilities.iter().copied() {
            for value_bytes in VALUE_BYTES {
                // Where the ordinary temporary files lie is a plain file system, or `process` is all there is.
                let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
                exercise::<S>(&job(kind, directory.path(), durability, value_bytes));
            }
        }
    }
}

fn exercise<S: Peer>(job: &Job) {
    let mut model = Model::new();
    let store = S::open(job).unwrap();
    assert_holds(&store, job, &model, "empty");
    {
        let mut session = store.session();
        let mut put = |session: &mut S::Session, number, version| {
            let (key, value) = (key(number), value(number, version, job.value_bytes));
            let is_new = session.put(&key, &value).unwrap();
            let was_there = model.insert(key, value).is_some();
            assert!(!S::PUTS_KNOW || is_new != was_there, "{}", job.store);
        };
        (0..30).for_each(|number| put(&mut session, number, 0));
        (0..30).step_by(3).for_each(|number| put(&mut session, number, 1));
        let batch: Vec<_> =
            (20..40).map(|number| (key(number), value(number, 2, job.value_bytes))).collect();
        session.put_batch(&batch).unwrap();
        model.extend(batch);
        for number in (0..40).step_by(4) {
            assert!(session.delete(&key(number)).unwrap());
            model.remove(&key(number));
        }
        assert!(session.update(&key(1), |value| value[0] ^= 0xff).unwrap());
        model.get_mut(&key(1)).unwrap()[0] ^= 0xff;
        assert!(!session.update(&key(4), Vec::clear).unwrap());
    }
    assert_holds(&store, job, &model, "written");
    store.sync().unwrap();
    store.close().unwrap();
    let store = S::open(job).unwrap();
    assert_holds(&store, job, &model, "reopened");
    let store = store.compact(job).unwrap();
    assert_holds(&store, job, &model, "compacted");
    let added = (key(50), value(50, 3, job.value_bytes));
    store.session().put(&added.0, &added.1).unwrap();
    model.extend([added]);
    store.close().unwrap();
    let store = S::open(job).unwrap();
    assert_holds(&store, job, &model, "compacted and reopened");
    store.close().unwrap();
}

#[test]
fn chimera_keeps_what_it_was_given() {
    keeps_what_it_was_given::<Chimera>(&OURS, &[Durability::Window]);
}

#[test]
fn rocksdb_keeps_what_it_was_given() {
    keeps_what_it_was_given::<RocksDb>(&[StoreKind::Rocksdb], &DURABILITIES);
}

#[test]
fn lmdb_keeps_what_it_was_given() {
    keeps_what_it_was_given::<Lmdb>(&[StoreKind::Lmdb], &DURABILITIES);
}

#[test]
fn redb_keeps_what_it_was_given() {
    keeps_what_it_was_given::<Redb>(&[StoreKind::Redb], &DURABILITIES);
}

#[test]
fn fjall_keeps_what_it_was_given() {
    keeps_what_it_was_given::<Fjall>(&[StoreKind::Fjall], &DURABILITIES);
}

#[test]
fn an_error_names_the_store() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "").unwrap();
    let path = directory.path().join("file");
    let wrong = |store| job(store, &path, Durability::Window, 100);
    let messages = [
        RocksDb::open(&wrong(StoreKind::Rocksdb)).err(),
        Lmdb::open(&wrong(StoreKind::Lmdb)).err(),
        Redb::open(&wrong(StoreKind::Redb)).err(),
        Fjall::open(&wrong(StoreKind::Fjall)).err(),
    ];
    for (message, name) in messages.into_iter().zip(["rocksdb", "lmdb", "redb", "fjall"]) {
        let message = message.expect("it cannot be opened").to_string();
        assert!(message.starts_with(&format!("{name}: ")), "{message}");
    }
}
