//! x86-64: CLWB, CLFLUSHOPT, CLFLUSH, SFENCE, MOVNTDQ, CMPXCHG16B.

use std::arch::x86_64::{__cpuid_count, _MM_HINT_T0, _mm_prefetch, _rdtsc};
use std::arch::{asm, naked_asm};

use super::{Aside, FlushInstruction};
use crate::sum::KEY_STEP;

/// CPUID leaf 7, EBX: CLFLUSHOPT and CLWB.
const LEAF7_CLFLUSHOPT: u32 = 1 << 23;
const LEAF7_CLWB: u32 = 1 << 24;

pub(crate) fn has_flush(instruction: FlushInstruction) -> bool {
    match instruction {
        FlushInstruction::Clwb => leaf7_ebx() & LEAF7_CLWB != 0,
        FlushInstruction::ClflushOpt => leaf7_ebx() & LEAF7_CLFLUSHOPT != 0,
        FlushInstruction::Clflush => true,
        FlushInstruction::DcCvap | FlushInstruction::None => false,
    }
}

#[allow(unused_unsafe, reason = "CPUID became a safe function in a later toolchain")]
fn leaf7_ebx() -> u32 {
    // SAFETY: every x86-64 processor has CPUID, and leaf 0 is always there.
    let highest = unsafe { __cpuid_count(0, 0) }.eax;
    if highest < 7 {
        return 0;
    }
    // SAFETY: leaf 7 is at most the highest leaf.
    unsafe { __cpuid_count(7, 0) }.ebx
}

/// # Safety
/// `line` points into readable memory, and the machine has the instruction.
#[inline(always)]
pub(crate) unsafe fn flush_line(instruction: FlushInstruction, line: *const u8) {
    match instruction {
        // SAFETY: as the caller promises. Changes no memory contents and no flags; the implied
        // memory clobber keeps earlier stores before it.
        FlushInstruction::Clwb => unsafe {
            asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags));
        },
        // SAFETY: as above.
        FlushInstruction::ClflushOpt => unsafe {
            asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
        },
        // SAFETY: as above.
        FlushInstruction::Clflush => unsafe {
            asm!("clflush [{}]", in(reg) line, options(nostack, preserves_flags));
        },
        FlushInstruction::DcCvap | FlushInstruction::None => {}
    }
}

/// Waits until this thread's write-backs and stores past the cache are accepted by memory. Used
/// after CLFLUSH too, which is ordered by itself but not before later stores past the cache.
#[inline(always)]
pub(crate) fn fence() {
    // SAFETY: orders stores; the implied memory clobber orders the compiler.
    unsafe { asm!("sfence", options(nostack, preserves_flags)) }
}

/// Copies one line past the cache.
///
/// SSE2 stores, which every x86-64 machine has: four of them fill a write-combining buffer as fast
/// as wider ones, and there is no transition penalty to pay.
///
/// # Safety
/// `to` points to 64 writable bytes, a multiple of 64; `from` to 64 readable ones. No thread touches
/// the line before this thread's next [`fence`], or it sees old and new words in any mixture.
#[inline(always)]
pub(crate) unsafe fn copy_nt_line(to: *mut u8, from: *const u8) {
    // SAFETY: both ranges are valid and `to` aligned, as the caller promises. Hardware stores each
    // aligned 8 bytes of a vector whole, so this is eight relaxed word stores.
    unsafe {
        asm!(
            "movdqu {a}, [{from}]",
            "movdqu {b}, [{from} + 16]",
            "movdqu {c}, [{from} + 32]",
            "movdqu {d}, [{from} + 48]",
            "movntdq [{to}], {a}",
            "movntdq [{to} + 16], {b}",
            "movntdq [{to} + 32], {c}",
            "movntdq [{to} + 48], {d}",
            from = in(reg) from,
            to = in(reg) to,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack, preserves_flags),
        );
    }
}

/// Whether [`copy_sum`] may be called.
pub(crate) fn has_copy_sum() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

/// From the keys of four words to those of the next four.
static KEYS_STEP: [u64; 4] = [KEY_STEP.wrapping_mul(4); 4];

