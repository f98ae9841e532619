//! [`Environment`]: everything a store needs from the machine that is not memory.
//!
//! A store never asks the operating system for the time, a random number, a thread or a file on its
//! own. With the real environment these are what one expects; with a stepped one, time stands still
//! until told to move, random numbers come from a seed, background tasks run when stepped by hand
//! and files can be simulated. File operations are crash points too.

mod anonymous;
mod by_path;
mod device;
mod directory;
mod files;
mod limits;
mod memory;
mod memory_files;
mod origin;
mod random;
mod real;
mod real_directory;
mod real_file;
mod real_files;
mod stepped;
mod workers;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use anonymous::AnonymousFile;
pub use directory::{Directory, FileIdentity};
pub use files::FileProvider;
pub use memory_files::MemoryFiles;
pub use origin::Origin;
#[doc(hidden)]
pub use origin::in_child;
pub use real::RealEnvironment;
pub use real_files::RealFiles;
pub use stepped::SteppedEnvironment;

use crate::Medium;

/// What a background task wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStep {
    /// There is more to do now.
    Again,
    /// Nothing to do until woken.
    Wait,
    /// Nothing to do until woken or until this much time has passed.
    WaitAtMost(Duration),
    /// The task is over.
    Done,
}

/// A background task: called again and again until it says [`TaskStep::Done`] or is stopped. Each
/// call does a bounded piece of work. Calls come one after the other, but perhaps on different threads: a call fences what it
/// has flushed, and waits for no other task.
pub type TaskBody = Box<dyn FnMut() -> TaskStep + Send>;

/// A handle to a background task. Dropping it stops the task and waits for it.
pub trait Task: Send + Sync + fmt::Debug {
    /// Makes a waiting task run again.
    fn wake(&self);
    /// Asks the task to stop and waits until it has. Safe to call twice.
    fn stop(&self);
    /// Processor time the task has used, if the platform says.
    fn processor_time(&self) -> Option<Duration>;
}

/// How to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Must exist; opened for reading only.
    Read,
    /// Must exist; opened for reading and writing.
    ReadWrite,
    /// Must not exist; created with mode 0600 and opened for reading and writing.
    CreateNew,
}

/// An open file or device. Opening refuses at once whatever is neither a regular file nor a DAX device,
/// and never follows a symbolic link in its last component; closed on exec.
pub trait File: Send + Sync + fmt::Debug {
    /// Length in bytes; of a device, its capacity.
    ///
    /// # Errors
    /// When the operating system fails.
    fn length(&self) -> io::Result<u64>;
    /// Makes sure that space for `length` bytes at `offset` is there, growing the file if needed.
    ///
    /// # Errors
    /// `StorageFull` when there is no room, `FileTooLarge` when the process may not have a file of that length;
    /// before anything is changed that matters.
    fn allocate(&self, offset: u64, length: u64) -> io::Result<()>;
    /// Gives the storage of a range back; it reads as zeros afterwards.
    ///
    /// # Errors
    /// When the file system cannot.
    fn punch(&self, offset: u64, length: u64) -> io::Result<()>;
    /// Reads into the whole of `into`.
    ///
    /// # Errors
    /// When the file is shorter or the device fails.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// When there is no room, the process may not have a file of that length, or the device fails.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// As [`write_at`](Self::write_at), of what was just stored to memory that stands for a mapping of the file. It is called in
    /// the middle of a store: nobody else may go on meanwhile who could wait for that.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    fn write_stored(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_at(offset, bytes)
    }
    /// Cuts or extends the file to `length`.
    ///
    /// # Errors
    /// When the operating system fails, or the process may not have a file of that length.
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Makes the file's data survive a power loss as far as its device can (fdatasync).
    ///
    /// # Errors
    /// When the device fails.
    fn sync(&self) -> io::Result<()>;
    /// Takes an advisory lock on the file for as long as it is open: `Ok(false)` when another holder
    /// is in the way.
    ///
    /// # Errors
    /// When the operating system fails.
    fn try_lock(&self, exclusive: bool) -> io::Result<bool>;
    /// What the file lies on. For an ordinary file system this tries a `MAP_SYNC` mapping, because
    /// nothing else tells the truth.
    ///
    /// # Errors
    /// When the operating system fails.
    fn medium(&self) -> io::Result<Medium>;
    /// What the offset, length and address of a mapping must be multiples of: a power of two, in
    /// bytes. The page size of the system is a lower bound beside it.
    fn mapping_alignment(&self) -> u64 {
        4096
    }
    /// The descriptor, where there is one to map.
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>>;
    /// What tells it from all other files, where anything does.
    ///
    /// # Errors
    /// When the operating system fails.
    fn identity(&self) -> io::Result<Option<FileIdentity>> {
        let Some(descriptor) = self.descriptor() else { return Ok(None) };
        Ok(Some(real_directory::identity_of(&rustix::fs::fstat(descriptor)?)))
    }
    /// Whether it was opened for reading only.
    fn is_read_only(&self) -> bool;
}

