//! Files: what real ones and those in memory have in common, and what only real ones can.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use super::super::device::DaxDevice;
use super::super::{
    AnonymousFile, Environment, File, FileProvider, MemoryFiles, OpenMode, RealEnvironment,
    RealFiles, SteppedEnvironment,
};
use crate::Medium;

/// Runs `test` on real files and on files in memory, with a directory that exists.
fn on_both(test: impl Fn(&dyn FileProvider, &Path)) {
    let directory = tempfile::tempdir().unwrap();
    test(&RealFiles, directory.path());
    let files = MemoryFiles::new();
    files.create_directory(Path::new("/some/directory")).unwrap();
    test(&files, Path::new("/some/directory"));
}

fn kind<T>(result: std::io::Result<T>) -> ErrorKind {
    result.err().expect("should have failed").kind()
}

#[test]
fn a_file_keeps_what_is_written() {
    on_both(|files, directory| {
        let path = directory.join("file");
        assert_eq!(kind(files.open(&path, OpenMode::ReadWrite)), ErrorKind::NotFound);
        let file = files.open(&path, OpenMode::CreateNew).unwrap();
        assert_eq!(file.length().unwrap(), 0);
        file.write_at(10, b"hello").unwrap();
        file.write_at(0, b"").unwrap();
        assert_eq!(file.length().unwrap(), 15);
        file.sync().unwrap();
        files.sync_directory(directory).unwrap();
        drop(file);

        assert_eq!(kind(files.open(&path, OpenMode::CreateNew)), ErrorKind::AlreadyExists);
        let file = files.open(&path, OpenMode::Read).unwrap();
        assert!(file.is_read_only());
        let mut bytes = [1; 7];
        file.read_at(8, &mut bytes).unwrap();
        assert_eq!(&bytes, b"\0\0hello");
        assert_eq!(kind(file.read_at(9, &mut bytes)), ErrorKind::UnexpectedEof);
        file.write_at(0, b"x").unwrap_err();
        file.allocate(0, 100).unwrap_err();
        file.set_length(0).unwrap_err();
        assert_eq!(file.length().unwrap(), 15);
    });
}

#[test]
fn a_file_takes_the_place_of_another() {
    on_both(|files, directory| {
        let (new, path) = (directory.join("new"), directory.join("file"));
        assert_eq!(kind(files.replace(&new, &path)), ErrorKind::NotFound);
        let write = |text: &[u8]| {
            let file = files.open(&new, OpenMode::CreateNew).unwrap();
            file.write_at(0, text).unwrap();
            files.replace(&new, &path).unwrap();
        };
        write(b"one");
        let old = files.open(&path, OpenMode::Read).unwrap();
        write(b"three");
        assert_eq!(files.list(directory).unwrap(), [Path::new("file")]);
        assert_eq!(files.open(&path, OpenMode::Read).unwrap().length().unwrap(), 5);
        let mut bytes = [0; 3];
        old.read_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"one", "whoever has the old one open keeps it");
    });
}

#[test]
fn only_an_empty_directory_is_removed() {
    on_both(|files, directory| {
        let (outer, inner) = (directory.join("outer"), directory.join("outer/inner"));
        assert_eq!(kind(files.remove_directory(&outer)), ErrorKind::NotFound);
        files.create_directory(&inner).unwrap();
        assert_eq!(kind(files.remove_directory(&outer)), ErrorKind::DirectoryNotEmpty);
        let file = inner.join("file");
        files.open(&file, OpenMode::CreateNew).unwrap();
        assert_eq!(kind(files.remove_directory(&inner)), ErrorKind::DirectoryNotEmpty);
        assert_eq!(kind(files.remove_directory(&file)), ErrorKind::NotADirectory);
        files.remove(&file).unwrap();
        files.remove_directory(&inner).unwrap();
        files.remove_directory(&outer).unwrap();
        assert_eq!(files.is_directory(&outer).unwrap(), None);
        assert!(files.list(directory).unwrap().is_empty());
    });
}

