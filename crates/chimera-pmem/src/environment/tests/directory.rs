//! Open directories: real ones, which are followed, and those that are found by their paths.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::super::{Directory, Environment, MemoryFiles, OpenMode, SteppedEnvironment};

/// Runs `test` on a real directory and on one in memory, both empty.
fn on_both(test: impl Fn(&dyn Directory)) {
    let directory = tempfile::tempdir().unwrap();
    test(&*SteppedEnvironment::new(1).open_directory(directory.path()).unwrap());
    let files = Arc::new(MemoryFiles::new());
    let environment = SteppedEnvironment::with_files(1, files);
    environment.create_directory(Path::new("/some/directory")).unwrap();
    test(&*environment.open_directory(Path::new("/some/directory")).unwrap());
}

#[test]
fn files_are_made_found_and_removed_in_it() {
    on_both(|directory| {
        let (one, two) = (Path::new("one"), Path::new("two"));
        assert!(!directory.has(one).unwrap());
        let kind = directory.open(one, OpenMode::ReadWrite).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::NotFound);
        let first = directory.open(one, OpenMode::CreateNew).unwrap();
        first.write_at(0, b"one").unwrap();
        let kind = directory.open(one, OpenMode::CreateNew).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::AlreadyExists);
        let second = directory.open(two, OpenMode::CreateNew).unwrap();
        assert_eq!(directory.list().unwrap(), [one, two]);
        assert!(directory.has(one).unwrap() && directory.has(two).unwrap());
        for (name, file, is_it) in
            [(one, &first, true), (two, &second, true), (one, &second, false), (two, &first, false)]
        {
            assert_eq!(directory.has_file(name, &**file).unwrap(), is_it, "{}", name.display());
        }
        // Another opening of the same file is the same file.
        let again = directory.open(one, OpenMode::Read).unwrap();
        assert!(directory.has_file(one, &*again).unwrap());

        directory.replace(one, two).unwrap();
        directory.sync().unwrap();
        assert_eq!(directory.list().unwrap(), [two]);
        assert!(!directory.has_file(one, &*first).unwrap(), "it has another name");
        assert!(directory.has_file(two, &*first).unwrap());
        assert!(!directory.has_file(two, &*second).unwrap(), "it was replaced");
        directory.remove(two).unwrap();
        assert!(!directory.has_file(two, &*first).unwrap());
        assert_eq!(directory.remove(two).unwrap_err().kind(), ErrorKind::NotFound);
        assert!(!directory.is_removed().unwrap());
    });
}

#[test]
fn only_directories_are_opened() {
    let scratch = tempfile::tempdir().unwrap();
    let files = Arc::new(MemoryFiles::new());
    let memory = SteppedEnvironment::with_files(1, files);
    memory.create_directory(scratch.path()).unwrap();
    for environment in [SteppedEnvironment::new(1), memory] {
        let kind =
            |name: &str| environment.open_directory(&scratch.path().join(name)).unwrap_err().kind();
        assert_eq!(kind("nothing"), ErrorKind::NotFound);
        environment.open(&scratch.path().join("file"), OpenMode::CreateNew).unwrap();
        assert_eq!(kind("file"), ErrorKind::NotADirectory);
    }
}

#[test]
fn a_directory_that_is_renamed_is_followed() {
    let scratch = tempfile::tempdir().unwrap();
    let (old, new) = (scratch.path().join("old"), scratch.path().join("new"));
    fs::create_dir(&old).unwrap();
    let directory = SteppedEnvironment::new(1).open_directory(&old).unwrap();
    let file = directory.open(Path::new("before"), OpenMode::CreateNew).unwrap();
    fs::rename(&old, &new).unwrap();
    fs::create_dir(&old).unwrap();
    fs::write(old.join("before"), "another one").unwrap();
    assert!(!directory.is_removed().unwrap());
    assert!(directory.has_file(Path::new("before"), &*file).unwrap());
    directory.open(Path::new("after"), OpenMode::CreateNew).unwrap();
    directory.replace(Path::new("after"), Path::new("later")).unwrap();
    directory.remove(Path::new("before")).unwrap();
    directory.sync().unwrap();
    assert_eq!(directory.list().unwrap(), [Path::new("later")]);
    assert!(new.join("later").exists() && !new.join("before").exists());
    assert_eq!(fs::read_to_string(old.join("before")).unwrap(), "another one");
}

#[test]
fn a_directory_that_is_removed_says_so() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("directory");
    fs::create_dir(&path).unwrap();
    let directory = SteppedEnvironment::new(1).open_directory(&path).unwrap();
    let file = directory.open(Path::new("file"), OpenMode::CreateNew).unwrap();
    fs::remove_dir_all(&path).unwrap();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("file"), "").unwrap();
    assert!(directory.is_removed().unwrap());
    assert!(!directory.has_file(Path::new("file"), &*file).unwrap());
    let kind = directory.open(Path::new("new"), OpenMode::CreateNew).unwrap_err().kind();
    assert_eq!(kind, ErrorKind::NotFound);
    let path = scratch.path().join("memory");
    let files = Arc::new(MemoryFiles::new());
    let environment = SteppedEnvironment::with_files(1, files);
    environment.create_directory(&path).unwrap();
    let directory = environment.open_directory(&path).unwrap();
    environment.remove_directory(&path).unwrap();
    assert!(directory.is_removed().unwrap());
}
