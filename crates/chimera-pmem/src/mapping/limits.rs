//! Which limit was met when the system refuses addresses, memory or threads.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Addresses that a thread needs, about.
const THREAD_BYTES: u64 = 3 << 20;

/// Addresses that one range may reserve ahead of their use: few where the process may have few.
pub(super) fn ahead_max() -> usize {
    let limit = getrlimit(Resource::As).current;
    limit.and_then(|limit| usize::try_from(limit / 256).ok()).unwrap_or(usize::MAX)
}

/// The error for `bytes` that were refused with `error`.
///
/// # Cost
/// Reads files of `/proc`.
pub(crate) fn refused(error: Errno, bytes: usize) -> io::Error {
    if error != Errno::NOMEM {
        return error.into();
    }
    let limit = limit_met(bytes as u64);
    out_of_memory(format!("{bytes} bytes of memory or address space are refused: {limit}"))
}

/// The limit that was most likely met when as much memory again was refused as there is in use, and what to do about it.
///
/// # Cost
/// Reads files of `/proc`.
pub fn limit_of_memory() -> String {
    limit_met(used_bytes())
}

/// The error for a thread that was refused with `error`.
pub(crate) fn no_thread(error: &io::Error) -> io::Error {
    if let Some(limit) = address_limit(THREAD_BYTES) {
        return out_of_memory(format!("there is no memory for a background thread: {limit}"));
    }
    let message = format!(
        "a background thread is refused ({error}); see `ulimit -u` and the pids.max of the process's control group"
    );
    io::Error::new(error.kind(), message)
}

fn limit_met(bytes: u64) -> String {
    if let Some(limit) = address_limit(bytes) {
        return limit;
    }
    let most = number_of("/proc/sys/vm/max_map_count");
    // Some calls need a few at once.
    if let Some(most) = most.filter(|&most| mappings() + 8 > most) {
        return format!(
            "the process has all of the {most} mappings that it may have; raise the system's vm.max_map_count"
        );
    }
    "the machine has no more; see vm.overcommit_memory".to_owned()
}

/// The limit of address space, if `bytes` more are beyond it.
fn address_limit(bytes: u64) -> Option<String> {
    let used = used_bytes();
    let limit = getrlimit(Resource::As).current.filter(|&limit| used + bytes > limit)?;
    Some(format!(
        "{used} of the {limit} bytes of address space that the process may have (RLIMIT_AS) are in use; raise it \
         with `ulimit -v`"
    ))
}

fn out_of_memory(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, message)
}

/// Address space in use.
fn used_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

fn mappings() -> u64 {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().count() as u64
}

fn number_of(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}
