//! What a sequence does, to a store and to the map that says what it must do.

use std::collections::BTreeMap;

use chimera::{Db, Session, Swap};
use proptest::prelude::*;

use super::Case;
use crate::tools::media::{SUPERBLOCK, word};
use crate::tools::{assert_sound, contents, key_of, open, scratch, value_of};

/// Keys that a sequence uses.
const KEYS: u64 = 60;

/// One step of a sequence. Numbers of keys are below [`KEYS`].
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Put(u64, u64),
    Get(u64),
    Delete(u64),
    /// Changes the byte at this position (modulo the length) of a value, and a second one this far on.
    Update(u64, usize, usize),
    FetchAdd(u64, usize, u64),
    /// Whether the expected value is the right one.
    Swap(u64, u64, bool),
    SwapWord(u64, usize, u64, bool),
    MultiGet(Vec<u64>),
    PutMany(u64, u64),
    DeleteMany(u64),
    ForEach,
    Check,
    /// A new session; whether the old one ends.
    NewSession(bool),
    /// Through `Db` instead of a session.
    OnDb(u64, u64),
    /// Whether in order.
    Reopen(bool),
}

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    let key = 0..KEYS;
    let version = 0_u64..1 << 40;
    prop_oneof![
        12 => (key.clone(), version.clone()).prop_map(|(key, value)| Operation::Put(key, value)),
        4 => key.clone().prop_map(Operation::Get),
        6 => key.clone().prop_map(Operation::Delete),
        4 => (key.clone(), any::<usize>(), 0_usize..20)
            .prop_map(|(key, at, far)| Operation::Update(key, at, far)),
        4 => (key.clone(), 0_usize..40, any::<u64>())
            .prop_map(|(key, at, delta)| Operation::FetchAdd(key, at, delta)),
        3 => (key.clone(), version.clone(), any::<bool>())
            .prop_map(|(key, value, right)| Operation::Swap(key, value, right)),
        3 => (key.clone(), 0_usize..40, any::<u64>(), any::<bool>())
            .prop_map(|(key, at, new, right)| Operation::SwapWord(key, at, new, right)),
        1 => prop::collection::vec(key.clone(), 0..40).prop_map(Operation::MultiGet),
        2 => (key.clone(), version.clone()).prop_map(|(key, value)| Operation::PutMany(key, value)),
        1 => key.clone().prop_map(Operation::DeleteMany),
        1 => Just(Operation::ForEach),
        1 => Just(Operation::Check),
        1 => any::<bool>().prop_map(Operation::NewSession),
        1 => (key, version).prop_map(|(key, value)| Operation::OnDb(key, value)),
        1 => any::<bool>().prop_map(Operation::Reopen),
    ]
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store, its sessions, and what must be in it.
struct Run<'a> {
    case: &'a Case,
    path: &'a std::path::Path,
    seed: u64,
    model: Model,
    db: Db,
    session: Session,
    /// Sessions that own blocks and do nothing.
    idle: Vec<Session>,
}

/// Runs a sequence on a new store.
pub(crate) fn run(case: &Case, sequence: &[Operation]) {
    let directory = scratch();
    let path = directory.path();
    let db = open(path, &case.options);
    let session = db.session();
    let seed = word(path, SUPERBLOCK, 24);
    let mut run = Run { case, path, seed, model: Model::new(), db, session, idle: Vec::new() };
    for operation in sequence {
        run.step(operation);
    }
    run.verify();
    run.reopen(true);
    run.verify();
}

