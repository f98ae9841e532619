//! Options that ChameleonDB's paper needs: its sizes, and stores that it is compared with.

use std::time::Duration;

use super::ChameleonOptions;
use super::variants::{Compaction, UpperIndex};

impl ChameleonOptions {
    /// The [threshold](Self::get_protect) of the paper's section 3.6.
    pub const GET_PROTECT_PUBLISHED: Duration = Duration::from_micros(2);

    /// As in the paper's Table 1: 16,384 shards, MemTables of 8 KiB, 4 levels, ratio 4. For a billion keys; takes 8320 MiB
    /// of DRAM. Each write is durable before it is acknowledged: who wants batches as published asks for
    /// [`log_batch_bytes(4096)`](Self::log_batch_bytes) as well. MemTables have up to 7 million records, so replay is
    /// [bounded](Self::replay_log_bytes_max) to 1 GiB.
    pub fn published(self) -> Self {
        let shape = self.shards(16_384).memtable_bytes(8 << 10).levels(4).ratio(4);
        shape.replay_log_bytes_max(1 << 30)
    }

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