#[test]
fn allocating_grows_and_keeps() {
    on_both(|files, directory| {
        let file = files.open(&directory.join("file"), OpenMode::CreateNew).unwrap();
        file.write_at(0, b"kept").unwrap();
        file.allocate(0, 8192).unwrap();
        assert_eq!(file.length().unwrap(), 8192);
        file.allocate(0, 4096).unwrap();
        assert_eq!(file.length().unwrap(), 8192, "never shrinks");
        file.allocate(8192, 4096).unwrap();
        assert_eq!(file.length().unwrap(), 12288);
        let mut bytes = [1; 8];
        file.read_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"kept\0\0\0\0");
        file.set_length(2).unwrap();
        assert_eq!(file.length().unwrap(), 2);
        file.set_length(6).unwrap();
        file.read_at(0, &mut bytes[..6]).unwrap();
        assert_eq!(&bytes[..6], b"ke\0\0\0\0");
        file.allocate(u64::MAX, 2).unwrap_err();
    });
}

#[test]
fn punching_zeroes_and_keeps_the_length() {
    on_both(|files, directory| {
        let file = files.open(&directory.join("file"), OpenMode::CreateNew).unwrap();
        file.write_at(0, &[7; 3 * 4096]).unwrap();
        file.punch(4096, 4096).unwrap();
        assert_eq!(file.length().unwrap(), 3 * 4096);
        let mut bytes = [1; 3 * 4096];
        file.read_at(0, &mut bytes).unwrap();
        assert!(bytes[..4096].iter().all(|&byte| byte == 7));
        assert!(bytes[4096..8192].iter().all(|&byte| byte == 0));
        assert!(bytes[8192..].iter().all(|&byte| byte == 7));
        file.allocate(4096, 4096).unwrap();
        file.punch(2 * 4096, 1 << 30).unwrap();
        assert_eq!(file.length().unwrap(), 3 * 4096);
    });
}

#[test]
fn a_lock_is_held_by_an_opening() {
    on_both(|files, directory| {
        let path = directory.join("lock");
        let first = files.open(&path, OpenMode::CreateNew).unwrap();
        let second = files.open(&path, OpenMode::ReadWrite).unwrap();
        assert!(first.try_lock(true).unwrap());
        assert!(first.try_lock(true).unwrap(), "again by its holder");
        assert!(!second.try_lock(true).unwrap());
        assert!(!second.try_lock(false).unwrap());
        // What a child between fork and exec would hold.
        let _inherited = first.descriptor().map(|file| file.try_clone_to_owned().unwrap());
        drop(first);
        assert!(second.try_lock(false).unwrap());
        let third = files.open(&path, OpenMode::Read).unwrap();
        assert!(third.try_lock(false).unwrap(), "shared by two");
        assert!(!third.try_lock(true).unwrap());
        drop(second);
        assert!(third.try_lock(true).unwrap());
    });
}

#[test]
fn directories_list_sorted() {
    on_both(|files, directory| {
        let inner = directory.join("a/b");
        files.create_directory(&inner).unwrap();
        files.create_directory(&inner).unwrap();
        assert_eq!(files.is_directory(&inner).unwrap(), Some(true));
        assert_eq!(files.is_directory(&directory.join("c")).unwrap(), None);
        for name in ["z", "m", "0"] {
            files.open(&inner.join(name), OpenMode::CreateNew).unwrap();
        }
        assert_eq!(files.is_directory(&inner.join("z")).unwrap(), Some(false));
        let names = |path: &Path| files.list(path).unwrap();
        assert_eq!(names(&inner), ["0", "m", "z"].map(PathBuf::from));
        assert_eq!(names(directory), [PathBuf::from("a")], "not what is deeper");
        files.remove(&inner.join("m")).unwrap();
        assert_eq!(names(&inner), ["0", "z"].map(PathBuf::from));
        assert_eq!(kind(files.remove(&inner.join("m"))), ErrorKind::NotFound);
        assert_eq!(kind(files.open(&inner, OpenMode::Read)), ErrorKind::IsADirectory);
        assert_eq!(kind(files.list(&directory.join("c"))), ErrorKind::NotFound);
        let lost = directory.join("missing/file");
        assert_eq!(kind(files.open(&lost, OpenMode::CreateNew)), ErrorKind::NotFound);
        files.create_directory(&inner.join("z/deeper")).unwrap_err();
        files.sync_directory(&inner).unwrap();
        files.sync_directory(&directory.join("missing")).unwrap_err();
    });
}

