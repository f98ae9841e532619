//! How a store is created and opened, as plain data: what a user asks for. Whether there can be such a store is for the
//! engine to say, when one is made. Nothing here knows an engine.

#[cfg(not(loom))]
mod chameleon;
mod hikv;
mod kind;
#[cfg(all(feature = "baselines", not(loom)))]
mod log_hash;
mod store;
mod viper;

#[cfg(not(loom))]
pub(crate) use chameleon::variants;
#[cfg(not(loom))]
pub use chameleon::{ChameleonOptions, Mode as ChameleonMode};
#[cfg(feature = "baselines")]
pub use hikv::Consistency;
pub use hikv::HikvOptions;
pub use kind::EngineKind;
#[cfg(test)]
pub(in crate::engine) use kind::WITH_FEATURES;
#[cfg(all(feature = "baselines", not(loom)))]
pub use log_hash::LogHashOptions;
pub use store::Options;
pub(crate) use store::OrderKept;
pub use viper::ViperOptions;
