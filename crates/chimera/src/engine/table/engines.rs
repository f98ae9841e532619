//! The table of engines, and how it becomes code. A row is all that the rest of the store knows of an engine:
//!
//! ```text
//! Kind = folder { Form: Type, .. }
//! ```
//! The folder has a type `Type` that implements [`EngineType`](crate::engine::EngineType), types `Stats` and `Inspect`
//! for its reports, and each form's type, which implements [`Engine`](crate::engine::Engine) and
//! [`Reports`](crate::engine::Reports). A store runs the form that takes its parameters. The name and the number of an
//! engine are plain data, beside [`EngineKind`](crate::engine::EngineKind).

use chimera_pmem::Site;

#[cfg(not(loom))]
use crate::engine::chameleon;
#[cfg(all(feature = "baselines", not(loom)))]
use crate::engine::log_hash::{dram_hash, pmem_hash};
use crate::engine::options::EngineKind;
#[cfg(feature = "teaching-engine")]
use crate::engine::teaching;
use crate::engine::{hikv, viper};

macro_rules! engines {
    (($d:tt) $(
        #[cfg($cfg:meta)]
        $kind:ident = $folder:ident { $($form:ident: $type:ident),+ }
    )+) => {
        impl EngineKind {
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
        #[derive(Clone, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[non_exhaustive]
        pub enum EngineStats {
            $(#[doc = concat!("As [`EngineKind::", stringify!($kind), "`].")] #[cfg($cfg)] $kind($folder::Stats),)+
        }

        /// What an engine says of what its store is made of.
        #[derive(Clone, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[non_exhaustive]
        pub enum EngineInspect {
            $(#[doc = concat!("As [`EngineKind::", stringify!($kind), "`].")] #[cfg($cfg)] $kind(Box<$folder::Inspect>),)+
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

            impl<P: chimera_pmem::Pmem> AnyEngine<P> {
                /// What the engine says of its store.
                pub(crate) fn stats(&self) -> $crate::engine::EngineFigures<EngineStats> {
                    match self {
                        $($(#[cfg($cfg)] Self::$form(engine) => {
                            $crate::engine::Reports::stats(&**engine).map(EngineStats::$kind)
                        })+)+
                    }
                }

                /// What the engine says of what its store is made of.
                pub(crate) fn details(&self, progress: Option<&$crate::Progress>) -> EngineInspect {
                    match self {
                        $($(#[cfg($cfg)] Self::$form(engine) => {
                            let inspect = $crate::engine::Reports::inspect(&**engine, progress);
                            EngineInspect::$kind(Box::new(inspect))
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

engines! { ($)
    #[cfg(all())]
    Viper = viper { ViperFixedSize: FixedSize, ViperAnySize: AnySize }

    #[cfg(all())]
    Hikv = hikv { Hikv: Hikv }

    #[cfg(not(loom))]
    Chameleon = chameleon { Chameleon: Chameleon }

    #[cfg(all(feature = "baselines", not(loom)))]
    PmemHash = pmem_hash { PmemHash: PmemHash }

    #[cfg(all(feature = "baselines", not(loom)))]
    DramHash = dram_hash { DramHash: DramHash }

    #[cfg(feature = "teaching-engine")]
    Teaching = teaching { Teaching: Teaching }
}

/// Where an engine stores to, flushes or fences persistent memory; and the checks, comparisons and
/// steps of recovery that a tool can leave out ([`Pmem::skips`](chimera_pmem::Pmem::skips)). For the
/// crash lab, which breaks each in turn.
pub fn sites(engine: EngineKind) -> Vec<Site> {
    use crate::records::batch_record;
    let pool = [crate::pool::sites::ALL, crate::pool::steps::ALL];
    let batches = [batch_record::sites::ALL, batch_record::steps::ALL];
    [pool.concat(), batches.concat(), engine.own_sites()].concat()
}
