//! Regions: mapping, populating, punching, syncing.

use super::*;

#[test]
fn regions_follow_each_other() {
    let directory = memory_directory();
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    let first = new_file(directory.path(), "first", 2 * PAGE);
    let second = new_file(directory.path(), "second", 3 * PAGE);
    memory.map(0, &first, 0, 2 * PAGE).unwrap();
    assert_eq!(memory.mapped(), 2 * PAGE);
    memory.store_u64(2 * PAGE - 8, 1, SITE);
    // The second from its second page on.
    memory.map(2 * PAGE, &second, PAGE, 2 * PAGE).unwrap();
    assert_eq!(memory.mapped(), 4 * PAGE);
    assert_eq!(memory.load_u64(2 * PAGE - 8), 1, "the first has not moved");

    // A copy across the border lands in both files.
    memory.copy(extent(&memory, 2 * PAGE - 8, 16), b"the borderlands!", SITE);
    memory.sync(SITE).unwrap();
    let mut bytes = [0; 8];
    first.read_at(2 * PAGE - 8, &mut bytes).unwrap();
    assert_eq!(&bytes, b"the bord");
    second.read_at(PAGE, &mut bytes).unwrap();
    assert_eq!(&bytes, b"erlands!");
}

#[test]
fn a_gap_is_a_mistake() {
    let memory = anonymous(1);
    let file: Arc<dyn File> = Arc::new(AnonymousFile::new(PAGE));
    for at in [0, PAGE - 8, 2 * PAGE] {
        let message = panic_of(|| _ = memory.map(at, &file, 0, PAGE));
        assert!(message.contains("where the mapped space ends"), "{message}");
    }
    memory.map(PAGE, &file, 0, PAGE).unwrap();
}

#[test]
fn what_cannot_be_mapped_is_refused_and_changes_nothing() {
    use std::io::ErrorKind;
    let directory = memory_directory();
    let memory = anonymous(1);
    let file = new_file(directory.path(), "file", 2 * PAGE);
    let simulated = crate::environment::MemoryFiles::new()
        .open(Path::new("file"), OpenMode::CreateNew)
        .unwrap();
    simulated.allocate(0, PAGE).unwrap();
    let cases: [(&Arc<dyn File>, u64, u64, ErrorKind); 6] = [
        (&file, 0, 100, ErrorKind::InvalidInput),
        (&file, 8, PAGE, ErrorKind::InvalidInput),
        (&file, 0, 0, ErrorKind::InvalidInput),
        (&file, PAGE, 2 * PAGE, ErrorKind::UnexpectedEof),
        (&file, u64::MAX / PAGE * PAGE, 2 * PAGE, ErrorKind::InvalidInput),
        (&simulated, 0, PAGE, ErrorKind::Unsupported),
    ];
    for (file, offset, length, expected) in cases {
        let error = memory.map(PAGE, file, offset, length).unwrap_err();
        assert_eq!(error.kind(), expected, "{length} bytes at {offset}: {error}");
        assert_eq!(memory.mapped(), PAGE);
    }
    memory.map(PAGE, &file, 0, 2 * PAGE).unwrap();
}

#[test]
fn reserved_space_grows_in_place() {
    let options = HardwareOptions { reserve_bytes: 2 * PAGE, ..HardwareOptions::default() };
    let memory = anonymous_with(1, options);
    assert_eq!(memory.address_space_bytes(), 2 * PAGE);
    memory.store_u64(PAGE - 8, 1, SITE);
    let file: Arc<dyn File> = Arc::new(AnonymousFile::new(64 * PAGE));
    for pages in [1, 2, 60] {
        let end = memory.mapped();
        memory.map(end, &file, 0, pages * PAGE).unwrap();
        memory.store_u64(memory.mapped() - 8, pages, SITE);
        assert_eq!(memory.load_u64(PAGE - 8), 1, "nothing has moved");
    }
    assert_eq!(memory.load_u64(2 * PAGE - 8), 1);
    assert_eq!(memory.load_u64(4 * PAGE - 8), 2);
    assert_eq!(memory.address_space_bytes(), 64 * PAGE);
}

#[test]
fn a_reservation_too_large_is_halved() {
    // More than user programs have on any supported machine.
    let options = HardwareOptions { reserve_bytes: 1 << 60, ..HardwareOptions::default() };
    let memory = anonymous_with(1, options);
    assert!(memory.address_space_bytes() >= 64 << 30);
    assert!(memory.address_space_bytes() < 1 << 60);
    assert!(memory.base.addr().is_multiple_of(1 << 30));
    memory.store_u64(0, 1, SITE);
}

