//! [`Window`]: a part of a file mapped apart from the pool: for one transfer to a device that can only
//! be mapped, or for a journal.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;

use super::reservation::{Reservation, Sharing, Source};
use super::words;
use crate::{CACHE_LINE, FlushInstruction, arch};

/// A part of a file or device, mapped.
#[derive(Debug)]
pub(crate) struct Window {
    reservation: Reservation,
    length: usize,
}

impl Window {
    /// Maps `length` bytes of `device` from `offset`, both whole pages inside the device.
    pub(crate) fn map(
        device: BorrowedFd<'_>,
        offset: u64,
        length: u64,
        read_only: bool,
    ) -> io::Result<Self> {
        let reservation = Reservation::exactly(length)?;
        let source = Source::File { file: device, offset, sharing: Sharing::Shared, read_only };
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        reservation.map(0, length, source)?;
        Ok(Self { reservation, length })
    }

    /// Bytes that are mapped.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Whether the page of a byte is in the page tables.
    #[cfg(test)]
    pub(crate) fn is_mapped(&self, start: usize) -> bool {
        use std::os::unix::fs::FileExt;
        let pages = std::fs::File::open("/proc/self/pagemap").expect("every process has one");
        let page = (self.reservation.base().addr() + start) / rustix::param::page_size();
        let mut entry = [0; 8];
        pages.read_exact_at(&mut entry, page as u64 * 8).expect("a word for each page");
        u64::from_le_bytes(entry) >> 63 == 1
    }

    /// Reads from `start` on.
    pub(crate) fn read(&self, start: usize, into: &mut [u8]) {
        let (words, skip) = self.words(start, into.len());
        let mut bytes = vec![0; words.len() * 8];
        words::read(words, &mut bytes);
        into.copy_from_slice(&bytes[skip..skip + into.len()]);
    }

    /// Writes from `start` on; what lies in the same words before and behind is kept.
    ///
    /// # Durability
    /// The bytes are durable when it returns, on a device of persistent memory.
    pub(crate) fn write(&self, start: usize, bytes: &[u8]) {
        let (words, skip) = self.words(start, bytes.len());
        let mut whole = vec![0; words.len() * 8];
        words::read(words, &mut whole);
        whole[skip..skip + bytes.len()].copy_from_slice(bytes);
        words::copy(words, &whole);

        let flush = FlushInstruction::detect();
        // A step of a line from the first word on, and the last word, touch every line.
        let last = words.len().saturating_sub(1)..words.len();
        for line in words.chunks((CACHE_LINE / 8) as usize).chain([&words[last]]) {
            // SAFETY: the line is mapped readable, and the instruction was detected.
            unsafe { arch::flush_line(flush, line.as_ptr().cast()) };
        }
        arch::fence();
    }

    /// Copies whole words to `start`, a multiple of 8.
    ///
    /// # Durability
    /// That of a shared mapping: none until the file is synced.
    pub(crate) fn store(&self, start: usize, bytes: &[u8]) {
        let (words, skip) = self.words(start, bytes.len());
        assert!(skip == 0 && bytes.len().is_multiple_of(8), "{} bytes at {start}", bytes.len());
        words::copy(words, bytes);
    }

    /// Takes the pages of some bytes out of the page tables. The file keeps what was stored there, and whoever touches such a
    /// page gets it again.
    ///
    /// # Errors
    /// What the kernel says; nothing is lost.
    pub(crate) fn let_go(&self, start: usize, length: usize) -> io::Result<()> {
        let page = rustix::param::page_size();
        let end = start.saturating_add(length).min(self.length).next_multiple_of(page);
        let first = (start / page * page).min(end);
        self.reservation.discard(first, end - first)
    }

    /// The words that hold `length` bytes from `start`, and how many bytes of the first come before.
    fn words(&self, start: usize, length: usize) -> (&[AtomicU64], usize) {
        let end = start.checked_add(length).filter(|&end| end <= self.length);
        assert!(end.is_some(), "{length} bytes at {start} of a window of {}", self.length);
        let skip = start % 8;
        let count = words::words_for((skip + length) as u64) as usize;
        let first = self.reservation.base().wrapping_add(start / 8);
        // SAFETY: whole pages are mapped from `base`, so the words up to the last one touched are;
        // they stay mapped while `self` lives and are accessed atomically only.
        (unsafe { std::slice::from_raw_parts(first, count) }, skip)
    }
}
