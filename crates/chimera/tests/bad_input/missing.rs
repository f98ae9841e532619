//! Bytes that a medium has lost, or has in another place: nothing is missing without a word.
//!
//! Words, lines, pages and pieces of 4 KiB of blocks in use are made zero, exchanged, and copied over others, in stores that
//! were closed and in stores whose process was killed. Opening or `check` says so, or every record is there. Only the
//! page that a killed process was appending to may lose records without a word, and no other page does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chimera::baselines::RecordLayout;
use chimera::{Db, Error, Options};
use tempfile::TempDir;

use crate::tools::media::{FIRST_SEGMENT, SUPERBLOCK_BYTES, checked_word_at};
use crate::tools::{SMALL, copy_store, key_of, open, scratch, small_with, value_of};

const PAGE: usize = SMALL.page_bytes as usize;
const BLOCK: usize = PAGE * SMALL.pages_per_block as usize;
/// The flag of a block that is one page.
const LARGE: u32 = 8;
/// What a hole in a file takes.
const HOLE: usize = 4096;

/// Bytes of keys: no two words of a store are alike by chance.
const KEY: usize = 16;

type Records = BTreeMap<u64, Vec<u8>>;

/// A store's files and records, as they were left.
struct Left {
    directory: TempDir,
    /// Of the first segment.
    bytes: Vec<u8>,
    records: Records,
    is_killed: bool,
    used: usize,
}

/// What is done with records before the store is left: so many with values of this size, some of them replaced or
/// deleted.
fn left(options: &Options, count: u64, value_bytes: fn(u64) -> usize, is_killed: bool) -> Left {
    let (directory, copy) = (scratch(), scratch());
    let db = open(directory.path(), options);
    let mut session = db.session();
    let mut records = Records::new();
    for version in 1..3 {
        for number in (0..count).filter(|number| version == 1 || number % 4 == 1) {
            let value = value_of(number, version, value_bytes(number));
            session.put(key_of(number, KEY), &value).expect("there is room");
            records.insert(number, value);
        }
    }
    for number in (0..count).filter(|number| number % 7 == 3) {
        session.delete(key_of(number, KEY)).expect("it is there");
        records.remove(&number);
    }
    let used = db.stats().blocks_used as usize * BLOCK;
    if is_killed {
        copy_store(directory.path(), copy.path());
    } else {
        drop(session);
        db.close().expect("nobody else has it");
        copy_store(directory.path(), copy.path());
    }
    assert!(used <= SMALL.segment_bytes as usize - 4096, "all of it in one segment");
    Left { bytes: segment_of(copy.path()), directory: copy, records, is_killed, used }
}

fn segment_of(path: &Path) -> Vec<u8> {
    std::fs::read(path.join(FIRST_SEGMENT)).expect("a file of the store")
}

/// How bytes of a segment are changed, and where.
type Change = (usize, usize, Box<dyn Fn(&mut [u8])>);

