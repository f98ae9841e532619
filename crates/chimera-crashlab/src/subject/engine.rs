//! [`Engine`]: any engine of Chimera, through `Db` and `Session`.

use std::sync::Arc;

use chimera::{Batch, Db, Error, Options, Session};
use chimera_pmem::Environment;

use super::{Abilities, EngineShape, Failure, Store, Subject, VALUE_BYTES, VALUE_WORDS, Value};
use crate::durability::{End, Loss};
use crate::simulated::{Machine, Simulated};

/// Where a store lies.
const PATH: &str = "store";

/// Any engine of Chimera.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    shape: EngineShape,
    options: Options,
}

impl Engine {
    /// With stores of this shape. Nothing runs in the background.
    pub(crate) fn new(shape: &EngineShape) -> Self {
        let options =
            shape.options().populate_ahead_bytes(0).reclaim_percent(0).recovery_threads(1);
        Self { shape: shape.clone(), options }
    }

    /// How its stores are opened.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    fn open_with(
        &self,
        machine: &Arc<Machine>,
        environment: &Arc<dyn Environment>,
        options: &Options,
    ) -> Result<EngineStore, Failure> {
        let db = Db::open_on(Simulated::new(machine), environment, PATH, options);
        let db = db.map_err(failure)?;
        Ok(EngineStore { sessions: Vec::new(), shape: self.shape.clone(), db })
    }
}

impl Subject for Engine {
    type Store = EngineStore;

    fn image_bytes(&self) -> u64 {
        self.shape.image_bytes()
    }

    fn keys(&self) -> u64 {
        self.shape.keys()
    }

    fn abilities(&self) -> Abilities {
        self.shape.abilities()
    }

    fn steps_tasks(&self) -> bool {
        self.shape.steps_tasks()
    }

    fn loss(&self, end: End) -> Loss {
        self.shape.loss(end)
    }

    fn unchecked_tail(&self) -> usize {
        self.shape.unchecked_tail()
    }

    fn open(
        &self,
        machine: &Arc<Machine>,
        environment: &Arc<dyn Environment>,
    ) -> Result<EngineStore, Failure> {
        self.open_with(machine, environment, &self.options)
    }

    fn salvage(
        &self,
        machine: &Arc<Machine>,
        environment: &Arc<dyn Environment>,
    ) -> Result<EngineStore, Failure> {
        self.open_with(machine, environment, &self.options.clone().salvage(true))
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::PoolFull { .. } => Failure::Full,
        error => Failure::Wrong(error.to_string()),
    }
}

/// An open store.
pub(crate) struct EngineStore {
    // Before `db`: dropped first.
    sessions: Vec<Option<Session<Simulated>>>,
    shape: EngineShape,
    db: Db<Simulated>,
}

impl EngineStore {
    /// The session with this number.
    fn session(&mut self, number: usize) -> &mut Session<Simulated> {
        if self.sessions.len() <= number {
            self.sessions.resize_with(number + 1, || None);
        }
        self.sessions[number].get_or_insert_with(|| self.db.session())
    }

    /// Whether a store that is ordered has all keys in their order, from either end.
    fn check_order(&self, records: u64) -> Result<(), Failure> {
        let Some(order) = self.db.stats().order else { return Ok(()) };
        if order.dump_damaged {
            let what = "closed in order, with a dump of the order that is not whole";
            return Err(Failure::Wrong(what.to_owned()));
        }
        let keys = |scan: &mut dyn Iterator<Item = chimera::Result<(Vec<u8>, Vec<u8>)>>| {
            scan.map(|record| record.map(|(key, _)| key)).collect::<chimera::Result<Vec<_>>>()
        };
        let forth = keys(&mut self.db.scan(..).map_err(failure)?).map_err(failure)?;
        let mut back = keys(&mut self.db.scan(..).map_err(failure)?.rev()).map_err(failure)?;
        back.reverse();
        let is_sorted = forth.is_sorted_by(|one, next| one < next);
        if !is_sorted || forth != back || forth.len() as u64 != records {
            let (forth, back) = (forth.len(), back.len());
            let what = format!(
                "{records} keys are there, and scans gave {forth} and {back}, in order: {is_sorted}"
            );
            return Err(Failure::Wrong(what));
        }
        Ok(())
    }

    /// Whether nothing is in use but what the records need. What a task was to find out is found out first.
    fn check_structure(&self) -> Result<(), Failure> {
        if self.shape.steps_tasks() {
            self.db.compact(1, None).map_err(failure)?;
        }
        let mut records = Vec::new();
        let listed = self.db.for_each(|key, value| {
            records.push((key.len(), value.len()));
            true
        });
        listed.map_err(failure)?;
        let found = self.db.inspect(None).details;
        self.shape.verify_structure(&found, &records).map_err(Failure::Wrong)
    }
}