#[test]
fn the_medium_is_the_weakest() {
    let shared = tempfile::tempdir_in("/dev/shm");
    let directory = tempfile::tempdir().unwrap();
    let file = new_file(directory.path(), "file", PAGE);
    let on_disk = file.medium().unwrap();
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    memory.map(0, &file, 0, PAGE).unwrap();
    assert_eq!(memory.medium(), on_disk);
    let mut end = PAGE;
    if let Ok(shared) = &shared {
        memory.map(end, &new_file(shared.path(), "file", PAGE), 0, PAGE).unwrap();
        assert_eq!(memory.medium(), Medium::Tmpfs);
        end += PAGE;
    }
    let file: Arc<dyn File> = Arc::new(AnonymousFile::new(PAGE));
    memory.map(end, &file, 0, PAGE).unwrap();
    assert_eq!(memory.medium(), Medium::Anonymous);
}

#[test]
fn a_read_only_space_is_read_only() {
    let directory = memory_directory();
    let file = new_file(directory.path(), "file", 2 * PAGE);
    file.write_at(0, b"contents").unwrap();
    let reader = RealFiles.open(&directory.path().join("file"), OpenMode::Read).unwrap();
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    memory.map(0, &reader, 0, 2 * PAGE).unwrap();
    assert_eq!(memory.load_u64(0), u64::from_le_bytes(*b"contents"));
    assert!(memory.compare(extent(&memory, 0, 8), b"contents"));
    memory.flush(extent(&memory, 0, 64), SITE);
    memory.prefetch(extent(&memory, 0, 64));
    memory.populate(0, 2 * PAGE).unwrap();
    memory.sync(SITE).unwrap();

    let whole = extent(&memory, 0, 2 * PAGE);
    let stores: [&dyn Fn(); 7] = [
        &|| memory.store_u64(0, 1, SITE),
        &|| {
            _ = memory.cas_u64(0, 0, 1, SITE);
        },
        &|| {
            _ = memory.cas_u128(0, 0, 1, SITE);
        },
        &|| memory.copy(whole, b"changed!", SITE),
        &|| memory.copy_nt(whole, &[0; 64], SITE),
        &|| memory.zero(whole, SITE),
        &|| {
            _ = memory.punch(whole, SITE);
        },
    ];
    for store in stores {
        let message = panic_of(store);
        assert!(message.contains("mapped read-only"), "{message}");
    }
    // A writable region behind it would need a second watermark.
    let error = memory.map(2 * PAGE, &file, 0, PAGE).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert_eq!(memory.mapped(), 2 * PAGE);
}

#[test]
fn a_read_only_region_ends_the_writable_ones() {
    let directory = memory_directory();
    let file = new_file(directory.path(), "file", PAGE);
    let reader = RealFiles.open(&directory.path().join("file"), OpenMode::Read).unwrap();
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    memory.map(0, &file, 0, PAGE).unwrap();
    memory.map(PAGE, &reader, 0, PAGE).unwrap();
    memory.store_u64(8, 5, SITE);
    assert_eq!(memory.load_u64(PAGE + 8), 5, "the same page, mapped twice");
    assert!(panic_of(|| memory.store_u64(PAGE, 1, SITE)).contains("read-only"));
    let across = extent(&memory, PAGE - 8, 16);
    assert!(panic_of(|| memory.zero(across, SITE)).contains("read-only"));
}

#[test]
fn populating_keeps_contents_and_takes_memory() {
    let directory = memory_directory();
    let length = 64 * PAGE;
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    memory.map(0, &new_file(directory.path(), "file", length), 0, length).unwrap();
    let file: Arc<dyn File> = Arc::new(AnonymousFile::new(length));
    memory.map(length, &file, 0, length).unwrap();
    memory.store_u64(8, 1, SITE);
    memory.store_u64(length + 8, 2, SITE);
    let before = resident_bytes(&memory);
    // Across the border, not on pages.
    memory.populate(100, 2 * length - 200).unwrap();
    assert_eq!((memory.load_u64(8), memory.load_u64(length + 8)), (1, 2));
    assert!(resident_bytes(&memory) >= before + 100 * PAGE);
    memory.populate(2 * length, 0).unwrap();
    assert!(panic_of(|| _ = memory.populate(length, 2 * length)).contains("not mapped"));
    assert!(panic_of(|| _ = memory.populate(8, u64::MAX)).contains("not mapped"));
}

