//! What opening refuses and repairs, and which copy of the superblock says what before and after.

use chimera_pmem::SteppedEnvironment;

use super::media::Media;
use super::*;
use crate::pool::copies::find_superblock;
use crate::pool::superblock::{COPY_STRIDE, FILE_BYTES};

const TOTALS: Totals = Totals { records: 1, key_sum: 2, state_sum: 3 };

fn open_in(
    environment: &Arc<SteppedEnvironment>,
    path: &Path,
    options: &PoolOptions,
) -> Result<(Pool<Hardware>, Opened)> {
    let pmem = Hardware::new(HardwareOptions::default()).unwrap();
    let new = || Ok(NewPool { superblock: new_superblock(), is_segment_fixed: false });
    Pool::open(pmem, environment.clone(), path, options, new)
}

fn reading() -> PoolOptions {
    PoolOptions { read_only: true, ..options() }
}

fn salvaging() -> PoolOptions {
    PoolOptions { salvage: true, ..options() }
}

/// Makes a pool and closes it in order.
fn closed_pool(path: &Path) {
    let (pool, _) = open(path, &options()).unwrap();
    pool.mark_open().unwrap();
    take_block(&pool).unwrap();
    pool.close_with([5, 6], TOTALS).unwrap();
}

/// Opens what each copy of the superblock says, when nothing of the other one is left.
fn each_copy_alone(path: &Path, mut check: impl FnMut(&Pool<Hardware>, &Opened)) {
    let file = path.join("superblock");
    let whole = std::fs::read(&file).unwrap();
    for copy in [0, COPY_STRIDE as usize] {
        let mut bytes = whole.clone();
        bytes[copy..copy + 8 * superblock::WORDS].fill(0xff);
        std::fs::write(&file, bytes).unwrap();
        let (pool, opened) = open(path, &options()).unwrap();
        check(&pool, &opened);
    }
    std::fs::write(&file, whole).unwrap();
}

#[test]
fn either_copy_alone_says_that_a_pool_was_closed_and_with_what() {
    let directory = tempfile::tempdir().unwrap();
    closed_pool(directory.path());
    each_copy_alone(directory.path(), |pool, opened| {
        assert!(opened.clean && pool.was_clean());
        assert_eq!((pool.closed_words(), pool.closed_totals()), ([5, 6], Some(TOTALS)));
    });
}

#[test]
fn either_copy_alone_says_that_a_pool_is_open_and_with_what_until_opening_has_ended() {
    for has_ended in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        closed_pool(directory.path());
        let (pool, _) = open(directory.path(), &options()).unwrap();
        pool.mark_open().unwrap();
        if has_ended {
            pool.mark_recovered().unwrap();
        }
        drop(pool);
        let totals = (!has_ended).then_some(TOTALS);
        each_copy_alone(directory.path(), |pool, opened| {
            assert!(!opened.clean && !pool.was_clean());
            assert_eq!((pool.closed_words(), pool.closed_totals()), ([0, 0], totals));
        });
    }
}

#[test]
fn a_reader_neither_marks_a_pool_as_open_nor_as_closed() {
    let directory = tempfile::tempdir().unwrap();
    closed_pool(directory.path());
    let bytes = || std::fs::read(directory.path().join("superblock")).unwrap();
    let closed = bytes();
    let (pool, _) = open(directory.path(), &reading()).unwrap();
    pool.mark_open().unwrap();
    pool.close().unwrap();
    drop(pool);
    assert!(bytes() == closed);
    let (pool, _) = open(directory.path(), &options()).unwrap();
    pool.mark_open().unwrap();
    drop(pool);
    let marked = bytes();
    open(directory.path(), &reading()).unwrap().0.close().unwrap();
    assert!(bytes() == marked);
}

#[test]
fn a_pool_that_others_cannot_find_any_more_is_not_closed_but_read() {
    let directory = tempfile::tempdir().unwrap();
    closed_pool(directory.path());
    let superblock = directory.path().join("superblock");
    let whole = std::fs::read(&superblock).unwrap();
    let (pool, _) = open(directory.path(), &options()).unwrap();
    std::fs::remove_file(&superblock).unwrap();
    assert!(matches!(pool.check_in_place(), Err(Error::Removed { .. })));
    assert!(matches!(pool.close(), Err(Error::Removed { .. })));
    drop(pool);
    std::fs::write(&superblock, whole).unwrap();
    let (pool, _) = open(directory.path(), &reading()).unwrap();
    std::fs::remove_file(&superblock).unwrap();
    pool.check_in_place().unwrap();
}

