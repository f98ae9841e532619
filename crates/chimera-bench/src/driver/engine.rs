//! [`EngineChoice`]: what can be measured.

use std::fmt;
use std::str::FromStr;

use chimera::EngineKind;

/// What can be measured: an engine of the store, or a baseline that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineChoice {
    /// An engine of the store.
    Store(EngineKind),
    /// Hash maps in DRAM, from which nothing survives the end of the process: what a program pays that
    /// keeps its records in the standard library's map.
    DramMap,
}

impl EngineChoice {
    /// The name of [`DramMap`](Self::DramMap).
    pub(crate) const DRAM_MAP: &str = "dram-map";
}

impl fmt::Display for EngineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(kind) => kind.fmt(f),
            Self::DramMap => f.write_str(Self::DRAM_MAP),
        }
    }
}

impl FromStr for EngineChoice {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == Self::DRAM_MAP {
            return Ok(Self::DramMap);
        }
        let no_baseline = |error| format!("{error}; baselines: {}", Self::DRAM_MAP);
        text.parse().map(Self::Store).map_err(no_baseline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_understood_and_others_are_not() {
        for name in ["viper", "dram-map"] {
            assert_eq!(name.parse::<EngineChoice>().expect("known").to_string(), name);
        }
        let error = "dram".parse::<EngineChoice>().expect_err("unknown");
        assert!(error.contains("viper") && error.contains("dram-map"), "{error}");
    }
}