impl Left {
    /// Each damage, with the range that it touches.
    fn changes(&self) -> Vec<Change> {
        let mut changes: Vec<Change> = Vec::new();
        for unit in [8, 64, PAGE, HOLE] {
            for at in (0..self.used).step_by(unit) {
                let end = (at + unit).min(self.used);
                changes.push((at, end, Box::new(move |bytes| bytes[at..end].fill(0))));
            }
        }
        for unit in [8, PAGE, BLOCK] {
            for at in (0..self.used - unit).step_by(unit) {
                let (middle, end) = (at + unit, at + 2 * unit);
                let swap = move |bytes: &mut [u8]| bytes[at..end].rotate_left(unit);
                changes.push((at, end, Box::new(swap)));
                let repeat = move |bytes: &mut [u8]| bytes.copy_within(at..middle, middle);
                changes.push((middle, end, Box::new(repeat)));
            }
        }
        changes
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("8 bytes"))
    }

    /// Where the page of a byte begins, and its length.
    fn page_of(&self, at: usize) -> (usize, usize) {
        let block = at / BLOCK * BLOCK;
        match self.word(block) as u32 & LARGE {
            0 => (at / PAGE * PAGE, PAGE),
            _ => (block, BLOCK),
        }
    }

    /// Whether a session appends to the page that begins there, which has a log.
    fn is_open(&self, page: usize) -> bool {
        self.word(page) as u32 >> 12 == 0
    }

    /// Numbers of the records that a damage may take without a word: those of open pages that it touches.
    fn losable(&self, from: usize, to: usize) -> BTreeSet<u64> {
        let touches = |number: &&u64| {
            let key = key_of(**number, KEY);
            let mut places = self.bytes.windows(KEY).enumerate();
            // The last one of its versions is the last one in the page or in a later one: all of them are taken.
            places.any(|(at, found)| {
                let (page, length) = self.page_of(at);
                found == key && self.is_open(page) && page < to && from < page + length
            })
        };
        self.records.keys().filter(touches).copied().collect()
    }

    /// Where the pages begin whose logs hold anything.
    fn pages_with_a_log(&self) -> Vec<usize> {
        let pages = (0..self.used).step_by(PAGE);
        pages.filter(|at| self.page_of(*at).0 == *at && self.word(at + 8) != 0).collect()
    }

    /// The records that are missing, if nobody says that anything is wrong.
    fn missing(&self, bytes: &[u8], options: &Options) -> Option<BTreeSet<u64>> {
        let path = self.directory.path();
        std::fs::write(path.join(FIRST_SEGMENT), bytes).expect("written");
        let db = match Db::open(path, options) {
            Ok(db) => db,
            Err(Error::Corrupted { .. }) => return None,
            Err(error) => panic!("{error}"),
        };
        if !db.check(None).is_sound() {
            return None;
        }
        let mut missing = BTreeSet::new();
        for (number, value) in &self.records {
            match db.get(key_of(*number, KEY)).expect("check found nothing") {
                Some(found) => assert!(found == *value, "key {number} has another value"),
                None => drop(missing.insert(*number)),
            }
        }
        assert_eq!(db.stats().records as usize + missing.len(), self.records.len());
        Some(missing)
    }
}

/// Tries each damage. A store of records of any size whose process was killed may lose those of open pages.
fn try_all(left: &Left, options: &Options) {
    let may_lose = left.is_killed && options.key_bytes().is_none();
    let options = options.clone().read_only(true);
    assert_eq!(left.missing(&left.bytes, &options), Some(BTreeSet::new()));
    let (mut told, mut lost) = (0, 0);
    for (from, to, change) in left.changes() {
        let mut bytes = left.bytes.clone();
        change(&mut bytes);
        let Some(missing) = left.missing(&bytes, &options) else {
            told += 1;
            continue;
        };
        if missing.is_empty() {
            continue;
        }
        let losable = if may_lose { left.losable(from, to) } else { BTreeSet::new() };
        assert!(missing.is_subset(&losable), "{from}..{to}: {missing:?}, not only {losable:?}");
        lost += 1;
    }
    assert!(told > 100 && lost * 5 < told, "{lost} losses, {told} told of");
}

#[test]
fn records_of_fixed_size_are_never_missing_without_a_word() {
    let options = small_with(SMALL).fixed_size(KEY as u32, 24);
    for is_killed in [false, true] {
        try_all(&left(&options, 30, |_| 24, is_killed), &options);
    }
}

#[test]
fn records_of_any_size_are_missing_without_a_word_from_an_open_page_alone() {
    let sizes: [fn(u64) -> usize; 3] = [
        |number| 8 + number as usize % 5 * 9,
        // Some that need a block, too.
        |number| if number % 5 == 0 { 250 } else { 30 },
        // Some that are spilled.
        |number| if number % 6 == 0 { 900 } else { 12 },
    ];
    let options = small_with(SMALL);
    for value_bytes in sizes {
        for is_killed in [false, true] {
            let left = left(&options, 24, value_bytes, is_killed);
            let pages = left.pages_with_a_log();
            let open = pages.iter().filter(|page| left.is_open(**page)).count();
            assert!(pages.len() > 5, "{} pages", pages.len());
            // One of each kind.
            assert!(if is_killed { (1..=2).contains(&open) } else { open == 0 }, "{open} open");
            try_all(&left, &options);
        }
    }
}

