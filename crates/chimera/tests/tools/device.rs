//! [`Device`]: a DAX device that is really a file, as strict as the real thing.

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chimera::{Db, Options, Result};
use chimera_pmem::environment::{File, FileProvider, OpenMode, RealFiles};
use chimera_pmem::{Environment, Hardware, Medium, SteppedEnvironment};
use tempfile::TempDir;

/// A device in a directory of its own. It can be locked and mapped; everything else fails the test.
pub(crate) struct Device {
    directory: TempDir,
    files: Arc<DeviceFiles>,
}

#[derive(Debug)]
struct DeviceFiles {
    path: PathBuf,
    alignment: u64,
    region_is_read_only: AtomicBool,
}

impl Device {
    /// A device full of `byte`.
    pub(crate) fn filled(capacity: u64, alignment: u64, byte: u8) -> Self {
        let directory = super::scratch();
        let path = directory.path().join("dax0.0");
        fs::write(&path, vec![byte; capacity as usize]).expect("a file");
        let region_is_read_only = AtomicBool::new(false);
        let files = Arc::new(DeviceFiles { path, alignment, region_is_read_only });
        Self { directory, files }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.files.path
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).expect("a file")
    }

    /// Puts `bytes` at the start of the device.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) {
        let file = fs::OpenOptions::new().write(true).open(self.path()).expect("a file");
        std::os::unix::fs::FileExt::write_all_at(&file, bytes, at).expect("room");
    }

    /// Makes it smaller or larger, as no user should.
    pub(crate) fn resize(&self, capacity: u64) {
        let file = fs::OpenOptions::new().write(true).open(self.path()).expect("a file");
        file.set_len(capacity).expect("room");
    }

    pub(crate) fn set_region_read_only(&self, read_only: bool) {
        self.files.region_is_read_only.store(read_only, Ordering::Relaxed);
    }

    /// The machine it is in.
    pub(crate) fn environment(&self) -> Arc<dyn Environment> {
        Arc::new(SteppedEnvironment::with_files(1, self.files.clone()))
    }

    pub(crate) fn open(&self, options: &Options) -> Result<Db> {
        let pmem = Hardware::new(options.hardware_options()).expect("address space");
        Db::open_on(pmem, &self.environment(), self.path(), options)
    }

    /// Asserts that nothing was made beside the device.
    pub(crate) fn assert_alone(&self) {
        assert_eq!(super::names(self.directory.path()), [PathBuf::from("dax0.0")]);
    }
}

impl FileProvider for DeviceFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        assert_eq!(path, self.path, "only the device is opened");
        assert_ne!(mode, OpenMode::CreateNew, "a device is never created");
        if mode == OpenMode::ReadWrite && self.region_is_read_only.load(Ordering::Relaxed) {
            let message = "its region is read-only";
            return Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, message));
        }
        let real = RealFiles.open(path, mode)?;
        Ok(Arc::new(DeviceFile { real, alignment: self.alignment }))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        panic!("directory {} created", path.display())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        panic!("{} listed", path.display())
    }

    fn is_directory(&self, path: &Path) -> io::Result<Option<bool>> {
        RealFiles.is_directory(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        panic!("{} removed", path.display())
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        panic!("{} synced", path.display())
    }
}

#[derive(Debug)]
struct DeviceFile {
    real: Arc<dyn File>,
    alignment: u64,
}

impl File for DeviceFile {
    fn length(&self) -> io::Result<u64> {
        self.real.length()
    }

    fn allocate(&self, _offset: u64, _length: u64) -> io::Result<()> {
        panic!("storage of a device allocated")
    }

    fn punch(&self, _offset: u64, _length: u64) -> io::Result<()> {
        panic!("a hole punched into a device")
    }

    fn read_at(&self, _offset: u64, _into: &mut [u8]) -> io::Result<()> {
        panic!("a device read")
    }

    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        panic!("a device written")
    }

    fn set_length(&self, _length: u64) -> io::Result<()> {
        panic!("a device cut or extended")
    }

    fn sync(&self) -> io::Result<()> {
        panic!("a device synced")
    }

    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        self.real.try_lock(exclusive)
    }

    fn medium(&self) -> io::Result<Medium> {
        Ok(Medium::DevDax)
    }

    fn mapping_alignment(&self) -> u64 {
        self.alignment
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.real.descriptor()
    }

    fn is_read_only(&self) -> bool {
        self.real.is_read_only()
    }
}
