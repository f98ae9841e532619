//! What an engine that does not know better makes of its keys and of its listing.

use std::ops::Bound;

use chimera_pmem::Pmem;

use crate::engine::contract::client::Client;
use crate::engine::contract::engine::Engine;
use crate::engine::contract::listed::Listed;
use crate::engine::contract::upkeep::{Point, Scrubbed};
use crate::types::check::CheckReport;
use crate::types::error::{Error, Result};

/// Records, and bytes of keys and values, after which a step by listing ends.
const STEP_RECORDS: u64 = 64;
const STEP_BYTES: u64 = 64 << 10;

/// A key with its position in listings, as a range of an ordered map begins or ends with it.
pub(crate) type PlacedKey = (u64, Vec<u8>);

/// [`Engine::list`] of an engine that has its keys in order. `key_after` finds the first key after another one, and
/// tells whether no other key at its position follows.
pub(crate) fn by_key<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    from: u64,
    mut take: impl FnMut(&Listed<'_>) -> bool,
    key_after: impl Fn(Bound<PlacedKey>) -> Option<(PlacedKey, bool)>,
) -> Result<()> {
    let mut after = Bound::Included((from, Vec::new()));
    while let Some(((position, key), is_last)) = key_after(after) {
        let done_below = if is_last { position.saturating_add(1) } else { position };
        if engine.read(client, engine.core().hash.of(&key), &key)? {
            let value = &client.shared().value;
            if !take(&Listed { key: &key, value, position, done_below }) {
                return Ok(());
            }
        }
        after = Bound::Excluded((position, key));
    }
    Ok(())
}

/// [`Upkeep::scrub_step`](crate::engine::contract::upkeep::Upkeep::scrub_step) by listing: the points are positions.
pub(crate) fn scrub_step<P: Pmem, E: Engine<P>>(
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