impl EngineShape {
    /// The bytes of a key.
    pub(crate) fn key(&self, number: u64) -> Vec<u8> {
        let mut key = number.to_le_bytes().to_vec();
        key.resize(self.key_bytes(number), b'k');
        key
    }

    /// The bytes of a value, with as many more as follow from its words.
    pub(crate) fn value(&self, words: &Value) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let extra = self.extra_bytes();
        let more = extra[(words[1] % extra.len() as u64) as usize];
        bytes.extend((0..more).map(|at| filler(at, more)));
        bytes
    }
}

fn filler(at: usize, length: usize) -> u8 {
    (at * 7 + length) as u8 | 1
}

/// The words of a value; of one that is torn something that nobody wrote.
fn from_bytes(bytes: &[u8]) -> Value {
    let (words, more) = bytes.split_at(bytes.len().min(VALUE_BYTES));
    let mut value = [0; VALUE_WORDS];
    for (word, chunk) in value.iter_mut().zip(words.chunks_exact(8)) {
        *word = u64::from_le_bytes(chunk.try_into().expect("8 bytes"));
    }
    let is_filler = |(at, byte): (usize, &u8)| *byte == filler(at, more.len());
    if words.len() < VALUE_BYTES || !more.iter().enumerate().all(is_filler) {
        return [u64::MAX; VALUE_WORDS];
    }
    value
}

impl Store for EngineStore {
    fn put(&mut self, session: usize, key: u64, value: &Value) -> Result<bool, Failure> {
        let (key, value) = (self.shape.key(key), self.shape.value(value));
        self.session(session).put(&key, &value).map_err(failure)
    }

    fn get(&mut self, session: usize, key: u64) -> Result<Option<Value>, Failure> {
        let key = self.shape.key(key);
        self.session(session).get_with(&key, from_bytes).map_err(failure)
    }

    fn delete(&mut self, session: usize, key: u64) -> Result<bool, Failure> {
        let key = self.shape.key(key);
        self.session(session).delete(&key).map_err(failure)
    }

    fn add(
        &mut self,
        session: usize,
        key: u64,
        word: usize,
        delta: u64,
    ) -> Result<Option<u64>, Failure> {
        let key = self.shape.key(key);
        self.session(session).fetch_add_u64(&key, 8 * word, delta).map_err(failure)
    }

    fn replace(&mut self, session: usize, key: u64, value: &Value) -> Result<bool, Failure> {
        let (key, bytes) = (self.shape.key(key), self.shape.value(value));
        let change = |old: &mut Vec<u8>| bytes.clone_into(old);
        self.session(session).update(&key, change).map_err(failure)
    }

    fn write(&mut self, session: usize, writes: &[(u64, Option<Value>)]) -> Result<(), Failure> {
        let mut batch = Batch::new();
        for (key, value) in writes {
            let key = self.shape.key(*key);
            match value {
                Some(value) => batch.put(key, self.shape.value(value)),
                None => batch.delete(key),
            };
        }
        self.session(session).write(&batch).map_err(failure)
    }

    fn end_session(&mut self, session: usize) {
        if let Some(session) = self.sessions.get_mut(session) {
            *session = None;
        }
    }

    fn sync(&mut self) -> Result<(), Failure> {
        self.db.sync().map_err(failure)
    }

    fn compact(&mut self, percent: u32) -> Result<(), Failure> {
        self.db.compact(percent, None).map(drop).map_err(failure)
    }

    fn check_media(&mut self) -> Result<(), Failure> {
        match self.db.check(None).first_damage {
            Some(damage) => {
                let text = format!("check: {} at offset {}", damage.what, damage.at);
                Err(Failure::Wrong(text))
            }
            None => Ok(()),
        }
    }

    fn was_clean(&mut self) -> Option<bool> {
        Some(self.db.stats().recovery.clean)
    }

    fn check(&mut self, records: u64) -> Result<(), Failure> {
        self.check_media()?;
        let report = self.db.check(None);
        if report.records != records || report.index_entries != records {
            return Err(Failure::Wrong(format!(
                "{} records on media and {} in the index, where there are {records} keys",
                report.records, report.index_entries
            )));
        }
        self.check_order(records)?;
        self.check_structure()
    }

    fn close(mut self) -> Result<(), Failure> {
        self.sessions.clear();
        self.db.close().map_err(|failed| failure(failed.into()))
    }
}
