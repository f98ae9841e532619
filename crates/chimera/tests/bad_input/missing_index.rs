//! Words of indexes and logs that are gone, at another place or there twice: an error, or every record is there.
//!
//! Each engine with runs of blocks has a small store, closed in order and as a killed process leaves it. Every word of it is
//! zeroed in turn, every line and every page; and words, lines and pages are exchanged, and repeated at the place of others.
//! The store is then opened as anybody would, and read by gets, a listing and an export: each says what is damaged, or has
//! every record with its value.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chimera::baselines::Consistency;
use chimera::{Db, EngineKind, ErrorKind, ExportOptions, HikvOptions, Options};
use chimera_pmem::{Environment, Hardware, RealEnvironment};

use crate::tools::{Chance, bytes_of, copy_store, from_environment, key, restore, scratch, value};

const KEYS: u64 = 90;
const WORD: usize = 8;
const LINE: usize = 64;
const PAGE: usize = 1024;
/// The end of a segment's file has the header of the pool.
const POOL_BYTES: usize = 4096;
/// Exchanges and repetitions of each kind.
const PAIRS: u64 = 400;

/// Keys and values of a store. A key that was deleted is not among them.
type Records = BTreeMap<u64, Vec<u8>>;

/// A store as it is on media.
struct Subject {
    files: BTreeMap<PathBuf, Vec<u8>>,
    options: Options,
    records: Records,
    /// The keys in the order of their last changes, where the store was killed and only its log has them: what was appended last
    /// cannot be told from what never was.
    appended: Vec<u64>,
}

/// A part of a file.
#[derive(Clone, Debug)]
struct Part {
    name: PathBuf,
    bytes: Range<usize>,
}

fn small(engine: EngineKind) -> Options {
    let options = Options::new().engine(engine).segment_bytes(32 << 10);
    options.populate_ahead_bytes(0).reclaim_percent(0).huge_pages(false)
}

fn hikv() -> Options {
    small(EngineKind::Hikv)
        .hikv(|hikv| hikv.partitions(2).index_segment_bytes(1024).heap_run_bytes(4096))
}

fn hikv_with_log() -> Options {
    let logged = |hikv: HikvOptions| hikv.consistency(Consistency::WriteAheadLog);
    hikv().hikv(logged).hikv(|hikv| hikv.log_area_bytes(1024))
}

fn log_hash(engine: EngineKind) -> Options {
    small(engine).log_hash(|options| options.index_segment_bytes(1024).log_run_bytes(4096))
}

fn chameleon() -> Options {
    let options = small(EngineKind::Chameleon).segment_bytes(64 << 10);
    options.chameleon(|chameleon| {
        chameleon.shards(2).memtable_bytes(256).levels(3).ratio(2).log_run_bytes(4096)
    })
}

/// Writes some history: all records, most of them once more, and a few deletes.
fn write(db: &Db) -> (Records, Vec<u64>) {
    let (mut session, mut records, mut appended) = (db.session(), Records::new(), Vec::new());
    let mut put = |number, version| {
        session.put(key(number), value(number, version)).expect("there is room");
        records.insert(number, value(number, version));
        appended.retain(|other| *other != number);
        appended.push(number);
    };
    (0..KEYS).for_each(|number| put(number, 1));
    (0..KEYS).filter(|number| number % 3 == 0).for_each(|number| put(number, 2));
    for number in (0..KEYS).step_by(10) {
        assert!(session.delete(key(number)).expect("there is room"));
        records.remove(&number);
        appended.retain(|other| *other != number);
        appended.push(number);
    }
    let mut put = |number| {
        session.put(key(number), value(number, 3)).expect("there is room");
        records.insert(number, value(number, 3));
        appended.retain(|other| *other != number);
        appended.push(number);
    };
    (1..KEYS).step_by(30).for_each(&mut put);
    (records, appended)
}

/// A new store whose hashes and ids follow from a seed. An entry of a table has a check of 14 bits, so of thousands of words
/// that are exchanged one fits by chance in every twentieth store or so.
fn new_store(path: &Path, options: &Options) -> Db {
    let seed = from_environment("CHIMERA_MISSING_SEED", 1);
    let environment: Arc<dyn Environment> = Arc::new(RealEnvironment::with_seed(seed));
    let pmem = Hardware::new(options.hardware_options()).expect("address space");
    Db::open_on(pmem, &environment, path, options).expect("a new store")
}

impl Subject {
    fn closed(options: &Options) -> Self {
        let directory = scratch();
        let db = new_store(directory.path(), options);
        let (records, _) = write(&db);
        db.close().expect("nobody else has it");
        let files = bytes_of(directory.path());
        Self { files, options: options.clone(), records, appended: Vec::new() }
    }

