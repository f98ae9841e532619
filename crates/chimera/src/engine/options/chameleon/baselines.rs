//! Options of stores that ChameleonDB is compared with.

use super::ChameleonOptions;
use super::variants::{Compaction, UpperIndex};

impl ChameleonOptions {
    /// How tables are put together. Default [`Compaction::Direct`]. May change at every open.
    pub fn compaction(mut self, compaction: Compaction) -> Self {
        self.compaction = compaction;
        self
    }

    /// How gets find entries of the levels above the last one. Default [`UpperIndex::Bypass`]. Without bypass indexes the log is
    /// not collected, and there is neither a Write-Intensive nor a Get-Protect Mode. Media are the same. A store that is
    /// open for reading only has bypass indexes always. May change at every open.
    pub fn upper_index(mut self, upper_index: UpperIndex) -> Self {
        self.upper_index = upper_index;
        self
    }
}
