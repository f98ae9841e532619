//! Small pools in anonymous memory, for tests of what lies in a pool.

use std::path::Path;
use std::sync::Arc;

use chimera_pmem::{Environment, Hardware, HardwareOptions};

use super::{Closing, NewPool, Pool, PoolGeometry, PoolOptions, Superblock};

/// A pool of so many bytes, in segments of this length with blocks of 256 bytes.
pub(crate) fn small_pool(
    environment: Arc<dyn Environment>,
    segment_bytes: u64,
    bytes: u64,
) -> Arc<Pool<Hardware>> {
    let options = PoolOptions {
        anonymous_bytes: Some(bytes),
        populate_ahead_bytes: 0,
        ..PoolOptions::default()
    };
    let pmem = Hardware::new(HardwareOptions::default()).expect("address space");
    let new = || Ok(new_pool(segment_bytes, 256));
    let opened = Pool::open(pmem, environment, Path::new("pool"), &options, new);
    Arc::new(opened.expect("a new pool").0)
}

/// A new pool of segments of this length, with blocks of so many bytes.
pub(crate) fn new_pool(segment_bytes: u64, block_bytes: u32) -> NewPool {
    let superblock = Superblock {
        engine: 1,
        pool_id: 77,
        hash_seed: 1,
        geometry: PoolGeometry { segment_bytes, block_bytes, block_shift_bytes: 0 },
        sequence: 0,
        segments: 0,
        closing: Closing::Open,
        boot_id: 0,
        roots: [0; 4],
        area: Vec::new(),
    };
    NewPool { superblock, is_segment_fixed: true }
}
