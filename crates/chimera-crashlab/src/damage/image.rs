//! [`Image`]: the files of a store, as bytes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use chimera_pmem::Medium;
use chimera_pmem::environment::{FileProvider, MemoryFiles, OpenMode};

/// Where a store lies.
pub(super) const STORE: &str = "store";
pub(super) const SUPERBLOCK: &str = "superblock";
pub(super) const JOURNAL: &str = "journal";
pub(super) const SEGMENT: &str = "segment-";

/// The files of a store, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Image {
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

impl Image {
    /// The files as they are now.
    pub(super) fn read(files: &MemoryFiles) -> Self {
        let mut image = Self::default();
        for name in files.list(Path::new(STORE)).unwrap_or_default() {
            let file = files.open(&Path::new(STORE).join(&name), OpenMode::Read).expect("listed");
            let mut bytes = vec![0; file.length().expect("memory") as usize];
            file.read_at(0, &mut bytes).expect("memory");
            image.files.insert(name.to_string_lossy().into_owned(), bytes);
        }
        image
    }

    /// Files in memory with these bytes, that say they lie on `medium`.
    pub(super) fn to_files(&self, medium: Medium) -> Arc<MemoryFiles> {
        let files = MemoryFiles::new().on(medium);
        files.create_directory(Path::new(STORE)).expect("a directory");
        for (name, bytes) in &self.files {
            let path = Path::new(STORE).join(name);
            let file = files.open(&path, OpenMode::CreateNew).expect("a new file");
            file.write_at(0, bytes).expect("memory");
        }
        Arc::new(files)
    }

    /// All bytes of all files.
    pub(super) fn length(&self) -> u64 {
        self.files.values().map(|bytes| bytes.len() as u64).sum()
    }

    /// The name of segment `number`.
    pub(super) fn segment(number: u64) -> String {
        format!("{SEGMENT}{number:06}")
    }

    /// The word at byte `at` of a file; 0 where there is none.
    pub(super) fn word(&self, file: &str, at: u64) -> u64 {
        let bytes = self.files.get(file).and_then(|bytes| bytes.get(at as usize..)?.get(..8));
        bytes.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")))
    }
}
