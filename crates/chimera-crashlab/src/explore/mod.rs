//! The explorer: random operations, every crash worth trying, recovery, verification, and on.

mod campaign;
mod case;
mod damage;
mod expectation;
#[cfg(test)]
mod kept;
#[cfg(test)]
mod kills;
mod lab;
mod lint;
mod model;
pub(crate) mod quiet;
mod record;
mod run;
mod shrink;
mod staged_read;
mod verify;

pub(crate) use campaign::{Campaign, Found, Summary, replay};
pub(crate) use case::Case;
pub(crate) use lab::Windows;
pub(crate) use lint::lint;
pub(crate) use shrink::shrink;
pub(crate) use staged_read::staged_read;
pub(crate) use verify::STEPS_PER_WORD_MAX;
