//! Small pools in anonymous memory, or on memory that loses what was not written back, for tests of what lies in a pool.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chimera_pmem::SteppedEnvironment;
use chimera_pmem::environment::{MemoryFiles, OpenMode};
use chimera_pmem::{Environment, Hardware, HardwareOptions, Medium};

use super::superblock::FILE_BYTES;
use super::tests::media::Media;
use super::{Closing, NewPool, Pool, PoolGeometry, PoolOptions, Superblock};
use crate::types::durability::Durability;
use crate::types::totals::Totals;

/// A pool of so many bytes, in segments of this length with blocks of 256 bytes.
pub(crate) fn small_pool(
    environment: Arc<dyn Environment>,
    segment_bytes: u64,
    bytes: u64,
) -> Arc<Pool<Hardware>> {
    let options = PoolOptions {
        anonymous_bytes: Some(bytes),
        populate_ahead_bytes: Some(0),
        ..PoolOptions::default()
    };
    let pmem = Hardware::new(HardwareOptions::default()).expect("address space");
    let new = || Ok(new_pool(segment_bytes, 256));
    let opened = Pool::open(pmem, environment, Path::new("pool"), &options, new);
    Arc::new(opened.expect("a new pool").0)
}

/// A pool with a journal, on files in memory that say they lie on a disk, in segments of this length with blocks of 256 bytes.
/// From a line on what is new goes to its place.
pub(crate) fn journaled_pool(segment_bytes: u64) -> (Arc<Pool<Hardware>>, Arc<SteppedEnvironment>) {
    let files = Arc::new(MemoryFiles::new().on(Medium::File));
    let environment = Arc::new(SteppedEnvironment::with_files(1, files));
    let options = PoolOptions {
        durability: Durability::Group { max_delay: Duration::from_millis(50) },
        populate_ahead_bytes: Some(0),
        direct_bytes_min: Some(64),
        ..PoolOptions::default()
    };
    let pmem = Hardware::new(HardwareOptions::default()).expect("address space");
    let new = || Ok(new_pool(segment_bytes, 256));
    let opened = Pool::open(pmem, environment.clone(), Path::new("pool"), &options, new);
    let pool = opened.expect("a new pool").0;
    pool.mark_open().expect("nothing to sync");
    (Arc::new(pool), environment)
}

/// A pool on `media`, whose files hold `image`, of up to so many bytes; a new one where that is empty.
pub(crate) fn media_pool(
    media: &Media,
    image: &[u8],
    segment_bytes: u64,
    bytes: u64,
) -> Arc<Pool<Media>> {
    media_pool_opened(media, image, segment_bytes, bytes, false)
}

/// As [`media_pool`], perhaps for reading only.
pub(crate) fn media_pool_opened(
    media: &Media,
    image: &[u8],
    segment_bytes: u64,
    bytes: u64,
    read_only: bool,
) -> Arc<Pool<Media>> {
    media_pool_of(media, image, (segment_bytes, 256), bytes, read_only)
}

/// As [`media_pool_opened`], with segments and blocks of so many bytes.
pub(crate) fn media_pool_of(
    media: &Media,
    image: &[u8],
    (segment_bytes, block_bytes): (u64, u32),
    bytes: u64,
    read_only: bool,
) -> Arc<Pool<Media>> {
    let environment = SteppedEnvironment::in_memory(1);
    let directory = Path::new("pool");
    environment.create_directory(directory).expect("a directory");
    let write = |name: &str, bytes: &[u8]| {
        let file = environment.open(&directory.join(name), OpenMode::CreateNew).expect("a file");
        file.write_at(0, bytes).expect("room");
    };
    if !image.is_empty() {
        let (superblock, segments) = image.split_at(FILE_BYTES as usize);
        write("lock", &[]);
        write("superblock", superblock);
        for (number, segment) in segments.chunks(segment_bytes as usize).enumerate() {
            write(&format!("segment-{number:06}"), segment);
        }
    }
    let options = PoolOptions {
        durability: Durability::Process,
        populate_ahead_bytes: Some(0),
        capacity_bytes: Some(bytes),
        read_only,
        ..PoolOptions::default()
    };
    let new = || Ok(new_pool(segment_bytes, block_bytes));
    let opened = Pool::open(media.clone(), Arc::new(environment), directory, &options, new);
    let (pool, opened) = opened.expect("a pool");
    if opened.created {
        pool.mark_open().expect("nothing to sync");
    }
    Arc::new(pool)
}

/// A new pool of segments of this length, with blocks of so many bytes.
pub(crate) fn new_pool(segment_bytes: u64, block_bytes: u32) -> NewPool {
    let superblock = Superblock {
        engine: 1,
        pool_id: 77,
        hash_seed: 1,
        geometry: PoolGeometry { segment_bytes, block_bytes, block_shift_bytes: 0 },
        sequence: 0,
        segments: 0,
        closing: Closing::Open,
        boot_id: 0,
        is_ordered: false,
        closed_words: [0; 2],
        totals: Totals::default(),
        area: Vec::new(),
    };
    NewPool { superblock, is_segment_fixed: true }
}
