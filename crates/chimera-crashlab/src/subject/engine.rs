//! [`Engine`]: any engine of Chimera, through `Db` and `Session`.

use std::sync::Arc;

use chimera::{Db, EngineKind, Error, Geometry, Options, RecordLayout, Session};
use chimera_pmem::Environment;
use serde::{Deserialize, Serialize};

use super::{Failure, Store, Subject, VALUE_WORDS, Value};
use crate::chance::Chance;
use crate::simulated::{Machine, Simulated};

/// Bytes of a value.
const VALUE_BYTES: u32 = 8 * VALUE_WORDS as u32;
/// Where a store lies.
const PATH: &str = "store";

/// An engine, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct EngineName(pub(crate) EngineKind);

impl TryFrom<String> for EngineName {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        name.parse().map(Self)
    }
}

impl From<EngineName> for String {
    fn from(name: EngineName) -> Self {
        name.0.to_string()
    }
}

/// What a store looks like: all that a test may vary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EngineShape {
    pub(crate) engine: EngineName,
    /// Records of any size.
    #[serde(default)]
    pub(crate) variable: bool,
    /// Without checksums.
    pub(crate) published_layout: bool,
    pub(crate) key_bytes: u32,
    pub(crate) keys: u64,
    /// Most blocks.
    pub(crate) blocks: u64,
    pub(crate) pages_per_block: u32,
    pub(crate) segment_bytes: u64,
    /// Of a segment of the index.
    pub(crate) index_segment_slots: u32,
}

impl EngineShape {
    /// A small store, so that slots are reused and segments added soon.
    pub(crate) fn random(engine: EngineKind, chance: &mut Chance) -> Self {
        let variable = chance.below(2) == 0;
        Self {
            engine: EngineName(engine),
            variable,
            published_layout: !variable && chance.below(8) == 0,
            key_bytes: if chance.below(4) == 0 { 16 } else { 8 },
            keys: 2 + chance.below(7),
            // A large value takes up to three.
            blocks: 2 + chance.below(if variable { 19 } else { 11 }),
            pages_per_block: if variable { 2 } else { 1 + chance.below(2) as u32 },
            segment_bytes: 8192,
            index_segment_slots: 8 << chance.below(2),
        }
    }
}

/// Any engine of Chimera.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    shape: EngineShape,
    options: Options,
}

impl Engine {
    /// With stores of this shape.
    pub(crate) fn new(shape: &EngineShape) -> Self {
        // Four records of keys of 8 bytes, three of 16.
        let geometry = Geometry {
            segment_bytes: shape.segment_bytes,
            page_bytes: 256,
            pages_per_block: shape.pages_per_block,
            ..Geometry::default()
        };
        let layout =
            if shape.published_layout { RecordLayout::Published } else { RecordLayout::Checked };
        let block_bytes = u64::from(geometry.page_bytes * geometry.pages_per_block);
        let options = Options::new()
            .engine(shape.engine.0)
            .geometry(geometry)
            .capacity_bytes(shape.blocks * block_bytes)
            .populate_ahead_bytes(0)
            .reclaim_percent(0)
            .recovery_threads(1)
            .huge_pages(false)
            .index_segment_slots(shape.index_segment_slots);
        let options = if shape.variable {
            options
        } else {
            options.fixed_size(shape.key_bytes, VALUE_BYTES).layout(layout)
        };
        Self { shape: shape.clone(), options }
    }
}

impl Engine {
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
        Ok(EngineStore {
            sessions: Vec::new(),
            key_bytes: self.shape.key_bytes as usize,
            variable: self.shape.variable,
            db,
        })
    }
}

impl Subject for Engine {
    type Store = EngineStore;

    fn image_bytes(&self) -> u64 {
        32 << 10
    }

    fn keys(&self) -> u64 {
        self.shape.keys
    }

    fn open(
        &self,
        machine: &Arc<Machine>,
        environment: &Arc<dyn Environment>,
    ) -> Result<EngineStore, Failure> {
        self.open_with(machine, environment, &self.options)
    }

    fn finds_damage(&self) -> bool {
        !self.shape.published_layout
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
    key_bytes: usize,
    variable: bool,
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

    /// The bytes of a key. Where they may be of any length, that follows from its number.
    fn key(&self, number: u64) -> Vec<u8> {
        let length = if self.variable { 8 + number % 5 * 7 } else { self.key_bytes as u64 };
        let mut key = number.to_le_bytes().to_vec();
        key.resize(length as usize, b'k');
        key
    }

    /// The bytes of a value, with some more where they may be of any length.
    fn to_bytes(&self, value: &Value) -> Vec<u8> {
        let mut bytes: Vec<u8> = value.iter().flat_map(|word| word.to_le_bytes()).collect();
        if self.variable {
            let more = MORE_BYTES[(value[1] % MORE_BYTES.len() as u64) as usize];
            bytes.extend((0..more).map(|at| filler(at, more)));
        }
        bytes
    }
}

/// Bytes after the words of a value: none, some, so many that a page has one record, so many that a
/// record needs a block, and so many that it needs several.
const MORE_BYTES: [usize; 10] = [0, 0, 0, 1, 13, 40, 150, 220, 450, 700];

fn filler(at: usize, length: usize) -> u8 {
    (at * 7 + length) as u8 | 1
}

/// The words of a value; of one that is torn something that nobody wrote.
fn from_bytes(bytes: &[u8]) -> Value {
    let (words, more) = bytes.split_at(bytes.len().min(VALUE_BYTES as usize));
    let mut value = [0; VALUE_WORDS];
    for (word, chunk) in value.iter_mut().zip(words.chunks_exact(8)) {
        *word = u64::from_le_bytes(chunk.try_into().expect("8 bytes"));
    }
    let is_filler = |(at, byte): (usize, &u8)| *byte == filler(at, more.len());
    if words.len() < VALUE_BYTES as usize || !more.iter().enumerate().all(is_filler) {
        return [u64::MAX; VALUE_WORDS];
    }
    value
}

impl Store for EngineStore {
    fn put(&mut self, session: usize, key: u64, value: &Value) -> Result<bool, Failure> {
        let (key, value) = (self.key(key), self.to_bytes(value));
        self.session(session).put(&key, &value).map_err(failure)
    }

    fn get(&mut self, session: usize, key: u64) -> Result<Option<Value>, Failure> {
        let key = self.key(key);
        self.session(session).get_with(&key, from_bytes).map_err(failure)
    }

    fn delete(&mut self, session: usize, key: u64) -> Result<bool, Failure> {
        let key = self.key(key);
        self.session(session).delete(&key).map_err(failure)
    }

    fn add(
        &mut self,
        session: usize,
        key: u64,
        word: usize,
        delta: u64,
    ) -> Result<Option<u64>, Failure> {
        let key = self.key(key);
        self.session(session).fetch_add_u64(&key, 8 * word, delta).map_err(failure)
    }

    fn replace(&mut self, session: usize, key: u64, value: &Value) -> Result<bool, Failure> {
        let (key, bytes) = (self.key(key), self.to_bytes(value));
        let change = |old: &mut Vec<u8>| bytes.clone_into(old);
        self.session(session).update(&key, change).map_err(failure)
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
        Ok(())
    }

    fn has_unchecked_values(&mut self) -> bool {
        self.db.check(None).values_unchecked > 0
    }

    fn close(mut self) -> Result<(), Failure> {
        self.sessions.clear();
        self.db.close().map_err(|failed| failure(failed.into()))
    }
}