impl Run<'_> {
    fn key(&self, number: u64) -> Vec<u8> {
        let mut key = key_of(number, self.case.key_bytes);
        if self.case.collide {
            // XXH3 of 17 to 32 bytes multiplies the first word, less what is added to it here, by the
            // second one: nothing times anything is nothing.
            let secret = u64::from_le_bytes([0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe]);
            key[..8].copy_from_slice(&secret.wrapping_add(self.seed).to_le_bytes());
            key[8..16].copy_from_slice(&number.to_le_bytes());
            let hash = |key: &[u8]| xxhash_rust::xxh3::xxh3_64_with_seed(key, self.seed);
            let other = [&key[..8], &[0; 8], &key[16..]].concat();
            assert_eq!(hash(&key), hash(&other), "the keys do not collide");
        }
        key
    }

    fn value(&self, version: u64) -> Vec<u8> {
        value_of(version, version, self.case.value_bytes)
    }

    fn step(&mut self, operation: &Operation) {
        match operation {
            Operation::Put(number, version) => self.put(*number, *version),
            Operation::Get(number) => {
                let key = self.key(*number);
                let found = self.session.get(&key).expect("get");
                assert_eq!(found.as_ref(), self.model.get(&key));
            }
            Operation::Delete(number) => self.delete(*number),
            Operation::Update(number, at, far) => self.update(*number, *at, *far),
            Operation::FetchAdd(number, at, delta) => self.fetch_add(*number, *at, *delta),
            Operation::Swap(number, version, right) => self.swap(*number, *version, *right),
            Operation::SwapWord(number, at, new, right) => {
                self.swap_word(*number, *at, *new, *right);
            }
            Operation::MultiGet(numbers) => {
                let keys: Vec<_> = numbers.iter().map(|number| self.key(*number)).collect();
                let expected: Vec<_> =
                    keys.iter().map(|key| self.model.get(key).cloned()).collect();
                assert_eq!(self.session.multi_get(&keys).expect("multi_get"), expected);
            }
            Operation::PutMany(from, version) => {
                (*from..KEYS).for_each(|number| self.put(number, version + number));
            }
            Operation::DeleteMany(from) => (*from..KEYS).for_each(|number| self.delete(number)),
            Operation::ForEach => assert_eq!(contents(&self.db), self.model),
            Operation::Check => assert_sound(&self.db),
            Operation::NewSession(ends) => {
                let old = std::mem::replace(&mut self.session, self.db.session());
                if !ends {
                    self.idle.push(old);
                }
            }
            Operation::OnDb(number, version) => {
                let (key, value) = (self.key(*number), self.value(*version));
                let is_new = self.db.put(&key, &value).expect("put");
                assert_eq!(is_new, self.model.insert(key.clone(), value.clone()).is_none());
                assert_eq!(self.db.get(&key).expect("get"), Some(value));
            }
            Operation::Reopen(in_order) => self.reopen(*in_order),
        }
    }

    fn put(&mut self, number: u64, version: u64) {
        let (key, value) = (self.key(number), self.value(version));
        let is_new = self.session.put(&key, &value).expect("put");
        assert_eq!(is_new, self.model.insert(key, value).is_none(), "whether {number} is new");
    }

    fn delete(&mut self, number: u64) {
        let key = self.key(number);
        let was_there = self.session.delete(&key).expect("delete");
        assert_eq!(was_there, self.model.remove(&key).is_some(), "whether {number} was there");
    }

    fn update(&mut self, number: u64, at: usize, far: usize) {
        let key = self.key(number);
        let change = |value: &mut Vec<u8>| {
            if !value.is_empty() {
                let length = value.len();
                value[at % length] ^= 0x5a;
                value[(at % length + far) % length] ^= 0xa5;
            }
        };
        let was_there = self.session.update(&key, change).expect("update");
        let expected = self.model.get_mut(&key);
        assert_eq!(was_there, expected.is_some());
        expected.into_iter().for_each(change);
    }

    fn fetch_add(&mut self, number: u64, at: usize, delta: u64) {
        let key = self.key(number);
        let outcome = self.session.fetch_add_u64(&key, at, delta);
        if at + 8 > self.case.value_bytes {
            outcome.expect_err("the field is not inside of the value");
            return;
        }
        let field = self.model.get_mut(&key).map(|value| &mut value[at..at + 8]);
        let before = field.map(|field| {
            let before = u64::from_le_bytes((&*field).try_into().expect("8 bytes"));
            field.copy_from_slice(&before.wrapping_add(delta).to_le_bytes());
            before
        });
        assert_eq!(outcome.expect("fetch_add_u64"), before);
    }

    fn swap(&mut self, number: u64, version: u64, right: bool) {
        let (key, new) = (self.key(number), self.value(version));
        let mut expected = self.model.get(&key).cloned().unwrap_or_else(|| new.clone());
        if !right && !expected.is_empty() {
            let last = expected.len() - 1;
            expected[last] ^= 1;
        }
        let swap = self.session.compare_and_swap(&key, &expected, &new).expect("swap");
        let outcome = match self.model.get_mut(&key) {
            None => Swap::Missing,
            Some(value) if *value == expected => {
                *value = new;
                Swap::Swapped
            }
            Some(_) => Swap::Different,
        };
        assert_eq!(swap, outcome);
    }

    fn swap_word(&mut self, number: u64, at: usize, new: u64, right: bool) {
        let key = self.key(number);
        let inside = at + 8 <= self.case.value_bytes;
        let field = self.model.get_mut(&key).filter(|_| inside).map(|value| &mut value[at..at + 8]);
        let before =
            field.as_ref().map(|field| u64::from_le_bytes((&**field).try_into().expect("8 bytes")));
        let expected = if right { before.unwrap_or(0) } else { before.unwrap_or(0) ^ 1 };
        let outcome = self.session.compare_and_swap_u64(&key, at, expected, new);
        if !inside {
            outcome.expect_err("the field is not inside of the value");
            return;
        }
        assert_eq!(outcome.expect("swap of a word"), before);
        if let (true, Some(field)) = (right, field) {
            field.copy_from_slice(&new.to_le_bytes());
        }
    }

    fn reopen(&mut self, in_order: bool) {
        // The handles go in any order: the last one closes the store.
        self.idle.clear();
        let options = self.case.options.clone().anonymous(1 << 20);
        let nothing = open(self.path, &options);
        let session = std::mem::replace(&mut self.session, nothing.session());
        let db = std::mem::replace(&mut self.db, nothing);
        if in_order {
            drop(session);
            db.close().expect("nobody else has it");
        } else {
            drop(db);
            drop(session);
        }
        self.db = open(self.path, &self.case.options);
        self.session = self.db.session();
    }

    /// Everything at rest.
    fn verify(&mut self) {
        assert_sound(&self.db);
        assert_eq!(contents(&self.db), self.model);
        assert_eq!(self.db.stats().records, self.model.len() as u64);
        for number in 0..KEYS {
            let key = self.key(number);
            assert_eq!(self.session.get(&key).expect("get").as_ref(), self.model.get(&key));
        }
    }
}
