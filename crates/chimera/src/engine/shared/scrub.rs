//! Verifying a whole store, step by step: for the scrub in the background, which rests between steps, and for
//! `check`, which does not.
//!
//! A pass meets each record that stays where it is. One that is written anew meanwhile may be met twice or not at
//! all: what is written anew was verified, or is new.

use chimera_pmem::Pmem;

use crate::engine::Engine;
use crate::types::check::CheckReport;
use crate::types::error::Error;
use crate::types::progress::Progress;

/// Records, and bytes of keys and values, after which a step by listing ends.
const STEP_RECORDS: u64 = 64;
const STEP_BYTES: u64 = 64 << 10;
/// Steps between two reports of progress.
const STEPS_PER_PROGRESS: u64 = 64;

/// Where a pass goes on. What the numbers mean is the engine's; a pass begins at the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) part: u8,
    pub(crate) next: u64,
}

/// What comes after a step of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scrubbed {
    /// More: so much is done, of so much in all as it is now.
    More { next: Point, done: u64, whole: u64 },
    /// The pass is over.
    Done,
}

/// Verifies everything.
pub(crate) fn check<P: Pmem, E: Engine<P>>(engine: &E, progress: Option<&Progress>) -> CheckReport {
    let mut report = CheckReport::default();
    let (mut from, mut told, mut steps) = (Point::default(), (0, 0), 0);
    while let Scrubbed::More { next, done, whole } = engine.scrub_step(from, &mut report) {
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

/// A step of a pass by listing: the points are positions.
pub(crate) fn by_listing<P: Pmem, E: Engine<P>>(
    engine: &E,
    from: Point,
    report: &mut CheckReport,
) -> Scrubbed {
    let mut client = engine.client(0);
    let (mut records, mut bytes, mut next, mut is_enough) = (0, 0, from.next, false);
    let listed = engine.list(&mut client, from.next, |listed| {
        records += 1;
        bytes += (listed.key.len() + listed.value.len()) as u64;
        next = listed.done_below;
        // Not between records at one position: the next step could not begin there.
        is_enough = (records >= STEP_RECORDS || bytes >= STEP_BYTES) && next > from.next;
        !is_enough
    });
    report.records += records;
    report.index_entries += records;
    report.bytes += bytes;
    let next = match listed {
        Ok(()) => is_enough.then_some(next),
        Err(Error::Corrupted { what, at }) => {
            report.damage(at, what);
            report.index_entries += 1;
            behind_damage(engine, &mut client, next, at)
        }
        Err(other) => {
            report.damage(0, other.to_string());
            None
        }
    };
    engine.end(&mut client);
    let Some(next) = next else {
        report.blocks += engine.core().pool.used_blocks();
        return Scrubbed::Done;
    };
    let done = report.index_entries;
    Scrubbed::More { next: Point { part: 0, next }, done, whole: engine.records().max(done) }
}

/// The position behind the damaged record at `at`, which a listing from position `from` on meets first. A listing
/// ends at damage and does not say its position: it is the last one from which a listing begins with it. `None` when
/// nothing can follow.
fn behind_damage<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    from: u64,
    at: u64,
) -> Option<u64> {
    let mut begins_with_it = |position| {
        let listed = engine.list(client, position, |_| false);
        matches!(listed, Err(Error::Corrupted { at: found, .. }) if found == at)
    };
    let (mut before, mut behind) = (from, u64::MAX);
    if begins_with_it(behind) {
        return None;
    }
    while behind - before > 1 {
        let middle = before + (behind - before) / 2;
        if begins_with_it(middle) { before = middle } else { behind = middle }
    }
    Some(behind)
}
