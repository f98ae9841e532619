//! The signal for a file that would be longer than the process's limit.

/// Makes a write beyond the process's limit of the length of files (`RLIMIT_FSIZE`) an error, where it would otherwise
/// end the process by the signal `SIGXFSZ`.
///
/// Stores need this not: they look at the limit before they write. It is for programs that write other files, too, and
/// opt-in, because what a process does with signals is for its main program to say. Processes that it starts inherit it.
pub fn ignore() {
    // SAFETY: ignoring a signal runs no code of this process.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
