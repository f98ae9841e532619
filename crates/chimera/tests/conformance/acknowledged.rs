//! Readers beside everything that moves records: no get, listing or scan gives an older value than was acknowledged before it
//! began, nor one that was not begun. Bounded by counts; `CHIMERA_TEST_STRESS_PUTS` makes it longer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chimera::{Db, EngineKind, ErrorKind, Options, Session};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{Records, assert_holds, at_once, number_of};
use crate::tools::{Chance, from_environment, open, scratch};

pub(crate) const TESTS: &[Test] = tests![readers_see_what_was_acknowledged];

/// Keys that are always there, for each writer.
const KEYS: u64 = 24;
const WRITERS: u64 = 2;
const READERS: u64 = 2;
/// Other keys come and go: so many of a writer are there at a time.
const GUESTS: u64 = 40;
/// Puts of a writer after which its session ends.
const SESSION_PUTS: u64 = 150;

/// How far a key's versions have come. A key has one writer.
#[derive(Default)]
struct Progress {
    begun: AtomicU64,
    /// Acknowledged, or seen by a reader: nobody may see less from then on.
    settled: AtomicU64,
}

impl Progress {
    /// What anybody who begins to read now must see, at least.
    fn least(&self) -> u64 {
        self.settled.load(Ordering::SeqCst)
    }

    /// A reader that began when `least` was settled has found this.
    fn verify(&self, configuration: &Configuration, number: u64, least: u64, found: Option<&[u8]>) {
        let found = found.unwrap_or_else(|| panic!("key {number} is missing, at {least} or later"));
        let version = configuration.version(number, found);
        let most = self.begun.load(Ordering::SeqCst);
        assert!(
            (least..=most).contains(&version),
            "key {number} has version {version}, of {least} to {most}"
        );
        self.settled.fetch_max(version, Ordering::SeqCst);
    }
}

/// Ends the other threads when its own one fails.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}

/// What all threads share.
struct Stress<'a> {
    configuration: &'a Configuration,
    db: &'a Db,
    puts: u64,
    keys: Vec<Progress>,
    writers_left: AtomicU64,
    /// A thread has failed.
    is_over: AtomicBool,
}

fn readers_see_what_was_acknowledged(configuration: &Configuration) {
    let options = configuration.options().reclaim_percent(20);
    stress(configuration, &options);
    if configuration.engine == EngineKind::Chameleon && configuration.name == "chameleon" {
        let protect =
            options.clone().chameleon(|it| it.get_protect(Some(Duration::ZERO)).dumps_max(2));
        stress(configuration, &protect);
        stress(configuration, &options.chameleon(|it| it.write_intensive(true)));
    }
}

fn stress(configuration: &Configuration, options: &Options) {
    let directory = scratch();
    let db = open(directory.path(), options);
    configuration.fill(&mut db.session(), 0..WRITERS * KEYS, 0);
    let stress = Stress {
        configuration,
        db: &db,
        puts: from_environment("CHIMERA_TEST_STRESS_PUTS", 10_000),
        keys: (0..WRITERS * KEYS).map(|_| Progress::default()).collect(),
        writers_left: AtomicU64::new(WRITERS),
        is_over: AtomicBool::new(false),
    };
    let guests: Vec<_> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
    at_once(WRITERS + READERS + 2, |thread| {
        let _alarm = Alarm(&stress.is_over);
        match thread {
            _ if thread < WRITERS => {
                let first_guest = stress.write(thread);
                guests[thread as usize].store(first_guest, Ordering::SeqCst);
                stress.writers_left.fetch_sub(1, Ordering::SeqCst);
            }
            _ if thread < WRITERS + READERS => stress.read(thread),
            _ if thread == WRITERS + READERS => stress.list(),
            _ => stress.maintain(),
        }
    });
    let mut expected = Records::new();
    for (number, key) in (0..).zip(&stress.keys) {
        expected.extend(configuration.records([number], key.least()));
    }
    for first in guests {
        let first = first.into_inner();
        expected.extend(configuration.records(first..first + GUESTS, 1));
    }
    assert_holds(&db, &expected);
    db.close().expect("nobody else has it");
    assert_holds(&open(directory.path(), options), &expected);
}