/// Clock, randomness, background tasks and files.
pub trait Environment: Send + Sync + fmt::Debug + 'static {
    /// Nanoseconds since some fixed moment; never goes back.
    fn now_ns(&self) -> u64;
    /// Seconds since the Unix epoch, by the machine's calendar: for people to read, because it may be set.
    fn unix_seconds(&self) -> u64;
    /// A random number.
    fn random_u64(&self) -> u64;
    /// Changes when the machine starts anew: tells a process kill from a power loss.
    fn boot_id(&self) -> u64;
    /// This process's id, for the message of a lock held.
    fn process_id(&self) -> u32;
    /// What tells this process from children that are forked from it. By default there are none.
    fn origin(&self) -> Origin {
        Origin::without_forks(self.process_id())
    }
    /// Bytes of memory that this process may use: of the machine, of its control group, and by its own limits. `None`
    /// where nothing is said.
    fn memory_bytes(&self) -> Option<u64> {
        None
    }
    /// Bytes of files that are mapped into this process and lie in memory. `None` where nothing is said.
    fn mapped_file_bytes(&self) -> Option<u64> {
        None
    }
    /// Threads worth using for parallel work.
    fn parallelism(&self) -> usize;
    /// Starts a background task.
    ///
    /// # Errors
    /// When no thread can be had.
    fn spawn(&self, name: &str, body: TaskBody) -> io::Result<Box<dyn Task>>;
    /// Runs `work(0)` .. `work(count - 1)`, side by side where the environment has threads, and
    /// returns when all have. A panic in one is passed on.
    fn run_parallel(&self, count: usize, work: &(dyn Fn(usize) + Sync));
    /// Lets other threads run while this one waits for a lock; `attempt` counts up from 0.
    fn relax(&self, attempt: u32);

    /// Opens a file.
    ///
    /// # Errors
    /// As the operating system says.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Opens a directory, to work in it whatever becomes of its name.
    ///
    /// # Errors
    /// As the operating system says; `NotADirectory` when it is something else.
    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn Directory>>;
    /// Creates a directory (mode 0700) and its parents where missing.
    ///
    /// # Errors
    /// As the operating system says.
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// As the operating system says.
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>>;
    /// Whether something is at `path`: `None` nothing, `Some(true)` a directory.
    ///
    /// # Errors
    /// As the operating system says.
    fn is_directory(&self, path: &Path) -> io::Result<Option<bool>>;
    /// The path from the root to what is at `path`, without symbolic links, `.` and `..`; as it was given where files have
    /// no links.
    ///
    /// # Errors
    /// As the operating system says; `NotFound` when nothing is there.
    fn real_path(&self, path: &Path) -> io::Result<PathBuf>;
    /// Removes a file.
    ///
    /// # Errors
    /// As the operating system says.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    ///
    /// # Errors
    /// As the operating system says: `DirectoryNotEmpty` while anything is in it; `Unsupported` where
    /// directories cannot be removed.
    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Makes creations and removals in a directory survive a power loss (fsync of the directory).
    ///
    /// # Errors
    /// As the device says.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
}
