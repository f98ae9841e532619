//! An ordinary build: each shard has a bypass index, and no table has a helper. That is known when it is compiled.

use chimera_pmem::Pmem;

use crate::engine::ChameleonOptions;
use crate::engine::chameleon::shape::{Shape, Upper};
use crate::index::probing_table::{Slot, VolatileTable};
use crate::pool::Pool;
use crate::types::error::Result;

/// What of tables is in DRAM.
#[derive(Debug)]
pub(crate) enum TableHelpers {
    /// The entries of all that are above the last level, in bypass indexes.
    Bypass,
}

/// The helper of a table: none.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HelperBuilder {
    Nothing,
}

#[expect(clippy::unused_self, reason = "as in builds with the feature")]
impl TableHelpers {
    #[expect(clippy::unnecessary_wraps, reason = "as in builds with the feature")]
    pub(crate) fn of<P: Pmem>(
        _pool: &Pool<P>,
        _options: &ChameleonOptions,
        _shape: &Shape,
        _huge_pages: bool,
    ) -> Result<Self> {
        Ok(Self::Bypass)
    }

    #[inline(always)]
    pub(crate) fn is_bypass(&self) -> bool {
        true
    }

    #[inline(always)]
    pub(crate) fn are_made_of_tables(&self) -> bool {
        true
    }

    #[inline(always)]
    pub(crate) fn copy(&self, _upper: Upper) -> Option<VolatileTable<'_>> {
        None
    }

    #[inline(always)]
    pub(crate) fn begin_upper(&self, _upper: Upper) -> HelperBuilder {
        HelperBuilder::Nothing
    }

    #[inline(always)]
    pub(crate) fn begin_last(&self, _slots: u32) -> (u32, HelperBuilder) {
        (0, HelperBuilder::Nothing)
    }

    #[inline(always)]
    pub(crate) fn give_back_last(&self, _number: u32) {}

    #[inline(always)]
    pub(crate) fn bytes(&self) -> u64 {
        0
    }
}

#[expect(clippy::unused_self, reason = "as in builds with the feature")]
impl HelperBuilder {
    #[inline(always)]
    pub(crate) fn fill(self, _entries: impl Iterator<Item = Slot>) {}
}
