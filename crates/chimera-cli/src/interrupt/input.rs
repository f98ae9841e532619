//! [`Input`]: a file or standard input that ends with an error once the command is interrupted.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::is_asked;
use crate::failure::Failure;
use crate::paths;

/// How long a pipe without bytes is waited for at a time.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What a command reads.
#[derive(Debug)]
pub(crate) struct Input {
    file: File,
    /// Length of a regular file; 0 of standard input.
    pub(crate) bytes: u64,
}

impl Input {
    /// Opens a file, or takes standard input where `-` stands for it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |source| Failure::Io { action: "open the file", source };
        if path.as_os_str() == paths::STANDARD_STREAM {
            let file = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
            return Ok(Self { file: File::from(file), bytes: 0 });
        }
        paths::refuse_dangling(path)?;
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok(Self { file, bytes })
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if is_asked() {
                return Err(io::Error::other("interrupted"));
            }
            let mut descriptors = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut descriptors, Some(&PATIENCE)) {
                // Nothing yet, or the signal came here.
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return self.file.read(buffer),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
