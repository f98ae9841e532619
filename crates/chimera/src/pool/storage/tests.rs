//! Which parts of which files get storage when a pool is opened.

use std::sync::Mutex;

use chimera_pmem::SteppedEnvironment;
use chimera_pmem::environment::{FileProvider, MemoryFiles, OpenMode};

use super::*;
use crate::pool::PoolGeometry;
use crate::pool::tests::media::Media;
use crate::pool::tests::watched::Watched;

/// A file that keeps account of what was allocated in it.
#[derive(Debug, Default)]
struct Account {
    is_read_only: bool,
    is_full: bool,
    allocated: Mutex<Vec<(u64, u64)>>,
}

impl File for Account {
    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        assert!(!self.is_read_only, "what is only read is not allocated");
        self.allocated.lock().unwrap().push((offset, length));
        if self.is_full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn length(&self) -> io::Result<u64> {
        unreachable!("storage is all that is asked for")
    }

    fn punch(&self, _: u64, _: u64) -> io::Result<()> {
        unreachable!("storage is all that is asked for")
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        unreachable!("storage is all that is asked for")
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        unreachable!("storage is all that is asked for")
    }

    fn set_length(&self, _: u64) -> io::Result<()> {
        unreachable!("storage is all that is asked for")
    }

    fn sync(&self) -> io::Result<()> {
        unreachable!("storage is all that is asked for")
    }

    fn try_lock(&self, _: bool) -> io::Result<bool> {
        unreachable!("storage is all that is asked for")
    }

    fn medium(&self) -> io::Result<Medium> {
        unreachable!("storage is all that is asked for")
    }

    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }
}

/// Ensures a part of a file that begins at byte 1 MiB of the pool.
fn ensured(media: &Media, file: Account, part: Range<u64>) -> (Result<()>, Vec<(u64, u64)>) {
    let account = Arc::new(file);
    let file: Arc<dyn File> = account.clone();
    let mapped = Mapped { file: &file, path: Path::new("store/segment-000000"), at: 1 << 20 };
    let result = ensure(media, &mapped, part);
    let allocated = account.allocated.lock().unwrap().clone();
    (result, allocated)
}

#[test]
fn a_part_of_a_file_that_is_written_is_allocated_and_not_touched() {
    for media in [Media::default(), Media::on_tmpfs()] {
        let (result, allocated) = ensured(&media, Account::default(), 4096..24_576);
        result.unwrap();
        assert_eq!(allocated, [(4096, 20_480)]);
    }
    let media = Media::on_tmpfs();
    ensured(&media, Account::default(), 4096..24_576).0.unwrap();
    assert_eq!(media.take_populated(), []);
}

#[test]
fn a_part_of_a_file_that_is_only_read_is_touched_on_tmpfs_where_it_is_mapped() {
    let read_only = || Account { is_read_only: true, ..Account::default() };
    let media = Media::on_tmpfs();
    ensured(&media, read_only(), 4096..24_576).0.unwrap();
    assert_eq!(media.take_populated(), [((1 << 20) + 4096, 20_480)]);
    let media = Media::default();
    let ((result, allocated), asked) = media.watch(|| ensured(&media, read_only(), 4096..24_576));
    result.unwrap();
    assert_eq!((allocated, asked), (vec![], vec![]));
}

#[test]
fn a_lack_of_room_names_the_file_and_why_it_may_be() {
    let full = Account { is_full: true, ..Account::default() };
    let error = ensured(&Media::default(), full, 0..4096).0.unwrap_err();
    assert!(matches!(error, Error::PoolFull { .. }), "{error}");
    for word in ["segment-000000", "a copy made with holes"] {
        assert!(error.to_string().contains(word), "{error}");
    }
}

const BLOCK: u64 = 24 << 10;
const SHIFT: u64 = 2048;
const SEGMENT: u64 = 128 << 10;
const BASE: u64 = 8192;

