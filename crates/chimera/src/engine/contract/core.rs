//! [`Core`]: what every engine is built on.

use std::sync::Arc;

use chimera_pmem::{Environment, Pmem};

use super::changes::Changes;
use super::poison::Poison;
use crate::engine::options::Options;
use crate::ordered::Order;
use crate::pool::Pool;
use crate::pool::runs::Piece;
use crate::records::key_hash::KeyHash;
use crate::sync::Mutex;
use crate::types::verify_reads::VerifyReads;

/// What every engine is built on.
pub(crate) struct Core<P: Pmem> {
    pub(crate) pool: Arc<Pool<P>>,
    /// Whether writes are refused.
    pub(crate) poison: Poison,
    pub(crate) hash: KeyHash,
    pub(crate) background: Background,
    /// Who is told of changes of the index.
    pub(crate) changes: Changes,
    /// Whether gets verify the sums of values.
    pub(crate) verify_reads: VerifyReads,
    /// Pieces for records of batches that no batch uses.
    pub(crate) pieces: Mutex<Vec<Piece>>,
    /// Held while a batch takes pieces.
    pub(crate) taking: Mutex<()>,
}

/// What work in the background may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Background {
    /// What is free to at least so many percent is reclaimed; 0 for nothing.
    pub(crate) reclaim_percent: u32,
    /// Bytes that reclamation moves in a second, at most.
    pub(crate) reclaim_bytes_per_second: u64,
}

impl<P: Pmem> Core<P> {
    pub(crate) fn new(pool: Arc<Pool<P>>, options: &Options) -> Self {
        let order = options.order_kept.applies(pool.superblock().is_ordered).then(|| {
            let environment = pool.environment.clone();
            Arc::new(Order::new(environment, options.order.clone(), options.huge_pages))
        });
        let changes = Changes::new(order);
        #[cfg(feature = "baselines")]
        let changes = changes.and(options.told.clone());
        Self {
            poison: Poison::new(pool.read_only),
            hash: KeyHash::new(pool.superblock().hash_seed),
            background: Background {
                reclaim_percent: options.reclaim_percent,
                reclaim_bytes_per_second: options.reclaim_bytes_per_second,
            },
            changes,
            verify_reads: options.verify_reads,
            pieces: Mutex::default(),
            taking: Mutex::default(),
            pool,
        }
    }

    /// Clock, randomness, tasks and files.
    #[inline(always)]
    pub(crate) fn environment(&self) -> &Arc<dyn Environment> {
        &self.pool.environment
    }
}
