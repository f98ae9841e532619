//! The table of engines: the engine of a store, chosen once; a session's engine and client, matched once a call.
//!
//! - `engines`: the rows, and how they become code. `bound`: a session's engine and client.
//! - `dispatch`: what the store calls of whichever engine it has. `report`: what a store says of itself.
//! - `kind`: what is known of the kinds of engines by asking them.

mod bound;
mod dispatch;
mod engines;
mod kind;
mod report;

pub(crate) use bound::Bound;
pub(crate) use engines::{AnyEngine, AnySession, each_session};
pub use engines::{EngineInspect, EngineStats, sites};
pub use report::{InspectReport, Stats};
