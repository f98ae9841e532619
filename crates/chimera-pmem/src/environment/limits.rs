//! The limit of the length of files that a process has. A write beyond it ends the process by a signal, so it
//! is looked at before.

use std::io;

use rustix::process::{Resource, getrlimit};

/// Checks that files of the process may have `end` bytes.
///
/// # Errors
/// `FileTooLarge`; the message says what the limit is and how it is raised.
///
/// # Cost
/// One system call.
pub(super) fn check_file_length(end: u64) -> io::Result<()> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if end > limit => {
            let message = format!(
                "it would have {end} bytes, and this process may make files of {limit} bytes at most \
                 (RLIMIT_FSIZE, `ulimit -f`)"
            );
            Err(io::Error::new(io::ErrorKind::FileTooLarge, message))
        }
        _ => Ok(()),
    }
}
