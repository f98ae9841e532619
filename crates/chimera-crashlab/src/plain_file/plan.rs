//! [`Plan`] and [`Findings`]: what to explore, and what was found.

use std::time::Duration;

use chimera::{Durability, EngineKind, Options};
use chimera_pmem::Site;

use super::files::Lie;
use crate::durability::{End, Loss};
use crate::subject::{EngineShape, VALUE_BYTES};

/// Limits of pages with stores of their own, in turn: none may be left, some, more, any number.
const PAGE_LIMITS: [Option<u64>; 4] = [Some(0), Some(16 << 10), Some(64 << 10), None];

/// When the journal is written back, in turn: between two operations, once in a life, hardly ever.
const CHECKPOINT_INTERVALS: [Duration; 3] =
    [Duration::from_millis(10), Duration::from_millis(200), Duration::from_secs(1)];

/// What is written to its place ahead of the journal, in turn: each line, much, what the durability says.
const DIRECT_BYTES_MIN: [Option<u64>; 3] = [Some(64), Some(512), None];

/// Most bytes of values of several pages.
const LARGE_BYTES: usize = 12 << 10;

/// What to explore. Everything random follows from the seed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The engine of the store.
    pub engine: EngineKind,
    /// The seed.
    pub seed: u64,
    /// The durability of the store.
    pub durability: Durability,
    /// Operations in each life.
    pub operations: usize,
    /// Lives, one after the other, each on what a power loss left of the one before.
    pub lives: usize,
    /// Most bytes of the journal: a small one has many laps and checkpoints. It begins with 16 KiB.
    pub journal_bytes: u64,
    /// How long entries stay in the journal alone, by the stepped clock.
    pub checkpoint_interval: Duration,
    /// Most bytes of pages with stores of their own: with few, pages are given back all the time.
    pub page_limit: Option<u64>,
    /// Least bytes that are written to their place ahead of the journal.
    pub direct_bytes_min: Option<u64>,
    /// Whether what is stored to new blocks goes to their file until the next sync.
    pub takes_places: bool,
    /// Most bytes of values, where the engine takes any size: a multiple of 32.
    pub value_bytes_max: usize,
    /// Compaction comes four times as often: what it gives back is used again.
    pub compacts_often: bool,
    /// A device that lies; the exploration must find violations.
    pub lie: Option<Lie>,
    /// A check of giving pages back that is left out; the exploration must find violations.
    pub left_out: Option<Site>,
}

impl Plan {
    /// A plan for the default engine that crashes in every place within fractions of a second. With every second seed the
    /// journal grows.
    pub fn new(seed: u64, durability: Durability) -> Self {
        Self {
            engine: EngineKind::default(),
            seed,
            durability,
            operations: 60,
            lives: 3,
            journal_bytes: if seed.is_multiple_of(2) { 16 << 10 } else { 64 << 10 },
            checkpoint_interval: CHECKPOINT_INTERVALS[(seed % 3) as usize],
            page_limit: PAGE_LIMITS[(seed % 4) as usize],
            direct_bytes_min: DIRECT_BYTES_MIN[(seed % 3) as usize],
            takes_places: (seed / 2).is_multiple_of(2),
            value_bytes_max: 2048,
            compacts_often: seed % 7 == 3,
            lie: None,
            left_out: None,
        }
    }

    /// `Group` with a window that the stepped clock passes now and then.
    pub fn group(seed: u64) -> Self {
        Self::new(seed, Durability::Group { max_delay: Duration::from_millis(50) })
    }

    /// `Immediate`.
    pub fn immediate(seed: u64) -> Self {
        Self::new(seed, Durability::Immediate)
    }

    /// With values of several pages, of the default engine. A state of so much data takes as long as ten of others.
    #[must_use]
    pub fn with_large_values(self) -> Self {
        Self { operations: 40, lives: 2, value_bytes_max: LARGE_BYTES, ..self }
    }

    pub(super) fn options(&self) -> Options {
        self.shape()
            .options()
            .durability(self.durability)
            .journal_bytes(self.journal_bytes)
            .checkpoint_interval(self.checkpoint_interval)
            .populate_ahead_bytes(if self.takes_new_blocks() { 16 << 10 } else { 512 })
            .recovery_threads(1)
            .page_limit(self.page_limit)
            .written_once(self.direct_bytes_min, self.takes_places)
    }

    fn shape(&self) -> EngineShape {
        // Of `viper`, records of one size and of any, with all other choices in turn, and large ones.
        let is_other = self.engine == EngineKind::Viper && (self.seed + self.seed / 4) % 2 == 1;
        let number = match self.has_large_values() {
            true => 5,
            // Short runs, so that there are new ones all the time.
            false if self.takes_new_blocks() && self.engine != EngineKind::Viper => 8,
            false => u64::from(is_other),
        };
        EngineShape::for_files(self.engine, number)
    }

    /// Most bytes of a value.
    pub(super) fn value_bytes_max(&self) -> usize {
        let has_any_size = self.shape().extra_bytes().len() > 1;
        if has_any_size { self.value_bytes_max.max(VALUE_BYTES) } else { VALUE_BYTES }
    }

    /// Whether records are written to their place ahead of the journal: what the durability says is more than any has here.
    pub(super) fn writes_ahead(&self) -> bool {
        let can = self.engine != EngineKind::Viper || self.has_large_values();
        can && self.direct_bytes_min.is_some() || self.takes_new_blocks()
    }

    /// Whether blocks of the store are taken so that stores go to their file.
    pub(super) fn takes_new_blocks(&self) -> bool {
        let is_group = matches!(self.durability, Durability::Group { .. });
        self.takes_places && is_group
    }

    fn has_large_values(&self) -> bool {
        self.value_bytes_max >= LARGE_BYTES
    }

    /// A value made of `key`, of a length that follows from `number`.
    pub(super) fn value(&self, key: [u8; 8], number: usize) -> Vec<u8> {
        let parts = 1 + number % (self.value_bytes_max() / VALUE_BYTES);
        key.repeat(parts * VALUE_BYTES / 8)
    }

    /// Whether stores change words of values in place.
    pub(super) fn is_in_place(&self) -> bool {
        self.shape().abilities().in_place
    }

    /// Which acknowledged writes may be missing after an end: what the engine says, and after a power loss
    /// the window of `Group`.
    pub(super) fn loss(&self, end: End) -> Loss {
        match (self.durability, end) {
            (Durability::Group { .. }, End::PowerLoss) => Loss::Suffix,
            _ => self.shape().loss(end),
        }
    }
}

/// What an exploration found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Disks kept: moments at which the power failed.
    pub crash_points: u64,
    /// Disks that a power loss left, and that were recovered and compared.
    pub states: u64,
    /// Of these, disks left by a power loss during recovery.
    pub nested: u64,
    /// Lives that went on after a power loss.
    pub epochs: u64,
    /// Bytes that were written to their place ahead of the journal.
    pub direct_bytes: u64,
    /// Promises that were broken: seed, moment, what was wrong.
    pub violations: Vec<String>,
}

impl Findings {
    /// Adds what another exploration found.
    pub fn add(&mut self, other: Self) {
        self.crash_points += other.crash_points;
        self.states += other.states;
        self.nested += other.nested;
        self.epochs += other.epochs;
        self.direct_bytes += other.direct_bytes;
        self.violations.extend(other.violations);
    }
}