    /// As a process leaves it that is killed with a session that wrote.
    fn killed(options: &Options, is_replayed: bool) -> Self {
        let (directory, copy) = (scratch(), scratch());
        let db = new_store(directory.path(), options);
        let (records, appended) = write(&db);
        copy_store(directory.path(), copy.path());
        drop(db);
        let files = bytes_of(copy.path());
        let appended = if is_replayed { appended } else { Vec::new() };
        Self { files, options: options.clone(), records, appended }
    }

    /// The parts of so many bytes that have content.
    fn parts(&self, bytes: usize) -> Vec<Part> {
        let mut parts = Vec::new();
        for (name, content) in &self.files {
            if !name.to_string_lossy().starts_with("segment-") {
                continue;
            }
            for at in (0..content.len() - POOL_BYTES).step_by(bytes) {
                if content[at..at + bytes].iter().any(|byte| *byte != 0) {
                    parts.push(Part { name: name.clone(), bytes: at..at + bytes });
                }
            }
        }
        parts
    }

    fn bytes(&self, part: &Part) -> &[u8] {
        &self.files[&part.name][part.bytes.clone()]
    }

    /// With other bytes at some places: what is lost without an error.
    fn lost(&self, path: &Path, changes: &[(&Part, &[u8])]) -> Option<String> {
        let mut files = self.files.clone();
        for (part, bytes) in changes {
            let file = files.get_mut(&part.name).expect("a file of the store");
            file[part.bytes.clone()].copy_from_slice(bytes);
        }
        restore(path, &files);
        let parts: Vec<_> = changes.iter().map(|(part, _)| *part).collect();
        let db = match Db::open(path, &self.options) {
            Ok(db) => db,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Damaged, "{parts:?}: {error}");
                return None;
            }
        };
        self.lost_in(&db, &parts)
    }

    fn lost_in(&self, db: &Db, parts: &[&Part]) -> Option<String> {
        let (mut missing, mut session, mut is_noticed) = (Vec::new(), db.session(), false);
        for number in 0..KEYS {
            match session.get(key(number)) {
                Ok(found) if found.as_ref() == self.records.get(&number) => {}
                Ok(_) => missing.push(number),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Damaged, "{parts:?}: {error}");
                    is_noticed = true;
                }
            }
        }
        let mut listed = Records::new();
        let all = db.for_each(|key, value| {
            let number = u64::from_le_bytes(key.try_into().expect("keys of 8 bytes"));
            listed.insert(number, value.to_vec());
            true
        });
        if all.is_ok() {
            let numbers = (0..KEYS).filter(|it| listed.get(it) != self.records.get(it));
            missing.extend(numbers);
        }
        if db.export(&mut Vec::new(), &ExportOptions::new()).is_ok() != all.is_ok() {
            return Some("an export has another answer than a listing".to_owned());
        }
        if (is_noticed || all.is_err()) && db.check(None).is_sound() {
            return Some("`check` does not find it".to_owned());
        }
        missing.sort_unstable();
        missing.dedup();
        let is_lost = !missing.is_empty() && !self.is_tail(&missing, parts);
        is_lost.then(|| format!("keys {missing:?}"))
    }

    /// Whether these are among the last records that were appended, which all lay in one of the parts.
    fn is_tail(&self, missing: &[u64], parts: &[&Part]) -> bool {
        let tail = self.appended.iter().rev().take_while(|number| self.lies_in(**number, parts));
        let tail: Vec<_> = tail.collect();
        missing.iter().all(|number| tail.contains(&number))
    }

    /// Whether a part has bytes of the record of a key.
    fn lies_in(&self, number: u64, parts: &[&Part]) -> bool {
        // A tombstone is a record with an empty value.
        let value = self.records.get(&number).cloned().unwrap_or_default();
        let bytes = [key(number), value].concat();
        parts.iter().any(|part| {
            let file = &self.files[&part.name];
            let places = file.windows(bytes.len()).enumerate();
            let mut places = places.filter(|(_, found)| *found == bytes);
            // Words are in front of the key.
            places.any(|(at, _)| part.bytes.start < at + bytes.len() && at < part.bytes.end + 64)
        })
    }
}

/// Says what was lost, if anything was.
#[derive(Default)]
struct Verdict {
    tried: u64,
    lost: Vec<String>,
}

impl Verdict {
    fn note(&mut self, about: impl FnOnce() -> String, lost: Option<String>) {
        self.tried += 1;
        self.lost.extend(lost.map(|lost| format!("{}: {lost}", about())));
    }

