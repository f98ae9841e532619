//! [`Modes`]: where full MemTables go (ChameleonDB, sections 2.3 and 2.4).
//!
//! - *Write-Intensive Mode* is an option: MemTables go to bypass indexes alone. A full bypass index becomes a last table.
//! - *Get-Protect Mode* comes and goes with the [latency of gets](super::latency): the same, but that a full bypass index
//!   becomes a dump, if the shard has fewer of them than it may.
//!
//! It says which mode it is, and knows no MemTable.

use chimera_pmem::Environment;

use super::latency::{GetProtect, ProtectSwitch, Sampler};
use crate::engine::{ChameleonMode as Mode, ChameleonOptions};
use crate::index::persistent::shard_manifest::DUMPS_MAX;

/// What decides where full MemTables go.
#[derive(Debug)]
pub(super) struct Modes {
    write_intensive: bool,
    protect: GetProtect,
    dumps_max: usize,
}

impl Modes {
    pub(super) fn of(options: &ChameleonOptions, now_ns: u64) -> Self {
        let threshold = options.get_protect.map(|threshold| threshold.as_nanos() as u64);
        Self {
            write_intensive: options.write_intensive,
            protect: GetProtect::new(threshold, now_ns),
            dumps_max: options.dumps_max.map_or(1, |dumps| dumps as usize).min(DUMPS_MAX),
        }
    }

    /// Whether MemTables go to bypass indexes alone.
    pub(super) fn absorbs(&self, environment: &dyn Environment) -> bool {
        self.write_intensive || self.protect.protects(environment)
    }

    /// Whether the full bypass index of a shard that has so many dumps becomes another one.
    pub(super) fn dumps(&self, dumps: usize, environment: &dyn Environment) -> bool {
        self.protect.protects(environment) && dumps < self.dumps_max
    }

    pub(super) fn mode(&self) -> Mode {
        match () {
            () if self.protect.is_on() => Mode::GetProtect,
            () if self.write_intensive => Mode::WriteIntensive,
            () => Mode::Normal,
        }
    }

    /// What a new session times its gets with.
    pub(super) fn sampler(&self) -> Sampler {
        self.protect.sampler()
    }

    /// A session's get took so long, and ended at `now_ns`.
    pub(super) fn note(&self, sampler: &mut Sampler, took_ns: u64, now_ns: u64) {
        self.protect.note(sampler, took_ns, now_ns);
    }

    /// How often the Get-Protect Mode began or ended, and when it did last.
    pub(super) fn switches(&self) -> (u64, Vec<ProtectSwitch>) {
        self.protect.switches()
    }
}