/// Ensures so many used blocks of a pool with four segments of five blocks, and says what was allocated in each.
fn allocated_for(used: u64) -> Vec<Vec<(u64, u64)>> {
    let accounts: Vec<_> = (0..4).map(|_| Arc::new(Account::default())).collect();
    ensure_used_in(&Media::default(), &accounts, used).unwrap();
    accounts.iter().map(|account| account.allocated.lock().unwrap().clone()).collect()
}

fn ensure_used_in(media: &Media, accounts: &[Arc<Account>], used: u64) -> Result<()> {
    let geometry = PoolGeometry {
        segment_bytes: SEGMENT,
        block_bytes: BLOCK as u32,
        block_shift_bytes: SHIFT as u32,
    };
    let map = BlockMap::new(BASE, &geometry).unwrap();
    assert_eq!(map.blocks_per_segment, 5);
    let section = |account: &Arc<Account>| Section { file: account.clone(), offset: 0 };
    let segments: Vec<_> = accounts.iter().map(section).collect();
    let files = PoolFiles::none(Arc::new(SteppedEnvironment::in_memory(1)));
    ensure_used(media, &files, &map, &segments, used)
}

#[test]
fn storage_is_made_sure_of_behind_used_blocks_and_behind_no_others() {
    let blocks = |count: u64| vec![(0, SHIFT + count * BLOCK)];
    for (used, expected) in [
        (0, [vec![], vec![], vec![], vec![]]),
        (1, [blocks(1), vec![], vec![], vec![]]),
        (5, [blocks(5), vec![], vec![], vec![]]),
        (7, [blocks(5), blocks(2), vec![], vec![]]),
        (10, [blocks(5), blocks(5), vec![], vec![]]),
        (14, [blocks(5), blocks(5), blocks(4), vec![]]),
        (20, [blocks(5), blocks(5), blocks(5), blocks(5)]),
    ] {
        assert_eq!(allocated_for(used), expected, "{used} blocks");
    }
}

#[test]
fn used_blocks_that_are_only_read_on_tmpfs_are_touched_where_each_segment_is_mapped() {
    let read_only = || Arc::new(Account { is_read_only: true, ..Account::default() });
    let media = Media::on_tmpfs();
    ensure_used_in(&media, &[read_only(), read_only(), read_only()], 12).unwrap();
    let whole = SHIFT + 5 * BLOCK;
    let expected =
        [(BASE, whole), (BASE + SEGMENT, whole), (BASE + 2 * SEGMENT, SHIFT + 2 * BLOCK)];
    assert_eq!(media.take_populated(), expected);
}

#[test]
fn a_segment_without_room_is_named_by_its_number() {
    let accounts =
        [false, false, true].map(|is_full| Arc::new(Account { is_full, ..Account::default() }));
    let error = ensure_used_in(&Media::default(), &accounts, 12).unwrap_err();
    assert!(error.to_string().contains("segment-000002"), "{error}");
}

/// All of a device is storage.
#[test]
fn nothing_is_allocated_on_a_device() {
    let files = Watched::of(MemoryFiles::new().on(Medium::DevDax));
    let device = files.files.open(Path::new("/device"), OpenMode::CreateNew).unwrap();
    device.allocate(0, 4 << 20).unwrap();
    let environment = Arc::new(SteppedEnvironment::with_files(1, Arc::new(files)));
    let files = PoolFiles::lock(environment, Path::new("/device"), true, false).unwrap();
    let geometry =
        PoolGeometry { segment_bytes: SEGMENT, block_bytes: BLOCK as u32, block_shift_bytes: 0 };
    let map = BlockMap::new(2 << 20, &geometry).unwrap();
    let account = Arc::new(Account::default());
    let segments = [Section { file: account.clone(), offset: 0 }];
    ensure_used(&Media::default(), &files, &map, &segments, 3).unwrap();
    assert!(account.allocated.lock().unwrap().is_empty());
}
