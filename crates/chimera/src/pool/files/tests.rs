//! Finding, locking, making and removing the files of a pool, in memory.

use chimera_pmem::environment::{FileProvider, MemoryFiles};
use chimera_pmem::{Medium, SteppedEnvironment};

use super::*;
use crate::pool::tests::watched::{Deed, Watched};

const SEGMENT_BYTES: u64 = 8192;
const HEADER_AT: u64 = 4096;
const POOL_ID: u64 = 77;

fn environment(files: &Watched) -> Arc<dyn Environment> {
    Arc::new(SteppedEnvironment::with_files(1, Arc::new(files.clone())))
}

fn lock_at(files: &Watched, path: &str, create: bool, read_only: bool) -> Result<PoolFiles> {
    PoolFiles::lock(environment(files), Path::new(path), create, read_only)
}

/// A new pool, locked for writing.
fn new_pool(files: &Watched) -> PoolFiles {
    lock_at(files, "/pool", true, false).unwrap()
}

fn create_segment(pool: &PoolFiles, index: u64) -> Result<Section> {
    pool.create_segment(POOL_ID, index, SEGMENT_BYTES, HEADER_AT)
}

fn is_there(files: &Watched, path: &str) -> bool {
    files.files.is_directory(Path::new(path)).unwrap().is_some()
}

fn remove(files: &Watched, path: &str) {
    files.files.remove(Path::new(path)).unwrap();
}

/// Writes a file that is not watched.
fn write(files: &Watched, path: &str, content: &[u8]) {
    let file = files.files.open(Path::new(path), OpenMode::CreateNew).unwrap();
    file.write_at(0, content).unwrap();
}

fn assert_removed(done: Result<()>, expected: &str) {
    match done {
        Err(Error::Removed { path }) => assert_eq!(path, Path::new(expected)),
        other => panic!("{other:?}"),
    }
}

fn assert_not_found<T>(done: Result<T>) {
    match done {
        Err(Error::NotFound { path }) => assert_eq!(path, Path::new("/pool")),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("there is nothing"),
    }
}

#[test]
fn segments_have_one_name_each() {
    for name in ["segment-000000", "segment-000017", "segment-999999", "segment-1000000"] {
        assert!(is_segment(Path::new(name)), "{name}");
    }
    let others = ["segment-", "segment-1", "segment-+00001", "segment-0000001", "segment-00000x"];
    for name in others.into_iter().chain(["000001", "superblock", "segment-000000.old"]) {
        assert!(!is_segment(Path::new(name)), "{name}");
    }
}

#[test]
fn nothing_is_made_where_a_device_is_missing() {
    let files = Watched::default();
    files.files.create_directory(Path::new("/dev")).unwrap();
    match lock_at(&files, "/dev/dax0.0", true, false) {
        Err(Error::NotAStore { reason, .. }) => assert!(reason.contains("no such device")),
        other => panic!("{:?}", other.err()),
    }
    assert!(!is_there(&files, "/dev/dax0.0"));
}

