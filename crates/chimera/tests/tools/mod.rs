//! What the integration tests share: small stores, records that describe themselves, media surgery.

#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod device;
pub(crate) mod faults;
pub(crate) mod media;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use chimera::{Db, Geometry, Options, Result, Session};
use chimera_pmem::Pmem;
use tempfile::TempDir;

/// An empty directory in memory where there is such a thing: tests open stores thousands of times.
pub(crate) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary directory")
}

/// An empty directory on an ordinary file system.
pub(crate) fn scratch_on_disk() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// Blocks of two pages of 256 bytes, 24 to a segment of 16 KiB.
pub(crate) const SMALL: Geometry =
    Geometry { page_bytes: 256, pages_per_block: 2, block_shift_bytes: 0, segment_bytes: 16 << 10 };

/// Bytes of keys and values in small stores.
pub(crate) const KEY_BYTES: usize = 8;
pub(crate) const VALUE_BYTES: usize = 24;

/// Options of a small store: seven blocks are enough for a hundred records of 8 + 24 bytes.
pub(crate) fn small() -> Options {
    small_with(SMALL).fixed_size(KEY_BYTES as u32, VALUE_BYTES as u32)
}

/// Options of a small store of records of any size: with 8 + 24 bytes four of them to a page.
pub(crate) fn small_any() -> Options {
    small_with(SMALL)
}

/// As [`small`], with another geometry and without sizes.
pub(crate) fn small_with(geometry: Geometry) -> Options {
    Options::new()
        .viper(|viper| viper.geometry(geometry))
        .reclaim_percent(0)
        .populate_ahead_bytes(
            2 * u64::from(geometry.page_bytes) * u64::from(geometry.pages_per_block),
        )
        .huge_pages(false)
        .viper(|viper| viper.index_segment_slots(64))
}

/// Key number `number`: differs from all others, also when it is cut to fewer bytes than 8 as long
/// as the number fits.
pub(crate) fn key(number: u64) -> Vec<u8> {
    key_of(number, KEY_BYTES)
}

/// As [`key`], of any size.
pub(crate) fn key_of(number: u64, bytes: usize) -> Vec<u8> {
    let mut key: Vec<u8> = (0..bytes).map(|at| 0xa0 ^ at as u8).collect();
    let head = bytes.min(8);
    key[..head].copy_from_slice(&number.to_le_bytes()[..head]);
    key
}

/// The value written under key `number` as version `version`: no two are alike in their first bytes,
/// and every byte follows from both.
pub(crate) fn value(number: u64, version: u64) -> Vec<u8> {
    value_of(number, version, VALUE_BYTES)
}

/// As [`value`], of any size; of few bytes not all differ.
pub(crate) fn value_of(number: u64, version: u64, bytes: usize) -> Vec<u8> {
    let mut value = Vec::with_capacity(bytes + 8);
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ version;
    value.extend_from_slice(&version.to_le_bytes());
    while value.len() < bytes {
        state = mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
        value.extend_from_slice(&state.to_le_bytes());
    }
    value.truncate(bytes);
    value
}

/// The version a value says it is; it must be whole.
///
/// # Panics
/// When the value is not one that [`value`] makes for the key.
pub(crate) fn version_of(number: u64, found: &[u8]) -> u64 {
    let version = u64::from_le_bytes(found[..8].try_into().expect("8 bytes"));
    assert_eq!(
        found,
        value_of(number, version, found.len()),
        "a torn or foreign value of {number}"
    );
    version
}

/// The finaliser of SplitMix64.
pub(crate) fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Repeatable chance.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.word() % limit
    }
}

/// A number from an environment variable, for longer runs by hand.
pub(crate) fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Opens a store that must open.
pub(crate) fn open(path: &Path, options: &Options) -> Db {
    Db::open(path, options).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Puts version `version` of keys `numbers`.
pub(crate) fn fill<P: Pmem>(
    session: &mut Session<P>,
    numbers: impl IntoIterator<Item = u64>,
    version: u64,
) {
    for number in numbers {
        session.put(key(number), value(number, version)).expect("there is room");
    }
}

/// A closed store with version 1 of keys `0..count`.
pub(crate) fn filled_store(path: &Path, options: &Options, count: u64) {
    let db = open(path, options);
    fill(&mut db.session(), 0..count, 1);
    db.close().expect("nobody else has it");
}

/// Everything in a store, by `for_each`; a key that comes twice is an error.
pub(crate) fn contents<P: Pmem>(db: &Db<P>) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut all = BTreeMap::new();
    db.for_each(|key, value| {
        assert!(all.insert(key.to_vec(), value.to_vec()).is_none(), "{key:?} comes twice");
        true
    })
    .expect("no record is damaged");
    all
}

/// Asserts that a store's checksums are right and its index agrees with its records.
pub(crate) fn assert_sound<P: Pmem>(db: &Db<P>) {
    let report = db.check(None);
    assert!(report.is_sound(), "{report:?}");
}

/// Asserts that a call failed and that its message has all of `words`.
pub(crate) fn assert_fails<T: Debug>(outcome: Result<T>, words: &[&str]) {
    let error = outcome.expect_err("this must fail");
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "`{text}` does not say `{word}`");
    }
}

/// Copies the files of a store, open or not.
pub(crate) fn copy_store(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory for the copy");
    for name in names(from) {
        std::fs::copy(from.join(&name), to.join(&name)).expect("a file of the store");
    }
}

/// The names of a store's files, sorted.
pub(crate) fn names(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).expect("a directory");
    let mut names: Vec<_> =
        entries.map(|entry| PathBuf::from(entry.expect("an entry").file_name())).collect();
    names.sort_unstable();
    names
}

/// All files of a store with their bytes.
pub(crate) fn bytes_of(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let read = |name: PathBuf| {
        let bytes = std::fs::read(path.join(&name)).expect("a file of the store");
        (name, bytes)
    };
    names(path).into_iter().map(read).collect()
}

/// Puts back files that [`bytes_of`] read, and nothing else.
pub(crate) fn restore(path: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    for name in names(path) {
        if !files.contains_key(&name) {
            std::fs::remove_file(path.join(name)).expect("a file of the store");
        }
    }
    for (name, bytes) in files {
        std::fs::write(path.join(name), bytes).expect("a file of the store");
    }
}
