//! What surrounds an open pool: its background tasks, other files of its directory, what it says of itself.

use super::watched::{Deed, Watched};
use super::*;
use crate::pool::small::media_pool;
use crate::pool::superblock::COPY_STRIDE;

/// A pool of blocks of 24 KiB in files that are watched, in a directory `/pool`.
fn watched(
    options: &PoolOptions,
) -> (Watched, Arc<SteppedEnvironment>, Result<Pool<media::Media>>) {
    let files = Watched::default();
    let environment = Arc::new(SteppedEnvironment::with_files(1, Arc::new(files.clone())));
    let pool = open_in(&environment, options);
    (files, environment, pool)
}

fn open_in(
    environment: &Arc<SteppedEnvironment>,
    options: &PoolOptions,
) -> Result<Pool<media::Media>> {
    let new = || Ok(NewPool { superblock: new_superblock(), is_segment_fixed: true });
    let media = media::Media::default();
    Pool::open(media, environment.clone(), Path::new("/pool"), options, new).map(|opened| opened.0)
}

#[test]
fn a_file_beside_the_pool_is_replaced_as_a_whole_and_removed() {
    let (files, _environment, pool) = watched(&options());
    let pool = pool.unwrap();
    let read = |name: &str| {
        let file = files.files.open(&Path::new("/pool").join(name), OpenMode::Read).ok()?;
        let mut bytes = vec![0; file.length().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        Some(bytes)
    };
    for content in [&b"first"[..], b"2", b""] {
        pool.replace_file("new", "metrics", content).unwrap();
        assert_eq!((read("metrics"), read("new")), (Some(content.to_vec()), None));
    }
    // What a process left that was killed meanwhile.
    let left = files.files.open(Path::new("/pool/new"), OpenMode::CreateNew).unwrap();
    left.write_at(0, b"longer than what comes").unwrap();
    pool.replace_file("new", "metrics", b"last").unwrap();
    assert_eq!((read("metrics"), read("new")), (Some(b"last".to_vec()), None));
    pool.remove_file("metrics").unwrap();
    assert_eq!(read("metrics"), None);
    assert!(pool.remove_file("metrics").is_err());
    // Any other error is one.
    files.refuse(|deed| {
        (*deed == Deed::Opened("new".to_owned())).then_some(io::ErrorKind::PermissionDenied)
    });
    let error = pool.replace_file("new", "metrics", b"x").unwrap_err();
    assert_eq!((error.kind(), read("metrics")), (io::ErrorKind::PermissionDenied, None));
}

#[test]
fn a_pool_says_where_its_files_are_if_it_has_any() {
    let (_files, _environment, pool) = watched(&options());
    let pool = pool.unwrap();
    assert_eq!((pool.directory(), pool.is_anonymous()), (Some(Path::new("/pool")), false));
    let anonymous = PoolOptions { anonymous_bytes: Some(1 << 20), ..options() };
    let (pool, _) = open(Path::new(""), &anonymous).unwrap();
    assert_eq!((pool.directory(), pool.is_anonymous()), (None, true));
    let files = Watched::of(MemoryFiles::new().on(chimera_pmem::Medium::DevDax));
    let file = files.files.open(Path::new("/device"), OpenMode::CreateNew).unwrap();
    file.allocate(0, (2 << 20) + (128 << 10)).unwrap();
    let environment = Arc::new(SteppedEnvironment::with_files(1, Arc::new(files)));
    let new = || Ok(NewPool { superblock: new_superblock(), is_segment_fixed: true });
    let media = media::Media::default();
    let opened = Pool::open(media, environment, Path::new("/device"), &options(), new);
    let (pool, _) = opened.unwrap();
    assert_eq!((pool.directory(), pool.is_anonymous()), (None, false));
}

#[test]
fn damage_of_copies_is_told_of_where_they_have_to_agree() {
    let (_files, environment, pool) = watched(&options());
    let pool = pool.unwrap();
    // The first change stores the second copy.
    assert_eq!(places(&pool), [COPY_STRIDE], "the pool is not open yet");
    pool.mark_open().unwrap();
    assert_eq!(pool.damages(), []);
    let flip = |pool: &Pool<media::Media>, at: u64| {
        let word = pool.pmem.load_u64(at) ^ 1 << 50;
        pool.pmem.store_u64(at, word, media::ENGINE);
    };
    for at in [0, COPY_STRIDE] {
        flip(&pool, at + 40);
        let damages = pool.damages();
        let Err(Error::Corrupted { what, at: place }) =
            Superblock::decode(&words_of_copy(&pool, at), at)
        else {
            panic!("it is damaged")
        };
        assert_eq!(damages, [Damage { at: place, what }]);
        flip(&pool, at + 40);
        // Another format in one of the copies is damage as well.
        flip(&pool, at + 8);
        assert_eq!(places(&pool), [at]);
        flip(&pool, at + 8);
    }
    for at in USED_BLOCKS_AT {
        flip(&pool, at);
        let expected = Damage { at, what: "the number of used blocks is not valid".to_owned() };
        assert_eq!(pool.damages(), [expected]);
        flip(&pool, at);
    }
    drop(pool);
    // Who reads a pool that somebody writes may meet an update of a copy, and of no other one.
    let reading = PoolOptions { read_only: true, ..options() };
    drop(environment);
    for is_closed in [false, true] {
        let (files, environment, pool) = watched(&options());
        let pool = pool.unwrap();
        pool.mark_open().unwrap();
        if is_closed {
            pool.close().unwrap();
        }
        let image = pool.pmem.image();
        drop(pool);
        let file = files.files.open(Path::new("/pool/superblock"), OpenMode::ReadWrite).unwrap();
        file.write_at(0, &image[..superblock::FILE_BYTES as usize]).unwrap();
        let pool = open_in(&environment, &reading).unwrap();
        assert_eq!(pool.damages(), []);
        flip(&pool, COPY_STRIDE + 40);
        assert_eq!(pool.damages().len(), usize::from(is_closed));
    }
}

fn words_of_copy(pool: &Pool<media::Media>, at: u64) -> [u64; superblock::WORDS] {
    std::array::from_fn(|word| pool.pmem.load_u64(at + 8 * word as u64))
}

fn places(pool: &Pool<media::Media>) -> Vec<u64> {
    pool.damages().into_iter().map(|damage| damage.at).collect()
}

#[test]
fn the_last_block_is_given_back_durably_or_not_at_all() {
    let media = media::Media::default();
    let pool = media_pool(&media, &[], 16 << 10, 1 << 20);
    for expected in 0..3 {
        assert_eq!(pool.take_block(Purpose::Put, |_| ()).unwrap(), expected);
    }
    let said = |words: &[u64]| {
        USED_BLOCKS_AT.map(|at| checked_word::decode_at(words[(at / 8) as usize], at).unwrap())
    };
    let durable = || said(&media.photo().some_states(0, 1)[0]);
    let seen = || said(&media::words_of(&media.image()));
    assert!(!pool.give_back(1, || panic!("it is not the last one")));
    assert!(!pool.give_back(3, || panic!("it is not in use")));
    assert_eq!((pool.used_blocks(), durable(), seen()), (3, [3; 2], [3; 2]));
    let fails = || {
        assert_eq!(seen(), [2; 2], "whoever clears it fences that");
        Err(Error::corrupted("the flags are damaged", 7))
    };
    assert!(!pool.give_back(2, fails));
    assert_eq!((pool.used_blocks(), seen()), (3, [3; 2]), "it stays in use");
    media.fence(media::ENGINE);
    assert_eq!(durable(), [3; 2]);
    let clears = || {
        media.fence(media::ENGINE);
        Ok(())
    };
    assert!(pool.give_back(2, clears));
    assert_eq!((pool.used_blocks(), durable()), (2, [2; 2]));
    assert_eq!(pool.take_block(Purpose::Put, |_| ()).unwrap(), 2);
}

/// A creation that was interrupted may have left anything there.
#[test]
fn a_new_superblock_is_durable_with_nothing_of_what_was_there_before() {
    let media = media::Media::default();
    let file = MemoryFiles::new().open(Path::new("file"), OpenMode::CreateNew).unwrap();
    file.write_at(0, &vec![0x77; superblock::FILE_BYTES as usize]).unwrap();
    media.map(0, &file, 0, superblock::FILE_BYTES).unwrap();
    let new = new_superblock();
    let fenced = media.durable_at_fences((superblock::FILE_BYTES / 8) as usize, || {
        store_new(&media, &new);
    });
    let [durable] = &fenced[..] else { panic!("one fence") };
    let words = new.encode();
    assert_eq!(durable[..superblock::WORDS], words[..superblock::WORDS]);
    let second = (COPY_STRIDE / 8) as usize;
    assert!(durable[second..second + superblock::WORDS].iter().all(|word| *word == 0));
    for at in USED_BLOCKS_AT {
        assert_eq!(durable[(at / 8) as usize], checked_word::encode_at(0, at));
    }
}

#[test]
fn the_background_task_is_started_for_writers_with_something_to_keep_ahead_alone() {
    let none = PoolOptions { populate_ahead_bytes: Some(0), ..options() };
    for (options, is_started) in [(options(), true), (none, false)] {
        let (_files, environment, pool) = watched(&options);
        let pool = Arc::new(pool.unwrap());
        pool.mark_open().unwrap();
        assert_eq!(pool.background_ns(), 0);
        pool.start_background().unwrap();
        while environment.step_tasks() {}
        assert_eq!(pool.ready_blocks() > 0, is_started);
        assert_eq!(pool.background.get().is_some(), is_started);
        pool.close().unwrap();
        pool.background.get().into_iter().for_each(|task| task.wake());
        assert!(!environment.step_tasks(), "it was stopped");
    }
    let (_files, environment, pool) = watched(&options());
    let image = {
        let pool = pool.unwrap();
        pool.mark_open().unwrap();
        pool.pmem.image()
    };
    let file = environment.open(Path::new("/pool/superblock"), OpenMode::ReadWrite).unwrap();
    file.write_at(0, &image[..superblock::FILE_BYTES as usize]).unwrap();
    let reading = PoolOptions { read_only: true, ..options() };
    let reader = Arc::new(open_in(&environment, &reading).unwrap());
    reader.start_background().unwrap();
    assert!(reader.background.get().is_none());
}

/// Threads of the machine say what they cost.
#[test]
fn the_processor_time_of_the_background_task_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let (pool, _) = open(directory.path(), &options()).unwrap();
    let pool = Arc::new(pool);
    pool.mark_open().unwrap();
    pool.start_background().unwrap();
    while pool.ready_blocks() < 2 {
        std::thread::yield_now();
    }
    // Waits for the step that runs: what a step costs is known at its end.
    pool.stop_background();
    let time = pool.background.get().unwrap().processor_time();
    assert!(time.is_some_and(|time| !time.is_zero()), "{time:?}");
    assert!(pool.background_ns() > 1);
    pool.close().unwrap();
}
