//! The instructions of each architecture, chosen at run time.
//!
//! Stable Rust has no intrinsics for the write-back instructions, so they are inline assembly here
//! and nowhere else. Every function works on one cache line, one word or one pair of words, but for
//! `copy_sum`, which takes vectors of them, and `call_aside`, which only calls; all other loops and the bounds checks are
//! the caller's.
//!
//! Assembly is outside of Rust's memory model, so each block is argued as if it were the relaxed
//! word operations it performs in hardware: a reader on another thread sees whole old or whole new
//! words, never a mixture inside one word.

#[cfg_attr(all(target_arch = "x86_64", not(miri)), path = "x86_64.rs")]
#[cfg_attr(all(target_arch = "aarch64", not(miri)), path = "aarch64.rs")]
#[cfg_attr(
    any(not(any(target_arch = "x86_64", target_arch = "aarch64")), miri),
    path = "generic.rs"
)]
mod native;
#[cfg(any(not(target_arch = "x86_64"), miri))]
mod no_transactions;
#[cfg(any(not(target_arch = "x86_64"), miri))]
mod plain_call;

#[cfg(test)]
mod tests;

use std::fmt;

/// What [`call_aside`] calls.
pub(crate) type Aside = unsafe extern "C" fn(*const (), u64, u64) -> u64;

pub(crate) use native::{
    TRANSACTION_BEGUN, begin_transaction, call_aside, cas_u128, copy_nt_line, copy_sum,
    end_transaction, fence, flush_line, has_cas_u128, has_copy_sum, has_transactions,
    prefetch_line, prefetch_line_write, timestamp,
};

#[cfg(target_endian = "big")]
compile_error!("the on-media format is little-endian and words are stored as they are in memory");

/// The instruction that starts writing a cache line back to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[repr(u8)]
pub enum FlushInstruction {
    /// x86-64 CLWB: writes back and may keep the line in the cache.
    Clwb = 1,
    /// x86-64 CLFLUSHOPT: writes back and drops the line; flushes overlap.
    ClflushOpt = 2,
    /// x86-64 CLFLUSH: writes back and drops the line, one after the other. Every machine has it.
    Clflush = 3,
    /// aarch64 DC CVAP: cleans the line to the point of persistence.
    DcCvap = 4,
    /// No instruction: caches are persistent, or flushing was switched off, or there is none.
    None = 5,
}

impl FlushInstruction {
    /// Every instruction, best first, [`None`](Self::None) last.
    pub const ALL: [Self; 5] =
        [Self::Clwb, Self::ClflushOpt, Self::Clflush, Self::DcCvap, Self::None];

    /// The best instruction of this machine; [`None`](Self::None) where there is none.
    pub fn detect() -> Self {
        Self::ALL.into_iter().find(|instruction| instruction.is_available()).unwrap_or(Self::None)
    }

    /// Whether this machine can execute it.
    pub fn is_available(self) -> bool {
        self == Self::None || native::has_flush(self)
    }

    /// The instruction with number `number`; [`None`](Self::None) for any other.
    #[inline(always)]
    pub(crate) fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Clwb,
            2 => Self::ClflushOpt,
            3 => Self::Clflush,
            4 => Self::DcCvap,
            _ => Self::None,
        }
    }
}

impl fmt::Display for FlushInstruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clwb => "clwb",
            Self::ClflushOpt => "clflushopt",
            Self::Clflush => "clflush",
            Self::DcCvap => "dc cvap",
            Self::None => "none",
        })
    }
}
