//! Opening a store made of hostile files, and using it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use chimera::{
    Db, Error, ExportOptions, Options, Result, Session, StreamReader, Swap, VerifyReads,
};
use chimera_pmem::environment::{FileProvider, MemoryFiles, OpenMode, SteppedEnvironment};
use chimera_pmem::{Environment, Medium};

use super::damage::{Change, Step};
use super::format::{SUPERBLOCK_BYTES, Shape};
use super::image::{Image, key_of, value_of};
use super::input::Input;
use crate::file_memory::FileMemory;

/// Bytes by which the files of an image may grow, all together.
const GROWTH_BYTES: u64 = 96 << 10;
const STORE: &str = "store";
/// Times that a store is closed and opened again in between: each takes as long as many other steps.
const REOPENS_MAX: usize = 4;

type Store = Db<FileMemory>;

/// How a store is opened.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    salvage: bool,
    verify_at_open: bool,
    medium: Medium,
    /// Most bytes of all that is mapped.
    bytes_max: u64,
    options: Options,
}

impl Setting {
    pub(super) fn new(input: &mut Input<'_>) -> Self {
        let bits = input.byte();
        let has = |bit: u8| bits >> bit & 1 == 1;
        let (salvage, verify_at_open) = (has(0), !has(1));
        let options = Options::new()
            .create(!has(7))
            .salvage(salvage)
            .verify_at_open(verify_at_open)
            .verify_reads(if has(2) { VerifyReads::Never } else { VerifyReads::Always })
            .populate_ahead_bytes(if has(5) { 4096 } else { 0 })
            .recovery_threads(1 + usize::from(has(6)))
            .huge_pages(false)
            .viper(|viper| viper.index_segment_slots(16));
        let medium = if has(4) { Medium::Tmpfs } else { Medium::Simulated };
        Self { salvage, verify_at_open, medium, bytes_max: 0, options }
    }

    fn open(&self, files: &Arc<MemoryFiles>, read_only: bool) -> Result<Store> {
        let environment: Arc<dyn Environment> =
            Arc::new(SteppedEnvironment::with_files(1, Arc::clone(files) as Arc<dyn FileProvider>));
        let memory = FileMemory::new(self.bytes_max, self.medium);
        let options = self.options.clone().read_only(read_only);
        let outcome = Db::open_on(memory, &environment, STORE, &options);
        if let Err(error) = &outcome {
            let text = error.to_string();
            assert!(text.len() > 20, "an error that says nothing: {text}");
        }
        outcome
    }
}

/// What a store made of an image that must be in order has.
#[cfg(test)]
pub(super) fn contents_of(image: &Image) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (setting, files) = prepare(Setting::new(&mut Input::new(&[])), image);
    let db = setting.open(&files, true).expect("a store in order");
    assert!(db.check(None).is_sound());
    contents(&db).expect("nothing is damaged")
}

/// Opens the store for reading, then for writing; takes the steps; opens it again.
pub(super) fn exercise(setting: Setting, image: &Image, steps: &[Step]) {
    let (setting, files) = prepare(setting, image);
    if let Ok(db) = setting.open(&files, true) {
        let contents = contents(&db);
        // A store that was read and verified as a whole has nothing wrong, but perhaps one of two pages of its superblock.
        let first_damage = db.check(None).first_damage;
        let sound = first_damage.is_none_or(|damage| damage.at < SUPERBLOCK_BYTES as u64);
        assert!(contents.is_some() && sound || setting.salvage || !setting.verify_at_open);
    }
    let Ok(mut db) = setting.open(&files, false) else { return };
    let mut model = Model::new(shape_of(&db, image), setting.verify_at_open && !setting.salvage);
    model.read(&db);
    for (lives, steps) in steps.split(|step| *step == Step::Reopen).enumerate() {
        if lives > 0 && lives <= REOPENS_MAX {
            match reopen(&setting, &files, &model, db) {
                Some(again) => db = again,
                None => return,
            }
        }
        let mut session = db.session();
        for step in steps {
            match *step {
                Step::Key { number, change } => model.change(&mut session, number, change),
                Step::Compact { percent } => model.compact(&db, percent),
                Step::Export => model.export(&db),
                Step::Look | Step::Reopen => model.verify(&db),
            }
        }
    }
    reopen(&setting, &files, &model, db);
}

