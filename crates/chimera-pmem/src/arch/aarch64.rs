//! aarch64: DC CVAP, DSB, STNP, LDAXP/STLXP.

use std::arch::asm;

use super::FlushInstruction;
pub(crate) use super::no_transactions::{
    TRANSACTION_BEGUN, begin_transaction, end_transaction, has_transactions,
};
pub(crate) use super::plain_call::call_aside;

pub(crate) fn has_flush(instruction: FlushInstruction) -> bool {
    match instruction {
        FlushInstruction::DcCvap => std::arch::is_aarch64_feature_detected!("dpb"),
        _ => false,
    }
}

/// # Safety
/// `line` points into readable memory, and the machine has the instruction.
#[inline(always)]
pub(crate) unsafe fn flush_line(instruction: FlushInstruction, line: *const u8) {
    if instruction == FlushInstruction::DcCvap {
        // SAFETY: as the caller promises. `sys #3, c7, c12, #1` is DC CVAP, spelt so that the
        // assembler needs no extension switched on. Changes no memory contents.
        unsafe { asm!("sys #3, c7, c12, #1, {}", in(reg) line, options(nostack, preserves_flags)) }
    }
}

/// Waits until this thread's cleans to the point of persistence are done.
#[inline(always)]
pub(crate) fn fence() {
    // SAFETY: a barrier; the implied memory clobber orders the compiler.
    unsafe { asm!("dsb sy", options(nostack, preserves_flags)) }
}

/// Copies one line with the non-temporal hint and cleans it to the point of persistence: unlike on
/// x86-64 the hint alone does not bypass the cache.
///
/// # Safety
/// `to` points to 64 writable bytes, a multiple of 64; `from` to 64 readable ones.
#[inline(always)]
pub(crate) unsafe fn copy_nt_line(to: *mut u8, from: *const u8) {
    // SAFETY: both ranges are valid and `to` aligned, as the caller promises. A pair store is single
    // copy atomic for each of its words, so this is eight relaxed word stores.
    unsafe {
        asm!(
            "ldp {a}, {b}, [{from}]",
            "ldp {c}, {d}, [{from}, #16]",
            "stnp {a}, {b}, [{to}]",
            "stnp {c}, {d}, [{to}, #16]",
            "ldp {a}, {b}, [{from}, #32]",
            "ldp {c}, {d}, [{from}, #48]",
            "stnp {a}, {b}, [{to}, #32]",
            "stnp {c}, {d}, [{to}, #48]",
            from = in(reg) from,
            to = in(reg) to,
            a = out(reg) _,
            b = out(reg) _,
            c = out(reg) _,
            d = out(reg) _,
            options(nostack, preserves_flags),
        );
    }
}

/// The exclusive pair is part of the base architecture.
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
    true
}

/// Compares and swaps 16 bytes (acquire and release); returns what was found.
///
/// On a mismatch the old value is stored back: a pair load is only known to be atomic when its
/// exclusive store succeeds.
///
/// # Safety
/// `at` points to 16 writable bytes, a multiple of 16.
#[inline(always)]
pub(crate) unsafe fn cas_u128(at: *mut u8, current: u128, new: u128) -> u128 {
    let (found_low, found_high): (u64, u64);
    // SAFETY: the address is valid and aligned as the caller promises. The loop touches no other
    // memory between the exclusive load and store, so it makes progress; no lock is involved.
    unsafe {
        asm!(
            "2:",
            "ldaxp {found_low}, {found_high}, [{at}]",
            "cmp {found_low}, {current_low}",
            "ccmp {found_high}, {current_high}, #0, eq",
            "csel {store_low}, {new_low}, {found_low}, eq",
            "csel {store_high}, {new_high}, {found_high}, eq",
            "stlxp {failed:w}, {store_low}, {store_high}, [{at}]",
            "cbnz {failed:w}, 2b",
            at = in(reg) at,
            current_low = in(reg) current as u64,
            current_high = in(reg) (current >> 64) as u64,
            new_low = in(reg) new as u64,
            new_high = in(reg) (new >> 64) as u64,
            found_low = out(reg) found_low,
            found_high = out(reg) found_high,
            store_low = out(reg) _,
            store_high = out(reg) _,
            failed = out(reg) _,
            options(nostack),
        );
    }
    u128::from(found_high) << 64 | u128::from(found_low)
}

/// Starts loading a line for reading. A hint: never faults.
#[inline(always)]
pub(crate) fn prefetch_line(line: *const u8) {
    // SAFETY: a prefetch accepts any address and changes nothing a program can see.
    unsafe {
        asm!("prfm pldl1keep, [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
}

/// Starts loading a line for writing. A hint: never faults.
#[inline(always)]
pub(crate) fn prefetch_line_write(line: *const u8) {
    // SAFETY: a prefetch accepts any address and changes nothing a program can see.
    unsafe {
        asm!("prfm pstl1keep, [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
}

/// The virtual counter.
#[inline(always)]
pub(crate) fn timestamp() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets user programs read the virtual counter.
    unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags, nomem)) }
    ticks
}
