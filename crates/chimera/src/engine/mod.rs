//! Engines: how records and an index are joined into a store. Each fixes the order of writes,
//! flushes, fences and index changes, and argues why a crash between any two of them loses nothing.
//!
//! An engine knows the records it keeps and the index that points at them; neither knows the other.
//! What engines share is here: the hash of a key, the locks of keys, the state after a failure.

use chimera_pmem::Site;

use crate::types::options::EngineKind;

/// Where an engine stores to, flushes or fences persistent memory; and the checks, comparisons and
/// steps of recovery that a tool can leave out ([`Pmem::skips`](chimera_pmem::Pmem::skips)). For the
/// crash lab, which breaks each in turn.
pub fn sites(engine: EngineKind) -> Vec<Site> {
    use crate::pool;
    use crate::records::{block_flags, vpage};
    match engine {
        EngineKind::Viper => {
            let lists = [
                pool::sites::ALL,
                block_flags::sites::ALL,
                vpage::sites::ALL,
                pool::steps::ALL,
                block_flags::steps::ALL,
                vpage::steps::ALL,
                viper::steps::ALL,
            ];
            lists.concat()
        }
    }
}

mod keys;
mod poison;
pub(crate) mod viper;

pub(crate) use keys::{KeyHash, KeyLocks};
pub(crate) use poison::Poison;
pub use viper::Demand;
