//! How the table of engines becomes code. Its rows are in `engine/mod.rs`. A row is all that the rest of the
//! store knows of an engine:
//!
//! ```text
//! /// What it is, in one line
//! Kind = number in superblocks, "name", folder { Form: Type, .. }
//! ```
//! The folder has a type `Type` that implements [`EngineType`](super::EngineType), types `Stats` and `Inspect`
//! for its reports, and each form's type, which implements [`Engine`](super::Engine). A store runs the form
//! that takes its parameters.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::EngineKind;
use crate::types::error::{Error, Result};

macro_rules! engines {
    (($d:tt) $(
        $(#[doc = $doc:literal])+
        #[cfg($cfg:meta)]
        $kind:ident = $code:literal, $name:literal, $folder:ident { $($form:ident: $type:ident),+ }
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

            /// What its stores can do.
            pub fn capabilities(self) -> $crate::engine::Capabilities {
                match self {
                    $(#[cfg($cfg)] Self::$kind => <$folder::Type as $crate::engine::EngineType>::CAPABILITIES,)+
                }
            }

            /// Whether it is there to be compared with, not to be used: lists of engines for users leave it out.
            pub fn is_hidden(self) -> bool {
                match self {
                    $(#[cfg($cfg)] Self::$kind => <$folder::Type as $crate::engine::EngineType>::IS_HIDDEN,)+
                }
            }

            /// Its steps on persistent memory, without those of the pool.
            pub(crate) fn own_sites(self) -> Vec<chimera_pmem::Site> {
                match self { $(#[cfg($cfg)] Self::$kind => <$folder::Type as $crate::engine::EngineType>::sites(),)+ }
            }

            /// See [`EngineType::plan`].
            pub(crate) fn plan(
                self,
                options: &$crate::engine::Options,
            ) -> $crate::Result<$crate::engine::Plan> {
                match self {
                    $(#[cfg($cfg)] Self::$kind => <$folder::Type as $crate::engine::EngineType>::plan(options),)+
                }
            }

            /// See [`EngineType::pool_bytes`](crate::engine::EngineType::pool_bytes).
            pub(crate) fn pool_bytes(
                self,
                options: &$crate::engine::Options,
                demand: &$crate::engine::Demand,
            ) -> $crate::Result<u64> {
                match self {
                    $(#[cfg($cfg)] Self::$kind => {
                        <$folder::Type as $crate::engine::EngineType>::pool_bytes(options, demand)
                    })+
                }
            }

            /// Checks what a superblock says of its engine against what is possible and what the options say.
            ///
            /// # Errors
            /// As [`EngineType::parameters`].
            pub(crate) fn check(
                self,
                superblock: &$crate::pool::Superblock,
                options: &$crate::engine::Options,
            ) -> $crate::Result<()> {
                match self {
                    $(#[cfg($cfg)] Self::$kind => {
                        <$folder::Type as $crate::engine::EngineType>::parameters(superblock, options).map(drop)
                    })+
                }
            }

            /// Makes an open pool ready for sessions.
            ///
            /// # Errors
            /// As [`Engine::open`].
            pub(crate) fn open<P: chimera_pmem::Pmem>(
                self,
                core: $crate::engine::Core<P>,
                options: &$crate::engine::Options,
            ) -> $crate::Result<(AnyEngine<P>, $crate::engine::Recovered)> {
                let superblock = core.pool.superblock();
                match self {
                    $(#[cfg($cfg)] Self::$kind => {
                        let parameters =
                            <$folder::Type as $crate::engine::EngineType>::parameters(&superblock, options)?;
                        $(if <$folder::$type<P> as $crate::engine::Engine<P>>::takes(&parameters) {
                            let opened = <$folder::$type<P> as $crate::engine::Engine<P>>::open(core, parameters, options);
                            let (engine, recovered) = opened?;
                            return Ok((AnyEngine::$form(std::sync::Arc::new(engine)), recovered));
                        })+
                    })+
                }
                Err($crate::Error::corrupted("the superblock asks for a store that its engine has not", 0))
            }
        }

        /// What an engine says of its store.
        #[derive(Clone, Debug, serde::Serialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum EngineStats {
            $($(#[doc = $doc])+ #[cfg($cfg)] $kind($folder::Stats),)+
        }

        /// What an engine says of what its store is made of.
        #[derive(Clone, Debug, serde::Serialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum EngineInspect {
            $($(#[doc = $doc])+ #[cfg($cfg)] $kind(Box<$folder::Inspect>),)+
        }

        /// The engine of a store.
        pub(crate) enum AnyEngine<P: chimera_pmem::Pmem> {
                $($(#[cfg($cfg)] $form(std::sync::Arc<$folder::$type<P>>),)+)+
            }

            /// A session of a store: the engine and the client, together.
            pub(crate) enum AnySession<P: chimera_pmem::Pmem> {
                $($(#[cfg($cfg)] $form($crate::engine::Bound<P, $folder::$type<P>>),)+)+
            }

            impl<P: chimera_pmem::Pmem> AnyEngine<P> {
                /// A session, for which counters book under `number`.
                pub(crate) fn session(&self, number: u32) -> AnySession<P> {
                    match self {
                        $($(#[cfg($cfg)] Self::$form(engine) => {
                            AnySession::$form($crate::engine::Bound { client: $crate::engine::Engine::client(&**engine, number), engine: engine.clone() })
                        })+)+
                    }
                }
            }

        /// Does the same with whichever engine it is.
        macro_rules! each_engine {
            ($d any:expr, $d engine:ident => $d does:expr) => {
                match $d any {
                    $($(#[cfg($cfg)] $d crate::engine::AnyEngine::$form($d engine) => $d does,)+)+
                }
            };
        }
        pub(crate) use each_engine;

        /// Does the same with the engine and the client of a session, whichever they are.
        macro_rules! each_session {
            ($d any:expr, $d engine:ident, $d client:ident => $d does:expr) => {
                match $d any {
                    $($(#[cfg($cfg)] $d crate::engine::AnySession::$form(bound) => {
                        let crate::engine::Bound { engine: $d engine, client: $d client } = bound;
                        $d does
                    })+)+
                }
            };
        }
        pub(crate) use each_session;
    };
}

pub(super) use engines;

impl Default for EngineKind {
    fn default() -> Self {
        Self::ALL[0]
    }
}

/// Engines that are only in builds with a feature: number, what an error calls them, feature.
pub(super) const WITH_FEATURES: [(u32, &str, &str); 3] = [
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

    /// The names of all engines but [hidden](Self::is_hidden) ones, for help and messages.
    pub fn names() -> String {
        let shown = Self::ALL.iter().filter(|kind| !kind.is_hidden());
        shown.map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for EngineKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let kind = Self::ALL.iter().copied().find(|kind| kind.name() == text);
        kind.ok_or_else(|| format!("unknown engine `{text}`; engines: {}", Self::names()))
    }
}

impl Serialize for EngineKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
