//! [`Side`]: ChameleonDB, its variants, and the stores that its paper compares it with (EuroSys'21, section 3.2).

use std::fmt;
use std::str::FromStr;

use chimera::baselines::{Compaction, FilterKind, UpperIndex};
use chimera::{ChameleonOptions, EngineKind};

/// A store that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// What results call it.
    pub(super) name: &'static str,
    pub(super) engine: EngineKind,
    /// Sessions gather puts in batches, where batches are asked for.
    pub(super) has_batches: bool,
    /// Gets are protected, above the published threshold unless another one is given.
    pub(super) protects_gets: bool,
    /// What is different from ChameleonDB.
    pub(super) change: fn(ChameleonOptions) -> ChameleonOptions,
}

pub(super) const CHAMELEON: &str = "chameleon";
pub(super) const WRITE_INTENSIVE: &str = "chameleon-write-intensive";
pub(super) const GET_PROTECT: &str = "chameleon-get-protect";
pub(super) const PMEM_HASH: &str = "pmem-hash";
pub(super) const DRAM_HASH: &str = "dram-hash";
pub(super) const PMEM_LSM_NF: &str = "pmem-lsm-nf";
pub(super) const PMEM_LSM_F: &str = "pmem-lsm-f";
pub(super) const PMEM_LSM_PINK: &str = "pmem-lsm-pink";

/// All stores that can be measured.
const SIDES: [Side; 11] = [
    Side::of_chameleon(CHAMELEON, |options| options),
    Side::of_chameleon(WRITE_INTENSIVE, |options| options.write_intensive(true)),
    Side::of_chameleon("chameleon-level-by-level", |options| {
        options.compaction(Compaction::LevelByLevel)
    }),
    // Each put is durable before it is acknowledged.
    Side { has_batches: false, ..Side::of_chameleon("chameleon-unbatched", |options| options) },
    Side { protects_gets: true, ..Side::of_chameleon(GET_PROTECT, |options| options) },
    Side::of_chameleon(PMEM_LSM_NF, |options| options.upper_index(UpperIndex::Tables)),
    Side::of_chameleon(PMEM_LSM_F, |options| {
        options.upper_index(UpperIndex::Filters(FilterKind::Bloom))
    }),
    Side::of_chameleon("pmem-lsm-f-blocked", |options| {
        options.upper_index(UpperIndex::Filters(FilterKind::Blocked))
    }),
    Side::of_chameleon(PMEM_LSM_PINK, |options| options.upper_index(UpperIndex::Pinned)),
    // As published, it persists each put.
    Side { has_batches: false, ..Side::of_hash(PMEM_HASH, EngineKind::PmemHash) },
    Side::of_hash(DRAM_HASH, EngineKind::DramHash),
];

impl Side {
    const fn of_chameleon(
        name: &'static str,
        change: fn(ChameleonOptions) -> ChameleonOptions,
    ) -> Self {
        let engine = EngineKind::Chameleon;
        Self { name, engine, has_batches: true, protects_gets: false, change }
    }

    const fn of_hash(name: &'static str, engine: EngineKind) -> Self {
        Self { engine, ..Self::of_chameleon(name, |options| options) }
    }

    /// Whether it has levels.
    pub(super) fn has_levels(&self) -> bool {
        self.engine == EngineKind::Chameleon
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for Side {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        SIDES.into_iter().find(|side| side.name == text).ok_or_else(|| {
            format!("unknown store `{text}`; {}", SIDES.map(|side| side.name).join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_has_a_name_of_its_own() {
        for side in SIDES {
            assert_eq!(side.name.parse::<Side>().expect("known").name, side.to_string());
            let alike = SIDES.iter().filter(|other| other.name == side.name);
            assert_eq!(alike.count(), 1);
        }
        let error = "cceh".parse::<Side>().expect_err("unknown");
        assert!(error.contains("pmem-hash"), "{error}");
    }
}
