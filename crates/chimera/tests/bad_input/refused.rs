//! Openings that are refused because a part of the store is not what it was when the store was closed in order: they change
//! nothing that is needed once that part is put back.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chimera::baselines::{Consistency, RecordLayout};
use chimera::{Db, EngineKind, Error, Options, Result};
use chimera_pmem::{Environment, Hardware, RealEnvironment};
use tempfile::TempDir;

use super::closing::{checked_word, engines};
use crate::tools::media::{FIRST_SEGMENT, SUPERBLOCK, USED_BLOCKS_AT, change, forge_superblock};
use crate::tools::{assert_sound, bytes_of, contents, fill, key, restore, scratch};

const RECORDS: u64 = 300;
const PAGE: usize = 4096;
/// The second lives that are tried, and seeds of random choices.
const LIVES: [(Second, u64); 3] = [(Second::Changes, 1), (Second::Changes, 2), (Second::Adds, 3)];
/// Where the superblock says what the store held.
const TOTALS_AT: u64 = 144;

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Every engine, and what else it does when it is opened.
fn stores() -> Vec<(&'static str, Options)> {
    let of = |kind| engines().into_iter().find(|engine| engine.0 == kind).expect("an engine").1;
    let (viper, hikv) = (of(EngineKind::Viper), of(EngineKind::Hikv));
    let published = RecordLayout::Published;
    let mut stores: Vec<_> =
        engines().into_iter().map(|(kind, options)| (kind.name(), options)).collect();
    stores.extend([
        ("viper, slots", viper.clone().fixed_size(8, 24)),
        ("viper, published", viper.fixed_size(8, 24).viper(|viper| viper.layout(published))),
        ("hikv, verified", hikv.clone().verify_at_open(true)),
        ("hikv, published", hikv.clone().hikv(|hikv| hikv.layout(published)).verify_at_open(true)),
        ("hikv, log", hikv.hikv(|hikv| hikv.consistency(Consistency::WriteAheadLog))),
    ]);
    #[cfg(feature = "teaching-engine")]
    stores.push((
        "teaching",
        crate::tools::small_with(crate::tools::SMALL).engine(EngineKind::Teaching),
    ));
    stores
}

/// Opens a store whose random choices follow from `seed`.
fn try_open(path: &Path, options: &Options, seed: u64) -> Result<Db> {
    let environment: Arc<dyn Environment> = Arc::new(RealEnvironment::with_seed(seed));
    let pmem = Hardware::new(options.hardware_options()).expect("address space");
    Db::open_on(pmem, &environment, path, options)
}

/// What the second life of a store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Second {
    /// It writes over a part of the first, and removes another one.
    Changes,
    /// It puts new keys alone.
    Adds,
}

