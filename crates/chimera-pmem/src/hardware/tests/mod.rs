mod access;
mod mapping;
mod tools;

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::environment::{AnonymousFile, FileProvider, OpenMode, RealFiles};

const SITE: Site = Site::new("test");
const PAGE: u64 = 4096;

/// A space of `pages` pages of anonymous memory.
fn anonymous(pages: u64) -> Hardware {
    anonymous_with(pages, HardwareOptions::default())
}

fn anonymous_with(pages: u64, options: HardwareOptions) -> Hardware {
    let memory = Hardware::new(options).unwrap();
    let file: Arc<dyn File> = Arc::new(AnonymousFile::new(pages * PAGE));
    memory.map(0, &file, 0, pages * PAGE).unwrap();
    memory
}

/// A new file of `length` bytes in `directory`.
fn new_file(directory: &Path, name: &str, length: u64) -> Arc<dyn File> {
    let file = RealFiles.open(&directory.join(name), OpenMode::CreateNew).unwrap();
    file.allocate(0, length).unwrap();
    file
}

/// A directory on tmpfs where the machine has one, else anywhere.
fn memory_directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn extent(memory: &Hardware, offset: u64, length: u64) -> Extent {
    memory.check(offset, length).unwrap()
}

/// The message of a panic of `action`.
fn panic_of(action: impl FnOnce()) -> String {
    let cause = std::panic::catch_unwind(std::panic::AssertUnwindSafe(action))
        .expect_err("should have panicked");
    match cause.downcast::<String>() {
        Ok(text) => *text,
        Err(cause) => (*cause.downcast::<&str>().unwrap()).to_owned(),
    }
}