#[test]
fn a_removed_file_lives_on_while_open() {
    on_both(|files, directory| {
        let path = directory.join("file");
        let old = files.open(&path, OpenMode::CreateNew).unwrap();
        old.write_at(0, b"old").unwrap();
        files.remove(&path).unwrap();
        let new = files.open(&path, OpenMode::CreateNew).unwrap();
        assert_eq!(new.length().unwrap(), 0);
        let mut bytes = [0; 3];
        old.read_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"old");
    });
}

#[test]
fn symbolic_links_are_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let (target, link) = (directory.path().join("target"), directory.path().join("link"));
    fs::write(&target, b"secret").unwrap();
    symlink(&target, &link).unwrap();
    for mode in [OpenMode::Read, OpenMode::ReadWrite, OpenMode::CreateNew] {
        let error = RealFiles.open(&link, mode).unwrap_err();
        let refusal = if mode == OpenMode::CreateNew { "exists" } else { "a symbolic link" };
        assert!(error.to_string().contains(refusal), "{error}");
    }
    // A dangling link must not create its target either.
    let dangling = directory.path().join("dangling");
    symlink(directory.path().join("created"), &dangling).unwrap();
    RealFiles.open(&dangling, OpenMode::CreateNew).unwrap_err();
    assert!(!directory.path().join("created").exists());
    RealFiles.open(&target, OpenMode::ReadWrite).unwrap();
}

#[test]
fn a_real_path_has_no_links_and_begins_at_the_root() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("real/deep")).unwrap();
    symlink(root.join("real"), root.join("link")).unwrap();
    let environment = RealEnvironment::new();
    for path in ["real/deep", "link/deep", "link/deep/.", "link/../real/deep"] {
        assert_eq!(environment.real_path(&root.join(path)).unwrap(), root.join("real/deep"));
    }
    let error = environment.real_path(&root.join("link/other")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    // Files in memory have no links.
    let stepped = SteppedEnvironment::with_files(1, Arc::new(MemoryFiles::new()));
    assert_eq!(stepped.real_path(Path::new("a/b")).unwrap(), Path::new("a/b"));
}

#[test]
fn new_files_are_the_owners_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let file = RealFiles.open(&path, OpenMode::CreateNew).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let inner = directory.path().join("inner");
    RealFiles.create_directory(&inner).unwrap();
    assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o777, 0o700);
    let flags = rustix::io::fcntl_getfd(file.descriptor().unwrap()).unwrap();
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
}

#[test]
fn only_files_and_dax_devices_are_opened() {
    let directory = tempfile::tempdir().unwrap();
    let (pipe, socket) = (directory.path().join("pipe"), directory.path().join("socket"));
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let _listener = UnixListener::bind(&socket).unwrap();
    let refused = [
        (Path::new("/dev/zero"), ErrorKind::InvalidInput, "not a DAX device"),
        // Without a writer this would hang if it waited.
        (&pipe, ErrorKind::InvalidInput, "a pipe, neither"),
        (&socket, ErrorKind::InvalidInput, "a socket, neither"),
        (directory.path(), ErrorKind::IsADirectory, "directory"),
    ];
    for (path, expected, text) in refused {
        for mode in [OpenMode::Read, OpenMode::ReadWrite] {
            let error = RealFiles.open(path, mode).unwrap_err();
            assert_eq!(error.kind(), expected, "{}: {error}", path.display());
            assert!(error.to_string().contains(text), "{}: {error}", path.display());
        }
        assert_eq!(kind(RealFiles.open(path, OpenMode::CreateNew)), ErrorKind::AlreadyExists);
    }
}

#[test]
fn allocated_space_is_really_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let file = RealFiles.open(&path, OpenMode::CreateNew).unwrap();
    file.allocate(0, 1 << 20).unwrap();
    assert!(fs::metadata(&path).unwrap().blocks() * 512 >= 1 << 20, "not sparse");
    file.punch(0, 1 << 20).unwrap();
    assert!(fs::metadata(&path).unwrap().blocks() * 512 < 1 << 20);
}

