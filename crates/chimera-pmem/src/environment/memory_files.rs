//! [`MemoryFiles`]: a file system that is a map.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{File, FileIdentity, FileProvider, OpenMode};
use crate::Medium;

/// Files in memory, gone with the value. No operation makes a system call.
///
/// The root directory is there from the start. Paths are taken as written, from the root: `..` and
/// links mean nothing. A removed file lives on while it is open.
///
/// # Durability
/// Everything is as durable as the value; the crash lab puts its own provider on top.
#[derive(Debug)]
pub struct MemoryFiles {
    nodes: Mutex<BTreeMap<PathBuf, Node>>,
    space: Arc<Space>,
    medium: Medium,
}

#[derive(Clone, Debug)]
enum Node {
    Directory,
    File(Arc<Contents>),
}

/// How much all files may hold.
#[derive(Debug)]
struct Space {
    free: Mutex<u64>,
}

#[derive(Debug)]
struct Contents {
    bytes: Mutex<Vec<u8>>,
    lock: Mutex<LockHolders>,
    space: Arc<Space>,
}

/// Who holds the advisory lock of a file.
#[derive(Debug, Default)]
struct LockHolders {
    shared: u32,
    exclusive: bool,
}

impl MemoryFiles {
    /// An empty file system of unlimited size.
    pub fn new() -> Self {
        Self::with_capacity(u64::MAX)
    }

    /// An empty file system whose files hold at most `bytes` together.
    pub fn with_capacity(bytes: u64) -> Self {
        let space = Arc::new(Space { free: Mutex::new(bytes) });
        Self { nodes: Mutex::new(BTreeMap::new()), space, medium: Medium::Simulated }
    }

    /// The same, whose files say that they lie on `medium`.
    #[must_use]
    pub fn on(self, medium: Medium) -> Self {
        Self { medium, ..self }
    }

    /// Whether the directory a new name would go into is there.
    fn parent_exists(nodes: &BTreeMap<PathBuf, Node>, path: &Path) -> bool {
        match path.parent() {
            Some(parent) if parent != Path::new("") => {
                matches!(nodes.get(parent), Some(Node::Directory))
            }
            _ => true,
        }
    }
}

impl Default for MemoryFiles {
    fn default() -> Self {
        Self::new()
    }
}