/// The fall-back of old kernels, which the system call hides on others.
#[test]
fn touching_pages_keeps_contents() {
    let memory = anonymous(8);
    memory.store_u64(3 * PAGE, 7, SITE);
    let before = resident_bytes(&memory);
    for page in 0..8 {
        memory.touch(page * PAGE);
    }
    assert!(resident_bytes(&memory) >= before + 7 * PAGE);
    assert_eq!(memory.load_u64(3 * PAGE), 7);
}

/// Memory behind the space, by the kernel's word.
fn resident_bytes(memory: &Hardware) -> u64 {
    let kibibytes = |line: String| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
    said_of(memory, "Rss:").map(kibibytes).sum::<u64>() * 1024
}

/// What the kernel says of each mapping in the space.
fn said_of(memory: &Hardware, what: &str) -> impl Iterator<Item = String> {
    let range = memory.base.addr()..memory.base.addr() + memory.mapped() as usize;
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut inside = false;
    let mut said = Vec::new();
    for line in smaps.lines() {
        let first = line.split_whitespace().next().unwrap_or_default();
        if let Some((start, _)) = first.split_once('-') {
            let start = usize::from_str_radix(start, 16);
            inside = start.is_ok_and(|start| range.contains(&start));
        } else if inside && first == what {
            said.push(line.to_owned());
        }
    }
    said.into_iter()
}

/// What is mapped before and after that is said. The kernel calls it "rr".
#[test]
fn pages_of_plain_files_are_read_alone_where_misses_are_expected() {
    let on_disk = tempfile::tempdir().unwrap();
    let file = |name: &str| new_file(on_disk.path(), name, 4 * PAGE);
    if file("medium").medium().unwrap() != Medium::File {
        return;
    }
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    let is_read_alone = || -> Vec<bool> {
        said_of(&memory, "VmFlags:").map(|line| line.split(' ').any(|flag| flag == "rr")).collect()
    };
    memory.map(0, &file("first"), 0, 4 * PAGE).unwrap();
    assert_eq!(is_read_alone(), [false]);
    memory.expect_misses();
    memory.expect_misses();
    memory.map(4 * PAGE, &file("second"), 0, 4 * PAGE).unwrap();
    assert_eq!(is_read_alone(), [true, true]);
    // Long ranges are asked for first, and are what they were.
    memory.copy(extent(&memory, 8, 5 * PAGE), &vec![7; 5 * PAGE as usize], SITE);
    let (all, mut bytes) = (extent(&memory, 0, 6 * PAGE), vec![1; 6 * PAGE as usize]);
    memory.prefetch(all);
    memory.read(all, &mut bytes);
    assert!(bytes[..8].iter().chain(&bytes[5 * PAGE as usize + 8..]).all(|byte| *byte == 0));
    assert!(bytes[8..5 * PAGE as usize + 8].iter().all(|byte| *byte == 7));
    // Elsewhere nothing changes.
    let in_memory = anonymous(4);
    in_memory.expect_misses();
    assert!(said_of(&in_memory, "VmFlags:").all(|line| !line.contains(" rr")));
}

#[test]
fn pages_of_new_storage_are_read_alone() {
    let on_disk = tempfile::tempdir().unwrap();
    let file = |name: &str| new_file(on_disk.path(), name, 8 * PAGE);
    if file("medium").medium().unwrap() != Medium::File {
        return;
    }
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    memory.map(0, &file("first"), 0, 8 * PAGE).unwrap();
    memory.map(8 * PAGE, &file("second"), 0, 8 * PAGE).unwrap();
    let is_read_alone = || -> Vec<bool> {
        said_of(&memory, "VmFlags:").map(|line| line.split(' ').any(|flag| flag == "rr")).collect()
    };
    // With the pages at both ends.
    memory.expect_stores(extent(&memory, 2 * PAGE + 8, 2 * PAGE - 8));
    assert_eq!(is_read_alone(), [false, true, false, false]);
    memory.expect_stores(extent(&memory, 4 * PAGE, 6 * PAGE));
    assert_eq!(is_read_alone(), [false, true, true, false]);
    memory.store_u64(3 * PAGE, 7, SITE);
    assert_eq!((memory.load_u64(3 * PAGE), memory.load_u64(9 * PAGE)), (7, 0));
    memory.expect_stores(extent(&memory, 8, 8));
    assert_eq!(is_read_alone(), [true, false, true, true, false]);
    // Until it is said of a part: but for a page of which that is not all.
    memory.expect_loads(extent(&memory, 0, 6 * PAGE + 8));
    assert_eq!(is_read_alone(), [false, true, true, false]);
    memory.expect_misses();
    memory.expect_loads(extent(&memory, 0, 16 * PAGE));
    assert!(is_read_alone().into_iter().all(|alone| alone), "misses have the last word");
    // Elsewhere nothing changes.
    let in_memory = anonymous(4);
    in_memory.expect_stores(extent(&in_memory, 0, 4 * PAGE));
    assert!(said_of(&in_memory, "VmFlags:").all(|line| !line.contains(" rr")));
}

