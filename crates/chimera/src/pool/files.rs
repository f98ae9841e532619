//! The files of a pool: creating, finding, locking and checking them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chimera_pmem::Environment;
use chimera_pmem::environment::{AnonymousFile, File, OpenMode};

use super::BlockMap;
use super::device::Device;
use super::segment::Section;
use super::superblock::FILE_BYTES;
use crate::types::error::{Error, Result};

/// The directory or device of a pool, and its lock.
pub(super) struct PoolFiles {
    pub(super) path: PathBuf,
    pub(super) environment: Arc<dyn Environment>,
    /// Held for its lock; none for a pool without files, in anonymous memory.
    lock: Option<Arc<dyn File>>,
    /// Where the pool lies on a device instead of in files.
    pub(super) device: Option<Device>,
}

/// The file that is locked.
pub(super) const LOCK: &str = "lock";
/// Its length: a process id as text.
pub(super) const LOCK_BYTES: usize = 20;
/// The file of the superblock.
pub(super) const SUPERBLOCK: &str = "superblock";
/// The file of the journal.
pub(super) const JOURNAL: &str = "journal";
/// With what the names of segments begin.
const SEGMENT: &str = "segment-";

fn segment_name(index: u64) -> String {
    format!("{SEGMENT}{index:06}")
}

/// Whether a file of this name is a segment.
pub(super) fn is_segment(name: &Path) -> bool {
    let index = name.to_str().and_then(|name| name.strip_prefix(SEGMENT)?.parse().ok());
    index.is_some_and(|index| name == Path::new(&segment_name(index)))
}

impl PoolFiles {
    /// Locks the directory `path`, creating it when `create`, or the device `path`.
    ///
    /// # Errors
    /// `NotFound`, `NotAStore`, `Locked`, or what the system says.
    pub(super) fn lock(
        environment: Arc<dyn Environment>,
        path: &Path,
        create: bool,
        read_only: bool,
    ) -> Result<Self> {
        match environment.is_directory(path).map_err(Error::io("look at", path))? {
            Some(true) => {}
            Some(false) => {
                let device = Device::lock(&*environment, path, read_only)?;
                let lock = Some(device.file.clone());
                return Ok(Self { path: path.to_owned(), environment, lock, device: Some(device) });
            }
            // A device that is not there, most likely: a directory in its place would be memory.
            None if path.parent() == Some(Path::new("/dev")) => {
                let reason =
                    "there is no such device, and a store is not created in /dev".to_owned();
                return Err(Error::NotAStore { path: path.to_owned(), reason });
            }
            None if create && !read_only => {
                let created = environment.create_directory(path);
                created.map_err(Error::io("create the directory", path))?;
            }
            None => return Err(Error::NotFound { path: path.to_owned() }),
        }
        let mode = if read_only { OpenMode::Read } else { OpenMode::ReadWrite };
        let file = lock_in(&*environment, path, mode, create)?;
        if !read_only {
            let text = format!("{:<LOCK_BYTES$}", environment.process_id());
            file.write_at(0, text.as_bytes()).map_err(Error::io("write", &path.join(LOCK)))?;
        }
        Ok(Self { path: path.to_owned(), environment, lock: Some(file), device: None })
    }

    /// For a pool without files.
    pub(super) fn none(environment: Arc<dyn Environment>) -> Self {
        Self { path: PathBuf::new(), environment, lock: None, device: None }
    }

    /// Bytes of the pool's address space before the first segment.
    pub(super) fn superblock_bytes(&self) -> u64 {
        self.device.as_ref().map_or(FILE_BYTES, Device::superblock_bytes)
    }

    /// Most blocks there can be.
    pub(super) fn blocks_max(&self, map: &BlockMap) -> u64 {
        let on = |device: &Device| device.segments_max(map.segment_bytes) * map.blocks_per_segment;
        self.device.as_ref().map_or(u64::MAX, on).min(BlockMap::BLOCKS_MAX)
    }

