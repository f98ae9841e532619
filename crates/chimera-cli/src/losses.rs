//! What damage has kept out of a store that was opened with `--salvage`, for whoever reads what a command prints.

use chimera::Losses;
use serde::Serialize;

use crate::failure::Failure;

/// What a command reports in JSON, with the store's losses beside it.
#[derive(Serialize)]
pub(crate) struct WithLosses<'a, T: Serialize> {
    #[serde(flatten)]
    report: &'a T,
    losses: &'a Losses,
}

impl<'a, T: Serialize> WithLosses<'a, T> {
    pub(crate) fn new(report: &'a T, losses: &'a Losses) -> Self {
        Self { report, losses }
    }
}

/// How a command ends that was carried out, and has printed what it has to say, on a store with these losses.
///
/// # Errors
/// `Losses` if there are any.
pub(crate) fn end(losses: Losses) -> Result<(), Failure> {
    if losses.is_empty() { Ok(()) } else { Err(Failure::Losses(losses)) }
}
