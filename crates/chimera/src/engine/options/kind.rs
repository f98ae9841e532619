//! [`EngineKind`]: the name and the number of each engine. What runs its stores is in the table of engines.

use std::fmt;

use crate::types::error::{Error, Result};

macro_rules! kinds {
    ($(
        $(#[doc = $doc:literal])+
        #[cfg($cfg:meta)]
        $kind:ident = $code:literal, $name:literal;
    )+) => {
        /// Which engine a store runs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum EngineKind {
            $($(#[doc = $doc])+ #[cfg($cfg)] $kind,)+
        }

        impl EngineKind {
            /// Every engine of this program, the default one first.
            pub const ALL: &[Self] = &[$(#[cfg($cfg)] Self::$kind),+];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(#[cfg($cfg)] Self::$kind => $name,)+ }
            }

            /// What it is, in one line.
            pub fn summary(self) -> &'static str {
                match self { $(#[cfg($cfg)] Self::$kind => concat!($($doc),+).trim_ascii(),)+ }
            }

            /// The number in the superblock; 0 is never valid.
            pub(crate) fn code(self) -> u32 {
                match self { $(#[cfg($cfg)] Self::$kind => $code,)+ }
            }
        }
    };
}

kinds! {
    /// Viper (PVLDB'21): pages of records in persistent memory, an extendible hash table in DRAM
    #[cfg(all())]
    Viper = 1, "viper";

    /// HiKV (ATC'17): items and a partitioned hash table in persistent memory
    #[cfg(all())]
    Hikv = 2, "hikv";

    /// ChameleonDB (EuroSys'21): a log and levels of hash tables in persistent memory, a bypass in DRAM
    #[cfg(not(loom))]
    Chameleon = 3, "chameleon";

    /// ChameleonDB's comparison point `Pmem-Hash`: a log and an extendible hash in persistent memory
    #[cfg(all(feature = "baselines", not(loom)))]
    PmemHash = 4, "pmem-hash";

    /// ChameleonDB's comparison point `Dram-Hash`: a log in persistent memory, a hash table in DRAM
    #[cfg(all(feature = "baselines", not(loom)))]
    DramHash = 5, "dram-hash";

    /// The engine of docs/ENGINES.md, to learn from: a log in persistent memory, a map in DRAM, one lock
    #[cfg(feature = "teaching-engine")]
    Teaching = 255, "teaching";
}

impl Default for EngineKind {
    fn default() -> Self {
        Self::ALL[0]
    }
}

/// Engines that are only in builds with a feature: number, what an error calls them, feature.
pub(in crate::engine) const WITH_FEATURES: [(u32, &str, &str); 3] = [
    (4, "the engine `pmem-hash`", "baselines"),
    (5, "the engine `dram-hash`", "baselines"),
    (255, "the engine `teaching`", "teaching-engine"),
];

impl EngineKind {
    /// The engine with this number in superblocks.
    ///
    /// # Errors
    /// `NeedsFeature` when this program was built without it; `Corrupted` when there is none.
    pub(crate) fn from_code(code: u32) -> Result<Self> {
        let kind = Self::ALL.iter().copied().find(|kind| kind.code() == code);
        kind.ok_or_else(|| {
            if let Some((_, what, feature)) = WITH_FEATURES.iter().find(|known| known.0 == code) {
                return Error::NeedsFeature { what, feature };
            }
            let what =
                format!("the store's engine has number {code}, which this program does not have");
            Error::corrupted(what, 8)
        })
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for EngineKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
