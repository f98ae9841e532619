//! [`Ahead`]: how much storage is allocated ahead of use.
//!
//! # Sequence
//! Unless a number is asked for, a sixteenth of what is in use is kept ready ahead of it, at least 128 KiB and at most 64 MiB.
//! So a small store takes little, and one that grows has what its sessions need meanwhile. It is allocated as much at a
//! time, but no more than 4 MiB.

use super::PoolOptions;

/// Most bytes to allocate and touch at a time, so that nobody waits long for the growth lock.
const STEP_BYTES_MAX: u64 = 4 << 20;
/// Least bytes ahead of use.
const BYTES_MIN: u64 = 128 << 10;
/// Most bytes ahead of use.
const BYTES_MAX: u64 = 64 << 20;
/// The part of what is in use.
const PART: u64 = 16;

/// How many blocks to keep ready, of those that are not in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    blocks_min: u64,
    blocks_max: u64,
    step_blocks_max: u64,
}

impl Ahead {
    pub(super) fn new(options: &PoolOptions, block_bytes: u64) -> Self {
        let blocks = |bytes| bytes / block_bytes;
        let (bytes_min, bytes_max) = match options.populate_ahead_bytes {
            Some(bytes) => (bytes, bytes),
            None => (BYTES_MIN.max(block_bytes), BYTES_MAX.max(block_bytes)),
        };
        Self {
            blocks_min: blocks(bytes_min),
            blocks_max: blocks(bytes_max),
            step_blocks_max: blocks(STEP_BYTES_MAX).max(1),
        }
    }

    /// Whether there is nothing to be kept ready.
    pub(super) fn is_none(&self) -> bool {
        self.blocks_max == 0
    }

    /// Blocks to keep ready while so many are in use.
    #[inline]
    pub(super) fn blocks(&self, used_blocks: u64) -> u64 {
        (used_blocks / PART).clamp(self.blocks_min, self.blocks_max)
    }

    /// Blocks to keep ready at least.
    pub(super) fn least_blocks(&self) -> u64 {
        self.blocks_min
    }

    /// Blocks to allocate at a time.
    pub(super) fn step_blocks(&self, used_blocks: u64) -> u64 {
        self.blocks(used_blocks).clamp(1, self.step_blocks_max)
    }
}

#[cfg(test)]
mod tests;