impl Stress<'_> {
    fn goes_on(&self) -> bool {
        self.writers_left.load(Ordering::SeqCst) > 0 && !self.is_over.load(Ordering::SeqCst)
    }

    /// Overwrites its own keys, while others come and go; the number of the first of those that stay.
    fn write(&self, writer: u64) -> u64 {
        let (mut chance, mut session) = (Chance::new(writer), self.db.session());
        let mut guest = (1 + writer) << 32;
        self.configuration.fill(&mut session, guest..guest + GUESTS, 1);
        for step in 1..=self.puts {
            let number = writer * KEYS + chance.below(KEYS);
            self.put(&mut session, number);
            if chance.below(3) == 0 {
                self.configuration.fill(&mut session, [guest + GUESTS], 1);
                let old = self.configuration.key(guest);
                assert!(session.delete(&old).expect("delete"), "guest {guest}");
                guest += 1;
            }
            if step % SESSION_PUTS == 0 {
                session = self.db.session();
            }
            if self.is_over.load(Ordering::SeqCst) {
                break;
            }
        }
        guest
    }

    fn put(&self, session: &mut Session, number: u64) {
        let key = &self.keys[number as usize];
        let version = key.begun.load(Ordering::SeqCst) + 1;
        key.begun.store(version, Ordering::SeqCst);
        self.configuration.fill(session, [number], version);
        key.settled.fetch_max(version, Ordering::SeqCst);
    }

    /// Gets of one key and of several.
    fn read(&self, reader: u64) {
        let (mut chance, mut session) = (Chance::new(reader), self.db.session());
        while self.goes_on() {
            let numbers = [0; 3].map(|_: u64| chance.below(WRITERS * KEYS));
            let first = &self.keys[numbers[0] as usize];
            let least = first.least();
            let found = session.get(self.configuration.key(numbers[0])).expect("get");
            first.verify(self.configuration, numbers[0], least, found.as_deref());
            if chance.below(4) == 0 {
                let least = numbers.map(|number| self.keys[number as usize].least());
                let keys = numbers.map(|number| self.configuration.key(number));
                let found = session.multi_get(&keys).expect("multi_get");
                for ((number, least), found) in numbers.into_iter().zip(least).zip(found) {
                    let key = &self.keys[number as usize];
                    key.verify(self.configuration, number, least, found.as_deref());
                }
            }
        }
    }

    /// Listings, and scans where there is an order.
    fn list(&self) {
        while self.goes_on() {
            let least: Vec<_> = self.keys.iter().map(Progress::least).collect();
            let mut found = BTreeMap::new();
            let listed = self.db.for_each(|key, value| {
                let number = number_of(key);
                let is_new = found.insert(number, value.to_vec()).is_none();
                // Also of the others: no key that was deleted is put again.
                assert!(is_new, "key {number} comes twice");
                true
            });
            listed.expect("for_each");
            self.verify_all(&least, &found);
            if self.db.stats().order.is_some() {
                let least: Vec<_> = self.keys.iter().map(Progress::least).collect();
                let records = self.db.scan(..).expect("scan").map(|record| record.expect("scan"));
                let found = records.map(|(key, value)| (number_of(&key), value)).collect();
                self.verify_all(&least, &found);
            }
        }
    }

    fn verify_all(&self, least: &[u64], found: &BTreeMap<u64, Vec<u8>>) {
        for ((number, key), least) in (0..).zip(&self.keys).zip(least) {
            let found = found.get(&number).map(Vec::as_slice);
            key.verify(self.configuration, number, *least, found);
        }
    }

    /// Everything that moves records or frees them.
    fn maintain(&self) {
        while self.goes_on() {
            match self.db.compact(10, None) {
                Err(error) if error.kind() != ErrorKind::Full => panic!("compact: {error}"),
                _ => {}
            }
            self.db.sync().expect("sync");
            let report = self.db.check(None);
            assert!(report.is_sound(), "{report:?}");
        }
    }
}
