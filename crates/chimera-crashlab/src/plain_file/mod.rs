//! Plain files: the journal under a model of the page cache in which any subset of the pages that were
//! not synced survives a power loss.
//!
//! A store runs on simulated files with background work stepped by hand. Before a random part of all
//! changes of files (writes, syncs, creations, removals) the disk is kept. Afterwards each kept disk
//! loses its power in several ways; the store is opened on what is left, read-only and for writing, and
//! compared with what was promised; the power fails again during recovery; and one of the survivors
//! lives on, to crash again.
//!
//! - `disk`: the model; `files`: the disk as files; `life`: one life of a store, and its verification.

mod chance;
mod disk;
mod files;
mod life;

use std::time::Duration;

use chimera::{Durability, Geometry, Options};

pub use chance::Chance;
pub use files::Lie;

/// What to explore. Everything random follows from the seed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// The durability of the store.
    pub durability: Durability,
    /// Operations in each life.
    pub operations: usize,
    /// Lives, one after the other, each on what a power loss left of the one before.
    pub lives: usize,
    /// Bytes of the journal: a small one has many laps and checkpoints.
    pub journal_bytes: u64,
    /// A device that lies; the exploration must find violations.
    pub lie: Option<Lie>,
}

impl Plan {
    /// A plan that crashes in every place within fractions of a second.
    pub fn new(seed: u64, durability: Durability) -> Self {
        Self { seed, durability, operations: 60, lives: 3, journal_bytes: 16 << 10, lie: None }
    }

    /// `Group` with a window that the stepped clock passes now and then.
    pub fn group(seed: u64) -> Self {
        Self::new(seed, Durability::Group { max_delay: Duration::from_millis(50) })
    }

    /// `Immediate`.
    pub fn immediate(seed: u64) -> Self {
        Self::new(seed, Durability::Immediate)
    }

    fn options(&self) -> Options {
        let geometry = Geometry {
            page_bytes: 256,
            pages_per_block: 2,
            block_shift_bytes: 0,
            segment_bytes: 8 << 10,
        };
        Options::new()
            .fixed_size(8, 24)
            .geometry(geometry)
            .durability(self.durability)
            .journal_bytes(self.journal_bytes)
            .populate_ahead_bytes(512)
            .index_segment_slots(64)
            .recovery_threads(1)
            .huge_pages(false)
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
        self.violations.extend(other.violations);
    }
}

/// Explores a plan.
pub fn explore(plan: &Plan) -> Findings {
    life::explore(plan)
}
