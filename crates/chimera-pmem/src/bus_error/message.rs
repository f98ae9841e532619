//! What is said about a SIGBUS: composed without allocating.

use std::ffi::c_int;

use super::maps::Place;

/// A text that is cut where its room ends.
pub(super) struct Message<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl<'a> Message<'a> {
    pub(super) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, length: 0 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// What a signal with this code means for the file.
    pub(super) fn explain(&mut self, code: c_int, place: Option<Place<'_>>) {
        let is_memory = code == libc::BUS_MCEERR_AR || code == libc::BUS_MCEERR_AO;
        self.push(if is_memory {
            b"chimera: memory failure (SIGBUS) at "
        } else {
            b"chimera: SIGBUS at "
        });
        match place {
            Some(place) if !place.path.is_empty() => {
                self.push(b"byte ");
                self.push_number(place.offset);
                self.push(b" of the store's file `");
                self.push(place.path);
                self.push(b"`: ");
            }
            _ => self.push(b"the memory of a store: "),
        }
        self.push(if is_memory {
            b"the machine reports that the memory behind it is damaged and what it held is lost. \
              The process ends. Look at the kernel's log (dmesg; ndctl for persistent memory), then \
              see with `chimera check` which records are concerned, and restore them from a copy.\n"
        } else {
            b"the page there cannot be had. Either the file was cut while it was open, or its device \
              fails, or its file system is full. The process ends. Look at the file's length and \
              the kernel's log (dmesg), then run `chimera check` on the store.\n"
        });
    }

    fn push(&mut self, text: &[u8]) {
        let room = &mut self.bytes[self.length..];
        let count = text.len().min(room.len());
        room[..count].copy_from_slice(&text[..count]);
        self.length += count;
    }

    fn push_number(&mut self, mut number: u64) {
        let mut digits = [0; 20];
        let mut start = digits.len();
        loop {
            start -= 1;
            digits[start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.push(&digits[start..]);
    }
}