/// A closed store of two lives.
struct Lives {
    options: Options,
    second: Second,
    seed: u64,
    directory: TempDir,
    /// Its files, and what they were a life before.
    newest: Files,
    old: Files,
    expected: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Lives {
    fn new(options: &Options, second: Second, seed: u64) -> Self {
        let (options, directory) = (options.clone(), scratch());
        let open = || try_open(directory.path(), &options, seed).expect("a sound store");
        let db = open();
        fill(&mut db.session(), 0..RECORDS, 1);
        db.close().expect("nobody else has it");
        let old = bytes_of(directory.path());
        let db = open();
        if second == Second::Changes {
            fill(&mut db.session(), 100..400, 2);
            for number in 0..50 {
                assert!(db.delete(key(number)).expect("a sound store"));
            }
        }
        // Where values have any size, each of these takes a run of items for itself.
        for number in 1000..1005 {
            let done = db.put(key(number), [7; 3000]);
            assert!(matches!(done, Ok(true) | Err(Error::ValueSize { .. })), "{done:?}");
        }
        let expected = contents(&db);
        db.close().expect("nobody else has it");
        let newest = bytes_of(directory.path());
        Self { options, second, seed, directory, newest, old, expected }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Makes a part of the first segment what it is in these files.
    fn put(&self, files: &Files, range: Range<usize>) {
        let part = &files[Path::new(FIRST_SEGMENT)][range.clone()];
        change(self.path(), FIRST_SEGMENT, |bytes| bytes[range].copy_from_slice(part));
    }

    /// The ranges of pages of the first segment that are not the same in both lives.
    fn older_parts(&self) -> Vec<Range<usize>> {
        let segment = Path::new(FIRST_SEGMENT);
        let (old, newest) = (&self.old[segment], &self.newest[segment]);
        let pages = newest.len().min(old.len()) / PAGE;
        let ranges = |count: usize| {
            let firsts = (0..pages).step_by(count);
            firsts.map(move |first| first * PAGE..(first + count).min(pages) * PAGE)
        };
        let all = [1, 4].into_iter().flat_map(ranges);
        all.filter(|range| old[range.clone()] != newest[range.clone()]).collect()
    }

    /// Whether the store is refused when it is opened for writing; then nothing of it is changed.
    fn is_refused(&self, what: &str) -> bool {
        let before = segments(self.path());
        let Err(error) = try_open(self.path(), &self.options, self.seed) else { return false };
        let Error::Corrupted { at, .. } = error else { panic!("{what}: {error}") };
        if at != TOTALS_AT && what.starts_with("chameleon") {
            // Where the comparison has found nothing, ChameleonDB may come to damage while it makes tables.
            return false;
        }
        assert!(
            segments(self.path()) == before,
            "{what}: changed by an opening that said `{error}`"
        );
        true
    }

    fn assert_whole(&self, what: &str) {
        let db = try_open(self.path(), &self.options, self.seed).expect(what);
        assert!(contents(&db) == self.expected, "{what}");
        assert_sound(&db);
    }

    /// Makes one part after the other older. Where the store is refused it is the same the second time, and whole when the part is
    /// put back.
    fn assert_each_older_part_can_be_put_back(&self, name: &str) -> usize {
        let mut times = 0;
        for range in self.older_parts() {
            restore(self.path(), &self.newest);
            self.put(&self.old, range.clone());
            let what = format!("{name}, {:?}, seed {}, {range:?}", self.second, self.seed);
            if self.is_refused(&what) {
                times += 1;
                assert!(self.is_refused(&what), "{what}: not the second time");
                self.put(&self.newest, range);
                self.assert_whole(&what);
            }
        }
        times
    }
}

/// The files of a store but for the superblock, which says whether it is open, and the lock, which says who opened it last.
fn segments(path: &Path) -> Files {
    let mut files = bytes_of(path);
    files.retain(|name, _| name.to_string_lossy().starts_with("segment-"));
    files
}

#[test]
fn an_older_part_is_refused_before_anything_is_changed_and_can_be_put_back() {
    for (name, options) in stores() {
        let times = LIVES.map(|(second, seed)| {
            Lives::new(&options, second, seed).assert_each_older_part_can_be_put_back(name)
        });
        assert!(times.iter().sum::<usize>() > 5, "{name}: {times:?} times");
    }
}

/// As above, where an opening before was interrupted: the store says that it is open, and what it held when it was closed.
#[test]
fn so_it_is_after_an_opening_that_was_interrupted() {
    // ChameleonDB may have made tables then, so it compares the number of records alone.
    for (name, options) in stores().into_iter().filter(|(name, _)| *name != "chameleon") {
        let times = LIVES.map(|(second, seed)| {
            let mut lives = Lives::new(&options, second, seed);
            forge_superblock(lives.path(), &[(8, 2)]);
            lives.newest = bytes_of(lives.path());
            lives.assert_each_older_part_can_be_put_back(name)
        });
        assert!(times.iter().sum::<usize>() > 5, "{name}: {times:?} times");
    }
}

/// Both words with the number of used blocks are older: what lies behind is not overwritten by what a new store has there.
#[test]
fn blocks_that_seem_unused_are_left_alone() {
    for (name, options) in stores() {
        let lives = Lives::new(&options, Second::Changes, 1);
        let (path, newest) = (lives.path(), &lives.newest[Path::new(SUPERBLOCK)]);
        let number = |at: usize| newest[at..at + 8].try_into().expect("8 bytes");
        for used in [0, 1] {
            restore(path, &lives.newest);
            let older = USED_BLOCKS_AT.map(|at| (at, checked_word(used, at as u64)));
            if older.iter().all(|(at, word)| number(*at) == *word) {
                continue;
            }
            let put = |words: [(usize, [u8; 8]); 2]| {
                change(path, SUPERBLOCK, |bytes| {
                    for (at, word) in words {
                        bytes[at..at + 8].copy_from_slice(&word);
                    }
                });
            };
            put(older);
            let before = segments(path);
            let error = try_open(path, &options, 1).err();
            assert!(matches!(error, Some(Error::Corrupted { .. })), "{name}: {error:?}");
            assert!(segments(path) == before, "{name}, {used}: {error:?}");
            put(USED_BLOCKS_AT.map(|at| (at, number(at))));
            lives.assert_whole(&format!("{name}, {used}"));
        }
    }
}
