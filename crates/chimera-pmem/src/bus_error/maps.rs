//! Which file lies at an address: from `/proc/self/maps`, in a signal handler.

use std::cell::UnsafeCell;
use std::ffi::c_int;

/// Bytes read at a time.
const BUFFER_BYTES: usize = 4096;
/// Bytes of a line that count: longer paths are cut.
const LINE_BYTES: usize = 1024;

/// Bytes of the longest message.
const TEXT_BYTES: usize = 2048;

/// Memory for the one handler that runs: a signal's stack may be small.
struct Memory {
    buffer: UnsafeCell<[u8; BUFFER_BYTES]>,
    line: UnsafeCell<[u8; LINE_BYTES]>,
    text: UnsafeCell<[u8; TEXT_BYTES]>,
}

// SAFETY: used by `with_file_at` only, whose caller lets one thread in at a time.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory {
    buffer: UnsafeCell::new([0; BUFFER_BYTES]),
    line: UnsafeCell::new([0; LINE_BYTES]),
    text: UnsafeCell::new([0; TEXT_BYTES]),
};

/// A byte of a file that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    pub(super) path: &'a [u8],
    pub(super) offset: u64,
}

/// Hands `take` the file that is mapped at `address`, unless there is none or it cannot be found out,
/// and memory for a text about it. Must not run on two threads at a time.
pub(super) fn with_file_at(address: usize, take: impl FnOnce(Option<Place<'_>>, &mut [u8])) {
    // SAFETY: the caller lets one thread in at a time, and no other function uses it.
    let text = unsafe { &mut *MEMORY.text.get() };
    // SAFETY: a path that ends with a zero; the flags need no mode.
    let file = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return take(None, text);
    }
    // SAFETY: the caller lets one thread in at a time, and no other function uses it.
    let buffer = unsafe { &mut *MEMORY.buffer.get() };
    // SAFETY: as above.
    let line = unsafe { &mut *MEMORY.line.get() };
    let length = find_line(|into| read(file, into), buffer, line, address);
    // SAFETY: a descriptor opened above.
    unsafe { libc::close(file) };
    take(length.and_then(|length| place_in(&line[..length], address)), text);
}

fn read(file: c_int, into: &mut [u8]) -> usize {
    // SAFETY: `into` can be written for its length.
    let count = unsafe { libc::read(file, into.as_mut_ptr().cast(), into.len()) };
    usize::try_from(count).unwrap_or(0)
}

/// Copies the line of the mapping with `address` to the start of `line`; returns its length.
pub(super) fn find_line(
    mut read: impl FnMut(&mut [u8]) -> usize,
    buffer: &mut [u8],
    line: &mut [u8],
    address: usize,
) -> Option<usize> {
    let mut length = 0;
    loop {
        let count = read(buffer);
        if count == 0 {
            return None;
        }
        for &byte in buffer.iter().take(count) {
            if byte != b'\n' {
                if let Some(place) = line.get_mut(length) {
                    *place = byte;
                    length += 1;
                }
                continue;
            }
            if place_in(&line[..length], address).is_some() {
                return Some(length);
            }
            length = 0;
        }
    }
}

/// The file of a line such as `7f00-7fff rw-s 00001000 fe:00 123  /path`, if `address` lies there.
pub(super) fn place_in(line: &[u8], address: usize) -> Option<Place<'_>> {
    let mut words = line.splitn(6, |byte| *byte == b' ');
    let mut range = words.next()?.splitn(2, |byte| *byte == b'-');
    let (start, end) = (hexadecimal(range.next()?)?, hexadecimal(range.next()?)?);
    if !(start..end).contains(&(address as u64)) {
        return None;
    }
    let file_offset = hexadecimal(words.nth(1)?)?;
    let path = words.nth(2).unwrap_or_default().trim_ascii();
    Some(Place { path, offset: (address as u64 - start).checked_add(file_offset)? })
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