/// What keys and values of a store are made from.
fn shape_of(db: &Store, image: &Image) -> Shape {
    let stats = db.stats();
    let base = image.shape().unwrap_or(super::image::BASES[0].shape);
    Shape { key_bytes: stats.key_bytes as usize, value_bytes: stats.value_bytes as usize, ..base }
}

/// Closes a store and opens it again, unless that is refused for a reason: with what is known in it.
fn reopen(setting: &Setting, files: &Arc<MemoryFiles>, model: &Model, db: Store) -> Option<Store> {
    model.verify(&db);
    if let Err(error) = db.close() {
        panic!("a store in memory is not closed: {error}");
    }
    match setting.open(files, false) {
        Ok(db) => {
            model.verify(&db);
            Some(db)
        }
        Err(error) => {
            assert!(!model.strict && !setting.salvage, "does not open again: {error}");
            None
        }
    }
}

/// Files in memory with the image in them, and room to grow.
fn prepare(mut setting: Setting, image: &Image) -> (Setting, Arc<MemoryFiles>) {
    let bytes: usize = image.files.values().map(Vec::len).sum();
    setting.bytes_max = (bytes as u64 + GROWTH_BYTES).next_multiple_of(4096);
    let files = Arc::new(MemoryFiles::with_capacity(setting.bytes_max));
    files.create_directory(Path::new(STORE)).expect("a directory");
    for (name, bytes) in &image.files {
        let path = Path::new(STORE).join(name);
        let file = files.open(&path, OpenMode::CreateNew).expect("a new file");
        file.write_at(0, bytes).expect("images are small");
    }
    (setting, files)
}

/// Everything, unless something is damaged.
fn contents(db: &Store) -> Option<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut all = BTreeMap::new();
    let listed = db.for_each(|key, value| {
        assert!(all.insert(key.to_vec(), value.to_vec()).is_none(), "a key comes twice");
        true
    });
    match listed {
        Ok(()) => Some(all),
        Err(Error::Corrupted { .. }) => None,
        Err(error) => panic!("listing: {error}"),
    }
}

/// What a key has: a value, or none.
type Stored = Option<Vec<u8>>;

/// What must be in the store.
struct Model {
    shape: Shape,
    /// Everything was verified when the store was opened: from here on nothing is damaged.
    strict: bool,
    /// What is known of keys.
    known: BTreeMap<Vec<u8>, Stored>,
    /// Keys of which nothing is known any more: an operation found damage.
    doubtful: BTreeSet<Vec<u8>>,
}

impl Model {
    fn new(shape: Shape, strict: bool) -> Self {
        Self { shape, strict, known: BTreeMap::new(), doubtful: BTreeSet::new() }
    }

    /// Takes what the store lists for true.
    fn read(&mut self, db: &Store) {
        let contents = contents(db);
        assert!(contents.is_some() || !self.strict, "a verified store is damaged");
        if self.strict {
            let contents = contents.into_iter().flatten();
            self.known = contents.map(|(key, value)| (key, Some(value))).collect();
        }
    }

    /// What is known of a key before a step; reads it where that is nothing.
    fn before(&mut self, session: &mut Session<FileMemory>, key: &[u8]) -> Option<Stored> {
        if let Some(known) = self.known.get(key) {
            return Some(known.clone());
        }
        if self.doubtful.contains(key) {
            return None;
        }
        let found = session.get(key).ok()?;
        assert!(found.is_none() || !self.strict, "a record that was not listed");
        Some(found)
    }

