//! What opening asks of files and memory, in which order, and what it costs the superblock.

use chimera_pmem::{Environment, Medium, SteppedEnvironment};

use super::media::{Asked, LeftOut, Media};
use super::watched::{Deed, Watched};
use super::*;
use crate::pool::superblock::{COPY_STRIDE, FILE_BYTES};

const SEGMENT_BYTES: u64 = 128 << 10;
const BLOCK_BYTES: u64 = 24 << 10;

/// Files in memory, the machine that they are in, and what the pool in them was last seen to hold.
struct Place {
    files: Watched,
    environment: Arc<SteppedEnvironment>,
}

impl Place {
    fn new(medium: Medium) -> Self {
        let files = Watched::of(MemoryFiles::new().on(medium));
        let environment = Arc::new(SteppedEnvironment::with_files(1, Arc::new(files.clone())));
        Self { files, environment }
    }

    fn try_open(&self, media: &Media, options: &PoolOptions) -> Result<(Pool<Media>, Opened)> {
        let new = || Ok(NewPool { superblock: new_superblock(), is_segment_fixed: true });
        Pool::open(media.clone(), self.environment.clone(), Path::new("/pool"), options, new)
    }

    fn open(&self, media: &Media) -> Pool<Media> {
        self.try_open(media, &options()).unwrap().0
    }

    /// Writes what the memory of a pool holds to its files.
    fn write_back(&self, media: &Media) {
        let image = media.image();
        let write = |name: &str, bytes: &[u8]| {
            let path = Path::new("/pool").join(name);
            let file = self.files.files.open(&path, OpenMode::ReadWrite).unwrap();
            file.write_at(0, bytes).unwrap();
        };
        let (superblock, segments) = image.split_at(FILE_BYTES as usize);
        write("superblock", superblock);
        for (number, segment) in segments.chunks(SEGMENT_BYTES as usize).enumerate() {
            write(&format!("segment-{number:06}"), segment);
        }
    }

    /// A pool of so many blocks, open or closed in order, in files alone.
    fn with_blocks(medium: Medium, blocks: u64, closing: Option<Totals>) -> Self {
        let place = Self::new(medium);
        let media = Media::default();
        let pool = place.open(&media);
        pool.mark_open().unwrap();
        pool.mark_recovered().unwrap();
        (0..blocks)
            .for_each(|block| assert_eq!(pool.take_block(Purpose::Put, |_| ()).unwrap(), block));
        if let Some(totals) = closing {
            pool.close_with([0; 2], totals).unwrap();
        }
        drop(pool);
        place.write_back(&media);
        place.files.take(|_| false);
        place
    }
}

fn lines(at: u64, length: u64) -> std::ops::Range<u64> {
    at / 64 * 64..(at + length).next_multiple_of(64)
}

#[test]
fn storage_is_made_sure_of_for_all_that_a_pool_uses_before_anything_is_changed() {
    let place = Place::with_blocks(Medium::Simulated, 7, None);
    let _pool = place.open(&Media::default());
    let allocated = place.files.take(|deed| matches!(deed, Deed::Allocated(..)));
    let of = |name: &str, bytes| Deed::Allocated(name.to_owned(), bytes);
    let header = SEGMENT_BYTES - 4096..SEGMENT_BYTES;
    let expected = [
        of("superblock", 0..FILE_BYTES),
        of("segment-000000", header.clone()),
        of("segment-000001", header),
        of("segment-000000", 0..5 * BLOCK_BYTES),
        of("segment-000001", 0..2 * BLOCK_BYTES),
    ];
    assert_eq!(allocated, expected);
}

/// The process that made the file may have been killed before it synced anything.
#[test]
fn a_superblock_that_was_left_blank_is_durable_before_it_is_used() {
    let place = Place::new(Medium::Simulated);
    place.files.files.create_directory(Path::new("/pool")).unwrap();
    let file = place.files.files.open(Path::new("/pool/superblock"), OpenMode::CreateNew).unwrap();
    file.allocate(0, FILE_BYTES).unwrap();
    drop(file);
    let (pool, opened) = place.try_open(&Media::default(), &options()).unwrap();
    assert!(opened.created);
    let synced = place.files.take(|deed| matches!(deed, Deed::Synced(_) | Deed::SyncedEntries(_)));
    let entries = |name: &str| Deed::SyncedEntries(name.to_owned());
    assert_eq!(synced, [Deed::Synced("superblock".to_owned()), entries("pool"), entries("")]);
    drop(pool);
    // One that is there is not synced by who opens it.
    let place = Place::with_blocks(Medium::Simulated, 1, None);
    let _pool = place.open(&Media::default());
    let synced = place.files.take(|deed| matches!(deed, Deed::Synced(_) | Deed::SyncedEntries(_)));
    assert_eq!(synced, []);
}

