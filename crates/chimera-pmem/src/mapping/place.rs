//! [`Place`]: where in the process's addresses a range begins that may have to grow.
//!
//! The middle of the address space is divided evenly, in bit-reversed order: the second range begins a half behind the
//! first, the next two a quarter behind either, and so on. So few ranges have tens of TiB in front of them, and each of a
//! thousand has 64 GiB, where there are 128 TiB of addresses. The kernel's own choices begin at the top, programs and their
//! heaps lie at the bottom or behind two thirds: they do not get there.
//!
//! Ranges may be anywhere else. A place only makes it likely that there is room to grow.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{self, MapFlags, ProtFlags};

/// Alignment of places: the largest page of any medium, so that large pages can be used.
const ALIGN: u64 = 1 << 30;

/// A bit for each place, set while it is taken.
static TAKEN: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
}

impl Place {
    /// The first place that is free, so that ranges are as far apart as they can be.
    pub(super) fn take() -> Option<Self> {
        for (index, word) in TAKEN.iter().enumerate() {
            let mut taken = word.load(Ordering::Relaxed);
            while taken != u64::MAX {
                let bit = taken.trailing_ones();
                let before = word.fetch_or(1 << bit, Ordering::Relaxed);
                if before & 1 << bit == 0 {
                    return Some(Self { number: index as u64 * 64 + u64::from(bit) });
                }
                taken = before | 1 << bit;
            }
        }
        None
    }

    /// Its address: a multiple of 1 GiB.
    pub(super) fn address(&self) -> usize {
        address_of(self.number, top()) as usize
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let word = &TAKEN[(self.number / 64) as usize];
        word.fetch_and(!(1 << (self.number % 64)), Ordering::Relaxed);
    }
}

/// The address of a place: from an eighth to five eighths of the address space, which ends at `top`.
pub(super) fn address_of(number: u64, top: u64) -> u64 {
    let span = u128::from(top / 2);
    let part = (u128::from(number.reverse_bits()) * span) >> 64;
    (top / 8 + part as u64) / ALIGN * ALIGN
}

/// Where the address space of programs ends: a power of two, of 39, 47 or 48 bits for example. The kernel begins at the top,
/// so a mapping tells.
fn top() -> u64 {
    static TOP: OnceLock<u64> = OnceLock::new();
    *TOP.get_or_init(|| {
        let page = rustix::param::page_size();
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
        let mapped = unsafe {
            mm::mmap_anonymous(
                std::ptr::null_mut(),
                page,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        let Ok(mapped) = mapped else { return 1 << 47 };
        // SAFETY: mapped a moment ago, and nothing points into it.
        if let Err(error) = unsafe { mm::munmap(mapped, page) } {
            log::debug!("cannot give back a page of address space: {error}");
        }
        (mapped.addr() as u64).next_power_of_two()
    })
}
