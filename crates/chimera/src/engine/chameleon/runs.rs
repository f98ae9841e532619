//! The kinds of runs, and how long one is.

use chimera_pmem::{CACHE_LINE, Pmem};

use crate::pool::{BlockKind, Pool};

pub(super) const LOG: BlockKind = BlockKind::new(1, "chameleon.log");
pub(super) const MANIFEST: BlockKind = BlockKind::new(2, "chameleon.manifest");
pub(super) const LEVEL: BlockKind = BlockKind::new(3, "chameleon.level");
pub(super) const TABLE: BlockKind = BlockKind::new(4, "chameleon.table");

/// All of them.
pub(super) const KINDS: [BlockKind; 4] = [LOG, MANIFEST, LEVEL, TABLE];

/// Blocks of a run with room for so many bytes.
pub(super) fn blocks_for<P: Pmem>(pool: &Pool<P>, bytes: u64) -> u32 {
    (bytes + CACHE_LINE).div_ceil(pool.map.block_bytes).min(u64::from(u32::MAX)) as u32
}
