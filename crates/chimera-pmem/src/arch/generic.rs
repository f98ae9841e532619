//! Any other architecture: no flush instruction, no 16-byte compare and swap.
//!
//! Good enough to build and to work on media that need no flush. A caller of what is missing asks
//! `has_cas_u128` first. A lock would not do: another process, or a crash, does not see it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::FlushInstruction;
pub(crate) use super::no_transactions::{
    TRANSACTION_BEGUN, begin_transaction, end_transaction, has_transactions,
};
pub(crate) use super::plain_call::call_aside;

pub(crate) fn has_flush(_instruction: FlushInstruction) -> bool {
    false
}

/// # Safety
/// None is needed; the signature is that of the other architectures.
#[inline(always)]
pub(crate) unsafe fn flush_line(_instruction: FlushInstruction, _line: *const u8) {}

#[inline(always)]
pub(crate) fn fence() {
    std::sync::atomic::fence(Ordering::SeqCst);
}

/// Copies one line by words.
///
/// # Safety
/// `to` points to 64 writable bytes, a multiple of 64; `from` to 64 readable ones.
#[inline(always)]
pub(crate) unsafe fn copy_nt_line(to: *mut u8, from: *const u8) {
    for word in 0..8 {
        // SAFETY: `word` is below 8, so the address stays inside the 64 bytes.
        let from = unsafe { from.cast::<u64>().add(word) };
        // SAFETY: 8 readable bytes, of any alignment.
        let value = unsafe { from.read_unaligned() };
        // SAFETY: `word` is below 8, so the address stays inside the 64 bytes.
        let to = unsafe { to.cast::<u64>().add(word) };
        // SAFETY: 8 writable, aligned bytes that are only ever accessed atomically.
        unsafe { AtomicU64::from_ptr(to) }.store(value, Ordering::Relaxed);
    }
}

pub(crate) fn has_copy_sum() -> bool {
    false
}

/// # Safety
/// Never to be called: [`has_copy_sum`] says no.
pub(crate) unsafe fn copy_sum(
    _to: *mut u8,
    _from: *const u8,
    _groups: usize,
    _first_keys: &[u64; 4],
) -> u64 {
    panic!("this architecture copies and sums by words");
}

pub(crate) fn has_cas_u128() -> bool {
    false
}

/// # Safety
/// Never to be called: [`has_cas_u128`] says no.
pub(crate) unsafe fn cas_u128(_at: *mut u8, _current: u128, _new: u128) -> u128 {
    panic!("this architecture has no 16-byte compare and swap");
}

#[inline(always)]
pub(crate) fn prefetch_line(_line: *const u8) {}

#[inline(always)]
pub(crate) fn prefetch_line_write(_line: *const u8) {}

/// Nanoseconds since the first call.
pub(crate) fn timestamp() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
