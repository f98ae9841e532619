//! Verifying a whole store, step by step: for the scrub in the background, which rests between steps, and for
//! `check`, which does not.
//!
//! A pass meets each record that stays where it is. One that is written anew meanwhile may be met twice or not at
//! all: what is written anew was verified, or is new.

use chimera_pmem::Pmem;

use crate::engine::contract::engine::Engine;
use crate::engine::contract::upkeep::{Point, Scrubbed, Upkeep};
use crate::types::check::CheckReport;
use crate::types::progress::Progress;

/// Steps between two reports of progress.
const STEPS_PER_PROGRESS: u64 = 64;

/// Verifies everything.
pub(crate) fn check<P: Pmem, E: Engine<P>>(engine: &E, progress: Option<&Progress>) -> CheckReport {
    let mut report = CheckReport::default();
    let (mut from, mut told, mut steps) = (Point::default(), (0, 0), 0);
    while let Scrubbed::More { next, done, whole } = engine.upkeep().scrub_step(from, &mut report) {
        (from, told) = (next, (done.max(told.0), whole.max(told.1)));
        steps += 1;
        if let (Some(progress), 0) = (progress, steps % STEPS_PER_PROGRESS) {
            progress(told.0, told.1);
        }
    }
    if let Some(progress) = progress {
        progress(told.1, told.1);
    }
    report
}
