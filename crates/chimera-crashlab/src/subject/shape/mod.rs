//! [`EngineShape`]: a store of any engine, written down. Adding an engine adds one row here and one file.

mod chameleon;
mod hikv;
mod log_hash;
mod store_shape;
mod teaching;
mod viper;

use std::ops::Deref;

use chimera::EngineKind;
use serde::{Deserialize, Serialize};

use crate::chance::Chance;
use crate::simulated::Mutation;
pub use store_shape::Abilities;
use store_shape::StoreShape;

/// The engines that the lab tests, as [`EngineKind`] names them, and the shapes of their stores.
macro_rules! engines {
    ($($(#[$attribute:meta])* $engine:ident($shape:ty);)+) => {
        /// A store of an engine, written down.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub(crate) enum EngineShape {
            $($(#[$attribute])* $engine($shape),)+
        }

        impl EngineShape {
            /// A small store for a simulated machine.
            pub(crate) fn random(engine: EngineKind, chance: &mut Chance) -> Self {
                match engine {
                    $($(#[$attribute])* EngineKind::$engine => {
                        Self::$engine(<$shape>::random(chance))
                    })+
                    other => unknown(other),
                }
            }

            /// Store number `number` for real files.
            pub(crate) fn for_files(engine: EngineKind, number: u64) -> Self {
                match engine {
                    $($(#[$attribute])* EngineKind::$engine => {
                        Self::$engine(<$shape>::for_files(number))
                    })+
                    other => unknown(other),
                }
            }

            /// Why a mutant makes no difference to an engine.
            pub(crate) fn equivalent(engine: EngineKind, mutation: Mutation) -> Option<&'static str> {
                match engine {
                    $($(#[$attribute])* EngineKind::$engine => <$shape>::equivalent(mutation),)+
                    other => unknown(other),
                }
            }

            /// The engine.
            pub(crate) fn kind(&self) -> EngineKind {
                match self {
                    $($(#[$attribute])* Self::$engine(_) => EngineKind::$engine,)+
                }
            }

            /// Whether the lab tests an engine.
            fn knows(engine: EngineKind) -> bool {
                match engine {
                    $($(#[$attribute])* EngineKind::$engine => true,)+
                    _ => false,
                }
            }
        }

        impl Deref for EngineShape {
            type Target = dyn StoreShape;

            fn deref(&self) -> &Self::Target {
                match self {
                    $($(#[$attribute])* Self::$engine(shape) => shape,)+
                }
            }
        }
    };
}

engines! {
    Viper(viper::ViperShape);
    Hikv(hikv::HikvShape);
    Chameleon(chameleon::ChameleonShape);
    PmemHash(log_hash::LogHashShape<true>);
    DramHash(log_hash::LogHashShape<false>);
    Teaching(teaching::TeachingShape);
}

/// [`parse_engine`] lets no such engine in.
fn unknown(engine: EngineKind) -> ! {
    panic!("{}", no_shape(engine))
}

fn no_shape(engine: EngineKind) -> String {
    format!("the crash lab has no shape of stores of the engine `{engine}`")
}

/// The engine that a command line names.
///
/// # Errors
/// When there is none of this name, or the lab does not test it.
pub(crate) fn parse_engine(name: &str) -> Result<EngineKind, String> {
    let engine: EngineKind = name.parse()?;
    if EngineShape::knows(engine) { Ok(engine) } else { Err(no_shape(engine)) }
}
