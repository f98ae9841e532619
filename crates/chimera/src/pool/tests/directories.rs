//! Which directories are synced when a pool is created.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use chimera_pmem::SteppedEnvironment;
use chimera_pmem::environment::{Directory, File, FileProvider, MemoryFiles, OpenMode, RealFiles};

use super::media::Media;
use super::*;

/// Files that keep account of which directories were synced.
#[derive(Debug)]
struct Synced {
    files: Box<dyn FileProvider>,
    /// What is said to be the real path, or why it cannot be told.
    real: Option<Result<PathBuf, io::ErrorKind>>,
    directories: Mutex<Vec<PathBuf>>,
}

impl Synced {
    fn of(files: impl FileProvider) -> Self {
        Self { files: Box::new(files), real: None, directories: Mutex::default() }
    }
}

impl FileProvider for Synced {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.files.open(path, mode)
    }

    fn open_directory(&self, path: &Path) -> io::Result<Option<Arc<dyn Directory>>> {
        self.files.open_directory(path)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.files.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.files.list(path)
    }

    fn is_directory(&self, path: &Path) -> io::Result<Option<bool>> {
        self.files.is_directory(path)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        match &self.real {
            Some(real) => Ok(real.clone()?),
            None => self.files.real_path(path),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.directories.lock().unwrap().push(path.to_owned());
        self.files.sync_directory(path)
    }
}

/// Creates a pool, and says which directories were synced by their paths.
fn create(files: Synced, path: &Path) -> Result<Vec<PathBuf>> {
    let files = Arc::new(files);
    let environment = Arc::new(SteppedEnvironment::with_files(1, files.clone()));
    let new = || Ok(NewPool { superblock: new_superblock(), is_segment_fixed: true });
    Pool::open(Media::default(), environment, path, &options(), new)?;
    let synced = std::mem::take(&mut *files.directories.lock().unwrap());
    Ok(synced)
}

/// A process may have been killed after it made the directories and before it synced any.
#[test]
fn creation_syncs_all_directories_above_the_store_whoever_made_them() {
    for is_made in [false, true] {
        let files = Synced::of(MemoryFiles::default());
        if is_made {
            files.create_directory(Path::new("/a/b/c")).unwrap();
        }
        let synced = create(files, Path::new("/a/b/c")).unwrap();
        for directory in ["/a/b/c", "/a/b", "/a", "/"] {
            let times = synced.iter().filter(|path| *path == Path::new(directory)).count();
            assert!(times > 0, "{directory}");
            assert!(times == 1 || directory == "/a/b/c", "{directory}: {times} times");
        }
    }
}

/// Asserts that each directory in which the one at `path` lies was synced.
fn assert_synced_above(path: &Path, synced: &[PathBuf]) {
    let synced: Vec<_> = synced.iter().map(|path| path.canonicalize().unwrap()).collect();
    let real = path.canonicalize().unwrap();
    for above in real.ancestors().skip(1) {
        assert!(synced.iter().any(|path| path == above), "{}", above.display());
    }
}

#[test]
fn behind_a_symbolic_link_the_directories_above_the_store_are_synced_and_those_above_the_link() {
    let directory = tempfile::tempdir().unwrap();
    let (real, named) = (directory.path().join("real/deep"), directory.path().join("named"));
    std::fs::create_dir_all(&real).unwrap();
    std::fs::create_dir_all(&named).unwrap();
    let link = named.join("link");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    // A parent is the link, then the directory of the store is.
    for path in [link.join("store/inner"), link.clone()] {
        let synced = create(Synced::of(RealFiles), &path).unwrap();
        assert_synced_above(&path, &synced);
        assert!(synced.contains(&named), "the entry of the link");
    }
    assert!(real.join("store/inner/superblock").exists() && real.join("superblock").exists());
}

#[test]
fn for_a_relative_path_the_directories_above_the_one_it_begins_in_are_synced() {
    let real = Ok(PathBuf::from("/home/user/a/b"));
    let files = Synced { real: Some(real), ..Synced::of(MemoryFiles::default()) };
    files.create_directory(Path::new("/home/user/a")).unwrap();
    let synced = create(files, Path::new("a/b")).unwrap();
    for directory in ["/home/user/a", "/home/user", "/home", "/", "a", "."] {
        assert!(synced.iter().any(|path| path == Path::new(directory)), "{directory}");
    }
}

/// As a directory that may not be synced: its store may be lost with it, and everybody who makes one there knows.
#[test]
fn a_path_that_may_not_be_followed_is_taken_as_it_is() {
    let refusing = |refusal| {
        let files = Synced { real: Some(Err(refusal)), ..Synced::of(MemoryFiles::default()) };
        create(files, Path::new("/a/b"))
    };
    let synced = refusing(io::ErrorKind::PermissionDenied).unwrap();
    assert!(["/a", "/"].iter().all(|path| synced.iter().any(|synced| synced == Path::new(path))));
    match refusing(io::ErrorKind::TimedOut) {
        Err(Error::Io { action: "look at", .. }) => {}
        other => panic!("{other:?}"),
    }
}
