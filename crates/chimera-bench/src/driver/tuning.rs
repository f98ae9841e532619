//! [`Tuning`]: what of a setup is ChameleonDB's, or that of the stores it is compared with.

use std::time::Duration;

use chimera::baselines::Compaction;
use chimera::{ChameleonOptions, Options};

use crate::published::paper;

/// Keys of a shard at most, where the number of shards follows from that of keys: the paper's 61,035, as the store rounds it.
const KEYS_PER_SHARD: u64 = 61_440;
const SHARDS_MAX: u64 = 1 << 16;
const SLOT_BYTES: u64 = 16;
/// A table's header, and what aligning it may take.
const TABLE_BYTES: u64 = 512;
/// A key in a table of the last level that is 75 % full, and room for a table to be made anew.
const LAST_BYTES_PER_KEY: u64 = 32;

/// What of a setup is ChameleonDB's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    pub(crate) shards: u32,
    pub(crate) memtable_bytes: u32,
    pub(crate) levels: u32,
    pub(crate) ratio: u32,
    /// See [`ChameleonOptions::log_batch_bytes`]; that of `dram-hash` too.
    pub(crate) batch_bytes: u32,
    /// Of all MemTables; by chance, as published, where there is none.
    pub(crate) load_factor: Option<f64>,
    pub(crate) compaction: Compaction,
    /// See [`ChameleonOptions::get_protect`].
    pub(crate) get_protect: Option<Duration>,
    /// See [`ChameleonOptions::blind_puts`].
    pub(crate) blind_puts: bool,
    /// What makes it another store than ChameleonDB.
    pub(crate) change: fn(ChameleonOptions) -> ChameleonOptions,
}

impl Tuning {
    /// ChameleonDB for so many keys, with the published sizes of tables.
    pub(crate) fn published(records: u64) -> Self {
        let table1 = |what: &str| paper("chameleondb").value(&format!("table1.{what}")) as u32;
        Self {
            shards: Self::shards_for(records),
            memtable_bytes: table1("memtable_kib") << 10,
            levels: table1("levels"),
            ratio: table1("ratio"),
            batch_bytes: 0,
            load_factor: None,
            compaction: Compaction::Direct,
            get_protect: None,
            blind_puts: false,
            change: |options| options,
        }
    }

    /// The mean of the published load factors of MemTables.
    pub(crate) fn mean_load() -> f64 {
        let load = |what: &str| paper("chameleondb").value(&format!("table1.load_{what}"));
        f64::midpoint(load("min"), load("max"))
    }

    /// Shards of a store that is made for so many keys.
    pub(crate) fn shards_for(records: u64) -> u32 {
        let shards = records.div_ceil(KEYS_PER_SHARD).clamp(1, SHARDS_MAX);
        shards.next_power_of_two() as u32
    }

    /// The options with all this. Without effect on stores of other engines.
    pub(crate) fn apply(self, options: Options) -> Options {
        let options = options.log_hash(|hash| hash.log_batch_bytes(self.batch_bytes));
        options.chameleon(|chameleon| {
            let chameleon = chameleon
                .shards(self.shards)
                .memtable_bytes(self.memtable_bytes)
                .levels(self.levels)
                .ratio(self.ratio)
                .log_batch_bytes(self.batch_bytes)
                .compaction(self.compaction)
                .get_protect(self.get_protect)
                .blind_puts(self.blind_puts);
            let chameleon = match self.load_factor {
                Some(load) => chameleon.load_factors(load..=load),
                None => chameleon,
            };
            (self.change)(chameleon)
        })
    }

    /// Tables of the first level that one of this level has room for.
    fn memtables(&self, level: u32) -> u64 {
        u64::from(self.ratio).pow(level)
    }

    /// Keys that the MemTables of a full bypass index have together.
    pub(crate) fn bypass_keys(&self) -> u64 {
        let slots = u64::from(self.memtable_bytes) / SLOT_BYTES;
        let keys = (slots as f64 * self.load_factor.unwrap_or_else(Self::mean_load)) as u64;
        keys * self.memtables(self.levels - 1)
    }

    /// Bytes of a pool for an index of so many keys: all levels, and a dumped bypass index, of each shard.
    pub(crate) fn index_bytes(&self, records: u64) -> u64 {
        let table = |level| u64::from(self.memtable_bytes) * self.memtables(level) + TABLE_BYTES;
        let upper = (0..self.levels - 1).map(|level| u64::from(self.ratio) * table(level));
        let of_shard = upper.sum::<u64>() + table(self.levels - 1);
        let shards = u64::from(self.shards);
        shards.saturating_mul(of_shard).saturating_add(records.saturating_mul(LAST_BYTES_PER_KEY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_those_of_the_paper() {
        assert_eq!(Tuning::shards_for(31_250_000), 512);
        assert_eq!(Tuning::shards_for(1_000_000_000), 16_384);
        assert_eq!((Tuning::shards_for(0), Tuning::shards_for(u64::MAX)), (1, 1 << 16));
    }

    #[test]
    fn a_bypass_index_has_the_keys_of_64_memtables() {
        let tuning = Tuning::published(1);
        assert_eq!(tuning.bypass_keys(), 64 * 384);
        let levels = 4 * ((8 << 10) + (32 << 10) + (128 << 10) + 3 * 512);
        assert_eq!(tuning.index_bytes(100), levels + (512 << 10) + 512 + 3200);
    }
}