/// Copies `groups` times 32 bytes and returns the sum of their words, of which the first four have these keys; see
/// [`crate::sum`].
///
/// # Safety
/// `from` points to so many readable bytes, a multiple of 8, and `to` to as many writable ones. `groups` is not
/// zero, and [`has_copy_sum`]. What is shared of them is a multiple of 8.
#[inline(always)]
pub(crate) unsafe fn copy_sum(
    to: *mut u8,
    from: *const u8,
    groups: usize,
    first_keys: &[u64; 4],
) -> u64 {
    let sum: u64;
    // SAFETY: both ranges are valid, as the caller promises. Hardware loads and stores each aligned 8 bytes of a
    // vector whole, so these are relaxed word operations. VZEROUPPER makes the upper halves of all sixteen
    // registers zero, which code with AVX may hold values in: so all are named as overwritten, by their lower
    // halves, as code without AVX knows no others. The flags are not preserved.
    unsafe {
        asm!(
            "vmovdqu ymm0, [{keys}]",
            "vmovdqu ymm1, [{step}]",
            "vpxor xmm2, xmm2, xmm2",
            "xor {at:e}, {at:e}",
            "2:",
            "vmovdqu ymm3, [{from} + {at}]",
            "vmovdqu [{to} + {at}], ymm3",
            // The halves of each word, mixed with its key, multiplied.
            "vpxor ymm4, ymm3, ymm0",
            "vpshufd ymm5, ymm4, 0xf5",
            "vpmuludq ymm4, ymm4, ymm5",
            // Each word with its halves exchanged.
            "vpshufd ymm3, ymm3, 0xb1",
            "vpaddq ymm2, ymm2, ymm4",
            "vpaddq ymm2, ymm2, ymm3",
            "vpaddq ymm0, ymm0, ymm1",
            "add {at}, 32",
            "cmp {at}, {end}",
            "jb 2b",
            "vextracti128 xmm3, ymm2, 1",
            "vpaddq xmm2, xmm2, xmm3",
            "vpshufd xmm3, xmm2, 0xee",
            "vpaddq xmm2, xmm2, xmm3",
            "vmovq {sum}, xmm2",
            "vzeroupper",
            keys = in(reg) first_keys.as_ptr(),
            step = in(reg) KEYS_STEP.as_ptr(),
            from = in(reg) from,
            to = in(reg) to,
            end = in(reg) groups * 32,
            at = out(reg) _,
            sum = lateout(reg) sum,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
            out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack),
        );
    }
    sum
}

pub(crate) fn has_cas_u128() -> bool {
    std::arch::is_x86_feature_detected!("cmpxchg16b")
}

/// Compares and swaps 16 bytes (sequentially consistent); returns what was found.
///
/// # Safety
/// `at` points to 16 writable bytes, a multiple of 16, and [`has_cas_u128`].
#[inline(always)]
pub(crate) unsafe fn cas_u128(at: *mut u8, current: u128, new: u128) -> u128 {
    let (found_low, found_high): (u64, u64);
    // SAFETY: the address is valid and aligned as the caller promises. LLVM reserves RBX, so the
    // low half goes in and out of it by exchange; every other register is named, so that none of
    // them can be RBX. Hardware lets locked 16-byte and plain 8-byte accesses mix.
    unsafe {
        asm!(
            "xchg rsi, rbx",
            "lock cmpxchg16b [rdi]",
            "mov rbx, rsi",
            in("rdi") at,
            inout("rsi") new as u64 => _,
            in("rcx") (new >> 64) as u64,
            inout("rax") current as u64 => found_low,
            inout("rdx") (current >> 64) as u64 => found_high,
            options(nostack),
        );
    }
    u128::from(found_high) << 64 | u128::from(found_low)
}

/// What [`begin_transaction`] returns in a transaction. No reason of an abort has all bits set.
pub(crate) const TRANSACTION_BEGUN: u32 = u32::MAX;

pub(crate) fn has_transactions() -> bool {
    std::arch::is_x86_feature_detected!("rtm")
}

