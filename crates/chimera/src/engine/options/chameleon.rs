//! [`ChameleonOptions`]: what of a store's options is ChameleonDB's.

#[cfg(feature = "baselines")]
mod baselines;
pub(crate) mod variants;

use std::ops::RangeInclusive;
use std::time::Duration;

use variants::{Compaction, UpperIndex};

/// Where full MemTables go (ChameleonDB, sections 2.3 and 2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Mode {
    /// To tables.
    Normal,
    /// To bypass indexes alone: [`ChameleonOptions::write_intensive`].
    WriteIntensive,
    /// To bypass indexes alone, which are dumped: [`ChameleonOptions::get_protect`].
    GetProtect,
}

/// What of a store's options is ChameleonDB's. See [`Options::chameleon`](crate::Options::chameleon).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ChameleonOptions {
    pub(in crate::engine) expected_keys: Option<u64>,
    pub(in crate::engine) dram_bytes: Option<u64>,
    pub(in crate::engine) shards: Option<u32>,
    pub(in crate::engine) memtable_bytes: Option<u32>,
    pub(in crate::engine) levels: Option<u32>,
    pub(in crate::engine) ratio: Option<u32>,
    pub(in crate::engine) log_run_bytes: Option<u32>,
    pub(in crate::engine) log_batch_bytes: u32,
    pub(in crate::engine) load_factors: Option<RangeInclusive<f64>>,
    pub(in crate::engine) compaction: Compaction,
    pub(in crate::engine) compaction_threads: Option<u32>,
    pub(in crate::engine) write_intensive: bool,
    pub(in crate::engine) get_protect: Option<Duration>,
    pub(in crate::engine) dumps_max: Option<u32>,
    pub(in crate::engine) replay_log_bytes_max: Option<u64>,
    pub(in crate::engine) upper_index: UpperIndex,
    pub(in crate::engine) blind_puts: bool,
}

impl ChameleonOptions {
    /// Keys that the store is made for. Default 16 million. Chooses the number of [shards](Self::shards): the power of two
    /// that gives each at most 61,440 keys, as in the paper. With many more keys the store goes on, but tables of the last
    /// level grow, and putting them together takes longer; with far fewer, DRAM is taken in vain. Fixed at creation.
    pub fn expected_keys(mut self, keys: u64) -> Self {
        self.expected_keys = Some(keys);
        self
    }

    /// Most bytes of DRAM for MemTables and bypass indexes. Default: no limit. Where the number of shards is not given, it is
    /// halved until they fit. Fixed at creation.
    pub fn dram_bytes(mut self, bytes: u64) -> Self {
        self.dram_bytes = Some(bytes);
        self
    }

    /// Shards of the index: a power of two from 1 to 65,536. Each takes a MemTable and a bypass index of DRAM. Default: by
    /// [`expected_keys`](Self::expected_keys). Fixed at creation.
    pub fn shards(mut self, shards: u32) -> Self {
        self.shards = Some(shards);
        self
    }

    /// Bytes of a MemTable, and of a table of the first level: a power of two from 256 to 1 MiB. Default 8 KiB, 512 slots.
    /// Fixed at creation.
    pub fn memtable_bytes(mut self, bytes: u32) -> Self {
        self.memtable_bytes = Some(bytes);
        self
    }

    /// Levels, the last one included: 2 to 7. Default 4. A bypass index has room for all of them but the last one. Fixed at
    /// creation.
    pub fn levels(mut self, levels: u32) -> Self {
        self.levels = Some(levels);
        self
    }

    /// Tables of a level that make one of the next: a power of two from 2 to 16. Default 4. Fixed at creation.
    pub fn ratio(mut self, ratio: u32) -> Self {
        self.ratio = Some(ratio);
        self
    }

    /// Bytes of a run of the storage log, rounded up to whole blocks. Default 256 KiB, at most a quarter of a segment of the
    /// pool. Each session appends to a run of its own. Fixed at creation.
    pub fn log_run_bytes(mut self, bytes: u32) -> Self {
        self.log_run_bytes = Some(bytes);
        self
    }

    /// Bytes of records that a session appends to the log before they are made durable, all at once; 4096 as published.
    /// Default 0: each write is durable before it is acknowledged. With batches the store reports
    /// [`Durability::Batched`](crate::Durability::Batched): any end of the process may take the last batch of each session,
    /// also where other sessions have read it, beside what the durability of the medium may lose. May change at every open.
    pub fn log_batch_bytes(mut self, bytes: u32) -> Self {
        self.log_batch_bytes = bytes;
        self
    }

    /// How full a MemTable gets; of each shard by chance, so that not all are compacted at once. Default 0.65 to 0.85. May
    /// change at every open.
    pub fn load_factors(mut self, factors: RangeInclusive<f64>) -> Self {
        self.load_factors = Some(factors);
        self
    }

    /// Compactions that run at once, 1 or more. Default: no limit, each writer does what its shard needs. Where so many run, a
    /// full MemTable goes to the bypass index alone, while that has room, and then its writers wait. May change at every open.
    pub fn compaction_threads(mut self, threads: u32) -> Self {
        self.compaction_threads = Some(threads);
        self
    }

    /// Write-Intensive Mode (section 2.3): MemTables go to the bypass index alone, until that is full. Fewer writes, and a
    /// longer restart: what bypass indexes hold is replayed from the log. Default false. May change at every open.
    pub fn write_intensive(mut self, write_intensive: bool) -> Self {
        self.write_intensive = write_intensive;
        self
    }

    /// Get-Protect Mode (section 2.4): while the 99th percentile of how long gets take is above `threshold`, MemTables go to
    /// bypass indexes alone, and a full one is [dumped](Self::dumps_max) instead of merged. It ends when the percentile is
    /// below 80 % of the threshold, or when nobody gets anything for 10 seconds, or longer where gets are rarer than that.
    /// It works at any rate of gets: each session times some hundred gets a second, one in 64 at most, and of few gets it
    /// times all. Up to 1000 of them are looked at together, and a hundred at least before the mode ends. A restart replays
    /// what bypass indexes held. Default none: never. With a threshold of nothing the mode is always on, and no get is timed.
    /// The paper's experiment has 2 microseconds, which suits its machine. May change at every open.
    pub fn get_protect(mut self, threshold: Option<Duration>) -> Self {
        self.get_protect = threshold;
        self
    }

    /// Dumped bypass indexes that a shard may have, up to 4. Each is one more place where gets look. Default 1, as published;
    /// 0 merges always. May change at every open.
    pub fn dumps_max(mut self, dumps: u32) -> Self {
        self.dumps_max = Some(dumps);
        self
    }

    /// Most bytes of the log that a restart replays, in the normal mode: a shard whose oldest write lies further back is
    /// flushed early. Where MemTables have records of more than half as many bytes they are flushed before they are full,
    /// which writes more. Default 64 MiB. May change at every open.
    pub fn replay_log_bytes_max(mut self, bytes: u64) -> Self {
        self.replay_log_bytes_max = Some(bytes);
        self
    }

    /// Puts do not look whether their key is there, as in the paper: they read no table. Default false. A put answers that the
    /// key is new unless its MemTable has it. The number of records counts such a key once more, until the next table of the
    /// last level of its shard is made. Not for stores that keep keys in their order, which have to know new ones. May change at
    /// every open.
    pub fn blind_puts(mut self, blind_puts: bool) -> Self {
        self.blind_puts = blind_puts;
        self
    }
}
