//! All sessions at the same few keys.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chimera::baselines::RecordLayout;
use chimera::{Options, VerifyReads};

use crate::tools::{Chance, assert_sound, contents, key, open, scratch, value, version_of};
use crate::{at_once, options};

const KEYS: u64 = 4;

/// Whatever is read was written by somebody, whole.
fn hot_keys(threads: u64, options: &Options) {
    let directory = scratch();
    let db = open(directory.path(), options);
    at_once(threads, |thread| {
        let mut session = db.session();
        let mut chance = Chance::new(thread);
        for step in 0..40_000 {
            let number = chance.below(KEYS);
            let version = thread << 32 | step;
            match chance.below(10) {
                0..5 => drop(session.put(key(number), value(number, version)).expect("put")),
                5 => drop(session.delete(key(number)).expect("delete")),
                6 => {
                    let new = value(number, version);
                    let change = |old: &mut Vec<u8>| {
                        version_of(number, old);
                        old.copy_from_slice(&new);
                    };
                    session.update(key(number), change).expect("update");
                }
                7 => {
                    let keys: Vec<_> = (0..KEYS).map(key).collect();
                    for (number, found) in (0..).zip(session.multi_get(&keys).expect("multi_get")) {
                        if let Some(found) = found {
                            assert!(version_of(number, &found) >> 32 < threads);
                        }
                    }
                }
                _ => {
                    let found = session.get(key(number)).expect("get");
                    found.inspect(|found| assert!(version_of(number, found) >> 32 < threads));
                }
            }
        }
    });
    assert!(contents(&db).len() as u64 <= KEYS);
    assert_sound(&db);
}

#[test]
fn two_sessions_at_the_same_keys() {
    hot_keys(2, &options());
}

#[test]
fn eight_sessions_at_the_same_keys() {
    hot_keys(8, &options());
}

#[test]
fn four_sessions_at_the_same_keys_in_the_published_layout() {
    hot_keys(4, &options().viper(|viper| viper.layout(RecordLayout::Published)));
}

/// Without checksums to fall back on, versions of pages alone keep readers from torn values.
#[test]
fn four_sessions_at_the_same_keys_without_verification() {
    hot_keys(4, &options().verify_reads(VerifyReads::Never));
}

/// Each key has one writer: no reader ever sees an older value after a newer one, nor none at all.
fn monotonic(options: &Options) {
    let directory = scratch();
    let db = open(directory.path(), options);
    let (writers, readers, versions) = (2, 3, 60_000);
    for number in 0..writers {
        db.put(key(number), value(number, 0)).expect("put");
    }
    let done = AtomicU64::new(0);
    at_once(writers + readers, |thread| {
        let mut session = db.session();
        if thread < writers {
            for version in 1..=versions {
                session.put(key(thread), value(thread, version)).expect("put");
            }
            done.fetch_add(1, Ordering::Release);
            return;
        }
        let mut seen = vec![0; writers as usize];
        while done.load(Ordering::Acquire) < writers {
            for number in 0..writers {
                let found = session.get(key(number)).expect("get").expect("it is always there");
                let version = version_of(number, &found);
                let before = std::mem::replace(&mut seen[number as usize], version);
                assert!(before <= version, "key {number} went from {before} back to {version}");
            }
        }
    });
    for number in 0..writers {
        assert_eq!(db.get(key(number)).expect("get"), Some(value(number, versions)));
    }
    assert_sound(&db);
}

#[test]
fn readers_never_go_back_in_time() {
    monotonic(&options());
}

#[test]
fn readers_never_go_back_in_time_in_the_published_layout() {
    monotonic(&options().viper(|viper| viper.layout(RecordLayout::Published)));
}

/// Two fields of a value change together, by updates that move the record and by ones in place of
/// another field: no reader sees one without the other.
#[test]
fn updates_in_place_and_by_copy_mix() {
    let directory = scratch();
    let db = open(directory.path(), &options());
    db.put(key(1), [0; 24]).expect("put");
    let done = AtomicBool::new(false);
    let rounds = 20_000;
    let word = |value: &[u8], at: usize| {
        u64::from_le_bytes(value[at..at + 8].try_into().expect("8 bytes"))
    };
    at_once(4, |thread| {
        let mut session = db.session();
        match thread {
            0 => {
                for _ in 0..rounds {
                    let both = |value: &mut Vec<u8>| {
                        for at in [0, 8] {
                            let new = word(value, at) + 1;
                            value[at..at + 8].copy_from_slice(&new.to_le_bytes());
                        }
                    };
                    assert!(session.update(key(1), both).expect("update"));
                }
                done.store(true, Ordering::Release);
            }
            1 => {
                for before in 0..rounds {
                    let found = session.fetch_add_u64(key(1), 16, 1).expect("in place");
                    assert_eq!(found, Some(before), "an update was lost");
                }
            }
            _ => {
                while !done.load(Ordering::Acquire) {
                    let found = session.get(key(1)).expect("get").expect("it is there");
                    assert_eq!(word(&found, 0), word(&found, 8), "half of an update");
                }
            }
        }
    });
    let found = db.get(key(1)).expect("get").expect("it is there");
    assert_eq!([0, 8, 16].map(|at| word(&found, at)), [rounds; 3]);
    assert_sound(&db);
}
