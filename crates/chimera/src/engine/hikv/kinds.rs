//! The kinds of runs.

use super::creation::Parameters;
use crate::pool::BlockKind;

pub(super) const HASH: BlockKind = BlockKind::new(1, "hikv.hash");
pub(super) const HEAP: BlockKind = BlockKind::new(2, "hikv.heap");
pub(super) const ORDER: BlockKind = BlockKind::new(3, "hikv.order");
#[cfg(feature = "baselines")]
pub(super) const LOG: BlockKind = BlockKind::new(4, "hikv.log");

/// The kinds that a store has.
pub(super) fn kinds(parameters: &Parameters) -> &'static [BlockKind] {
    match parameters.log_area_bytes {
        #[cfg(feature = "baselines")]
        Some(_) => &[HASH, HEAP, ORDER, LOG],
        _ => &[HASH, HEAP, ORDER],
    }
}
