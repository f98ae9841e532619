//! Pools in files; in `superblock_crashes`, their superblock through every crash, on the memory in [`media`].

mod compared;
mod directories;
mod edges;
mod journaled;
pub(crate) mod media;
mod opened;
mod opening;
mod superblock_crashes;
pub(crate) mod watched;

use std::path::Path;
use std::sync::Arc;

use chimera_pmem::environment::{File, FileProvider, MemoryFiles, OpenMode};
use chimera_pmem::{Hardware, HardwareOptions, RealEnvironment, SteppedEnvironment};

use super::open::Opened;
use super::*;
use crate::types::durability::Durability;
use crate::types::totals::Totals;

fn options() -> PoolOptions {
    // Without a journal: these tests change the files themselves.
    PoolOptions {
        durability: Durability::Process,
        populate_ahead_bytes: Some(48 << 10),
        ..PoolOptions::default()
    }
}

fn new_superblock() -> Superblock {
    Superblock {
        engine: 1,
        pool_id: 77,
        hash_seed: 1,
        geometry: PoolGeometry {
            segment_bytes: 128 << 10,
            block_bytes: 24 << 10,
            block_shift_bytes: 0,
        },
        sequence: 0,
        segments: 0,
        closing: Closing::Open,
        boot_id: 0,
        is_ordered: false,
        closed_words: [0; 2],
        totals: Totals::default(),
        area: vec![1, 2, 3],
    }
}

fn open(path: &Path, options: &PoolOptions) -> Result<(Pool<Hardware>, Opened)> {
    let pmem = Hardware::new(HardwareOptions::default()).unwrap();
    let new = || Ok(NewPool { superblock: new_superblock(), is_segment_fixed: false });
    Pool::open(pmem, Arc::new(RealEnvironment::new()), path, options, new)
}

/// Takes a block in which nothing is prepared but a word.
fn take_block(pool: &Pool<Hardware>) -> Result<u64> {
    let site = block_sites::BLOCK_READY;
    pool.take_block(Purpose::Put, |block| {
        pool.store_block_word(block, BlockWord::single(0, 0), site);
    })
}

#[test]
fn blocks_are_handed_out_across_segments_and_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pool");
    let (pool, opened) = open(&path, &options()).unwrap();
    assert!(opened.created);
    let blocks: Vec<_> = (0..12).map(|_| take_block(&pool).unwrap()).collect();
    assert_eq!(blocks, (0..12).collect::<Vec<_>>());
    assert_eq!(pool.superblock().segments, 3);
    pool.close().unwrap();
    drop(pool);
    let (pool, opened) = open(&path, &options()).unwrap();
    assert_eq!(opened, Opened { created: false, clean: true, journal_loss: None });
    assert_eq!(pool.used_blocks(), 12);
    assert_eq!(take_block(&pool).unwrap(), 12);
}

#[test]
fn the_words_of_closing_are_taken_back_when_the_pool_is_opened_and_the_totals_when_it_is_recovered()
{
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pool");
    let (pool, _) = open(&path, &options()).unwrap();
    pool.mark_open().unwrap();
    let totals = Totals { records: 1, key_sum: 2, state_sum: 3 };
    pool.close_with([5, 6], totals).unwrap();
    drop(pool);
    let (pool, opened) = open(&path, &options()).unwrap();
    assert!(opened.clean && pool.closed_words() == [5, 6]);
    assert_eq!(pool.closed_totals(), Some(totals));
    pool.mark_open().unwrap();
    assert_eq!(pool.superblock().closed_words, [0, 0]);
    drop(pool);
    let (pool, opened) = open(&path, &options()).unwrap();
    assert!(!opened.clean);
    assert_eq!((pool.closed_words(), pool.superblock().closed_words), ([0, 0], [0, 0]));
    assert_eq!(pool.closed_totals(), Some(totals), "the opening before did not get to its end");
    pool.mark_open().unwrap();
    pool.close_as_it_was().unwrap();
    assert_eq!(pool.superblock().closing, Closing::Open, "what it held in order is not known");
    pool.mark_recovered().unwrap();
    drop(pool);
    let (pool, _) = open(&path, &options()).unwrap();
    assert_eq!(pool.closed_totals(), None);
}

#[test]
fn a_full_pool_says_so_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (pool, _) =
        open(directory.path(), &PoolOptions { capacity_bytes: Some(3 * 24576), ..options() })
            .unwrap();
    for _ in 0..3 {
        take_block(&pool).unwrap();
    }
    assert!(matches!(take_block(&pool), Err(Error::PoolFull { .. })));
    assert_eq!(pool.used_blocks(), 3);
}

#[test]
fn a_second_opener_is_told_who_holds_the_pool() {
    let directory = tempfile::tempdir().unwrap();
    let _pool = open(directory.path(), &options()).unwrap();
    let error = open(directory.path(), &options()).err().unwrap();
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
}

#[test]
fn missing_cut_and_extended_files_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let (pool, _) = open(directory.path(), &options()).unwrap();
    take_block(&pool).unwrap();
    drop(pool);
    for name in ["superblock", "segment-000000"] {
        let path = directory.path().join(name);
        let bytes = std::fs::read(&path).unwrap();
        let error = |path: &Path| open(path, &options()).err().unwrap().to_string();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(error(directory.path()).contains("cut or extended"));
        std::fs::write(&path, [&bytes[..], b"x"].concat()).unwrap();
        assert!(error(directory.path()).contains("cut or extended"));
        std::fs::remove_file(&path).unwrap();
        assert!(error(directory.path()).contains("missing"));
        std::fs::write(&path, &bytes).unwrap();
        open(directory.path(), &options()).unwrap();
    }
}

#[test]
fn a_flipped_byte_of_one_superblock_copy_is_survived_and_of_both_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (pool, _) = open(directory.path(), &options()).unwrap();
    take_block(&pool).unwrap();
    pool.close().unwrap();
    drop(pool);
    let path = directory.path().join("superblock");
    let bytes = std::fs::read(&path).unwrap();
    for byte in 0..8 * new_superblock().words_used() {
        let mut one = bytes.clone();
        one[byte] ^= 0x10;
        std::fs::write(&path, &one).unwrap();
        let (pool, _) = open(directory.path(), &options()).unwrap();
        assert_eq!(pool.used_blocks(), 1);
        drop(pool);
        let mut both = bytes.clone();
        both[byte] ^= 0x10;
        both[superblock::COPY_STRIDE as usize + byte] ^= 0x10;
        std::fs::write(&path, &both).unwrap();
        assert!(open(directory.path(), &options()).is_err(), "byte {byte}");
        std::fs::write(&path, &bytes).unwrap();
    }
}

#[test]
fn an_interrupted_creation_is_done_again_and_nothing_else_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("superblock");
    let words = new_superblock().encode();
    let torn = |count: usize| {
        let mut bytes: Vec<u8> =
            words[..count].iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(8192, 0);
        bytes
    };
    for interrupted in [Vec::new(), torn(0), torn(1), torn(15), torn(16), torn(20)] {
        std::fs::write(&path, interrupted).unwrap();
        let (pool, opened) = open(directory.path(), &options()).unwrap();
        assert!(opened.created);
        drop(pool);
    }
    // Somebody else's file, and one in which the second copy says that the store was open before.
    let mut foreign = torn(0);
    foreign[0] = 1;
    let mut lived = torn(5);
    lived[4096] = 1;
    for other in [foreign, lived] {
        std::fs::write(&path, other).unwrap();
        assert!(matches!(open(directory.path(), &options()), Err(Error::Corrupted { .. })));
    }
}