    fn assert(self, about: &str) {
        let Self { tried, lost } = self;
        assert!(tried > 100, "{about}: {tried}");
        let first = &lost[..lost.len().min(12)];
        assert!(lost.is_empty(), "{about}: {} of {tried} are lost: {first:#?}", lost.len());
    }
}

/// Zeroes every word, line and page.
fn zero_each(subject: &Subject, about: &str) {
    let (directory, mut verdict) = (scratch(), Verdict::default());
    for bytes in [WORD, LINE, PAGE, 4 * PAGE] {
        for part in subject.parts(bytes) {
            let lost = subject.lost(directory.path(), &[(&part, &vec![0; bytes])]);
            verdict.note(|| format!("zeroed {part:?}"), lost);
        }
    }
    verdict.assert(about);
}

/// Exchanges pairs of words, lines and pages, and repeats some of them at the place of others.
fn move_some(subject: &Subject, about: &str) {
    let (directory, mut verdict) = (scratch(), Verdict::default());
    let mut chance = Chance::new(from_environment("CHIMERA_MISSING_SEED", 1));
    let pairs = from_environment("CHIMERA_MISSING_PAIRS", PAIRS);
    for bytes in [WORD, LINE, PAGE] {
        let parts = subject.parts(bytes);
        for _ in 0..pairs {
            let one = &parts[chance.below(parts.len() as u64) as usize];
            // Most words have their like near by.
            let near = chance.below(2) == 0;
            let two = if near {
                let at = parts.iter().position(|part| part.bytes == one.bytes).unwrap_or(0);
                &parts[(at + 1 + chance.below(24) as usize) % parts.len()]
            } else {
                &parts[chance.below(parts.len() as u64) as usize]
            };
            let (first, second) = (subject.bytes(one), subject.bytes(two));
            if first == second {
                continue;
            }
            let lost = subject.lost(directory.path(), &[(one, second), (two, first)]);
            verdict.note(|| format!("exchanged {one:?} and {two:?}"), lost);
            let lost = subject.lost(directory.path(), &[(two, first)]);
            verdict.note(|| format!("{one:?} in the place of {two:?}"), lost);
        }
    }
    verdict.assert(about);
}

fn of_all(options: &Options, test: impl Fn(&Subject, &str)) {
    test(&Subject::closed(options), "closed");
    test(&Subject::killed(options, false), "killed");
}

/// Of stores that have what was written last in a log alone.
fn of_replayed(options: &Options, test: impl Fn(&Subject, &str)) {
    test(&Subject::closed(options), "closed");
    test(&Subject::killed(options, true), "killed");
}

#[test]
fn what_is_zero_is_missed_in_hikv() {
    of_all(&hikv(), zero_each);
}

#[test]
fn what_is_zero_is_missed_in_hikv_with_a_log() {
    of_all(&hikv_with_log(), zero_each);
}

#[test]
fn what_is_zero_is_missed_in_an_ordered_hikv() {
    of_all(&hikv().ordered(true), zero_each);
}

#[test]
fn what_is_zero_is_missed_in_pmem_hash() {
    of_all(&log_hash(EngineKind::PmemHash), zero_each);
}

#[test]
fn what_is_zero_is_missed_in_dram_hash() {
    of_replayed(&log_hash(EngineKind::DramHash), zero_each);
}

#[test]
fn what_is_zero_is_missed_in_chameleon() {
    of_replayed(&chameleon(), zero_each);
}

#[cfg(feature = "teaching-engine")]
#[test]
fn what_is_zero_is_missed_in_teaching() {
    of_all(&small(EngineKind::Teaching), zero_each);
}

#[test]
fn what_is_at_another_place_is_noticed_in_hikv() {
    of_all(&hikv(), move_some);
}

#[test]
fn what_is_at_another_place_is_noticed_in_hikv_with_a_log() {
    of_all(&hikv_with_log(), move_some);
}

#[test]
fn what_is_at_another_place_is_noticed_in_pmem_hash() {
    of_all(&log_hash(EngineKind::PmemHash), move_some);
}

#[test]
fn what_is_at_another_place_is_noticed_in_dram_hash() {
    of_replayed(&log_hash(EngineKind::DramHash), move_some);
}

#[test]
fn what_is_at_another_place_is_noticed_in_chameleon() {
    of_replayed(&chameleon(), move_some);
}

#[cfg(feature = "teaching-engine")]
#[test]
fn what_is_at_another_place_is_noticed_in_teaching() {
    of_all(&small(EngineKind::Teaching), move_some);
}