    fn change(&mut self, session: &mut Session<FileMemory>, number: u8, change: Change) {
        let shape = self.shape;
        let key = key_of(&shape, number);
        let before = self.before(session, &key);
        let was_there = before.as_ref().map(Option::is_some);
        // What was acknowledged, if anything: the value afterwards.
        let after: Result<Option<Stored>> = match change {
            Change::Put { version, .. } => {
                let value = value_of(&shape, number, version);
                session.put(&key, &value).map(|is_new| {
                    assert!(was_there.is_none_or(|was_there| was_there != is_new));
                    Some(Some(value))
                })
            }
            Change::Delete => session.delete(&key).map(|deleted| {
                assert!(was_there.is_none_or(|was_there| was_there == deleted));
                Some(None)
            }),
            Change::Update { version, .. } => {
                let value = value_of(&shape, number, version);
                session.update(&key, |old| old.clone_from(&value)).map(|updated| {
                    assert!(was_there.is_none_or(|was_there| was_there == updated));
                    Some(updated.then_some(value))
                })
            }
            Change::Add { at, delta, .. } => {
                let at = usize::from(at);
                session.fetch_add_u64(&key, at, delta).map(|old| {
                    let mut value = before.clone()?;
                    assert_eq!(old.is_some(), value.is_some());
                    if let (Some(old), Some(value)) = (old, &mut value) {
                        let new = old.wrapping_add(delta).to_le_bytes();
                        assert_eq!(value[at..at + 8], old.to_le_bytes());
                        value[at..at + 8].copy_from_slice(&new);
                    }
                    Some(value)
                })
            }
            Change::Swap { version, .. } => {
                let new = value_of(&shape, number, version);
                let expected = before.clone().flatten().unwrap_or_else(|| new.clone());
                session.compare_and_swap(&key, &expected, &new).map(|swap| match swap {
                    Swap::Swapped => Some(Some(new)),
                    Swap::Missing => Some(None),
                    Swap::Different => {
                        assert!(before.is_none(), "a value that nobody has changed");
                        None
                    }
                })
            }
        };
        self.note(key, after, before);
    }

    fn compact(&self, db: &Store, percent: u8) {
        match db.compact(percent.into(), None) {
            // A hash can have too many keys.
            Ok(_) | Err(Error::Poisoned { .. } | Error::KeyCollisions) => {}
            Err(Error::Corrupted { what, .. }) => {
                assert!(!self.strict || what.contains("leaves no room"), "compact: {what}");
            }
            Err(error) => panic!("compact: {error}"),
        }
    }

    /// A stream has what is known, if nothing is damaged.
    fn export(&self, db: &Store) {
        let mut stream = Vec::new();
        match db.export(&mut stream, &ExportOptions::new().frame_bytes(1000)) {
            Ok(report) => {
                let verified = StreamReader::new(&stream[..]).and_then(StreamReader::verify);
                let verified = verified.expect("memory does not fail");
                assert!(verified.is_complete(), "{:?}", verified.fault());
                assert_eq!(verified.records(), report.records);
                let known = self.known.values().flatten().count() as u64;
                assert!(!self.strict || report.records == known);
            }
            Err(Error::Corrupted { .. }) => assert!(!self.strict, "damage in a verified store"),
            Err(error) => panic!("export: {error}"),
        }
    }

    fn note(&mut self, key: Vec<u8>, after: Result<Option<Stored>>, before: Option<Stored>) {
        let known = match after {
            Ok(after) => after,
            // What was only read is no promise of a store that was salvaged.
            // A file in the place of the next segment is a full pool, until somebody moves it.
            Err(
                Error::PoolFull { .. }
                | Error::InTheWay { .. }
                | Error::KeyCollisions
                | Error::FieldOutOfRange { .. },
            ) => before.filter(|_| self.strict || self.known.contains_key(&key)),
            // Of too many keys with one hash some are left out, at each open others.
            Err(Error::Poisoned { .. }) if !self.strict => None,
            // A record has the highest version there is: nothing is written any more.
            Err(Error::Corrupted { what, .. })
                if self.strict && what.contains("leaves no room") =>
            {
                before
            }
            Err(Error::Corrupted { .. }) => {
                assert!(!self.strict, "damage in a store that was verified");
                None
            }
            Err(error) => panic!("{error}"),
        };
        if let Some(known) = known {
            self.doubtful.remove(&key);
            self.known.insert(key, known);
        } else {
            self.known.remove(&key);
            self.doubtful.insert(key);
        }
    }

    /// Whether the store has what is known.
    fn verify(&self, db: &Store) {
        let mut session = db.session();
        for (key, value) in &self.known {
            match session.get(key) {
                Ok(found) => assert_eq!(&found, value, "key {key:?}"),
                Err(error) => panic!("key {key:?}: {error}"),
            }
        }
        let report = db.check(None);
        if self.strict {
            assert!(report.is_sound(), "{report:?}");
            let found = contents(db).expect("nothing is damaged").len();
            assert_eq!(found, self.known.values().flatten().count());
            assert_eq!(db.stats().records, found as u64);
        }
        let inspected = db.inspect(None);
        assert_eq!(inspected.blocks_used, report.blocks);
        assert!(!self.strict || inspected.records == report.records, "{inspected:?}");
    }
}