/// Recovery seals what a killed process left open.
#[test]
fn a_killed_store_that_was_opened_again_misses_nothing_without_a_word() {
    let options = small_with(SMALL);
    let mut left = left(&options, 24, |number| 8 + number as usize % 5 * 9, true);
    let directory = scratch();
    copy_store(left.directory.path(), directory.path());
    let db = open(directory.path(), &options);
    let copy = scratch();
    copy_store(directory.path(), copy.path());
    drop(db);
    left = Left { bytes: segment_of(copy.path()), directory: copy, is_killed: false, ..left };
    assert!(left.pages_with_a_log().iter().all(|page| !left.is_open(*page)));
    try_all(&left, &options);
}

/// Records have no checks there, but pages do.
#[test]
fn a_page_of_the_published_layout_that_is_zero_is_told_of() {
    let options = small_with(SMALL)
        .fixed_size(KEY as u32, 24)
        .viper(|viper| viper.layout(RecordLayout::Published));
    let left = left(&options, 30, |_| 24, false);
    for at in (0..left.used).step_by(PAGE) {
        let mut bytes = left.bytes.clone();
        bytes[at..at + PAGE].fill(0);
        assert_eq!(left.missing(&bytes, &options.clone().read_only(true)), None, "page at {at}");
    }
}

/// What is behind the lost record in a sealed page is found, and what is written since is kept.
#[test]
fn a_store_that_lost_the_lengths_of_a_record_can_be_salvaged() {
    let options = small_with(SMALL);
    let left = left(&options, 24, |_| 8, false);
    // Three to a page and more: the first record of the first page that holds some.
    let page = left.pages_with_a_log()[0];
    let of_page = left.records.keys().filter(|number| {
        let key = key_of(**number, KEY);
        left.bytes[page..page + PAGE].windows(KEY).any(|found| found == key)
    });
    let of_page: BTreeSet<u64> = of_page.copied().collect();
    let mut bytes = left.bytes.clone();
    bytes[page + 8..page + 16].fill(0);
    let path = left.directory.path();
    std::fs::write(path.join(FIRST_SEGMENT), &bytes).expect("written");
    let at = SUPERBLOCK_BYTES + page as u64 + 8;
    let refused = Db::open(path, &options);
    assert!(matches!(refused, Err(Error::Corrupted { at: said, .. }) if said == at), "{refused:?}");
    let db = open(path, &options.clone().salvage(true));
    let is_there = |number: &&u64| db.get(key_of(**number, KEY)).expect("sound").is_some();
    let found = left.records.keys().filter(is_there).count();
    assert!(of_page.len() > 1 && found + 1 >= left.records.len(), "{found} of {of_page:?}");
    db.put(key_of(99, KEY), [9; 8]).expect("there is room");
    assert_eq!(db.get(key_of(99, KEY)).expect("sound"), Some(vec![9; 8]));
    assert_eq!(db.check(None).damages, 1);
}

/// A word that says less, with a check that is right: what follows is behind the end.
#[test]
fn a_log_that_goes_on_behind_its_end_is_damage() {
    let options = small_with(SMALL);
    let left = left(&options, 24, |_| 8, false);
    let page = left.pages_with_a_log()[0];
    let flags = left.word(page) as u32 & 0xfff;
    // One record of 24 + 16 + 8 bytes.
    let end = 8 + 48;
    let mut bytes = left.bytes.clone();
    let word = checked_word_at(flags | (end / 8) << 12, SUPERBLOCK_BYTES + page as u64);
    bytes[page..page + 8].copy_from_slice(&word.to_le_bytes());
    std::fs::write(left.directory.path().join(FIRST_SEGMENT), &bytes).expect("written");
    let at = SUPERBLOCK_BYTES + page as u64 + u64::from(end);
    let refused = Db::open(left.directory.path(), &options);
    assert!(matches!(refused, Err(Error::Corrupted { at: said, .. }) if said == at), "{refused:?}");
}
