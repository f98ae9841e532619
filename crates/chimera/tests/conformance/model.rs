//! Random sequences of operations against a map that says what each must do.

mod operations;

use chimera::{Db, Result, Session, Swap};
use proptest::collection::vec;
use proptest::test_runner::{Config, TestRunner};

use self::operations::{KEYS, Operation, operation};
use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{Records, assert_holds};
use crate::tools::{
    assert_sound, copy_store, from_environment, key_of, mix, open, scratch, value_of,
};

pub(crate) const TESTS: &[Test] = tests![
    sequences_of_operations_do_what_a_map_does,
    the_same_while_space_is_reclaimed: needs reclaim,
    the_same_through_the_store_without_a_session,
];

/// Who does the operations.
#[derive(Clone, Copy)]
enum By {
    Session,
    Store,
}

/// Runs random sequences. Shorter ones that fail as well are searched for.
fn check(configuration: &Configuration, by: By, reclaim_percent: u32) {
    let cases = from_environment("CHIMERA_TEST_MODEL_CASES", 32) as u32;
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let sequences = vec(operation(), 1..250);
    let outcome = TestRunner::new(config).run(&sequences, |sequence: Vec<Operation>| {
        let directory = scratch();
        let mut run = Run::new(configuration, directory.path(), by, reclaim_percent);
        for operation in &sequence {
            run.step(operation);
        }
        run.verify();
        run.reopen(End::Close);
        run.verify();
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{}: {error}", configuration.name);
    }
}

fn sequences_of_operations_do_what_a_map_does(configuration: &Configuration) {
    check(configuration, By::Session, 0);
}

fn the_same_while_space_is_reclaimed(configuration: &Configuration) {
    check(configuration, By::Session, 1);
}

fn the_same_through_the_store_without_a_session(configuration: &Configuration) {
    check(configuration, By::Store, 0);
}

/// How a store ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Close,
    Drop,
    /// Only its files are left, as they are.
    Kill,
}

/// A store, its session, and what must be in it.
struct Run<'a> {
    configuration: &'a Configuration,
    directory: &'a std::path::Path,
    by: By,
    reclaim_percent: u32,
    /// How often the store was killed.
    lives: u32,
    model: Records,
    /// Both there but while the store is opened again.
    open: Option<(Db, Session)>,
}

impl<'a> Run<'a> {
    fn new(
        configuration: &'a Configuration,
        directory: &'a std::path::Path,
        by: By,
        reclaim_percent: u32,
    ) -> Self {
        let model = Records::new();
        let mut run =
            Self { configuration, directory, by, reclaim_percent, lives: 0, model, open: None };
        run.open();
        run
    }

    fn open(&mut self) {
        // A store that is killed is copied: nothing may move in the background then.
        let options = match self.reclaim_percent {
            0 => self.configuration.still(),
            percent => self.configuration.options().reclaim_percent(percent),
        };
        let options = options.reclaim_bytes_per_second(u64::MAX);
        let db = open(&self.directory.join(self.lives.to_string()), &options);
        let session = db.session();
        self.open = Some((db, session));
    }

    fn db(&self) -> &Db {
        &self.open.as_ref().expect("open").0
    }

    fn session(&mut self) -> &mut Session {
        &mut self.open.as_mut().expect("open").1
    }

    /// Keys of a byte and more, where they may have any size.
    fn key(&self, number: u64) -> Vec<u8> {
        match self.configuration.sizes() {
            Some((bytes, _)) => key_of(number, bytes),
            None => key_of(number, 1 + mix(number) as usize % 40),
        }
    }

    /// Values of any length, where they may have any size: none, a few bytes, more than a page.
    fn value(&self, version: u64) -> Vec<u8> {
        let chance = mix(version) as usize;
        let bytes = match self.configuration.sizes() {
            Some((_, bytes)) => bytes,
            None => [0, chance % 16, 24, 16 + chance % 50, chance % 300, chance % 3000]
                [chance / 7919 % 6],
        };
        value_of(version, version, bytes)
    }