/// Begins a transaction: [`TRANSACTION_BEGUN`]. Where it is aborted later, this returns once more, with the reason, and
/// nothing that was done since has happened.
///
/// # Safety
/// [`has_transactions`].
#[inline(always)]
pub(crate) unsafe fn begin_transaction() -> u32 {
    let mut status = TRANSACTION_BEGUN;
    // SAFETY: the machine has the instruction, as the caller promises. An abort restores all registers but EAX, and all
    // memory, the stack included, to what they were here. So to the compiler this is one instruction that sets a
    // register. The label is the next instruction, so both ways go on behind the block.
    unsafe { asm!("xbegin 2f", "2:", inout("eax") status, options(nostack)) }
    status
}

/// Makes what was done since [`begin_transaction`] happen, all of it at one moment.
///
/// # Safety
/// In a transaction.
#[inline(always)]
pub(crate) unsafe fn end_transaction() {
    // SAFETY: the thread is in a transaction, as the caller promises; elsewhere the instruction is a fault.
    unsafe { asm!("xend", options(nostack)) }
}

/// Starts loading a line for reading. A hint: never faults.
#[inline(always)]
pub(crate) fn prefetch_line(line: *const u8) {
    // SAFETY: a prefetch accepts any address; SSE is part of x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) }
}

/// Starts loading a line for writing. A hint: never faults; machines without PREFETCHW ignore it.
#[inline(always)]
pub(crate) fn prefetch_line_write(line: *const u8) {
    // SAFETY: a prefetch accepts any address and changes nothing a program can see.
    unsafe { asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly)) }
}

/// The time-stamp counter.
#[inline(always)]
pub(crate) fn timestamp() -> u64 {
    // SAFETY: RDTSC is part of x86-64 and permitted to user programs on Linux.
    unsafe { _rdtsc() }
}

/// Calls `callee` with these arguments. A path that is hardly ever taken costs the one beside it nothing this way: the
/// compiler need not keep a value out of the registers that an ordinary call may change.
///
/// # Safety
/// That of `callee`, which does not unwind.
#[inline(always)]
pub(crate) unsafe fn call_aside(callee: Aside, at: *const (), first: u64, second: u64) -> u64 {
    let mut result = at.expose_provenance() as u64;
    // SAFETY: the four words on the stack are what `call_keeping_registers` expects; it changes the first argument's and no
    // register but the flags and those named here. Without `nostack` there is no red zone to spoil.
    unsafe {
        asm!(
            "push {second}",
            "push {first}",
            "push {result}",
            "push {callee}",
            "call {call}",
            "add rsp, 8",
            "pop {result}",
            "lea rsp, [rsp + 16]",
            second = in(reg) second,
            first = in(reg) first,
            result = inout(reg) result,
            callee = in(reg) callee,
            call = sym call_keeping_registers,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            // Where the whole program is compiled for AVX-512 the compiler keeps values in these.
            out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _,
            out("zmm20") _, out("zmm21") _, out("zmm22") _, out("zmm23") _,
            out("zmm24") _, out("zmm25") _, out("zmm26") _, out("zmm27") _,
            out("zmm28") _, out("zmm29") _, out("zmm30") _, out("zmm31") _,
            out("k0") _, out("k1") _, out("k2") _, out("k3") _,
            out("k4") _, out("k5") _, out("k6") _, out("k7") _,
        );
    }
    result
}

/// Above its return address lie a function, which it calls, and its three arguments, of which the first becomes the result.
/// Only vector registers and flags are changed: those that are no argument of a function are its own to keep.
///
/// # Safety
/// As [`call_aside`] calls it.
#[unsafe(naked)]
unsafe extern "C" fn call_keeping_registers() {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "mov rdi, [rbp + 24]",
        "mov rsi, [rbp + 32]",
        "mov rdx, [rbp + 40]",
        "and rsp, -16",
        "call [rbp + 16]",
        "mov [rbp + 24], rax",
        "lea rsp, [rbp - 72]",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "pop rbp",
        "ret",
    )
}
