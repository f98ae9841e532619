//! [`prefetch_read`]: for code that may not contain `unsafe`.

use std::ptr;

use crate::arch;

/// Starts loading the cache line of DRAM in which `reference` begins, for reading. Only a hint: it
/// changes nothing a program can see, and does nothing where the machine has no such instruction.
#[inline(always)]
pub fn prefetch_read<T>(reference: &T) {
    arch::prefetch_line(ptr::from_ref(reference).cast());
}