    fn step(&mut self, operation: &Operation) {
        match operation {
            Operation::Put(number, version) => self.put(*number, *version),
            Operation::Get(number) => self.get(*number),
            Operation::Delete(number) => self.delete(*number),
            Operation::Update(number, at, far) => self.update(*number, *at, *far),
            Operation::Replace(number, version) => self.replace(*number, *version),
            Operation::FetchAdd(number, at, delta) => self.fetch_add(*number, *at, *delta),
            Operation::Swap(number, version, right) => self.swap(*number, *version, *right),
            Operation::SwapWord(number, at, new, right) => {
                self.swap_word(*number, *at, *new, *right);
            }
            Operation::MultiGet(numbers) => {
                let keys: Vec<_> = numbers.iter().map(|number| self.key(*number)).collect();
                let expected: Vec<_> = keys.iter().map(|it| self.model.get(it).cloned()).collect();
                assert_eq!(self.session().multi_get(&keys).expect("multi_get"), expected);
            }
            Operation::MultiPut(numbers, version) => self.multi_put(numbers, *version),
            Operation::PutMany(from, version) => {
                (*from..KEYS).for_each(|number| self.put(number, version + number));
            }
            Operation::DeleteMany(from) => (*from..KEYS).for_each(|number| self.delete(number)),
            Operation::Iterate => self.iterate(),
            Operation::NewSession => {
                let session = self.db().session();
                *self.session() = session;
            }
            Operation::Compact => self.compact(),
            Operation::Reopen(end) => self.reopen(*end),
        }
    }

    /// Keys may come twice: the last value stays.
    fn multi_put(&mut self, numbers: &[u64], version: u64) {
        let versions = (version..).zip(numbers);
        let records: Vec<_> =
            versions.map(|(version, number)| (self.key(*number), self.value(version))).collect();
        let before = self.model.len();
        self.model.extend(records.iter().cloned());
        let inserted = match self.by {
            By::Session => self.session().multi_put(&records),
            By::Store => self.db().multi_put(&records),
        };
        assert_eq!(inserted.expect("multi_put"), (self.model.len() - before) as u64);
    }

    fn get(&mut self, number: u64) {
        let key = self.key(number);
        let (found, is_there) = match self.by {
            By::Session => (self.session().get(&key), self.session().contains_key(&key)),
            By::Store => (self.db().get(&key), self.db().contains_key(&key)),
        };
        assert_eq!(found.expect("get").as_ref(), self.model.get(&key));
        assert_eq!(is_there.expect("contains_key"), self.model.contains_key(&key));
    }

    fn put(&mut self, number: u64, version: u64) {
        let (key, value) = (self.key(number), self.value(version));
        let is_new = match self.by {
            By::Session => self.session().put(&key, &value),
            By::Store => self.db().put(&key, &value),
        };
        let was_there = self.model.insert(key, value).is_some();
        assert_eq!(is_new.expect("put"), !was_there, "whether {number} is new");
    }

    fn delete(&mut self, number: u64) {
        let key = self.key(number);
        let was_there = match self.by {
            By::Session => self.session().delete(&key),
            By::Store => self.db().delete(&key),
        };
        let expected = self.model.remove(&key).is_some();
        assert_eq!(was_there.expect("delete"), expected, "whether {number} was there");
    }

    /// Changes two bytes, or one.
    fn update(&mut self, number: u64, at: usize, far: usize) {
        self.change(number, |value| {
            if !value.is_empty() {
                let length = value.len();
                value[at % length] ^= 0x5a;
                value[(at % length + far) % length] ^= 0xa5;
            }
        });
    }

    /// Changes everything, and the length where that is possible.
    fn replace(&mut self, number: u64, version: u64) {
        let new = self.value(version);
        self.change(number, |value| value.clone_from(&new));
    }

    fn change(&mut self, number: u64, change: impl Fn(&mut Vec<u8>)) {
        let key = self.key(number);
        let was_there = match self.by {
            By::Session => self.session().update(&key, &change),
            By::Store => self.db().update(&key, &change),
        };
        let expected = self.model.get_mut(&key);
        assert_eq!(was_there.expect("update"), expected.is_some());
        expected.into_iter().for_each(change);
    }

