//! A pool with a journal: what is replayed, in which order, and when a journal comes and goes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chimera_pmem::journal::{Journal, Mark, MarkState};
use chimera_pmem::{Fenced, Medium, Pmem, Site, SteppedEnvironment};

use super::media::Media;
use super::watched::{Deed, Watched};
use super::*;
use crate::pool::superblock::{COPY_STRIDE, FILE_BYTES};

mod holes;
mod leftovers;
mod leftovers_of_runs;
mod lives;

const SITE: Site = Site::new("test");
const SEGMENT_BYTES: u64 = 128 << 10;
const JOURNAL_BYTES: u64 = 64 << 10;
/// What it begins with.
const FIRST_BYTES: u64 = 16 << 10;
/// Where the entries of a journal begin.
const ENTRIES_AT: u64 = 8192;

type Outcome = Result<(Arc<Pool<Hardware>>, Opened)>;

/// Files in memory that say they lie on a disk, and the machine that they are in.
struct Place {
    files: Watched,
    environment: Arc<SteppedEnvironment>,
}

fn journaled() -> PoolOptions {
    PoolOptions {
        durability: Durability::Group { max_delay: Duration::from_millis(50) },
        journal_bytes: Some(JOURNAL_BYTES),
        populate_ahead_bytes: Some(0),
        ..PoolOptions::default()
    }
}

fn salvaging() -> PoolOptions {
    PoolOptions { salvage: true, ..journaled() }
}

fn reading() -> PoolOptions {
    PoolOptions { read_only: true, journal_bytes: None, ..journaled() }
}

impl Place {
    fn new() -> Self {
        let files = Watched::of(MemoryFiles::new().on(Medium::File));
        let environment = Arc::new(SteppedEnvironment::with_files(1, Arc::new(files.clone())));
        Self { files, environment }
    }

    fn open(&self, options: &PoolOptions) -> Outcome {
        self.open_as(options, 77)
    }

    fn open_as(&self, options: &PoolOptions, pool_id: u64) -> Outcome {
        let pmem = Hardware::new(HardwareOptions::default()).unwrap();
        let (pool, opened) = self.open_on(pmem, options, pool_id)?;
        Ok((Arc::new(pool), opened))
    }

    fn open_on<P: Pmem>(
        &self,
        pmem: P,
        options: &PoolOptions,
        pool_id: u64,
    ) -> Result<(Pool<P>, Opened)> {
        let superblock = Superblock { pool_id, ..new_superblock() };
        let new = || Ok(NewPool { superblock, is_segment_fixed: true });
        Pool::open(pmem, self.environment.clone(), Path::new("/pool"), options, new)
    }

    /// Without a journal, on memory that is no file's.
    fn open_without(&self) -> Result<Pool<Media>> {
        let options = PoolOptions { durability: Durability::Process, ..journaled() };
        self.open_on(Media::on_file(), &options, 77).map(|opened| opened.0)
    }

    /// A pool with a journal in which its process left so many blocks when it was killed.
    fn killed(blocks: u64) -> Self {
        let place = Self::new();
        let (pool, _) = place.open(&journaled()).unwrap();
        pool.mark_open().unwrap();
        (0..blocks).for_each(|block| assert_eq!(take_block(&pool).unwrap(), block));
        drop(pool);
        place.files.take(|_| false);
        place
    }

    /// One that was closed in order.
    fn closed(blocks: u64) -> Self {
        let place = Self::killed(blocks);
        let (pool, _) = place.open(&journaled()).unwrap();
        pool.mark_open().unwrap();
        pool.mark_recovered().unwrap();
        pool.close().unwrap();
        drop(pool);
        place.files.take(|_| false);
        place
    }

