//! What can be wrong with persistent memory, and what is said of it.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use chimera_placement::Error;
use chimera_placement::region::{FILE_NAME, REGION_BYTES_MIN, Region, RegionOptions};

const BYTES: u64 = 4 << 20;

fn open(directory: &Path) -> Result<Region, Error> {
    Region::open(&RegionOptions {
        directory: directory.to_owned(),
        bytes: BYTES,
        require_dax: false,
    })
}

fn message(result: Result<Region, Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn the_file_is_reserved_and_removed_at_the_end() {
    use std::os::unix::fs::MetadataExt;
    let scratch = tempfile::tempdir().unwrap();
    let region = open(scratch.path()).unwrap();
    let found = fs::metadata(region.path()).unwrap();
    assert_eq!((found.len(), region.length() as u64), (BYTES, BYTES));
    assert!(found.blocks() * 512 >= BYTES, "storage is reserved");
    assert_eq!(found.mode() & 0o777, 0o600);
    drop(region);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}

/// A child that was forked has the mapping, and ends: the file stays, and so does its lock.
#[test]
fn a_forked_child_takes_nothing_with_it() {
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};
    let scratch = tempfile::tempdir().unwrap();
    let region = open(scratch.path()).unwrap();
    // SAFETY: the child drops the region, which calls the kernel alone, and ends without running anything else.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            drop(region);
            // SAFETY: ends the process at once.
            unsafe { nix::libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
        }
    }
    assert!(region.path().exists());
    assert!(matches!(open(scratch.path()), Err(Error::InUse(_))));
}

#[test]
fn sizes_are_rounded_up_to_huge_pages() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().to_owned();
    let region = Region::open(&RegionOptions { directory, bytes: BYTES + 1, require_dax: false });
    assert_eq!(region.unwrap().length() as u64, BYTES + (2 << 20));
}

#[test]
fn a_file_is_used_by_one_process_at_a_time() {
    let scratch = tempfile::tempdir().unwrap();
    let region = open(scratch.path()).unwrap();
    let text = message(open(scratch.path()));
    assert!(text.contains(FILE_NAME) && text.contains("another process"), "{text}");
    assert!(region.path().exists(), "the refused one removes nothing");
    drop(region);
    open(scratch.path()).unwrap();
}

#[test]
fn what_a_killed_process_left_is_taken_over() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join(FILE_NAME);
    fs::write(&path, vec![7; 123]).unwrap();
    let region = open(scratch.path()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), BYTES);
    drop(region);
    assert!(!path.exists());
}

#[test]
fn a_missing_directory_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let text = message(open(&scratch.path().join("missing")));
    assert!(text.contains("missing") && text.contains("create it"), "{text}");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing is made");
}

#[test]
fn a_file_is_no_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("file");
    fs::write(&path, b"").unwrap();
    let text = message(open(&path));
    assert!(text.contains("is not a directory"), "{text}");
}

#[test]
fn a_directory_that_is_not_writable_is_named() {
    // No right of a directory stops the superuser; a file system without files does.
    let scratch = tempfile::tempdir().unwrap();
    let directory = if rustix::process::geteuid().is_root() {
        Path::new("/proc/self/fdinfo").to_owned()
    } else {
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o500)).unwrap();
        scratch.path().to_owned()
    };
    let text = message(open(&directory));
    assert!(text.contains("no file can be made in") && text.contains("writable"), "{text}");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_symbolic_link_is_not_followed() {
    let scratch = tempfile::tempdir().unwrap();
    let target = scratch.path().join("target");
    fs::write(&target, b"precious").unwrap();
    std::os::unix::fs::symlink(&target, scratch.path().join(FILE_NAME)).unwrap();
    assert!(open(scratch.path()).is_err());
    assert_eq!(fs::read(&target).unwrap(), b"precious");
}

#[test]
fn too_much_and_too_little_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().to_owned();
    let with = |bytes| {
        Region::open(&RegionOptions { directory: directory.clone(), bytes, require_dax: false })
    };
    let text = message(with(REGION_BYTES_MIN - 1));
    assert!(text.contains("too few"), "{text}");
    let text = message(with(1 << 50));
    assert!(text.contains("no room") && text.contains("free"), "{text}");
    for bytes in [i64::MAX as u64, 1 << 63, u64::MAX] {
        let text = message(with(bytes));
        assert!(text.contains("more than can be mapped"), "{text}");
    }
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn dax_is_required_where_that_is_said() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().to_owned();
    let is_dax = open(&directory).unwrap().is_dax();
    let required = Region::open(&RegionOptions { directory, bytes: BYTES, require_dax: true });
    if is_dax {
        assert!(required.unwrap().is_dax());
    } else {
        let text = message(required);
        assert!(text.contains("MAP_SYNC") && text.contains("--require-dax"), "{text}");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing is left behind");
    }
}
