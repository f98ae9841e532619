//! [`EngineType`]: what is known of an engine before a store is open.

use chimera_pmem::Site;

use super::capabilities::Capabilities;
use super::demand::{self, Demand};
use crate::engine::options::Options;
use crate::pool::{PoolGeometry, Superblock};
use crate::types::error::Result;

/// What an engine decides about a store that is to be made.
pub(crate) struct Plan {
    pub(crate) geometry: PoolGeometry,
    /// The length of segments was asked for, and is not to be fitted to a device.
    pub(crate) is_segment_fixed: bool,
    /// What the engine keeps in the superblock.
    pub(crate) area: Vec<u64>,
}

/// What is known of an engine before a store is open.
pub(crate) trait EngineType {
    /// What its area of the superblock says.
    type Parameters;

    /// What its stores can do.
    const CAPABILITIES: Capabilities;

    /// It is there to be compared with, not to be used: left out of lists of engines for users.
    const IS_HIDDEN: bool = false;

    /// The store that the options ask for.
    ///
    /// # Errors
    /// `InvalidOptions` when there can be none.
    fn plan(options: &Options) -> Result<Plan>;

    /// What an existing store is.
    ///
    /// # Errors
    /// `Corrupted` when its superblock cannot be right; `Mismatch` when the options say otherwise.
    fn parameters(superblock: &Superblock, options: &Options) -> Result<Self::Parameters>;

    /// Bytes of a pool with room for `demand`: of a log that is written once, unless said otherwise.
    ///
    /// # Errors
    /// `InvalidOptions` when there can be none.
    fn pool_bytes(options: &Options, demand: &Demand) -> Result<u64> {
        Self::plan(options).map(|_| demand::log_bytes(demand))
    }

    /// Its steps on persistent memory, without those of the pool.
    fn sites() -> Vec<Site>;
}
