//! Keys and values of a configuration: each says what it is, and has the lengths that the store takes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use chimera::{Db, ErrorKind, Session};

use crate::configurations::Configuration;
use crate::tools::{self, key_of, mix, value_of};

/// What a store must hold.
pub(crate) type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// Bytes of every value, at least.
pub(crate) const VALUE_BYTES_MIN: usize = 24;

impl Configuration {
    /// Key number `number`. Begins with the number.
    pub(crate) fn key(&self, number: u64) -> Vec<u8> {
        let bytes = match self.sizes() {
            Some((bytes, _)) => bytes,
            None => 8 + (mix(number) % 24) as usize,
        };
        key_of(number, bytes)
    }

    /// Version `version` of the value of key `number`: no two are alike. Where values may have any size,
    /// most of them are small, and one in 32 is larger than many a page.
    pub(crate) fn value(&self, number: u64, version: u64) -> Vec<u8> {
        let chance = mix(number ^ version.rotate_left(32)) as usize;
        let bytes = match self.sizes() {
            Some((_, bytes)) => bytes,
            None if chance.is_multiple_of(32) => VALUE_BYTES_MIN + chance / 32 % 1500,
            None => VALUE_BYTES_MIN + chance / 32 % 40,
        };
        value_of(number, version, bytes)
    }

    /// The version of a value of key `number`.
    ///
    /// # Panics
    /// When nobody wrote this value.
    pub(crate) fn version(&self, number: u64, found: &[u8]) -> u64 {
        let version = word(found, 0);
        assert!(found == self.value(number, version), "a torn or foreign value of {number}");
        version
    }

    /// Opens a store that must open.
    pub(crate) fn open(&self, path: &Path) -> Db {
        tools::open(path, &self.options())
    }

    /// Puts version `version` of keys `numbers`.
    pub(crate) fn fill(
        &self,
        session: &mut Session,
        numbers: impl IntoIterator<Item = u64>,
        version: u64,
    ) {
        for number in numbers {
            let value = self.value(number, version);
            session.put(self.key(number), &value).expect("there is room");
        }
    }

    /// A closed store with version 1 of keys `0..count`; what it holds.
    pub(crate) fn filled_store(&self, path: &Path, count: u64) -> Records {
        let db = self.open(path);
        self.fill(&mut db.session(), 0..count, 1);
        db.close().expect("nobody else has it");
        self.records(0..count, 1)
    }

    /// Version `version` of keys `numbers`.
    pub(crate) fn records(&self, numbers: impl IntoIterator<Item = u64>, version: u64) -> Records {
        let record = |number| (self.key(number), self.value(number, version));
        numbers.into_iter().map(record).collect()
    }

    /// Puts new records until the store is full; adds them to `records`. Returns the number of the first key that
    /// found no room.
    pub(crate) fn fill_up(&self, session: &mut Session, records: &mut Records) -> u64 {
        for number in 0..1_000_000 {
            let (key, value) = (self.key(number), self.value(number, 1));
            match session.put(&key, &value) {
                Ok(is_new) => assert!(is_new && records.insert(key, value).is_none()),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                    return number;
                }
            }
        }
        panic!("{} bytes have room for a million records", self.full_bytes);
    }
}

/// The number that a key begins with.
pub(crate) fn number_of(key: &[u8]) -> u64 {
    word(key, 0)
}

/// The word at a position.
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// Runs `work(0)` .. `work(count - 1)` at once; a panic in one fails the test.
pub(crate) fn at_once(count: u64, work: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..count).map(|number| scope.spawn(move || work(number))).collect();
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

/// Ends the others also when a check fails.
pub(crate) struct End<'a>(pub(crate) &'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Puts and deletes keys `numbers` again and again.
pub(crate) fn come_and_go(
    configuration: &Configuration,
    db: &Db,
    numbers: Range<u64>,
    is_over: &AtomicBool,
) {
    let mut session = db.session();
    while !is_over.load(Ordering::Acquire) {
        configuration.fill(&mut session, numbers.clone(), 1);
        for number in numbers.clone() {
            assert!(session.delete(configuration.key(number)).expect("delete"));
        }
    }
}

/// Asserts that a store holds exactly `records`, by every way of reading it, and that it is sound.
pub(crate) fn assert_holds(db: &Db, records: &Records) {
    // Compared, not printed: there may be thousands.
    assert!(tools::contents(db) == *records, "the store does not hold what it must");
    assert_eq!(db.len(), records.len() as u64);
    let keys: Vec<_> = records.keys().collect();
    let found = db.session().multi_get(&keys).expect("no record is damaged");
    assert!(found.iter().map(Option::as_ref).eq(records.values().map(Some)));
    tools::assert_sound(db);
}
