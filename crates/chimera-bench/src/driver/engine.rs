//! [`EngineChoice`]: what can be measured.

use std::fmt;
use std::str::FromStr;

use chimera::EngineKind;

use crate::error::{BenchError, Result};

/// What can be measured: an engine of the store, or a baseline that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineChoice {
    /// An engine of the store.
    Store(EngineKind),
    /// HiKV with a write-ahead log instead of ordered writes.
    HikvWal,
    /// Hash maps in DRAM, from which nothing survives the end of the process: what a program pays that
    /// keeps its records in the standard library's map.
    DramMap,
    /// A tree that HiKV is measured against.
    Tree(TreeKind),
}

/// A tree that HiKV is measured against (ATC 2017, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeKind {
    /// FPTree.
    FpTree,
    /// FPTree with a cache of records in DRAM.
    FpTreeCached,
    /// NV-Tree.
    NvTree,
}

impl TreeKind {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::FpTree, Self::FpTreeCached, Self::NvTree];

    /// Its name on the command line and in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::FpTree => "fptree",
            Self::FpTreeCached => "fptree-cached",
            Self::NvTree => "nvtree",
        }
    }
}

impl EngineChoice {
    /// The name of [`DramMap`](Self::DramMap).
    pub(crate) const DRAM_MAP: &str = "dram-map";
    /// The name of [`HikvWal`](Self::HikvWal).
    pub(crate) const HIKV_WAL: &str = "hikv-wal";

    /// Fails where there is no published layout of its records, which have one size or any.
    ///
    /// # Errors
    /// With the reason.
    pub(crate) fn check_published_layout(self, is_fixed: bool) -> Result<()> {
        let why = match self {
            Self::Store(EngineKind::Viper) if is_fixed => return Ok(()),
            Self::Store(EngineKind::Viper) => "has it for records of a fixed size only",
            Self::Store(EngineKind::Hikv) | Self::HikvWal => return Ok(()),
            Self::Store(_) | Self::DramMap | Self::Tree(_) => "has one layout of its own",
        };
        Err(BenchError::Arguments(format!("--layout published: `{self}` {why}")))
    }
}

impl fmt::Display for EngineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(kind) => kind.fmt(f),
            Self::HikvWal => f.write_str(Self::HIKV_WAL),
            Self::DramMap => f.write_str(Self::DRAM_MAP),
            Self::Tree(tree) => f.write_str(tree.name()),
        }
    }
}

impl FromStr for EngineChoice {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            Self::DRAM_MAP => return Ok(Self::DramMap),
            Self::HIKV_WAL => return Ok(Self::HikvWal),
            _ => {}
        }
        if let Some(tree) = TreeKind::ALL.into_iter().find(|tree| tree.name() == text) {
            return Ok(Self::Tree(tree));
        }
        let trees = TreeKind::ALL.map(TreeKind::name).join(", ");
        let no_baseline = |error| {
            format!("{error}; baselines: {}, {}; trees: {trees}", Self::HIKV_WAL, Self::DRAM_MAP)
        };
        text.parse().map(Self::Store).map_err(no_baseline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_understood_and_others_are_not() {
        for name in ["viper", "hikv", "hikv-wal", "dram-map", "fptree", "fptree-cached", "nvtree"] {
            assert_eq!(name.parse::<EngineChoice>().expect("known").to_string(), name);
        }
        let error = "dram".parse::<EngineChoice>().expect_err("unknown");
        assert!(error.contains("viper") && error.contains("dram-map"), "{error}");
    }
}
