//! [`SimulatedFiles`]: the files of a simulated machine, as the environment sees them.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chimera_pmem::Medium;
use chimera_pmem::environment::{File, FileProvider, OpenMode};

use super::event::Event;
use super::machine::Machine;
use super::tree::{Change, FileChange, Inode, Node};

/// The files of a machine.
#[derive(Debug)]
pub(crate) struct SimulatedFiles(pub(crate) Arc<Machine>);

/// Bytes of a pool's superblock, which is mapped before the segments.
const SUPERBLOCK_BYTES: u64 = 8192;

fn name_of(path: &Path) -> &Path {
    path.strip_prefix("/").or_else(|_| path.strip_prefix(".")).unwrap_or(path)
}

impl FileProvider for SimulatedFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let name = name_of(path);
        if mode == OpenMode::CreateNew {
            self.0.before_change();
        }
        let mut state = self.0.state();
        let inode = match (state.tree.nodes.get(name).copied(), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(Node::Directory), _) => return Err(io::ErrorKind::IsADirectory.into()),
            (Some(Node::File(inode)), _) => inode,
            (None, OpenMode::CreateNew) => {
                // The tree may be one that another machine made.
                let inodes = state.tree.nodes.values().filter_map(|node| match node {
                    Node::File(inode) => Some(*inode),
                    Node::Directory => None,
                });
                let highest = inodes.chain(state.tree.lengths.keys().copied()).max();
                let inode = state.next_inode.max(highest.unwrap_or_default()) + 1;
                state.next_inode = inode;
                state.change(Change::Create(name.into(), inode));
                inode
            }
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
        };
        let is_new = mode == OpenMode::CreateNew;
        let read_only = mode == OpenMode::Read;
        let file: Arc<dyn File> = Arc::new(SimulatedFile {
            machine: self.0.clone(),
            inode,
            segment: segment_of(name),
            is_new,
            read_only,
        });
        if is_new {
            state.fresh.push(address(&file));
        }
        Ok(file)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.0.before_change();
        let mut state = self.0.state();
        let parts: Vec<_> =
            name_of(path).ancestors().filter(|part| *part != Path::new("")).collect();
        for part in parts.into_iter().rev() {
            if !state.tree.nodes.contains_key(part) {
                state.change(Change::CreateDirectory(part.into()));
            }
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let name = name_of(path);
        let state = self.0.state();
        let inside = state.tree.nodes.keys().filter(|entry| entry.parent() == Some(name));
        Ok(inside.filter_map(|entry| entry.file_name()).map(PathBuf::from).collect())
    }

    fn is_directory(&self, path: &Path) -> io::Result<Option<bool>> {
        let name = name_of(path);
        if name == Path::new("") {
            return Ok(Some(true));
        }
        Ok(self.0.state().tree.nodes.get(name).map(|node| *node == Node::Directory))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.before_change();
        let name = name_of(path);
        let mut state = self.0.state();
        if !state.tree.nodes.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change(Change::Remove(name.into()));
        Ok(())
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.0.before_change();
        self.0.state().sync_directory(name_of(path));
        Ok(())
    }
}

/// The number of the segment of this name.
fn segment_of(name: &Path) -> Option<u64> {
    name.file_name()?.to_str()?.strip_prefix("segment-")?.parse().ok()
}

/// What tells an open file from all others, for as long as it is open.
pub(crate) fn address(file: &Arc<dyn File>) -> usize {
    Arc::as_ptr(file).cast::<()>().addr()
}

/// An open file.
#[derive(Debug)]
pub(crate) struct SimulatedFile {
    machine: Arc<Machine>,
    inode: Inode,
    /// The number of the segment that it is, by its name.
    segment: Option<u64>,
    /// Created by being opened: nothing was ever mapped of it.
    is_new: bool,
    read_only: bool,
}

impl SimulatedFile {
    fn set(&self, length: u64) {
        self.machine.before_change();
        let mut state = self.machine.state();
        if state.tree.lengths.get(&self.inode) != Some(&length) {
            state.change(Change::Length(self.inode, length));
        }
    }

    fn known_length(&self) -> u64 {
        self.machine.state().tree.lengths.get(&self.inode).copied().unwrap_or_default()
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        if self.is_new {
            let here = std::ptr::from_ref(self).cast::<()>().addr();
            self.machine.state().fresh.retain(|fresh| *fresh != here);
        }
    }
}

impl File for SimulatedFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.known_length())
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.set((offset + length).max(self.known_length()));
        Ok(())
    }

    fn punch(&self, _offset: u64, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What is in memory where a segment of this name and length is mapped. Spaces in other files: of these nothing
    /// is kept.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let Some(number) = self.segment else {
            into.fill(b' ');
            return Ok(());
        };
        let first = SUPERBLOCK_BYTES + number * self.known_length() + offset;
        for (at, byte) in (first..).zip(into) {
            let is_mapped = !self.is_new && at / 8 < self.machine.len() as u64;
            let word = if is_mapped { self.machine.peek((at / 8) as u32) } else { 0 };
            *byte = word.to_le_bytes()[(at % 8) as usize];
        }
        Ok(())
    }

    /// Keeps nothing but the length.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.set((offset + bytes.len() as u64).max(self.known_length()));
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set(length);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.machine.before_change();
        self.machine.state().push(Event::File(FileChange::FileSynced(self.inode)));
        Ok(())
    }

    /// Always granted: one process at a time runs on the machine.
    fn try_lock(&self, _exclusive: bool) -> io::Result<bool> {
        Ok(true)
    }

    fn medium(&self) -> io::Result<Medium> {
        Ok(Medium::Simulated)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }
}