    fn fetch_add(&mut self, number: u64, at: usize, delta: u64) {
        let key = self.key(number);
        let outcome = match self.by {
            By::Session => self.session().fetch_add_u64(&key, at, delta),
            By::Store => self.db().fetch_add_u64(&key, at, delta),
        };
        self.word_changed(&key, at, outcome, |word| Some(word.wrapping_add(delta)));
    }

    fn swap_word(&mut self, number: u64, at: usize, new: u64, right: bool) {
        let key = self.key(number);
        let field = self.model.get(&key).and_then(|value| value.get(at..at + 8));
        let there = field.map_or(0, |field| u64::from_le_bytes(field.try_into().expect("8 bytes")));
        let expected = if right { there } else { there ^ 1 };
        let outcome = self.session().compare_and_swap_u64(&key, at, expected, new);
        self.word_changed(&key, at, outcome, |word| (word == expected).then_some(new));
    }

    /// Checks what came of a change of a word, and makes it in the model.
    fn word_changed(
        &mut self,
        key: &[u8],
        at: usize,
        outcome: Result<Option<u64>>,
        change: impl Fn(u64) -> Option<u64>,
    ) {
        let fixed = self.configuration.sizes().map(|(_, bytes)| bytes);
        let length = self.model.get(key).map(Vec::len).or(fixed);
        if length.is_some_and(|length| at + 8 > length) {
            outcome.expect_err("the field is not inside of the value");
            return;
        }
        let field = self.model.get_mut(key).map(|value| &mut value[at..at + 8]);
        let before = field.map(|field| {
            let before = u64::from_le_bytes((&*field).try_into().expect("8 bytes"));
            if let Some(new) = change(before) {
                field.copy_from_slice(&new.to_le_bytes());
            }
            before
        });
        assert_eq!(outcome.expect("a change of a word"), before);
    }

    fn swap(&mut self, number: u64, version: u64, right: bool) {
        let (key, new) = (self.key(number), self.value(version));
        let mut expected = self.model.get(&key).cloned().unwrap_or_else(|| new.clone());
        if let (false, Some(last)) = (right, expected.last_mut()) {
            *last ^= 1;
        }
        let swap = match self.by {
            By::Session => self.session().compare_and_swap(&key, &expected, &new),
            By::Store => self.db().compare_and_swap(&key, &expected, &new),
        };
        let outcome = match self.model.get_mut(&key) {
            None => Swap::Missing,
            Some(value) if *value == expected => {
                *value = new;
                Swap::Swapped
            }
            Some(_) => Swap::Different,
        };
        assert_eq!(swap.expect("swap"), outcome);
    }

    /// Listings at rest.
    fn iterate(&mut self) {
        let all: Vec<_> = self.db().iter().collect::<Result<_>>().expect("no damage");
        assert_eq!(all.len(), self.model.len(), "a key comes twice, or not at all");
        assert!(all.into_iter().collect::<Records>() == self.model);
        let keys = self.db().keys().collect::<Result<Vec<_>>>().expect("no damage");
        assert_eq!(keys.len(), self.model.len());
        assert!(keys.iter().all(|key| self.model.contains_key(key)));
        assert_eq!(self.db().len(), self.model.len() as u64);
        assert_eq!(self.db().is_empty(), self.model.is_empty());
        assert_sound(self.db());
    }

    fn compact(&mut self) {
        self.db().compact(1, None).expect("compaction");
    }

    fn reopen(&mut self, end: End) {
        let (db, session) = self.open.take().expect("open");
        match end {
            End::Close => {
                drop(session);
                db.close().expect("nobody else has it");
            }
            End::Kill if self.reclaim_percent == 0 => {
                let path = |life: u32| self.directory.join(life.to_string());
                copy_store(&path(self.lives), &path(self.lives + 1));
                self.lives += 1;
                drop((db, session));
            }
            End::Drop | End::Kill => drop((db, session)),
        }
        self.open();
    }

    /// Everything at rest.
    fn verify(&mut self) {
        assert_holds(self.db(), &self.model);
        (0..KEYS).for_each(|number| self.get(number));
        self.iterate();
    }
}