#[test]
fn a_machine_that_went_down_under_an_open_pool_is_told_of_until_it_is_recovered() {
    let directory = tempfile::tempdir().unwrap();
    closed_pool(directory.path());
    let environment = Arc::new(SteppedEnvironment::new(1));
    let open = |options: &PoolOptions| open_in(&environment, directory.path(), options);
    // One that was closed does not care, and belongs to this start of the machine from now on.
    open(&options()).unwrap().0.mark_open().unwrap();
    let (pool, opened) = open(&options()).unwrap();
    assert!(!opened.clean && pool.losses().is_empty());
    drop(pool);
    environment.reboot();
    let (pool, _) = open(&salvaging()).unwrap();
    let first = pool.losses().first.expect("a loss");
    assert!(first.what.contains("the machine went down"), "{first:?}");
    pool.mark_open().unwrap();
    drop(pool);
    for options in [options(), reading()] {
        assert!(matches!(open(&options), Err(Error::PowerLost { .. })));
    }
    let (pool, _) = open(&salvaging()).unwrap();
    pool.mark_open().unwrap();
    pool.mark_recovered().unwrap();
    drop(pool);
    assert!(open(&options()).unwrap().0.losses().is_empty());
}

#[test]
fn a_pool_that_needs_a_journal_says_what_is_there_instead() {
    let directory = tempfile::tempdir().unwrap();
    closed_pool(directory.path());
    let (pool, _) = open(directory.path(), &options()).unwrap();
    pool.change_superblock(|superblock| superblock.closing = Closing::OpenJournaled);
    drop(pool);
    let journal = directory.path().join("journal");
    for words in ["`journal` is missing", "`journal` is blank"] {
        for options in [options(), reading()] {
            let error = open(directory.path(), &options).err().expect("a journal is needed");
            assert!(matches!(error, Error::NotAStore { .. }), "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
        let (pool, opened) = open(directory.path(), &salvaging()).unwrap();
        assert!(opened.journal_loss.expect("a loss").what.contains(words));
        assert_eq!((pool.losses().count, pool.used_blocks()), (1, 1));
        pool.mark_recovered().unwrap();
        // As it was before, but for the loss that is accepted now.
        pool.change_superblock(|superblock| superblock.closing = Closing::OpenJournaled);
        drop(pool);
        std::fs::write(&journal, []).unwrap();
    }
}

#[test]
fn a_pool_without_a_journal_removes_one_that_never_came_into_use() {
    let directory = tempfile::tempdir().unwrap();
    closed_pool(directory.path());
    let journal = directory.path().join("journal");
    std::fs::write(&journal, []).unwrap();
    let (pool, opened) = open(directory.path(), &options()).unwrap();
    assert_eq!(opened.journal_loss, None);
    assert!(journal.exists(), "not before the pool says that it is open without one");
    pool.mark_open().unwrap();
    assert!(!journal.exists());
}

#[test]
fn a_part_of_a_pool_is_refused_until_it_is_complete() {
    let directory = tempfile::tempdir().unwrap();
    let part = PoolOptions { incomplete: true, ..options() };
    let (pool, _) = open(directory.path(), &part).unwrap();
    pool.mark_open().unwrap();
    pool.mark_recovered().unwrap();
    pool.close().unwrap();
    drop(pool);
    for options in [options(), reading(), salvaging()] {
        let outcome = open(directory.path(), &options);
        assert!(matches!(outcome, Err(Error::Incomplete { .. })));
    }
    let saved = PoolOptions { read_only: true, ..salvaging() };
    let (pool, _) = open(directory.path(), &saved).unwrap();
    assert!(pool.losses().first.expect("a loss").what.contains("backup that was interrupted"));
}

#[test]
fn only_a_new_pool_is_made_as_a_part() {
    let directory = tempfile::tempdir().unwrap();
    closed_pool(directory.path());
    let part = PoolOptions { incomplete: true, ..options() };
    assert!(matches!(open(directory.path(), &part), Err(Error::AlreadyExists { .. })));
}

#[test]
fn nothing_is_made_for_a_reader_or_for_whoever_asks_for_a_pool_that_exists() {
    let existing = PoolOptions { create: false, ..options() };
    for options in [existing, reading()] {
        for bytes in [None, Some(0), Some(FILE_BYTES as usize)] {
            let directory = tempfile::tempdir().unwrap();
            std::fs::write(directory.path().join("lock"), []).unwrap();
            let superblock = directory.path().join("superblock");
            if let Some(bytes) = bytes {
                std::fs::write(&superblock, vec![0; bytes]).unwrap();
            }
            let outcome = open(directory.path(), &options);
            assert!(matches!(outcome, Err(Error::NotFound { .. })), "{bytes:?}");
            let left = std::fs::read(&superblock).ok().map(|left| left.len());
            assert_eq!(left, bytes, "it stays as it was");
        }
    }
}

#[test]
fn a_durability_that_cannot_be_had_is_refused_also_in_anonymous_memory() {
    let anonymous = PoolOptions { anonymous_bytes: Some(1 << 20), ..options() };
    let impossible = PoolOptions { durability: Durability::Batched, ..anonymous.clone() };
    assert!(matches!(open(Path::new(""), &impossible), Err(Error::InvalidOptions(_))));
    let (pool, opened) = open(Path::new(""), &anonymous).unwrap();
    assert!(opened.created && pool.is_anonymous());
    take_block(&pool).unwrap();
    pool.close().unwrap();
}

#[test]
fn a_segment_whose_blocks_are_all_in_use_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let options = PoolOptions { populate_ahead_bytes: Some(0), ..options() };
    let (pool, _) = open(directory.path(), &options).unwrap();
    let blocks = pool.map.blocks_per_segment;
    (0..blocks).for_each(|block| assert_eq!(take_block(&pool).unwrap(), block));
    assert_eq!(pool.superblock().segments, 1);
    pool.close().unwrap();
    drop(pool);
    let (pool, _) = open(directory.path(), &options).unwrap();
    assert_eq!((pool.used_blocks(), pool.ready_blocks()), (blocks, blocks));
}

/// Opens the pool, which has no segment, whose superblock's file has these bytes, on persistent memory.
fn open_image(bytes: &[u8], options: &PoolOptions) -> Pool<Media> {
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    environment.create_directory(Path::new("pool")).unwrap();
    for (name, bytes) in [("lock", &[][..]), ("superblock", bytes)] {
        let file = environment.open(&Path::new("pool").join(name), OpenMode::CreateNew).unwrap();
        file.write_at(0, bytes).unwrap();
    }
    let new = || Ok(NewPool { superblock: new_superblock(), is_segment_fixed: true });
    let options = PoolOptions { populate_ahead_bytes: Some(0), ..options.clone() };
    Pool::open(Media::default(), environment, Path::new("pool"), &options, new).unwrap().0
}

fn image_of(pool: &Pool<Media>) -> Vec<u8> {
    pool.pmem.image()[..FILE_BYTES as usize].to_vec()
}

#[test]
fn only_a_writer_of_a_pool_that_was_not_closed_may_find_what_is_not_durable() {
    let pool = open_image(&[0; FILE_BYTES as usize], &options());
    pool.mark_open().unwrap();
    let killed = image_of(&pool);
    pool.close().unwrap();
    let closed = image_of(&pool);
    assert!(open_image(&killed, &options()).may_hold_undurable());
    assert!(!open_image(&killed, &reading()).may_hold_undurable());
    assert!(!open_image(&closed, &options()).may_hold_undurable());
    let directory = tempfile::tempdir().unwrap();
    let (pool, _) = open(directory.path(), &options()).unwrap();
    assert_eq!(pool.may_hold_undurable(), pool.pmem.medium().is_persistent_memory());
}

/// A process was killed between the stores of a superblock and their fence. Whoever opens the pool sees them all, and
/// overwrites the copy that is durable.
#[test]
fn a_superblock_that_is_not_durable_is_made_so_before_the_other_copy_is_overwritten() {
    let before = open_image(&[0; FILE_BYTES as usize], &options());
    before.mark_open().unwrap();
    let change = || before.change_superblock(|superblock| superblock.closed_words[0] = 7);
    let ((), mut photos) = before.pmem.photograph(change);
    photos.pop();
    let unfenced = photos.pop().expect("the last store");
    for is_number_damaged in [false, true] {
        let mut image = image_of(&before);
        if is_number_damaged {
            image[USED_BLOCKS_AT[1] as usize] ^= 1;
        }
        let pool = open_image(&image, &options());
        pool.pmem.was_killed(unfenced.clone());
        let ((), photos) = pool.pmem.photograph(|| pool.mark_open().unwrap());
        for state in photos.iter().flat_map(|photo| photo.some_states(64, 1)) {
            let found = find_superblock(&|_| false, &|at| state[(at / 8) as usize], false);
            let root = found.unwrap().expect("one of the two is whole").closed_words[0];
            assert!(root == 0 || root == 7, "{root}");
        }
        for state in pool.pmem.photo().some_states(64, 1) {
            for at in USED_BLOCKS_AT {
                assert_eq!(state[(at / 8) as usize], checked_word::encode_at(0, at));
            }
        }
    }
}
