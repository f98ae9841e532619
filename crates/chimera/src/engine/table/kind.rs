//! What is known of [`EngineKind`] and [`Options`] by asking engines.

use std::str::FromStr;

use crate::engine::contract::demand::Demand;
use crate::engine::options::{EngineKind, Options};
use crate::types::error::Result;

impl EngineKind {
    /// The names of all engines but [hidden](Self::is_hidden) ones, for help and messages.
    pub fn names() -> String {
        let shown = Self::ALL.iter().filter(|kind| !kind.is_hidden());
        shown.map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
    }
}

impl FromStr for EngineKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let kind = Self::ALL.iter().copied().find(|kind| kind.name() == text);
        kind.ok_or_else(|| format!("unknown engine `{text}`; engines: {}", Self::names()))
    }
}

impl Options {
    /// Bytes of a pool that has room for `demand`: for [`capacity_bytes`](Self::capacity_bytes) and
    /// [`anonymous`](Self::anonymous) of a store that is created with these options. An estimate from
    /// above; reclamation may make less enough.
    ///
    /// # Errors
    /// [`InvalidOptions`](crate::Error::InvalidOptions) when there can be no such store, or no pool can be so
    /// large.
    pub fn pool_bytes_for(&self, demand: &Demand) -> Result<u64> {
        self.engine.unwrap_or_default().pool_bytes(self, demand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::options::WITH_FEATURES;
    use crate::types::error::Error;

    #[test]
    fn numbers_and_names_are_unique_and_lead_back() {
        for kind in EngineKind::ALL.iter().copied() {
            assert_ne!(kind.code(), 0);
            assert_eq!(EngineKind::from_code(kind.code()).unwrap(), kind);
            assert_eq!(kind.name().parse(), Ok(kind));
            assert!(!kind.summary().is_empty());
        }
        assert!(EngineKind::from_code(0).is_err());
        let error = "best".parse::<EngineKind>().unwrap_err();
        assert!(error.contains("viper") && !error.contains("-hash"), "{error}");
    }

    /// Tests are built with all engines; what is left out elsewhere is found among these.
    #[test]
    fn engines_that_need_a_feature_have_their_numbers() {
        for (code, what, _) in WITH_FEATURES {
            let kind = EngineKind::from_code(code).expect("an engine of the tests");
            assert_eq!(what, format!("the engine `{kind}`"));
        }
        let of_users = ["viper", "hikv", "chameleon"];
        assert_eq!(EngineKind::ALL.len(), of_users.len() + WITH_FEATURES.len());
        assert!(matches!(EngineKind::from_code(77), Err(Error::Corrupted { .. })));
    }
}
