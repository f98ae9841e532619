//! [`Setup`]: what is to be measured, decided.

use std::path::PathBuf;
use std::time::Duration;

use chimera::{Durability, EngineKind, Geometry, IndexPlacement, Options, RecordLayout};
use chimera_pmem::Medium;
use chimera_pmem::instrumented::{InstrumentedOptions, Profile};

/// Slots per segment of an index in persistent memory: 4 KiB, five of them in a block of 24 KiB.
const PMEM_INDEX_SEGMENT_SLOTS: u32 = 256;
/// Bytes that each record may cost an index in persistent memory.
const PMEM_INDEX_BYTES_PER_RECORD: u64 = 64;
/// How much a populated pool allocates at a time, and the only part of it in which a background task
/// would be woken.
const STEP_BYTES: u64 = 4 << 20;
/// Room in a populated pool beyond what is computed.
const SLACK_BYTES: u64 = 16 << 20;

/// What a store is to lie on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumChoice {
    /// Whatever the path is on.
    Path,
    /// Anonymous memory.
    Anonymous,
    /// The path, which must be on this medium.
    Expect(Medium),
}

/// What is to be measured, decided: the arguments with every default filled in.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) engine: EngineKind,
    pub(crate) layout: RecordLayout,
    pub(crate) key_bytes: u32,
    pub(crate) value_bytes: u32,
    pub(crate) records: u64,
    pub(crate) operations: u64,
    pub(crate) duration: Option<Duration>,
    pub(crate) threads: Vec<usize>,
    pub(crate) repetitions: usize,
    pub(crate) seed: u64,
    pub(crate) profile: Profile,
    pub(crate) index: IndexPlacement,
    pub(crate) medium: MediumChoice,
    pub(crate) durability: Durability,
    pub(crate) growing: bool,
    pub(crate) publish_metrics: Option<Duration>,
    pub(crate) latency_sampling: Option<u32>,
    pub(crate) flush: bool,
    pub(crate) block_shift_bytes: u32,
    pub(crate) counters: bool,
    pub(crate) path: PathBuf,
    pub(crate) keep: bool,
    pub(crate) overwrite: bool,
}

impl Setup {
    /// Whether stores lie in anonymous memory.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.medium == MediumChoice::Anonymous
    }

    /// Pages of a store with these records; the default but for large ones.
    pub(crate) fn geometry(&self) -> Geometry {
        let default = Geometry::default();
        let pages = (self.slot_bytes() + 16).div_ceil(default.page_bytes);
        Geometry {
            page_bytes: default.page_bytes * pages,
            block_shift_bytes: self.block_shift_bytes,
            ..default
        }
    }

    fn slot_bytes(&self) -> u32 {
        let header = if self.layout == RecordLayout::Checked { 16 } else { 0 };
        header + self.key_bytes.next_multiple_of(8) + self.value_bytes.next_multiple_of(8)
    }

    /// Records that a block holds: what the pool's capacity is computed with.
    pub(crate) fn records_per_block(&self) -> u64 {
        let geometry = self.geometry();
        let bits = if self.layout == RecordLayout::Checked { 32 } else { 64 };
        let header = |slots: u32| 8 + 8 * slots.div_ceil(bits);
        let mut slots = geometry.page_bytes / self.slot_bytes();
        while slots > 1 && header(slots) + slots * self.slot_bytes() > geometry.page_bytes {
            slots -= 1;
        }
        u64::from(slots) * u64::from(geometry.pages_per_block)
    }

    /// Bytes of a pool that holds `live` records at most, of which `rewritten` are overwritten in
    /// random order again and again: their blocks are refilled once a quarter of them is free.
    pub(crate) fn capacity_bytes(&self, live: u64, rewritten: u64, threads: usize) -> u64 {
        let geometry = self.geometry();
        let block_bytes = u64::from(geometry.page_bytes) * u64::from(geometry.pages_per_block);
        let records = live + rewritten * 45 / 100;
        let blocks = records.div_ceil(self.records_per_block()) + 4 * threads as u64;
        let index = match self.index {
            IndexPlacement::Dram => 0,
            IndexPlacement::Pmem => live * PMEM_INDEX_BYTES_PER_RECORD,
        };
        blocks * block_bytes + index + SLACK_BYTES.max(64 * block_bytes)
    }

    /// Options of a store in a pool of `capacity_bytes`, populated unless it is to grow.
    pub(crate) fn options(&self, capacity_bytes: u64) -> Options {
        let options = self.options_to_open().geometry(self.geometry());
        let options = match (self.is_anonymous(), self.growing) {
            (true, _) => options.anonymous(capacity_bytes),
            (false, true) => options,
            (false, false) => options.capacity_bytes(capacity_bytes),
        };
        if self.growing {
            options
        } else {
            options.populate_ahead_bytes(STEP_BYTES).populate_at_open(true)
        }
    }

    /// Options that open what [`options`](Self::options) created.
    pub(crate) fn options_to_open(&self) -> Options {
        let options = Options::new()
            .engine(self.engine)
            .fixed_size(self.key_bytes, self.value_bytes)
            .layout(self.layout)
            .index(self.index)
            .durability(self.durability)
            .flush(self.flush);
        let options = match self.publish_metrics {
            Some(every) => options.publish_metrics(every),
            None => options,
        };
        let options = match self.latency_sampling {
            Some(every) => options.latency_sampling(every),
            None => options,
        };
        match self.index {
            IndexPlacement::Dram => options,
            IndexPlacement::Pmem => options.index_segment_slots(PMEM_INDEX_SEGMENT_SLOTS),
        }
    }

    /// How timed passes under a latency profile are instrumented.
    pub(crate) fn timed(&self) -> InstrumentedOptions {
        InstrumentedOptions {
            counters: false,
            device: None,
            profile: self.profile,
            ..InstrumentedOptions::default()
        }
    }

    /// This setup in anonymous memory.
    pub(crate) fn in_memory(&self) -> Self {
        Self { medium: MediumChoice::Anonymous, durability: Durability::Auto, ..self.clone() }
    }

    /// This setup in anonymous memory, with everything in place beforehand: for counting.
    pub(crate) fn for_counting(&self) -> Self {
        Self { growing: false, duration: None, ..self.in_memory() }
    }
}
