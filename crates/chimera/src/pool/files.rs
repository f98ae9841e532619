//! The files of a pool: creating, finding, locking and checking them.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chimera_pmem::Environment;
use chimera_pmem::environment::{AnonymousFile, Directory, File, OpenMode};

use super::BlockMap;
use super::device::Device;
use super::orphan;
use super::segment::Section;
use super::superblock::FILE_BYTES;
use crate::sync::{Mutex, lock};
use crate::types::error::{Error, Result};

/// The directory or device of a pool, and its lock.
///
/// The directory is found by its path once, when it is locked. From then on files are looked for and made in this
/// directory only, whatever its path leads to: another store may have taken its place.
pub(super) struct PoolFiles {
    /// Where it was found; for messages.
    pub(super) path: PathBuf,
    pub(super) environment: Arc<dyn Environment>,
    /// None on a device and in anonymous memory.
    directory: Option<Arc<dyn Directory>>,
    /// Held for their locks: the file `lock`, and the superblock if it was there, because people remove files that are called
    /// `lock`; or the device. None for a pool in anonymous memory.
    locks: Vec<Arc<dyn File>>,
    /// The files that an open pool consists of, by their names.
    held: Mutex<Vec<(PathBuf, Arc<dyn File>)>>,
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
                let locks = vec![device.file.clone()];
                let device = Some(device);
                return Ok(Self { locks, device, ..Self::without(path, environment) });
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
        let directory = environment.open_directory(path).map_err(Error::io("open", path))?;
        let file = lock_in(&*directory, path, mode, create)?;
        let superblock = lock_superblock_in(&*directory, path, mode)?;
        if !read_only {
            let text = format!("{:<LOCK_BYTES$}", environment.process_id());
            file.write_at(0, text.as_bytes())
                .map_err(|source| full_or_io(source, "write", &path.join(LOCK)))?;
        }
        let locks = std::iter::once(file.clone()).chain(superblock).collect();
        let directory = Some(directory);
        let files = Self { directory, locks, ..Self::without(path, environment) };
        files.hold(&path.join(LOCK), &file);
        Ok(files)
    }

    /// For a pool without files.
    pub(super) fn none(environment: Arc<dyn Environment>) -> Self {
        Self::without(Path::new(""), environment)
    }

    fn without(path: &Path, environment: Arc<dyn Environment>) -> Self {
        let path = path.to_owned();
        Self {
            path,
            environment,
            directory: None,
            locks: Vec::new(),
            held: Mutex::default(),
            device: None,
        }
    }

    /// The directory of the pool.
    ///
    /// # Panics
    /// On a device and in anonymous memory.
    fn directory(&self) -> &dyn Directory {
        self.directory.as_deref().expect("the pool is made of files")
    }

    /// Opens the file of the pool that `path` names.
    pub(super) fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.directory().open(name_of(path), mode)
    }

    /// Removes the file of the pool that `path` names.
    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        lock(&self.held).retain(|(name, _)| name != name_of(path));
        self.directory().remove(name_of(path))
    }

    /// Gives a file of the pool another name, in place of the one that had it.
    pub(super) fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.directory().replace(name_of(from), name_of(to))
    }

    /// Whether there is anything that `path` names.
    pub(super) fn exists(&self, path: &Path) -> Result<bool> {
        self.directory().has(name_of(path)).map_err(Error::io("look at", path))
    }

    /// Notes that the open pool consists of `file`, too.
    pub(super) fn hold(&self, path: &Path, file: &Arc<dyn File>) {
        lock(&self.held).push((name_of(path).to_owned(), file.clone()));
    }

    /// Whether the directory and the files are still those that the open pool consists of; of the segments, where
    /// `only` gives one, that one alone.
    ///
    /// # Errors
    /// `Removed` when one was removed or replaced: what is written to it is lost.
    ///
    /// # Cost
    /// One system call for each file, and one.
    pub(super) fn check_in_place(&self, only: Option<u64>) -> Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let failed = Error::io("look at", &self.path);
        if directory.is_removed().map_err(failed)? {
            return Err(Error::Removed { path: self.path.clone() });
        }
        let only = only.map(|index| PathBuf::from(segment_name(index)));
        for (name, file) in &*lock(&self.held) {
            let is_meant = only.as_ref().is_none_or(|only| only == name || !is_segment(name));
            let path = self.path.join(name);
            if is_meant
                && !directory.has_file(name, &**file).map_err(Error::io("look at", &path))?
            {
                return Err(Error::Removed { path });
            }
        }
        Ok(())
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
        let path = self.segment_path(index);
        let file = self.open_sized(&path, bytes, read_only)?;
        self.hold(&path, &file);
        Ok(Section { file, offset: 0 })
    }

    /// Whether the pool is in anonymous memory.
    pub(super) fn is_without_files(&self) -> bool {
        self.locks.is_empty()
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
        let names = self.directory().list().map_err(Error::io("list", &self.path))?;
        Ok(names.iter().any(|name| {
            name.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with(SEGMENT))
        }))
    }

    /// Whether an existing file has no bytes.
    pub(super) fn is_empty(&self, path: &Path) -> Result<bool> {
        let file = self.open(path, OpenMode::Read).map_err(Error::io("open", path))?;
        Ok(file.length().map_err(Error::io("measure", path))? == 0)
    }

    /// Makes creations and removals of files durable.
    pub(super) fn sync_directory(&self) -> Result<()> {
        self.directory().sync().map_err(Error::io("sync", &self.path))
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
        let file = match self.open(path, mode) {
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

    /// Makes segment `index` of pool `pool_id`, `bytes` long, with storage for its header at `header`. What an
    /// interrupted growth of this pool left in its place is replaced.
    ///
    /// # Errors
    /// `InTheWay` when something else has its name; as [`create_sized`](Self::create_sized).
    pub(super) fn create_segment(
        &self,
        pool_id: u64,
        index: u64,
        bytes: u64,
        header: u64,
    ) -> Result<Section> {
        if let Some(device) = &self.device {
            return device.segment(index, bytes);
        }
        let file = if self.is_without_files() {
            Arc::new(AnonymousFile::new(bytes))
        } else {
            let path = self.segment_path(index);
            if self.exists(&path)? {
                self.remove_orphan(&path, |file| orphan::is_ours(file, pool_id, index, bytes))?;
            }
            let file = self.create_sized(&path, header, bytes - header)?;
            self.hold(&path, &file);
            file
        };
        Ok(Section { file, offset: 0 })
    }

    /// Removes a segment that the superblock does not name any more.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn remove_segment(&self, index: u64) -> Result<()> {
        let path = self.segment_path(index);
        self.remove(&path).map_err(Error::io("remove", &path))
    }

    /// Removes what `path` names, if it is a file of which `is_ours` says that an interrupted step of this pool
    /// left it and that nobody needs it.
    ///
    /// # Errors
    /// `InTheWay` when it is something else.
    pub(super) fn remove_orphan(
        &self,
        path: &Path,
        is_ours: impl FnOnce(&dyn File) -> io::Result<bool>,
    ) -> Result<()> {
        let is_orphan = match self.open(path, OpenMode::Read) {
            Ok(file) => is_ours(&*file).map_err(Error::io("read", path))?,
            // A directory, a link, a pipe.
            Err(error) => {
                log::warn!("{} cannot be opened: {error}", path.display());
                false
            }
        };
        if !is_orphan {
            return Err(Error::InTheWay { path: path.to_owned() });
        }
        self.remove(path).map_err(Error::io("remove", path))
    }

    /// Creates a file with storage for `length` bytes at `offset`, which is where it ends.
    ///
    /// # Errors
    /// `InTheWay` when something has its name; `PoolFull` when there is no room; nothing is left behind.
    pub(super) fn create_sized(
        &self,
        path: &Path,
        offset: u64,
        length: u64,
    ) -> Result<Arc<dyn File>> {
        let file = match self.open(path, OpenMode::CreateNew) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Error::InTheWay { path: path.to_owned() });
            }
            other => other.map_err(|source| full_or_io(source, "create", path))?,
        };
        if let Err(source) = file.allocate(offset, length) {
            let error = full_or_io(source, "allocate space in", path);
            if let Err(error) = self.remove(path) {
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
    /// killed before it did, and what is in a directory is lost with it. The directories above it are those in which it
    /// lies, up to the root. Where a symbolic link leads there, or the path is relative, the path names others, whose entries
    /// lead there.
    pub(super) fn sync_parents(&self) -> Result<()> {
        let real = match self.environment.real_path(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                log::warn!("a power loss now may take the new directory: {error}");
                self.path.clone()
            }
            found => found.map_err(Error::io("look at", &self.path))?,
        };
        let mut synced = BTreeSet::new();
        let mut parts = self.path.ancestors().chain(real.ancestors());
        parts.try_for_each(|part| {
            // The root has no entry anywhere.
            let is_entry = part.parent().is_some() && synced.insert(part);
            if is_entry { sync_entry_of(&*self.environment, part) } else { Ok(()) }
        })
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

/// The name of a file in the pool's directory.
fn name_of(path: &Path) -> &Path {
    path.file_name().map_or(path, Path::new)
}

/// Opens and locks the lock of `directory`, which was found at `path`: exclusively, where `mode` is for writing. Makes it when
/// it is missing, `create` is true and `mode` is for writing.
///
/// # Errors
/// `NotFound` when it is missing, `Locked`, or what the system says.
pub(super) fn lock_in(
    directory: &dyn Directory,
    path: &Path,
    mode: OpenMode,
    create: bool,
) -> Result<Arc<dyn File>> {
    let name = path.join(LOCK);
    loop {
        let file = open_lock(directory, path, mode, create)?;
        if !file.try_lock(mode != OpenMode::Read).map_err(Error::io("lock", &name))? {
            return Err(Error::Locked { holder: holder(&*file) });
        }
        if directory.has_file(Path::new(LOCK), &*file).map_err(Error::io("look at", &name))? {
            return Ok(file);
        }
        // Its last holder destroyed the store, and this file locks nothing any more.
        if directory.is_removed().map_err(Error::io("look at", path))? {
            return Err(Error::NotFound { path: path.to_owned() });
        }
    }
}

/// Locks the superblock of a locked `directory` as well, if it is there. Whoever has a pool open holds both, so a lock that
/// was removed and made again does not let a second one in.
///
/// # Errors
/// `Locked`, or what the system says.
pub(super) fn lock_superblock_in(
    directory: &dyn Directory,
    path: &Path,
    mode: OpenMode,
) -> Result<Option<Arc<dyn File>>> {
    let name = path.join(SUPERBLOCK);
    let file = match directory.open(Path::new(SUPERBLOCK), mode) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(Error::io("open", &name))?,
    };
    lock_superblock(&*file, &name, mode)?;
    Ok(Some(file))
}

/// Locks the file of a superblock.
///
/// # Errors
/// As [`lock_superblock_in`].
pub(super) fn lock_superblock(file: &dyn File, path: &Path, mode: OpenMode) -> Result<()> {
    if file.try_lock(mode != OpenMode::Read).map_err(Error::io("lock", path))? {
        return Ok(());
    }
    let holder = "another process, although its file `lock` was removed or replaced".to_owned();
    Err(Error::Locked { holder })
}

fn open_lock(
    directory: &dyn Directory,
    path: &Path,
    mode: OpenMode,
    create: bool,
) -> Result<Arc<dyn File>> {
    let name = Path::new(LOCK);
    let opened = match directory.open(name, mode) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A creation that was interrupted may have left a superblock without it, but no segment.
            let names = directory.list().map_err(Error::io("list", path))?;
            let is_store = names.iter().any(|name| is_segment(name));
            if is_store && mode == OpenMode::Read {
                let reason = "its file `lock` is missing: open the store for writing once, which makes it again, or make \
                              an empty file of that name";
                return Err(Error::NotAStore { path: path.to_owned(), reason: reason.to_owned() });
            }
            if !is_store && (mode == OpenMode::Read || !create) {
                return Err(Error::NotFound { path: path.to_owned() });
            }
            match directory.open(name, OpenMode::CreateNew) {
                // Another process was faster: take its file.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    directory.open(name, mode)
                }
                other => other,
            }
        }
        other => other,
    };
    opened.map_err(Error::io("open", &path.join(LOCK)))
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

/// `PoolFull` for a lack of space, also where a limit of the process is what is in the way; else what the system
/// said.
pub(super) fn full_or_io(source: io::Error, action: &'static str, path: &Path) -> Error {
    let path_shown = path.display();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::PoolFull { reason: format!("no space left for `{path_shown}`") }
        }
        io::ErrorKind::FileTooLarge => Error::PoolFull {
            reason: format!("cannot {action} `{path_shown}`: {source}; raise that limit"),
        },
        io::ErrorKind::OutOfMemory => Error::PoolFull {
            reason: format!(
                "cannot {action} `{path_shown}`: {source}; nothing of the store was changed"
            ),
        },
        _ => Error::Io { action, path: path.to_owned(), source },
    }
}

/// What is wrong when a file cannot be mapped.
pub(super) fn cannot_map(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| full_or_io(source, "map", path)
}

#[cfg(test)]
mod tests;
