//! The configurations that conformance is tested for. An engine is added by a line in [`ALL`].

use chimera::baselines::{Consistency, RecordLayout};
use chimera::baselines::{FilterKind, UpperIndex};
use chimera::{Capabilities, EngineKind, HikvOptions, Options};

use crate::tools::{small, small_any};

/// An engine, and options that its stores are made with.
pub(crate) struct Configuration {
    pub(crate) name: &'static str,
    pub(crate) engine: EngineKind,
    /// Small stores, whose structures grow, split and fill up after hundreds of records. Nothing is
    /// reclaimed in the background.
    small: fn() -> Options,
    /// A capacity, in bytes, of dozens of the units in which the engine allocates and frees. Hundreds of small
    /// records fill it up, or thousands.
    pub(crate) full_bytes: u64,
    /// Damage is found by checksums.
    has_checksums: bool,
    /// Space of deleted records is never free again, and a delete is a record, which needs room.
    is_uncollected: bool,
    /// What the store has is known from the whole log alone. So a delete is a record, which needs room; and what lies behind
    /// damage in a run is not known, nor whether an older record was replaced.
    is_replayed: bool,
}

/// Every configuration.
pub(crate) const ALL: &[Configuration] = &[
    Configuration::new("viper-fixed", EngineKind::Viper, small, 60 * 512),
    Configuration::new("viper-any-size", EngineKind::Viper, small_any, 120 * 512),
    Configuration::new("viper-published", EngineKind::Viper, small_published, 60 * 512)
        .without_checksums(),
    Configuration::new("viper-ordered", EngineKind::Viper, small_ordered, 120 * 512),
    Configuration::new("hikv-ordered", EngineKind::Hikv, small_hikv_ordered, 60 * 1024),
    Configuration::new("hikv-par", EngineKind::Hikv, small_hikv_par, 60 * 1024),
    Configuration::new("hikv", EngineKind::Hikv, small_hikv, 60 * 1024),
    Configuration::new("hikv-published", EngineKind::Hikv, small_hikv_published, 60 * 1024)
        .without_checksums(),
    Configuration::new("hikv-wal", EngineKind::Hikv, small_hikv_wal, 80 * 1024),
    Configuration::new("chameleon", EngineKind::Chameleon, small_chameleon, 120 * 1024),
    Configuration::new("chameleon-batched", EngineKind::Chameleon, small_batched, 120 * 1024),
    Configuration::new("pmem-lsm-nf", EngineKind::Chameleon, small_lsm, 120 * 1024).uncollected(),
    Configuration::new("pmem-lsm-f", EngineKind::Chameleon, small_lsm_bloom, 120 * 1024)
        .uncollected(),
    Configuration::new("pmem-lsm-f-blocked", EngineKind::Chameleon, small_lsm_blocked, 120 * 1024)
        .uncollected(),
    Configuration::new("pmem-lsm-pink", EngineKind::Chameleon, small_lsm_pink, 120 * 1024)
        .uncollected(),
    Configuration::new("pmem-hash", EngineKind::PmemHash, small_log_hash, 60 * 1024),
    Configuration::new("dram-hash", EngineKind::DramHash, small_log_hash, 60 * 1024).replayed(),
    Configuration::new("dram-hash-batched", EngineKind::DramHash, small_hash_batched, 60 * 1024)
        .replayed(),
    #[cfg(feature = "teaching-engine")]
    Configuration::new("teaching", EngineKind::Teaching, small_runs, 15 * 4 * 1024),
];

#[cfg(feature = "teaching-engine")]
fn small_runs() -> Options {
    Options::new().segment_bytes(32 << 10).populate_ahead_bytes(0).reclaim_percent(0)
}

/// Segments of the index of 56 entries, eight runs of the log to a segment of the pool.
fn small_log_hash() -> Options {
    Options::new()
        .segment_bytes(32 << 10)
        .populate_ahead_bytes(0)
        .reclaim_percent(0)
        .log_hash(|options| options.index_segment_bytes(1024).log_run_bytes(4096))
}

fn small_hash_batched() -> Options {
    small_log_hash().log_hash(|options| options.log_batch_bytes(512))
}

fn small_ordered() -> Options {
    small_any().ordered(true).order(|order| order.node_bytes(512).queue_requests(16))
}

fn small_hikv_ordered() -> Options {
    small_hikv().ordered(true).order(|order| order.node_bytes(512).queue_requests(16))
}

/// Three trees, of which each has keys: their first bytes are spread.
fn small_hikv_par() -> Options {
    small_hikv_ordered().order(|order| order.trees(3).threads(3))
}