    /// Opens segment `index` of `bytes` bytes.
    ///
    /// # Errors
    /// As [`open_sized`](Self::open_sized).
    pub(super) fn open_segment(&self, index: u64, bytes: u64, read_only: bool) -> Result<Section> {
        if let Some(device) = &self.device {
            return device.segment(index, bytes);
        }
        let file = self.open_sized(&self.segment_path(index), bytes, read_only)?;
        Ok(Section { file, offset: 0 })
    }

    /// Whether the pool is in anonymous memory.
    pub(super) fn is_without_files(&self) -> bool {
        self.lock.is_none()
    }

    /// Whether the pool is a directory of files.
    pub(super) fn is_in_directory(&self) -> bool {
        !self.is_without_files() && self.device.is_none()
    }

    pub(super) fn superblock_path(&self) -> PathBuf {
        self.path.join(SUPERBLOCK)
    }

    /// The file of a segment, or the device it lies on.
    pub(super) fn segment_path(&self, index: u64) -> PathBuf {
        match self.device {
            Some(_) => self.path.clone(),
            None => self.path.join(segment_name(index)),
        }
    }

    /// Whether any segment file is there.
    pub(super) fn has_segments(&self) -> Result<bool> {
        let names = self.environment.list(&self.path).map_err(Error::io("list", &self.path))?;
        Ok(names.iter().any(|name| {
            name.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with(SEGMENT))
        }))
    }

    /// Whether an existing file has no bytes.
    pub(super) fn is_empty(&self, path: &Path) -> Result<bool> {
        let file = self.environment.open(path, OpenMode::Read).map_err(Error::io("open", path))?;
        Ok(file.length().map_err(Error::io("measure", path))? == 0)
    }

    /// Makes creations and removals of files durable.
    pub(super) fn sync_directory(&self) -> Result<()> {
        self.environment.sync_directory(&self.path).map_err(Error::io("sync", &self.path))
    }

    /// Opens an existing file of exactly `bytes` bytes.
    ///
    /// # Errors
    /// `NotAStore` when it is missing or of another length.
    pub(super) fn open_sized(
        &self,
        path: &Path,
        bytes: u64,
        read_only: bool,
    ) -> Result<Arc<dyn File>> {
        let mode = if read_only { OpenMode::Read } else { OpenMode::ReadWrite };
        let not_a_store = |reason| Error::NotAStore { path: self.path.clone(), reason };
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let file = match self.environment.open(path, mode) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(not_a_store(format!("its file `{name}` is missing: put it back")));
            }
            other => other.map_err(Error::io("open", path))?,
        };
        let found = file.length().map_err(Error::io("measure", path))?;
        if found != bytes {
            return Err(not_a_store(format!(
                "its file `{name}` has {found} bytes instead of {bytes}: it was cut or extended"
            )));
        }
        Ok(file)
    }

    /// Makes segment `index`, `bytes` long, with storage for its header at `header`.
    ///
    /// # Errors
    /// As [`create_sized`](Self::create_sized).
    pub(super) fn create_segment(&self, index: u64, bytes: u64, header: u64) -> Result<Section> {
        if let Some(device) = &self.device {
            return device.segment(index, bytes);
        }
        let file = if self.lock.is_none() {
            Arc::new(AnonymousFile::new(bytes))
        } else {
            self.create_sized(&self.segment_path(index), header, bytes - header)?
        };
        Ok(Section { file, offset: 0 })
    }

    /// Removes a segment that the superblock does not name any more.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn remove_segment(&self, index: u64) -> Result<()> {
        let path = self.segment_path(index);
        self.environment.remove(&path).map_err(Error::io("remove", &path))
    }

    /// Creates a file with storage for `length` bytes at `offset`, which is where it ends; an orphan
    /// of an interrupted creation is replaced.
    ///
    /// # Errors
    /// `PoolFull` when there is no room; nothing is left behind.
    pub(super) fn create_sized(
        &self,
        path: &Path,
        offset: u64,
        length: u64,
    ) -> Result<Arc<dyn File>> {
        let file = match self.environment.open(path, OpenMode::CreateNew) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.environment.remove(path).map_err(Error::io("remove", path))?;
                self.environment.open(path, OpenMode::CreateNew)
            }
            other => other,
        }
        .map_err(|source| full_or_io(source, "create", path))?;
        if let Err(source) = file.allocate(offset, length) {
            let error = full_or_io(source, "allocate space in", path);
            if let Err(error) = self.environment.remove(path) {
                log::warn!("cannot remove {}: {error}", path.display());
            }
            return Err(error);
        }
        self.sync_created(path, &*file)?;
        Ok(file)
    }

    /// Makes a new file durable, then its name: the superblock may rely on both.
    pub(super) fn sync_created(&self, path: &Path, file: &dyn File) -> Result<()> {
        file.sync().map_err(Error::io("sync", path))?;
        self.sync_directory()
    }

    /// Makes the entries of the directory and of all directories above it durable. Whoever made them may have been
    /// killed before it did, and what is in a directory is lost with it.
    pub(super) fn sync_parents(&self) -> Result<()> {
        let mut parts = self.path.ancestors().filter(|part| part.parent().is_some());
        parts.try_for_each(|part| sync_entry_of(&*self.environment, part))
    }
}