    fn file(&self, name: &str) -> Arc<dyn File> {
        self.files.files.open(&Path::new("/pool").join(name), OpenMode::ReadWrite).unwrap()
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        let file = self.file(name);
        let mut bytes = vec![0; file.length().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        bytes
    }

    fn has(&self, name: &str) -> bool {
        let path = Path::new("/pool").join(name);
        self.files.files.is_directory(&path).unwrap().is_some()
    }

    fn mark(&self) -> (bool, MarkState) {
        let (mark, kept) = Mark::read(self.file("superblock"), JOURNAL_MARK_AT).unwrap();
        (mark.is_lost(), kept.unwrap().unwrap())
    }

    fn deeds(&self) -> Vec<Deed> {
        self.files.take(|deed| !matches!(deed, Deed::Opened(_) | Deed::Allocated(..)))
    }

    fn flip(&self, name: &str, at: u64) {
        let file = self.file(name);
        let mut byte = [0];
        file.read_at(at, &mut byte).unwrap();
        file.write_at(at, &[byte[0] ^ 0x10]).unwrap();
    }

    /// Damages the last entry of the journal, so that a change is lost.
    fn lose_the_last_entry(&self) {
        let bytes = self.bytes("journal");
        let entries = &bytes[ENTRIES_AT as usize..];
        let last = entries.iter().rposition(|byte| *byte != 0).expect("an entry");
        // The end mark is behind it.
        self.flip("journal", ENTRIES_AT + last as u64 - 40);
    }
}

fn is_written(name: &'static str) -> impl Fn(&Deed) -> bool {
    move |deed| matches!(deed, Deed::Written(written, _) if written == name)
}

fn is_entry(deed: &Deed) -> bool {
    matches!(deed, Deed::Written(name, bytes) if name == "journal" && bytes.start >= ENTRIES_AT)
}

fn synced(name: &str) -> Deed {
    Deed::Synced(name.to_owned())
}

/// Where the first deed is of which something holds.
fn first(deeds: &[Deed], is_meant: impl Fn(&Deed) -> bool) -> usize {
    deeds.iter().position(is_meant).unwrap_or_else(|| panic!("in {deeds:?}"))
}

fn store(pool: &Pool<Hardware>, at: u64, value: u64) {
    pool.pmem.store_u64(at, value, SITE);
    pool.pmem.flush(pool.extent(at, 8), SITE);
}

fn word(bytes: &[u8], at: u64) -> u64 {
    u64::from_le_bytes(bytes[at as usize..at as usize + 8].try_into().unwrap())
}

#[test]
fn what_is_replayed_is_durable_in_the_data_files_before_the_journal_is_emptied() {
    let place = Place::killed(1);
    let (pool, opened) = place.open(&journaled()).unwrap();
    assert_eq!((opened.journal_loss, pool.used_blocks()), (None, 1));
    let deeds = place.deeds();
    let is_data =
        |deed: &Deed| is_written("superblock")(deed) || is_written("segment-000000")(deed);
    let data = first(&deeds, is_data);
    let emptied = data + first(&deeds[data..], is_written("journal"));
    assert!(deeds[..data].contains(&synced("journal")), "entries are durable first: {deeds:?}");
    let last = deeds[..emptied].iter().rposition(is_data).expect("data");
    for name in ["superblock", "segment-000000"] {
        assert!(deeds[last..emptied].contains(&synced(name)), "{name}: {deeds:?}");
    }
    // What a process without a journal may have left to the kernel, before anything is written again.
    assert!(deeds[emptied..].contains(&synced("segment-000000")), "{deeds:?}");
    let again = emptied + first(&deeds[emptied..], is_written("superblock"));
    assert!(deeds[emptied..again].contains(&synced("superblock")), "{deeds:?}");
    let allocated = place.files.take(|_| true);
    assert!(!allocated.iter().any(is_data));
    drop(pool);
    let (_pool, _) = place.open(&journaled()).unwrap();
    let allocated = place.files.take(|deed| matches!(deed, Deed::Allocated(..)));
    assert!(allocated.contains(&Deed::Allocated("superblock".to_owned(), 0..FILE_BYTES)));
}

#[test]
fn runs_of_lines_are_written_to_the_files_that_they_cross() {
    let place = Place::killed(6);
    let (pool, _) = place.open(&journaled()).unwrap();
    pool.mark_open().unwrap();
    // The ends of the superblock's file and of the first segment, and what follows each.
    let end = FILE_BYTES + SEGMENT_BYTES;
    let places = [FILE_BYTES - 64, FILE_BYTES, FILE_BYTES + 64, end - 64, end, end + 64];
    for (value, at) in (1..).zip(places) {
        store(&pool, at, value);
    }
    pool.pmem.fence(SITE);
    drop(pool);
    let (pool, _) = place.open(&journaled()).unwrap();
    let files = ["superblock", "segment-000000", "segment-000001"].map(|name| place.bytes(name));
    assert_eq!(word(&files[0], FILE_BYTES - 64), 1);
    assert_eq!([0, 64].map(|at| word(&files[1], at)), [2, 3]);
    assert_eq!(word(&files[1], SEGMENT_BYTES - 64), 4);
    assert_eq!([0, 64].map(|at| word(&files[2], at)), [5, 6]);
    for (value, at) in (1..).zip(places) {
        assert_eq!(pool.pmem.load_u64(at), value);
    }
}

/// Only the lines say which files there are: none behind the superblock's here.
#[test]
fn lines_up_to_the_end_of_a_file_ask_for_no_other_one() {
    let place = Place::killed(0);
    let (pool, _) = place.open(&journaled()).unwrap();
    pool.mark_open().unwrap();
    store(&pool, FILE_BYTES - 64, 7);
    pool.pmem.fence(SITE);
    drop(pool);
    assert!(!place.has("segment-000000"));
    let (pool, _) = place.open(&journaled()).unwrap();
    assert_eq!(pool.pmem.load_u64(FILE_BYTES - 64), 7);
}

/// The file of the superblock may be as old as the journal's first entry.
#[test]
fn the_journal_says_how_many_segments_there_are() {
    let place = Place::killed(11);
    let (pool, _) = place.open(&journaled()).unwrap();
    assert_eq!((pool.used_blocks(), pool.superblock().segments), (11, 3));
}

#[test]
fn lines_of_one_segment_more_may_be_there_and_of_others_not() {
    for more in 1..3 {
        let place = Place::killed(1);
        let (pool, _) = place.open(&journaled()).unwrap();
        pool.mark_open().unwrap();
        // As growth does before the superblock says so.
        for index in 1..=more {
            let header = pool.map.header_in_segment();
            let section = pool.files.create_segment(77, index, SEGMENT_BYTES, header).unwrap();
            let at = FILE_BYTES + index * SEGMENT_BYTES;
            pool.pmem.map(at, &section.file, 0, SEGMENT_BYTES).unwrap();
            store(&pool, at + header, index);
            pool.pmem.fence(SITE);
        }
        drop(pool);
        match place.open(&journaled()) {
            Ok((pool, _)) => {
                assert_eq!((more, pool.superblock().segments), (1, 1));
                assert_eq!(word(&place.bytes("segment-000001"), SEGMENT_BYTES - 4096), 1);
            }
            Err(error) => {
                assert!(matches!(error, Error::Corrupted { .. }) && more == 2, "{error}");
                assert!(error.to_string().contains("beyond the end"), "{error}");
            }
        }
    }
}

#[test]
fn a_journal_of_another_pool_is_refused_though_it_has_all_of_its_superblock() {
    let (own, other) = (Place::killed(2), Place::new());
    let (pool, _) = other.open_as(&journaled(), 78).unwrap();
    pool.mark_open().unwrap();
    take_block(&pool).unwrap();
    drop(pool);
    let journal = other.bytes("journal");
    own.file("journal").write_at(0, &journal).unwrap();
    let error = own.open(&salvaging()).err().unwrap();
    assert!(error.to_string().contains("belongs to another pool"), "{error}");
}

/// What a creation has left that was interrupted is nobody's.
#[test]
fn a_superblock_that_was_being_made_is_in_no_journals_way() {
    let place = Place::killed(0);
    let mut blank = vec![0; FILE_BYTES as usize];
    let mut put = |at: usize, word: u64| blank[at..at + 8].copy_from_slice(&word.to_le_bytes());
    let half = Superblock { pool_id: 99, ..new_superblock() }.encode();
    half.iter().enumerate().for_each(|(number, word)| put(8 * number, *word));
    for at in USED_BLOCKS_AT {
        put(at as usize, checked_word::encode_at(0, at));
    }
    place.file("superblock").write_at(0, &blank).unwrap();
    let (pool, _) = place.open(&journaled()).unwrap();
    assert_eq!(pool.superblock().pool_id, 77);
}

/// A power loss tore both copies while the journal still had them.
#[test]
fn a_mark_beside_a_torn_superblock_is_found_once_that_is_whole() {
    let place = Place::killed(0);
    let (pool, _) = place.open(&journaled()).unwrap();
    pool.mark_open().unwrap();
    pool.mark_recovered().unwrap();
    take_block(&pool).unwrap();
    assert_eq!(pool.superblock().closing, Closing::OpenJournaled);
    drop(pool);
    for at in [40, COPY_STRIDE + 40] {
        place.flip("superblock", at);
    }
    let (pool, opened) = place.open(&journaled()).unwrap();
    assert_eq!((opened.journal_loss, pool.used_blocks()), (None, 1));
}

#[test]
fn a_damaged_mark_is_an_error_that_salvage_leaves_aside() {
    let place = Place::killed(1);
    for at in JOURNAL_MARK_AT {
        place.flip("superblock", at + 8);
    }
    let error = place.open(&journaled()).err().unwrap();
    assert!(matches!(error, Error::Corrupted { at, .. } if at == JOURNAL_MARK_AT[0]), "{error}");
    let (pool, opened) = place.open(&salvaging()).unwrap();
    let loss = opened.journal_loss.expect("a loss");
    assert!(loss.what.contains("the file `superblock`"), "{loss:?}");
    assert_eq!(pool.used_blocks(), 1, "what is in the journal is replayed all the same");
}

#[test]
fn a_journal_that_cannot_be_read_is_no_loss_and_one_of_another_version_is_named() {
    let place = Place::killed(1);
    place.files.refuse(|deed| {
        (*deed == Deed::Read("journal".to_owned())).then_some(io::ErrorKind::PermissionDenied)
    });
    for options in [journaled(), salvaging()] {
        let error = place.open(&options).err().unwrap();
        let is_right = matches!(&error, Error::Io { action: "read", source, .. }
            if source.kind() == io::ErrorKind::PermissionDenied);
        assert!(is_right, "{error}");
    }
    let place = Place::killed(1);
    place.files.refuse(|deed| {
        (*deed == Deed::Opened("journal".to_owned())).then_some(io::ErrorKind::PermissionDenied)
    });
    assert!(matches!(place.open(&salvaging()), Err(Error::Io { action: "open", .. })));
    for (version, is_older) in [(1, true), (5, false)] {
        let place = Place::killed(1);
        for copy in [0, 4096] {
            forge_version(&*place.file("journal"), copy, version);
        }
        let error = place.open(&salvaging()).err().unwrap();
        let is_right = match error {
            Error::OlderFormat { found, supported: 4 } => found == 1 && is_older,
            Error::NewerFormat { found, supported: 4 } => found == 5 && !is_older,
            _ => false,
        };
        assert!(is_right, "{error}");
    }
}

/// What an entry says lies in a segment has to be read, and with salvage what cannot be read is not there.
#[test]
fn a_segment_that_cannot_be_read_is_an_error_that_salvage_leaves_aside() {
    let place = Place::killed(1);
    let options = PoolOptions { direct_bytes_min: Some(64), ..journaled() };
    let (pool, _) = place.open(&options).unwrap();
    pool.mark_open().unwrap();
    let at = pool.extent(pool.map.block_at(0), 128);
    pool.pmem.copy(at, &[7; 128], SITE);
    pool.pmem.flush_new(at, pool.pmem.fenced(), SITE);
    pool.pmem.fence(SITE);
    assert_eq!(pool.pmem.journal().unwrap().figures().direct_bytes, 0, "it is not written back");
    pool.pmem.journal().unwrap().checkpoint().unwrap();
    pool.pmem.copy(at, &[8; 128], SITE);
    pool.pmem.flush_new(at, Fenced::default(), SITE);
    pool.pmem.fence(SITE);
    assert_eq!(pool.pmem.journal().unwrap().figures().direct_bytes, 128);
    drop(pool);
    let refuse_once = || {
        let is_first = AtomicBool::new(true);
        place.files.refuse(move |deed| {
            let is_refused = *deed == Deed::Read("segment-000000".to_owned());
            (is_refused && is_first.swap(false, Ordering::Relaxed))
                .then_some(io::ErrorKind::InvalidInput)
        });
    };
    refuse_once();
    let error = place.open(&journaled()).err().unwrap();
    assert!(matches!(error, Error::Io { action: "read", .. }), "{error}");
    refuse_once();
    place.open(&salvaging()).unwrap();
}

/// Makes the header at `at` one of another version, with a right checksum: in word 7 of version 1, in word 9 now.
fn forge_version(file: &dyn File, at: u64, version: u64) {
    let mut bytes = [0; 80];
    file.read_at(at, &mut bytes).unwrap();
    bytes[8..16].copy_from_slice(&version.to_le_bytes());
    let summed = if version == 1 { 56 } else { 72 };
    let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..summed]);
    bytes[summed..summed + 8].copy_from_slice(&sum.to_le_bytes());
    file.write_at(at, &bytes).unwrap();
}

#[test]
fn a_reader_opens_the_journal_for_reading_and_changes_nothing() {
    for is_damaged in [false, true] {
        let place = Place::killed(1);
        if is_damaged {
            place.lose_the_last_entry();
        }
        place.files.take_opened_for_reading();
        let options = PoolOptions { salvage: is_damaged, ..reading() };
        let (pool, opened) = place.open(&options).unwrap();
        assert_eq!(opened.journal_loss.is_some(), is_damaged);
        assert!(place.files.take_opened_for_reading().contains(&"journal".to_owned()));
        let changed = place.deeds();
        assert!(changed.iter().all(|deed| matches!(deed, Deed::Synced(_))), "{changed:?}");
        drop(pool);
    }
    let place = Place::killed(1);
    place.files.take_opened_for_reading();
    let _pool = place.open(&journaled()).unwrap();
    assert!(!place.files.take_opened_for_reading().contains(&"journal".to_owned()));
}