#[test]
fn a_directory_is_made_by_who_may_create_a_pool_alone() {
    for (create, read_only) in [(false, false), (false, true), (true, true)] {
        let files = Watched::default();
        assert_not_found(lock_at(&files, "/pool", create, read_only));
        assert!(!is_there(&files, "/pool"));
        // Nor a lock in a directory that is there.
        files.files.create_directory(Path::new("/pool")).unwrap();
        assert_not_found(lock_at(&files, "/pool", create, read_only));
        assert!(!is_there(&files, "/pool/lock"));
    }
    let files = Watched::default();
    new_pool(&files);
    assert!(is_there(&files, "/pool/lock"));
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error_that_says_so() {
    let files = Watched::default();
    write(&files, "/file", b"");
    let done = lock_at(&files, "/file/pool", true, false);
    assert!(matches!(done, Err(Error::Io { action: "create the directory", .. })));
}

#[test]
fn what_cannot_be_opened_as_a_lock_is_not_a_missing_one() {
    for read_only in [false, true] {
        let files = Watched::default();
        files.files.create_directory(Path::new("/pool/lock")).unwrap();
        let done = lock_at(&files, "/pool", true, read_only);
        assert!(matches!(done, Err(Error::Io { action: "open", .. })), "{:?}", done.err());
    }
}

#[test]
fn readers_share_a_pool_and_a_writer_has_it_alone() {
    let files = Watched::default();
    let is_locked = |read_only| {
        let done = lock_at(&files, "/pool", true, read_only);
        matches!(done, Err(Error::Locked { .. }))
    };
    let writer = new_pool(&files);
    assert!(is_locked(false) && is_locked(true));
    drop(writer);
    let reader = lock_at(&files, "/pool", true, true).unwrap();
    assert!(!is_locked(true) && is_locked(false));
    drop(reader);
    assert!(!is_locked(false));
}

/// Between opening and locking it the last holder has destroyed the pool.
#[test]
fn a_pool_that_was_destroyed_meanwhile_is_not_found() {
    let files = Watched::default();
    drop(new_pool(&files));
    let inside = files.files.clone();
    files.set_hook(move |deed| {
        if *deed == Deed::Opened(LOCK.to_owned()) {
            inside.remove(Path::new("/pool/lock")).unwrap();
            inside.remove_directory(Path::new("/pool")).unwrap();
        }
    });
    assert_not_found(lock_at(&files, "/pool", true, false));
}

/// Whoever removes the lock of an open pool lets nobody else in.
#[test]
fn the_superblock_is_locked_as_well() {
    for (first_reads, second_reads) in [(false, false), (false, true), (true, false), (true, true)]
    {
        let files = Watched::default();
        drop(new_pool(&files));
        write(&files, "/pool/superblock", &[0; 8192]);
        let _first = lock_at(&files, "/pool", false, first_reads).unwrap();
        remove(&files, "/pool/lock");
        write(&files, "/pool/lock", &[]);
        match lock_at(&files, "/pool", false, second_reads) {
            Ok(_) => assert!(first_reads && second_reads),
            Err(Error::Locked { holder }) => {
                assert!(!(first_reads && second_reads));
                assert!(holder.contains("removed or replaced"), "{holder}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn the_lock_of_a_pool_with_segments_is_made_again_by_who_may_write() {
    for (create, read_only) in [(false, false), (true, false), (false, true), (true, true)] {
        let files = Watched::default();
        files.files.create_directory(Path::new("/pool")).unwrap();
        write(&files, "/pool/segment-000000", &[]);
        match lock_at(&files, "/pool", create, read_only) {
            Ok(_) => assert!(!read_only && is_there(&files, "/pool/lock")),
            Err(Error::NotAStore { reason, .. }) => {
                assert!(read_only && !is_there(&files, "/pool/lock"));
                assert!(reason.contains("file `lock` is missing"), "{reason}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn limits_that_are_in_the_way_are_told_as_a_lack_of_space() {
    for (kind, words) in [
        (io::ErrorKind::StorageFull, Some("no space left for `/a`")),
        (io::ErrorKind::QuotaExceeded, Some("no space left for `/a`")),
        (io::ErrorKind::FileTooLarge, Some("raise that limit")),
        (io::ErrorKind::OutOfMemory, Some("nothing of the store was changed")),
        (io::ErrorKind::PermissionDenied, None),
    ] {
        match full_or_io(kind.into(), "extend", Path::new("/a")) {
            Error::PoolFull { reason } => {
                assert!(words.is_some_and(|words| reason.contains(words)), "{kind}: {reason}");
            }
            Error::Io { action, source, .. } => {
                assert_eq!((action, source.kind(), words), ("extend", kind, None));
            }
            other => panic!("{kind}: {other}"),
        }
    }
}

/// Between opening and locking it the last holder has destroyed the pool, and somebody has made another one.
#[test]
fn a_lock_that_was_replaced_meanwhile_is_not_held() {
    let files = Watched::default();
    drop(new_pool(&files));
    let replaced = std::sync::atomic::AtomicBool::new(false);
    let inside = files.files.clone();
    files.set_hook(move |deed| {
        let is_lock = *deed == Deed::Opened(LOCK.to_owned());
        if is_lock && !replaced.swap(true, std::sync::atomic::Ordering::AcqRel) {
            let path = Path::new("/pool/lock");
            inside.remove(path).unwrap();
            inside.open(path, OpenMode::CreateNew).unwrap();
        }
    });
    let pool = new_pool(&files);
    pool.check_in_place(None).unwrap();
    let other = lock_at(&files, "/pool", true, false);
    assert!(matches!(other, Err(Error::Locked { .. })));
}

#[test]
fn every_file_that_is_gone_is_named() {
    // Made, and found.
    for is_found in [false, true] {
        for gone in ["lock", "segment-000000", "segment-000001"] {
            let files = Watched::default();
            let mut pool = new_pool(&files);
            for index in 0..2 {
                create_segment(&pool, index).unwrap();
            }
            if is_found {
                drop(pool);
                pool = new_pool(&files);
                for index in 0..2 {
                    pool.open_segment(index, SEGMENT_BYTES, false).unwrap();
                }
            }
            pool.check_in_place(None).unwrap();
            let path = format!("/pool/{gone}");
            remove(&files, &path);
            assert_removed(pool.check_in_place(None), &path);
            // Another file in its place is not it.
            write(&files, &path, b"");
            assert_removed(pool.check_in_place(None), &path);
        }
    }
}

#[test]
fn of_segments_only_the_one_that_is_meant_is_looked_for() {
    let files = Watched::default();
    let pool = new_pool(&files);
    for index in 0..2 {
        create_segment(&pool, index).unwrap();
    }
    remove(&files, "/pool/segment-000000");
    pool.check_in_place(Some(1)).unwrap();
    assert_removed(pool.check_in_place(Some(0)), "/pool/segment-000000");
    remove(&files, "/pool/lock");
    assert_removed(pool.check_in_place(Some(1)), "/pool/lock");
}

#[test]
fn a_directory_that_is_gone_is_named_itself() {
    let files = Watched::default();
    let pool = new_pool(&files);
    remove(&files, "/pool/lock");
    files.files.remove_directory(Path::new("/pool")).unwrap();
    assert_removed(pool.check_in_place(None), "/pool");
}

#[test]
fn a_segment_that_the_pool_removed_is_not_missed_and_all_others_are() {
    let files = Watched::default();
    let pool = new_pool(&files);
    for index in 0..3 {
        create_segment(&pool, index).unwrap();
    }
    pool.remove_segment(2).unwrap();
    assert!(!is_there(&files, "/pool/segment-000002"));
    pool.check_in_place(None).unwrap();
    remove(&files, "/pool/segment-000001");
    assert_removed(pool.check_in_place(None), "/pool/segment-000001");
}

#[test]
fn a_segment_is_opened_as_it_was_asked_for_and_at_its_length() {
    let files = Watched::default();
    let pool = new_pool(&files);
    create_segment(&pool, 0).unwrap();
    for read_only in [false, true] {
        let section = pool.open_segment(0, SEGMENT_BYTES, read_only).unwrap();
        assert_eq!((section.file.is_read_only(), section.offset), (read_only, 0));
    }
    let said = |index, bytes| match pool.open_segment(index, bytes, false) {
        Err(Error::NotAStore { reason, .. }) => reason,
        other => panic!("{:?}", other.err()),
    };
    for bytes in [SEGMENT_BYTES - 1, SEGMENT_BYTES + 1] {
        assert!(said(0, bytes).contains("cut or extended"));
    }
    assert!(said(1, SEGMENT_BYTES).contains("missing"));
    // What is there and cannot be opened is not missing.
    files.files.create_directory(Path::new("/pool/segment-000001")).unwrap();
    let done = pool.open_segment(1, SEGMENT_BYTES, false);
    assert!(matches!(done, Err(Error::Io { action: "open", .. })));
}

#[test]
fn what_somebody_else_left_in_the_place_of_a_segment_stays() {
    let files = Watched::default();
    let pool = new_pool(&files);
    write(&files, "/pool/segment-000000", b"somebody's");
    files.files.create_directory(Path::new("/pool/segment-000001")).unwrap();
    for index in 0..2 {
        let done = create_segment(&pool, index);
        assert!(matches!(done, Err(Error::InTheWay { .. })), "segment {index}");
    }
    let path = Path::new("/pool/segment-000000");
    let mut content = [0; 10];
    files.files.open(path, OpenMode::Read).unwrap().read_at(0, &mut content).unwrap();
    assert_eq!(&content, b"somebody's");
    assert_eq!(files.files.is_directory(Path::new("/pool/segment-000001")).unwrap(), Some(true));
    // What an interrupted growth of this pool left is replaced.
    write(&files, "/pool/segment-000002", &[0; 100]);
    assert_eq!(create_segment(&pool, 2).unwrap().file.length().unwrap(), SEGMENT_BYTES);
}

#[test]
fn a_pool_in_anonymous_memory_has_no_files() {
    let files = Watched::default();
    assert!(PoolFiles::none(environment(&files)).is_without_files());
    assert!(!new_pool(&files).is_without_files());
}

#[test]
fn what_lies_in_the_place_of_a_new_file_is_in_the_way_and_other_errors_are_told() {
    let files = Watched::default();
    let pool = new_pool(&files);
    let path = Path::new("/pool/superblock");
    pool.create_sized(path, 0, 8192).unwrap();
    let in_the_way = pool.create_sized(path, 0, 8192).err();
    assert!(matches!(in_the_way, Some(Error::InTheWay { .. })), "{in_the_way:?}");
    remove(&files, "/pool/superblock");
    files.refuse(|deed| {
        (*deed == Deed::Opened("superblock".to_owned())).then_some(io::ErrorKind::PermissionDenied)
    });
    let refused = pool.create_sized(path, 0, 8192).err();
    assert!(matches!(refused, Some(Error::Io { action: "create", .. })), "{refused:?}");
}

/// Where nobody can have made an entry, and where it is not ours to make durable.
#[test]
fn the_entry_of_a_directory_is_made_durable_where_one_may() {
    for (kind, is_allowed) in [
        (io::ErrorKind::ReadOnlyFilesystem, true),
        (io::ErrorKind::PermissionDenied, true),
        (io::ErrorKind::BrokenPipe, false),
        (io::ErrorKind::StorageFull, false),
    ] {
        let files = Watched::default();
        new_pool(&files);
        files.refuse(move |deed| {
            let is_meant = matches!(deed, Deed::SyncedEntries(name) if name.is_empty());
            is_meant.then_some(kind)
        });
        let done = sync_entry_of(&*environment(&files), Path::new("/pool"));
        assert_eq!(done.is_ok(), is_allowed, "{kind}");
        let is_told = matches!(done, Err(Error::Io { action: "sync", path, .. })
            if path == Path::new("/"));
        assert_eq!(is_told, !is_allowed);
    }
}

#[test]
fn a_lock_that_another_process_makes_meanwhile_is_the_one_that_is_held() {
    for refused in [None, Some(io::ErrorKind::PermissionDenied)] {
        let files = Watched::default();
        files.files.create_directory(Path::new("/pool")).unwrap();
        let (others, opened) = (files.files.clone(), Mutex::new(0));
        files.refuse(move |deed| {
            if *deed != Deed::Opened(LOCK.to_owned()) {
                return None;
            }
            let mut opened = lock(&opened);
            *opened += 1;
            if *opened == 2 && refused.is_none() {
                // Between looking for it and making it.
                others.open(Path::new("/pool/lock"), OpenMode::CreateNew).unwrap();
            }
            refused.filter(|_| *opened == 2)
        });
        match lock_at(&files, "/pool", true, false) {
            Ok(_) => assert_eq!(refused, None),
            Err(Error::Io { action: "open", source, .. }) => {
                assert_eq!(Some(source.kind()), refused);
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_device_has_room_for_a_segment_of_its_alignment_at_least() {
    let device = |bytes: u64| {
        let files = Watched::of(MemoryFiles::new().on(Medium::DevDax));
        let file = files.files.open(Path::new("/device"), OpenMode::CreateNew).unwrap();
        file.allocate(0, bytes).unwrap();
        (lock_at(&files, "/device", true, false), file.mapping_alignment())
    };
    let (_, alignment) = device(4 << 20);
    let area = 2 << 20;
    assert!(device(area + alignment).0.is_ok());
    let too_few = device(area + alignment - 8).0.err();
    assert!(matches!(too_few, Some(Error::NotAStore { .. })), "{too_few:?}");
    // Equal segments of at most so many alignments.
    let (pool, _) = device(area + 10 * alignment);
    let pool = pool.unwrap();
    let device = pool.device.as_ref().unwrap();
    let lengths =
        [1, 2, 3, 4, 5, 9, 10, 11].map(|most| device.segment_bytes_up_to(most * alignment));
    assert_eq!(lengths.map(|bytes| bytes / alignment), [1, 2, 2, 3, 5, 5, 10, 10]);
    assert!(lengths.iter().all(|bytes| bytes.is_multiple_of(alignment)));
}
