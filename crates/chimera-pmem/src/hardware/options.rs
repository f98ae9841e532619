//! [`HardwareOptions`]: how memory is mapped and flushed.

use crate::FlushInstruction;

/// Which instruction flushes a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum FlushChoice {
    /// The best one of the machine; none on persistent memory whose platform persists its caches.
    #[default]
    Auto,
    /// None. Stores may be lost by a power failure unless the platform persists its caches.
    Never,
    /// This one; refused where the machine does not have it.
    Instruction(FlushInstruction),
}

/// How [`Hardware`](crate::Hardware) maps and flushes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct HardwareOptions {
    /// Address space to reserve at first, in bytes. When more is to be mapped, more is reserved behind it, so it is best what
    /// will be needed. Costs no memory. Default 1 GiB. Where the system refuses, half of it is tried, and so on.
    pub reserve_bytes: u64,
    /// Default [`FlushChoice::Auto`].
    pub flush: FlushChoice,
    /// Whether to ask for 2 MiB pages: fewer TLB misses, but memory is taken in pieces of 2 MiB.
    /// A wish; the system may not grant it. Default off.
    pub huge_pages: bool,
}

impl Default for HardwareOptions {
    fn default() -> Self {
        Self { reserve_bytes: 1 << 30, flush: FlushChoice::Auto, huge_pages: false }
    }
}
