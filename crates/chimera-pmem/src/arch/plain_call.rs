//! Architectures where a call aside is one like any other.

use super::Aside;

/// Calls `callee` with these arguments.
///
/// # Safety
/// That of `callee`.
#[inline(always)]
pub(crate) unsafe fn call_aside(callee: Aside, at: *const (), first: u64, second: u64) -> u64 {
    // SAFETY: as the caller promises.
    unsafe { callee(at, first, second) }
}