#[test]
fn punching_gives_whole_pages_back() {
    let directory = memory_directory();
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    let file = new_file(directory.path(), "file", 5 * PAGE);
    memory.map(0, &file, PAGE, 4 * PAGE).unwrap();
    let anonymous: Arc<dyn File> = Arc::new(AnonymousFile::new(4 * PAGE));
    memory.map(4 * PAGE, &anonymous, 0, 4 * PAGE).unwrap();
    let words = (0..8 * PAGE).step_by(8);
    words.clone().for_each(|at| memory.store_u64(at, at + 1, SITE));

    // From inside the second page to inside the seventh: across both regions.
    memory.punch(extent(&memory, PAGE + 8, 5 * PAGE), SITE).unwrap();
    for at in words {
        let kept = !(2 * PAGE..6 * PAGE).contains(&at);
        assert_eq!(memory.load_u64(at), if kept { at + 1 } else { 0 }, "word at {at}");
    }
    assert_eq!(file.length().unwrap(), 5 * PAGE);
    // Within one page there is nothing to give back.
    memory.punch(extent(&memory, 8, PAGE), SITE).unwrap();
    assert_eq!(memory.load_u64(8), 9);
    // A punched page can be used again.
    memory.store_u64(3 * PAGE, 5, SITE);
    assert_eq!(memory.load_u64(3 * PAGE), 5);
}

#[test]
fn sync_reaches_each_ordinary_file_once() {
    use std::sync::atomic::AtomicUsize;

    /// Counts syncs; everything else is the inner file's.
    #[derive(Debug)]
    struct Counting(Arc<dyn File>, AtomicUsize);

    impl File for Counting {
        fn length(&self) -> io::Result<u64> {
            self.0.length()
        }
        fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
            self.0.allocate(offset, length)
        }
        fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
            self.0.punch(offset, length)
        }
        fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
            self.0.read_at(offset, into)
        }
        fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            self.0.write_at(offset, bytes)
        }
        fn set_length(&self, length: u64) -> io::Result<()> {
            self.0.set_length(length)
        }
        fn sync(&self) -> io::Result<()> {
            self.1.fetch_add(1, Ordering::Relaxed);
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
            self.0.try_lock(exclusive)
        }
        fn medium(&self) -> io::Result<Medium> {
            Ok(Medium::File)
        }
        fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
            self.0.descriptor()
        }
        fn is_read_only(&self) -> bool {
            self.0.is_read_only()
        }
    }

    let directory = memory_directory();
    let inner = new_file(directory.path(), "file", 2 * PAGE);
    let counting = Arc::new(Counting(inner, AtomicUsize::new(0)));
    let file: Arc<dyn File> = counting.clone();
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    memory.map(0, &file, 0, PAGE).unwrap();
    memory.map(PAGE, &file, PAGE, PAGE).unwrap();
    let error = memory.sync(SITE).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "a failure is passed on");
    assert_eq!(counting.1.load(Ordering::Relaxed), 1);
}

#[test]
fn mapping_beside_readers_is_seen_whole() {
    let memory = anonymous(1);
    let file: Arc<dyn File> = Arc::new(AnonymousFile::new(PAGE));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for page in 1..200 {
                memory.map(page * PAGE, &file, 0, PAGE).unwrap();
            }
        });
        let mut seen = 0;
        while seen < 200 * PAGE {
            seen = memory.mapped();
            memory.store_u64(seen - 8, seen, SITE);
            assert_eq!(memory.load_u64(seen - 8), seen);
        }
    });
}

#[test]
fn nothing_is_left_after_a_drop() {
    let directory = memory_directory();
    let file = new_file(directory.path(), "named-for-this-test", PAGE);
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    memory.map(0, &file, 0, PAGE).unwrap();
    let is_mapped = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.contains(directory.path().join("named-for-this-test").to_str().unwrap())
    };
    assert!(is_mapped());
    drop(memory);
    assert!(!is_mapped());
}