/// Segments of the index of 56 entries, four runs of items to a segment of the pool.
fn small_hikv() -> Options {
    Options::new()
        .segment_bytes(32 << 10)
        .populate_ahead_bytes(0)
        .reclaim_percent(0)
        .hikv(|hikv| hikv.partitions(2).index_segment_bytes(1024).heap_run_bytes(4096))
}

fn small_hikv_published() -> Options {
    small_hikv().hikv(|hikv| hikv.layout(RecordLayout::Published))
}

/// Two partitions with a log of 8 KiB each.
fn small_hikv_wal() -> Options {
    let logged = |hikv: HikvOptions| hikv.consistency(Consistency::WriteAheadLog);
    small_hikv().hikv(logged).hikv(|hikv| hikv.log_area_bytes(8 << 10))
}

/// Two shards with MemTables of 16 slots and two levels above the last one.
fn small_chameleon() -> Options {
    let options = Options::new().segment_bytes(64 << 10);
    options.populate_ahead_bytes(0).reclaim_percent(0).chameleon(|chameleon| {
        chameleon.shards(2).memtable_bytes(256).levels(3).ratio(2).log_run_bytes(4096)
    })
}

fn small_batched() -> Options {
    small_chameleon().chameleon(|chameleon| chameleon.log_batch_bytes(512))
}

/// ChameleonDB without a bypass index.
fn small_lsm() -> Options {
    small_with_index(UpperIndex::Tables)
}

fn small_lsm_bloom() -> Options {
    small_with_index(UpperIndex::Filters(FilterKind::Bloom))
}

fn small_lsm_blocked() -> Options {
    small_with_index(UpperIndex::Filters(FilterKind::Blocked))
}

fn small_lsm_pink() -> Options {
    small_with_index(UpperIndex::Pinned)
}

fn small_with_index(upper_index: UpperIndex) -> Options {
    small_chameleon().chameleon(|chameleon| chameleon.upper_index(upper_index))
}

fn small_published() -> Options {
    small().viper(|viper| viper.layout(RecordLayout::Published))
}

impl Configuration {
    const fn new(
        name: &'static str,
        engine: EngineKind,
        small: fn() -> Options,
        full_bytes: u64,
    ) -> Self {
        let (is_uncollected, is_replayed) = (false, false);
        Self { name, engine, small, full_bytes, has_checksums: true, is_uncollected, is_replayed }
    }

    const fn without_checksums(self) -> Self {
        Self { has_checksums: false, ..self }
    }

    const fn uncollected(self) -> Self {
        Self { is_uncollected: true, ..self }
    }

    const fn replayed(self) -> Self {
        Self { is_replayed: true, ..self }
    }

    /// Options for a small store.
    pub(crate) fn options(&self) -> Options {
        (self.small)().engine(self.engine)
    }

    /// As [`options`](Self::options), and nothing happens in the background: the files of an open store, copied
    /// between two calls, are what a killed process leaves. A file that is added while others are copied would
    /// be missing in the copy.
    pub(crate) fn still(&self) -> Options {
        self.options().populate_ahead_bytes(0)
    }

    /// Bytes of every key and of every value; none where they may have any size.
    pub(crate) fn sizes(&self) -> Option<(usize, usize)> {
        let options = self.options();
        let (key, value) = options.key_bytes().zip(options.value_bytes())?;
        Some((key as usize, value as usize))
    }

    /// What stores of this configuration can do: of the sizes that the engine can have, they have one kind.
    pub(crate) fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.engine.capabilities();
        match self.sizes() {
            Some(_) => capabilities.any_size = false,
            None => capabilities.fixed_size = false,
        }
        capabilities
    }

    /// An engine other than this one's, if this program has one.
    pub(crate) fn another_engine(&self) -> Option<EngineKind> {
        EngineKind::ALL.iter().copied().find(|kind| *kind != self.engine)
    }

    /// The first of `needs` that this configuration does not have.
    ///
    /// # Panics
    /// When there is no such capability.
    pub(crate) fn lacks(&self, needs: &[&'static str]) -> Option<&'static str> {
        needs.iter().copied().find(|need| !self.has(need))
    }

    /// Whether it is a log that nothing is collected in.
    fn has_log_alone(&self) -> bool {
        matches!(self.engine, EngineKind::PmemHash | EngineKind::DramHash)
    }

    fn has(&self, need: &str) -> bool {
        let beside = [
            ("checksums", self.has_checksums),
            ("room_to_delete", !self.is_replayed && !self.is_uncollected),
            ("room_again", !self.is_uncollected && !self.has_log_alone()),
            ("room_to_open", !self.is_uncollected),
            ("damage_is_contained", !self.is_replayed),
            ("another_engine", self.another_engine().is_some()),
        ];
        let mut all = self.capabilities().named().into_iter().chain(beside);
        let (_, has) = all.find(|(name, _)| *name == need).expect("a capability of that name");
        has
    }
}
