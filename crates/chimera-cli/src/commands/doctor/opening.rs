//! Whether the store at the place can be opened, or could be made.

use chimera::{Error, Options};
use serde::Serialize;

use super::place::{Occupant, Place};
use super::probe::Probe;
use crate::failure::Failure;
use crate::store;

/// What came of it.
#[derive(Default, Serialize)]
pub(super) struct Opening {
    /// Whether the store was opened for reading; none where there is none, or a process has it open.
    pub(super) opens: Option<bool>,
    /// The process that has it open for writing.
    pub(super) in_use_by: Option<String>,
    /// Why it cannot be opened, or none can be made.
    pub(super) problem: Option<String>,
}

impl Opening {
    /// Opens what is at the place for reading, and closes it. Also how the command is to fail.
    pub(super) fn attempt(place: &Place, probe: &Probe) -> (Self, Option<Failure>) {
        let is_free = matches!(
            place.occupant,
            Occupant::Nothing | Occupant::Directory | Occupant::BlankDevice
        );
        if is_free {
            return Self::to_make(probe);
        }
        // Damage of values is for `check` to find.
        let options = Options::new().read_only(true).verify_at_open(false);
        match store::open(&place.path, options) {
            Ok(_) => (Self { opens: Some(true), ..Self::default() }, None),
            Err(Error::Locked { holder }) => {
                (Self { in_use_by: Some(holder), ..Self::default() }, None)
            }
            Err(error) => {
                let (opens, problem) = (Some(false), Some(error.to_string()));
                (Self { opens, problem, ..Self::default() }, Some(error.into()))
            }
        }
    }

    /// Where there is no store yet, what was tried in its place says whether one can be made.
    fn to_make(probe: &Probe) -> (Self, Option<Failure>) {
        let problem = probe.problem.as_ref().or(probe.address_space_problem.as_ref()).cloned();
        let failure = problem.clone().map(Failure::NoStoreHere);
        (Self { problem, ..Self::default() }, failure)
    }
}
