//! What ChameleonDB is compared with (ChameleonDB, section 3): other ways to find entries of the levels above the last one, and
//! compaction level by level. They are for measurements, behind the feature `baselines`. An ordinary build has
//! none of them, and asks for none at run time.
//!
//! Media are the same. A store may be opened with another of these at every open, and without the feature.
//!
//! - `table_helpers`: what tables have in DRAM where there is no bypass index. What may be asked for is in
//!   `engine/options/chameleon/variants`.
//! - `shards/baselines`: gets. `index/baselines`: helpers of tables that were found. `compactor/plan`: levels one by one.

#[cfg(not(feature = "baselines"))]
mod absent;
#[cfg(feature = "baselines")]
pub(super) mod table_helpers;

#[cfg(not(feature = "baselines"))]
pub(super) use absent::TableHelpers;
#[cfg(feature = "baselines")]
pub(super) use table_helpers::{HelperBuilder, Look, TableHelpers};