impl FileProvider for MemoryFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let path = normal(path);
        let mut nodes = lock(&self.nodes);
        let contents = match (nodes.get(&path), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(Node::File(contents)), _) => Arc::clone(contents),
            (Some(Node::Directory), _) => return Err(io::ErrorKind::IsADirectory.into()),
            (None, _) if path == Path::new("") => return Err(io::ErrorKind::IsADirectory.into()),
            (None, OpenMode::CreateNew) if Self::parent_exists(&nodes, &path) => {
                let contents = Arc::new(Contents {
                    bytes: Mutex::default(),
                    lock: Mutex::default(),
                    space: Arc::clone(&self.space),
                });
                nodes.insert(path, Node::File(Arc::clone(&contents)));
                contents
            }
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
        };
        let read_only = mode == OpenMode::Read;
        let medium = self.medium;
        Ok(Arc::new(MemoryFile { contents, read_only, medium, held: Mutex::new(None) }))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let path = normal(path);
        let mut nodes = lock(&self.nodes);
        let missing: Vec<_> = path.ancestors().filter(|part| *part != Path::new("")).collect();
        if missing.iter().any(|part| matches!(nodes.get(*part), Some(Node::File(_)))) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        for part in missing {
            nodes.insert(part.to_owned(), Node::Directory);
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let path = normal(path);
        let nodes = lock(&self.nodes);
        match nodes.get(&path) {
            Some(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
            None if path != Path::new("") => return Err(io::ErrorKind::NotFound.into()),
            _ => {}
        }
        let inside = nodes.keys().filter(|name| name.parent() == Some(&path));
        let mut names: Vec<_> =
            inside.filter_map(|name| name.file_name()).map(PathBuf::from).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn is_directory(&self, path: &Path) -> io::Result<Option<bool>> {
        let path = normal(path);
        if path == Path::new("") {
            return Ok(Some(true));
        }
        Ok(lock(&self.nodes).get(&path).map(|node| matches!(node, Node::Directory)))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let path = normal(path);
        let mut nodes = lock(&self.nodes);
        match nodes.get(&path) {
            Some(Node::File(_)) => {
                nodes.remove(&path);
                Ok(())
            }
            Some(Node::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        let path = normal(path);
        let mut nodes = lock(&self.nodes);
        match nodes.get(&path) {
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            Some(Node::Directory) if nodes.keys().any(|name| name.parent() == Some(&path)) => {
                Err(io::ErrorKind::DirectoryNotEmpty.into())
            }
            Some(Node::Directory) => {
                nodes.remove(&path);
                Ok(())
            }
            None if path == Path::new("") => Err(io::ErrorKind::ResourceBusy.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (normal(from), normal(to));
        let mut nodes = lock(&self.nodes);
        match (nodes.get(&from), nodes.get(&to)) {
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
            (Some(Node::Directory), _) | (_, Some(Node::Directory)) => {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            _ if !Self::parent_exists(&nodes, &to) => return Err(io::ErrorKind::NotFound.into()),
            _ => {}
        }
        if let Some(file) = nodes.remove(&from) {
            nodes.insert(to, file);
        }
        Ok(())
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        match self.is_directory(path)? {
            Some(true) => Ok(()),
            Some(false) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// An open file; the lock it holds goes with it.
#[derive(Debug)]
struct MemoryFile {
    contents: Arc<Contents>,
    read_only: bool,
    medium: Medium,
    /// `Some(exclusive)` when this opening holds the lock.
    held: Mutex<Option<bool>>,
}

impl MemoryFile {
    fn writable(&self) -> io::Result<()> {
        if self.read_only { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(()) }
    }
}

impl File for MemoryFile {
    fn length(&self) -> io::Result<u64> {
        Ok(lock(&self.contents.bytes).len() as u64)
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.writable()?;
        let mut bytes = lock(&self.contents.bytes);
        let end = place(offset, length)?;
        if end.end > bytes.len() { self.contents.resize(&mut bytes, end.end) } else { Ok(()) }
    }

    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.writable()?;
        let mut bytes = lock(&self.contents.bytes);
        let range = place(offset, length)?;
        let end = range.end.min(bytes.len());
        bytes[range.start.min(end)..end].fill(0);
        Ok(())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let bytes = lock(&self.contents.bytes);
        let range = place(offset, into.len() as u64)?;
        into.copy_from_slice(bytes.get(range).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.writable()?;
        let mut bytes = lock(&self.contents.bytes);
        let range = place(offset, from.len() as u64)?;
        if range.end > bytes.len() && !from.is_empty() {
            self.contents.resize(&mut bytes, range.end)?;
        }
        if !from.is_empty() {
            bytes[range].copy_from_slice(from);
        }
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.writable()?;
        let mut bytes = lock(&self.contents.bytes);
        self.contents.resize(&mut bytes, place(length, 0)?.end)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self, exclusive: bool) -> io::Result<bool> {
        let mut held = lock(&self.held);
        let mut holders = lock(&self.contents.lock);
        holders.release(held.take());
        let free = !holders.exclusive && (!exclusive || holders.shared == 0);
        if free {
            *held = Some(exclusive);
            holders.exclusive = exclusive;
            holders.shared += u32::from(!exclusive);
        }
        Ok(free)
    }

    fn medium(&self) -> io::Result<Medium> {
        Ok(self.medium)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Where its contents are.
    fn identity(&self) -> io::Result<Option<FileIdentity>> {
        Ok(Some(FileIdentity { device: 0, inode: Arc::as_ptr(&self.contents).addr() as u64 }))
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        lock(&self.contents.lock).release(lock(&self.held).take());
    }
}

impl LockHolders {
    fn release(&mut self, held: Option<bool>) {
        match held {
            Some(true) => self.exclusive = false,
            Some(false) => self.shared -= 1,
            None => {}
        }
    }
}

impl Contents {
    /// Cuts or extends with zeros, as far as there is space.
    fn resize(&self, bytes: &mut Vec<u8>, length: usize) -> io::Result<()> {
        let mut free = lock(&self.space.free);
        let available = free.saturating_add(bytes.len() as u64);
        let left = available.checked_sub(length as u64).ok_or(io::ErrorKind::StorageFull)?;
        let more = length.saturating_sub(bytes.len());
        bytes.try_reserve_exact(more).map_err(|_| io::ErrorKind::OutOfMemory)?;
        *free = left;
        bytes.resize(length, 0);
        Ok(())
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        let bytes = lock(&self.bytes).len() as u64;
        let mut free = lock(&self.space.free);
        *free = free.saturating_add(bytes);
    }
}

/// A range of a file as a range of its bytes.
fn place(offset: u64, length: u64) -> io::Result<std::ops::Range<usize>> {
    let end = offset.checked_add(length).and_then(|end| usize::try_from(end).ok());
    let end = end.ok_or(io::ErrorKind::InvalidInput)?;
    Ok(offset as usize..end)
}

/// A path without its root and `.` components; the empty path is the root.
fn normal(path: &Path) -> PathBuf {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(OsString::from(name)),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    });
    parts.collect()
}

/// Locks a mutex, whether or not a thread panicked while holding it: these states are whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