#[test]
fn a_pool_on_a_plain_file_is_synced_when_it_is_marked_as_open_and_when_it_is_closed() {
    let syncs = |asked: &[Asked]| asked.iter().filter(|it| **it == Asked::Sync).count();
    for (media, is_file) in [(Media::default(), false), (Media::on_file(), true)] {
        let place = Place::with_blocks(Medium::File, 1, None);
        let pool = place.open(&media);
        let ((), asked) = media.watch(|| pool.mark_open().unwrap());
        assert_eq!(syncs(&asked), usize::from(is_file));
        if is_file {
            assert_eq!(asked.last(), Some(&Asked::Sync), "before anything else is written");
        }
        let ((), asked) = media.watch(|| pool.close().unwrap());
        // All of it, and after each copy that says that the pool is closed.
        assert_eq!((syncs(&asked), &asked[0], asked.last()), (3, &Asked::Sync, Some(&Asked::Sync)));
        let copies: Vec<_> = asked.split(|it| *it == Asked::Sync).map(<[_]>::len).collect();
        assert!(copies[1] > 0 && copies[2] > 0, "{asked:?}");
    }
    let totals = Totals { records: 1, key_sum: 2, state_sum: 3 };
    let place = Place::with_blocks(Medium::File, 1, Some(totals));
    let media = Media::on_file();
    let pool = place.open(&media);
    assert!(pool.was_clean());
    let ((), asked) = media.watch(|| pool.close_as_it_was().unwrap());
    assert_eq!((syncs(&asked), &asked[0]), (3, &Asked::Sync));
}

#[test]
fn what_was_found_is_written_back_before_it_is_overwritten() {
    let place = Place::with_blocks(Medium::Simulated, 2, None);
    for is_said in [true, false] {
        let media = Media::default();
        let pool = place.open(&media);
        if !is_said {
            let word = media.load_u64(USED_BLOCKS_AT[1]);
            media.store_u64(USED_BLOCKS_AT[1], word ^ 1 << 50, media::ENGINE);
        }
        let superblock = pool.superblock();
        let at = superblock.sequence % 2 * COPY_STRIDE;
        let ((), asked) = media.watch(|| pool.mark_open().unwrap());
        let copy = Asked::Flush(lines(at, 8 * superblock.words_used() as u64));
        let words = USED_BLOCKS_AT.map(|at| Asked::Flush(lines(at, 8)));
        assert_eq!(asked[..4], [&[copy][..], &words, &[Asked::Fence]].concat());
        let expected = USED_BLOCKS_AT.map(|at| checked_word::encode_at(2, at));
        assert_eq!(USED_BLOCKS_AT.map(|at| media.load_u64(at)), expected);
    }
    // Where they are right nobody stores them.
    let steps = |is_said: bool| {
        let media = Media::default();
        let pool = place.open(&media);
        if !is_said {
            let word = media.load_u64(USED_BLOCKS_AT[1]);
            media.store_u64(USED_BLOCKS_AT[1], word ^ 1 << 50, media::ENGINE);
        }
        media.photograph(|| pool.mark_open().unwrap()).1.len()
    };
    assert_eq!(steps(false), steps(true) + 2);
}

#[test]
fn the_superblock_is_changed_only_as_often_as_there_is_something_to_say() {
    let totals = Totals { records: 1, key_sum: 2, state_sum: 3 };
    let changes = |place: &Place, salvage: bool| {
        let media = Media::default();
        let options = PoolOptions { salvage, ..options() };
        let pool = place.try_open(&media, &options).unwrap().0;
        pool.mark_open().unwrap();
        let before = pool.superblock().sequence;
        pool.mark_recovered().unwrap();
        let after = pool.superblock();
        assert_eq!(after.totals, Totals::default());
        assert_eq!((after.boot_id, after.closing), (place.environment.boot_id(), Closing::Open));
        after.sequence - before
    };
    let closed = Place::with_blocks(Medium::Simulated, 1, Some(totals));
    assert_eq!(changes(&closed, false), 2, "in both copies");
    let killed = Place::with_blocks(Medium::Simulated, 1, None);
    assert_eq!(changes(&killed, false), 0, "it says so already");
    let closed = Place::with_blocks(Medium::Simulated, 1, Some(Totals::default()));
    assert_eq!(changes(&closed, false), 0);
    killed.environment.reboot();
    assert_eq!(changes(&killed, true), 1);
}