/// Makes the entry of a directory in its parent durable, where one may.
pub(super) fn sync_entry_of(environment: &dyn Environment, directory: &Path) -> Result<()> {
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    match environment.sync_directory(parent) {
        // On a read-only file system nobody has made an entry.
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            log::warn!("a power loss now may take the new directory: {error}");
            Ok(())
        }
        done => done.map_err(Error::io("sync", parent)),
    }
}

/// Opens and locks the lock of the directory `path`: exclusively, where `mode` is for writing. Makes it when
/// it is missing, `create` is true and `mode` is for writing.
///
/// # Errors
/// `NotFound` when it is missing, `Locked`, or what the system says.
pub(super) fn lock_in(
    environment: &dyn Environment,
    path: &Path,
    mode: OpenMode,
    create: bool,
) -> Result<Arc<dyn File>> {
    let name = path.join(LOCK);
    loop {
        let file = open_lock(environment, path, mode, create)?;
        if !file.try_lock(mode != OpenMode::Read).map_err(Error::io("lock", &name))? {
            return Err(Error::Locked { holder: holder(&*file) });
        }
        // Else its last holder destroyed the store, and this file locks nothing any more.
        if environment.is_directory(&name).map_err(Error::io("look at", &name))?.is_some() {
            return Ok(file);
        }
    }
}

fn open_lock(
    environment: &dyn Environment,
    path: &Path,
    mode: OpenMode,
    create: bool,
) -> Result<Arc<dyn File>> {
    let name = path.join(LOCK);
    let opened = match environment.open(&name, mode) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if mode == OpenMode::Read || !create {
                return Err(Error::NotFound { path: path.to_owned() });
            }
            match environment.open(&name, OpenMode::CreateNew) {
                // Another process was faster: take its file.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    environment.open(&name, mode)
                }
                other => other,
            }
        }
        other => other,
    };
    opened.map_err(Error::io("open", &name))
}

/// The last writer, as the content of a lock says.
pub(super) fn writer_of(lock: &dyn File) -> Option<u32> {
    let mut text = [0; LOCK_BYTES];
    lock.read_at(0, &mut text).ok()?;
    std::str::from_utf8(&text).ok()?.trim().parse().ok()
}

/// Who holds the lock, from what the holder wrote into it.
fn holder(file: &dyn File) -> String {
    match writer_of(file) {
        Some(process) => format!("process {process}, or a reader that came after it"),
        None => "another process".to_owned(),
    }
}

/// `PoolFull` for a lack of space, else what the system said.
pub(super) fn full_or_io(source: io::Error, action: &'static str, path: &Path) -> Error {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::PoolFull { reason: format!("no space left for `{}`", path.display()) }
        }
        _ => Error::Io { action, path: path.to_owned(), source },
    }
}