#[test]
fn media_are_told_apart() {
    if let Ok(directory) = tempfile::tempdir_in("/dev/shm") {
        let file = RealFiles.open(&directory.path().join("file"), OpenMode::CreateNew).unwrap();
        assert_eq!(file.medium().unwrap(), Medium::Tmpfs);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let file = RealFiles.open(&path, OpenMode::CreateNew).unwrap();
    let medium = file.medium().unwrap();
    assert!(matches!(medium, Medium::File | Medium::FsDax | Medium::Tmpfs));
    let reader = RealFiles.open(&path, OpenMode::Read).unwrap();
    assert_eq!(reader.medium().unwrap(), medium, "the same for a reader");
}

/// A small tmpfs, where this process may mount one.
struct SmallFileSystem(tempfile::TempDir);

impl SmallFileSystem {
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(directory.path())
            .output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(directory))
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_device_is_said_to_be_full() {
    let Some(small) = SmallFileSystem::mount() else { return };
    let file = RealFiles.open(&small.0.path().join("file"), OpenMode::CreateNew).unwrap();
    file.allocate(0, 64 << 10).unwrap();
    assert_eq!(kind(file.allocate(64 << 10, 2 << 20)), ErrorKind::StorageFull);
    assert_eq!(file.length().unwrap(), 64 << 10, "nothing is left behind");
    file.allocate(64 << 10, 64 << 10).unwrap();

    // A sparse file on a full device: populating says so instead of raising a signal.
    let sparse = RealFiles.open(&small.0.path().join("sparse"), OpenMode::CreateNew).unwrap();
    sparse.set_length(2 << 20).unwrap();
    let memory = crate::Hardware::new(crate::HardwareOptions::default()).unwrap();
    crate::Pmem::map(&memory, 0, &sparse, 0, 2 << 20).unwrap();
    assert_eq!(kind(crate::Pmem::populate(&memory, 0, 2 << 20)), ErrorKind::StorageFull);
}

#[test]
fn memory_files_fill_up_and_free() {
    let files = MemoryFiles::with_capacity(100);
    let first = files.open(Path::new("first"), OpenMode::CreateNew).unwrap();
    let second = files.open(Path::new("second"), OpenMode::CreateNew).unwrap();
    first.allocate(0, 60).unwrap();
    assert_eq!(kind(second.allocate(0, 41)), ErrorKind::StorageFull);
    assert_eq!(kind(second.write_at(40, b"x")), ErrorKind::StorageFull);
    assert_eq!(second.length().unwrap(), 0);
    second.allocate(0, 40).unwrap();
    first.set_length(50).unwrap();
    second.allocate(40, 10).unwrap();
    files.remove(Path::new("first")).unwrap();
    assert_eq!(kind(second.allocate(50, 1)), ErrorKind::StorageFull, "still open");
    drop(first);
    second.allocate(50, 50).unwrap();
    assert_eq!(second.medium().unwrap(), Medium::Simulated);
    assert!(second.descriptor().is_none());
}

#[test]
fn anonymous_files_can_only_be_mapped() {
    let file = AnonymousFile::new(8192);
    assert_eq!(file.length().unwrap(), 8192);
    assert_eq!(file.medium().unwrap(), Medium::Anonymous);
    file.allocate(0, 8192).unwrap();
    assert_eq!(kind(file.allocate(1, 8192)), ErrorKind::StorageFull);
    assert_eq!(kind(file.read_at(0, &mut [0])), ErrorKind::Unsupported);
    assert_eq!(kind(file.write_at(0, &[0])), ErrorKind::Unsupported);
    file.set_length(8192).unwrap();
    assert_eq!(kind(file.set_length(1)), ErrorKind::Unsupported);
}

/// A directory like that of a device in sysfs.
fn device_directory(subsystem: &str, size: &str, align: Option<&str>) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join(subsystem);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&target).unwrap();
    symlink(&target, directory.path().join("subsystem")).unwrap();
    fs::write(directory.path().join("size"), size).unwrap();
    if let Some(align) = align {
        fs::write(directory.path().join("align"), align).unwrap();
    }
    directory
}

