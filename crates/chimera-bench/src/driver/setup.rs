//! [`Setup`]: what is to be measured, decided.

use std::path::PathBuf;
use std::time::Duration;

use chimera::{Durability, EngineKind, Geometry, Options, RecordLayout};
use chimera_pmem::Medium;
use chimera_pmem::instrumented::{InstrumentedOptions, Profile};

/// How much a populated pool allocates at a time, and the only part of it in which a background task
/// would be woken.
const STEP_BYTES: u64 = 4 << 20;
/// Room in a populated pool beyond what is computed.
const SLACK_BYTES: u64 = 16 << 20;

/// Bytes of a record in a log beside its key and value.
const LOG_RECORD_BYTES: u64 = 24;

/// What is done to a pool, in records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Most that are there at a time.
    pub(crate) live: u64,
    /// Those that are overwritten in random order again and again.
    pub(crate) rewritten: u64,
    /// All that are written, first or anew.
    pub(crate) written: u64,
}

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

impl std::fmt::Display for Sizing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Fixed => "fixed",
            Self::Any => "any",
            Self::Mixed => "mixed",
        })
    }
}

/// Space reclamation in the background, where it is not the store's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reclaim {
    /// See [`Options::reclaim_percent`].
    pub(crate) percent: u32,
    pub(crate) bytes_per_second: u64,
}

/// Which store is made, and with how long records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizing {
    /// A store for keys of one size and values of one size.
    Fixed,
    /// A store for records of any size; all have the same.
    Any,
    /// A store for records of any size, with sizes distributed normally.
    Mixed,
}

/// What is to be measured, decided: the arguments with every default filled in.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) engine: EngineKind,
    pub(crate) layout: RecordLayout,
    pub(crate) key_bytes: u32,
    pub(crate) value_bytes: u32,
    pub(crate) sizing: Sizing,
    pub(crate) records: u64,
    pub(crate) operations: u64,
    pub(crate) duration: Option<Duration>,
    pub(crate) threads: Vec<usize>,
    pub(crate) repetitions: usize,
    pub(crate) seed: u64,
    pub(crate) profile: Profile,
    pub(crate) medium: MediumChoice,
    pub(crate) durability: Durability,
    pub(crate) growing: bool,
    pub(crate) reclaim: Option<Reclaim>,
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

    /// Pages of a store with these records; the default but for large ones of fixed size.
    pub(crate) fn geometry(&self) -> Geometry {
        let default = Geometry::default();
        let pages = match self.sizing {
            Sizing::Fixed => (self.slot_bytes() + 16).div_ceil(default.page_bytes),
            Sizing::Any | Sizing::Mixed => 1,
        };
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

    fn block_bytes(&self) -> u64 {
        let geometry = self.geometry();
        u64::from(geometry.page_bytes) * u64::from(geometry.pages_per_block)
    }

    /// Blocks for so many records in logs. At the end of each page, or block, half a record is left over.
    fn log_blocks(&self, records: u64) -> u64 {
        let sizes = self.key_bytes.next_multiple_of(8) + self.value_bytes.next_multiple_of(8);
        let span = LOG_RECORD_BYTES + u64::from(sizes);
        let page = u64::from(self.geometry().page_bytes);
        let room = if span < page { page } else { self.block_bytes() };
        let record_bytes = match (room - span.min(room) / 2) / span {
            // Its chunks fill blocks, and have headers.
            0 if span > room => span + span / 8,
            0 => room,
            records => room / records,
        };
        (records * record_bytes).div_ceil(self.block_bytes())
    }

    /// Records of fixed size that a block holds: what the pool's capacity is computed with.
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

    /// Bytes of a pool for these needs.
    pub(crate) fn capacity_bytes(&self, needs: Needs, threads: usize) -> u64 {
        let Needs { live, rewritten, written } = needs;
        let block_bytes = self.block_bytes();
        let blocks = match self.sizing {
            // Their blocks are refilled once a quarter of them is free.
            Sizing::Fixed => (live + rewritten * 45 / 100).div_ceil(self.records_per_block()),
            // Nothing is refilled before reclamation has emptied it.
            Sizing::Any | Sizing::Mixed => self.log_blocks(written),
        };
        let blocks = blocks + 4 * threads as u64;
        blocks * block_bytes + SLACK_BYTES.max(64 * block_bytes)
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
            .layout(self.layout)
            .durability(self.durability)
            .flush(self.flush);
        let options = match self.sizing {
            Sizing::Fixed => options.fixed_size(self.key_bytes, self.value_bytes),
            Sizing::Any | Sizing::Mixed => options,
        };
        let options = match self.reclaim {
            Some(Reclaim { percent, bytes_per_second }) => {
                options.reclaim_percent(percent).reclaim_bytes_per_second(bytes_per_second)
            }
            None => options,
        };
        let options = match self.publish_metrics {
            Some(every) => options.publish_metrics(every),
            None => options,
        };
        match self.latency_sampling {
            Some(every) => options.latency_sampling(every),
            None => options,
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