#[test]
fn sizes_that_no_pool_has_are_refused() {
    let invalid = || {
        let mut superblock = new_superblock();
        superblock.geometry.block_bytes = 100;
        superblock
    };
    let place = Place::new(Medium::Simulated);
    let new = || Ok(NewPool { superblock: invalid(), is_segment_fixed: true });
    let opened = Pool::open(
        Media::default(),
        place.environment.clone(),
        Path::new("/pool"),
        &options(),
        new,
    );
    let error = opened.err().unwrap();
    assert!(matches!(error, Error::InvalidOptions(_)), "{error}");
    // A superblock that says so, with right checksums.
    let place = Place::with_blocks(Medium::Simulated, 0, None);
    let file = place.files.files.open(Path::new("/pool/superblock"), OpenMode::ReadWrite).unwrap();
    for sequence in [8, 9] {
        let forged = Superblock { sequence, segments: 1, ..invalid() };
        let words: Vec<u8> = forged.encode().iter().flat_map(|word| word.to_le_bytes()).collect();
        file.write_at(sequence % 2 * COPY_STRIDE, &words).unwrap();
    }
    let error = place.try_open(&Media::default(), &options()).err().unwrap();
    assert!(matches!(error, Error::Corrupted { at: 32, .. }), "{error}");
}

#[test]
fn a_power_loss_is_told_of_at_the_copy_that_says_so() {
    for changes in 0..2 {
        let place = Place::new(Medium::Simulated);
        let media = Media::default();
        let pool = place.open(&media);
        pool.mark_open().unwrap();
        pool.mark_recovered().unwrap();
        (0..changes).for_each(|_| pool.change_superblock(|_| {}));
        let at = pool.superblock().sequence % 2 * COPY_STRIDE;
        drop(pool);
        place.write_back(&media);
        place.environment.reboot();
        let salvaging = PoolOptions { salvage: true, ..options() };
        let (pool, _) = place.try_open(&Media::on_tmpfs(), &salvaging).unwrap();
        let closing_at = at + superblock::CLOSING_AT;
        assert_eq!(pool.losses().first.map(|loss| loss.at), Some(closing_at));
    }
}

#[test]
fn storage_is_allocated_in_steps_of_some_size_at_most() {
    let place = Place::new(Medium::Simulated);
    let mut superblock = new_superblock();
    superblock.geometry.segment_bytes = 16 << 20;
    let new = || Ok(NewPool { superblock, is_segment_fixed: true });
    let options = PoolOptions { populate_ahead_bytes: Some(12 << 20), ..options() };
    let (path, media) = (Path::new("/pool"), Media::default());
    let opened = Pool::open(media, place.environment.clone(), path, &options, new);
    let (pool, _) = opened.unwrap();
    pool.grow_beyond(0).unwrap();
    assert_eq!(pool.ready_blocks(), (4 << 20) / BLOCK_BYTES);
}

#[test]
fn a_tool_may_take_the_number_of_used_blocks_as_it_is() {
    let place = Place::with_blocks(Medium::Simulated, 2, None);
    let file = place.files.files.open(Path::new("/pool/superblock"), OpenMode::ReadWrite).unwrap();
    // A segment has five.
    for (number, found) in [(2, 2), (5, 5), (6, 0)] {
        for at in USED_BLOCKS_AT {
            file.write_at(at, &(number | 1_u64 << 40).to_le_bytes()).unwrap();
        }
        let media = Media::default();
        assert!(place.try_open(&media, &options()).is_err());
        let media = Media::default();
        media.leave_out(Some(LeftOut::Step(steps::USED_BLOCKS_CHECK)));
        assert_eq!(place.open(&media).used_blocks(), found);
    }
}

#[test]
fn segments_without_blocks_in_use_are_removed_where_they_are_files() {
    let place = Place::new(Medium::Simulated);
    let media = Media::default();
    let pool = place.open(&media);
    pool.mark_open().unwrap();
    (0..11).for_each(|block| assert_eq!(pool.take_block(Purpose::Put, |_| ()).unwrap(), block));
    (6..11).rev().for_each(|block| assert!(pool.give_back(block, || Ok(()))));
    pool.close().unwrap();
    assert_eq!(pool.superblock().segments, 2);
    let removed = place.files.take(|deed| matches!(deed, Deed::Removed(_)));
    assert_eq!(removed, [Deed::Removed("segment-000002".to_owned())]);
    let anonymous = PoolOptions { anonymous_bytes: Some(1 << 20), ..options() };
    let (pool, _) = open(Path::new(""), &anonymous).unwrap();
    (0..11).for_each(|block| assert_eq!(take_block(&pool).unwrap(), block));
    (0..11).rev().for_each(|block| assert!(pool.give_back(block, || Ok(()))));
    pool.close().unwrap();
    assert_eq!(pool.superblock().segments, 3);
}