#[test]
fn dax_devices_are_known_by_their_subsystem() {
    let device = device_directory("bus/dax", "4294967296\n", Some("2097152\n"));
    assert_eq!(DaxDevice::from_directory(device.path()).unwrap().capacity(), 1 << 32);
    let other = device_directory("class/mem", "4096\n", None);
    assert_eq!(kind(DaxDevice::from_directory(other.path())), ErrorKind::InvalidInput);
    let strange = device_directory("bus/dax", "many\n", None);
    assert_eq!(kind(DaxDevice::from_directory(strange.path())), ErrorKind::InvalidData);
    let crooked = device_directory("bus/dax", "4096\n", Some("0x3000\n"));
    assert_eq!(kind(DaxDevice::from_directory(crooked.path())), ErrorKind::InvalidData);
    assert_eq!(kind(DaxDevice::from_directory(Path::new("/missing"))), ErrorKind::InvalidInput);
}

#[test]
fn a_device_of_a_read_only_region_is_refused_for_writing() {
    let region = tempfile::tempdir().unwrap();
    let above = |says: Option<&str>| {
        let device = device_directory("bus/dax", "4194304", Some("2097152"));
        let inside = region.path().join("dax1.1/dax/dax1.0");
        fs::create_dir_all(inside.parent().unwrap()).unwrap();
        match says {
            Some(says) => fs::write(region.path().join("read_only"), says).unwrap(),
            None => drop(fs::remove_file(region.path().join("read_only"))),
        }
        fs::rename(device.path(), &inside).unwrap();
        let link = region.path().join("link");
        symlink(&inside, &link).unwrap();
        let found = DaxDevice::from_directory(&link).unwrap();
        fs::remove_file(link).unwrap();
        fs::remove_dir_all(inside).unwrap();
        found
    };
    above(None).check_writable().unwrap();
    above(Some("0\n")).check_writable().unwrap();
    let error = above(Some("1\n")).check_writable().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem);
    let region = region.path().canonicalize().unwrap();
    assert!(error.to_string().contains(region.to_str().unwrap()), "{error}");
}

#[test]
fn dax_devices_are_read_and_written_by_mappings() {
    let directory = tempfile::tempdir().unwrap();
    let file = RealFiles.open(&directory.path().join("device"), OpenMode::CreateNew).unwrap();
    file.allocate(0, 4 * 8192).unwrap();
    let sysfs = device_directory("bus/dax", "32768", Some("0x2000"));
    let device = DaxDevice::from_directory(sysfs.path()).unwrap();
    let descriptor = file.descriptor().unwrap();
    // Across a border of the alignment, at odd bytes.
    let bytes: Vec<u8> = (0..10_001).map(|at| (at % 251) as u8).collect();
    device.write_at(descriptor, 8191, &bytes).unwrap();
    let mut back = vec![0; bytes.len()];
    device.read_at(descriptor, 8191, &mut back).unwrap();
    assert_eq!(back, bytes);
    file.read_at(8191, &mut back).unwrap();
    assert_eq!(back, bytes);
    let mut around = [1; 2];
    file.read_at(8190, &mut around).unwrap();
    assert_eq!(around, [0, 0]);
    device.read_at(descriptor, 32768, &mut []).unwrap();
    assert_eq!(kind(device.read_at(descriptor, 32767, &mut [0; 2])), ErrorKind::UnexpectedEof);
    device.write_at(descriptor, 32767, &[0; 2]).unwrap_err();
    device.write_at(descriptor, u64::MAX, &[0; 2]).unwrap_err();
}

#[test]
fn files_are_shared_between_providers_that_share_them() {
    let files = Arc::new(MemoryFiles::new());
    let one = SteppedEnvironment::with_files(1, files.clone());
    let two = SteppedEnvironment::with_files(2, files);
    let path = Path::new("file");
    let file = Environment::open(&one, path, OpenMode::CreateNew).unwrap();
    file.write_at(0, b"seen").unwrap();
    let file = Environment::open(&two, path, OpenMode::Read).unwrap();
    assert_eq!(file.length().unwrap(), 4);
}
