//! Comparing a store with what was acknowledged.

use std::collections::BTreeMap;

use chimera::Db;
use chimera_pmem::Pmem;

use crate::dax_guest::plan::{THREADS, Target, Verified};
use crate::dax_guest::workload::{State, owner};

/// What is known from before the cut.
pub(super) struct Before<'a> {
    pub(super) seed: u64,
    pub(super) target: &'a Target,
}

/// Verifies that a store holds, for each thread, what was acknowledged, and the operation after it
/// entirely or not at all. Returns the states to go on from.
pub(super) fn verify<P: Pmem>(db: &Db<P>, before: &Before<'_>) -> (Verified, Vec<State>) {
    let Before { seed, target } = *before;
    let mut problems = Vec::new();
    let check = db.check(None);
    if let Some(damage) = &check.first_damage {
        problems
            .push(format!("{} damages, first at {}: {}", check.damages, damage.at, damage.what));
    }
    let found = contents(db, target, &mut problems);
    let mut states = Vec::new();
    for (slot, found) in found.iter().enumerate() {
        let thread = target.first_thread + slot;
        let without = State::after(seed, thread, target.done[slot]);
        let mut with = without.clone();
        with.advance();
        // Where the operation in flight changes nothing both fit, and it need not be repeated.
        match (with.difference(found), without.difference(found)) {
            (None, _) => states.push(with),
            (_, None) => states.push(without),
            (Some(with_it), Some(without_it)) => {
                problems.push(format!("{without_it}; {with_it}"));
                states.push(without);
            }
        }
    }
    let stats = db.stats();
    let mut done = [0; THREADS];
    done.iter_mut().zip(&states).for_each(|(done, state)| *done = state.done);
    let verified = Verified {
        path: target.path.clone(),
        medium: stats.medium.to_string(),
        durability: stats.durability.to_string(),
        flush_instruction: stats.flush_instruction,
        records: stats.records,
        duplicates_cleared: stats.recovery.duplicates_cleared,
        done,
        problems,
    };
    (verified, states)
}

/// What the store holds for each thread.
fn contents<P: Pmem>(
    db: &Db<P>,
    target: &Target,
    problems: &mut Vec<String>,
) -> [BTreeMap<u64, Vec<u8>>; THREADS] {
    let mut found = [const { BTreeMap::new() }; THREADS];
    let all = db.for_each(|key, value| {
        let slot = owner(key)
            .and_then(|(thread, number)| Some((thread.checked_sub(target.first_thread)?, number)))
            .filter(|(slot, _)| *slot < THREADS);
        let is_new = match slot {
            Some((slot, number)) => found[slot].insert(number, value.to_vec()).is_none(),
            None => false,
        };
        if !is_new {
            problems.push(format!("key {key:?} comes twice or belongs to nobody"));
        }
        true
    });
    if let Err(error) = all {
        problems.push(format!("listing failed: {error}"));
    }
    found
}

#[cfg(test)]
mod tests {
    use chimera::{Options, Session};

    use super::super::write::act;
    use super::*;
    use crate::dax_guest::plan::Access;
    use crate::dax_guest::workload::{KEY_BYTES, VALUE_BYTES, key, value};

    const DONE: u64 = 200;

    /// A store with so many operations of both threads.
    fn store() -> (tempfile::TempDir, Db) {
        let directory = tempfile::tempdir().expect("a directory");
        let options = Options::new()
            .fixed_size(KEY_BYTES, VALUE_BYTES)
            .segment_bytes(1 << 20)
            .populate_ahead_bytes(0);
        let db = Db::open(directory.path(), &options).expect("a store");
        for thread in 0..THREADS {
            let mut session: Session = db.session();
            let mut state = State::after(7, thread, 0);
            for _ in 0..DONE {
                act(&mut session, &state, state.next()).expect("room");
                state.advance();
            }
        }
        (directory, db)
    }

    fn problems(db: &Db, done: [u64; THREADS]) -> Vec<String> {
        let target = Target {
            path: String::new(),
            done,
            first_thread: 0,
            access: Access::Write,
            durability: "auto".to_owned(),
            ordered: false,
        };
        let (verified, states) = verify(db, &Before { seed: 7, target: &target });
        assert_eq!(states.len(), THREADS);
        verified.problems
    }

    #[test]
    fn the_operation_in_flight_is_done_or_not() {
        let (_directory, db) = store();
        assert_eq!(problems(&db, [DONE; THREADS]), [""; 0]);
        assert_eq!(problems(&db, [DONE - 1, DONE]), [""; 0]);
        // Every eighth operation or so changes nothing; ten in a row are too many.
        assert_eq!(problems(&db, [DONE - 10, DONE]).len(), 1, "more than one was in flight");
        assert_eq!(problems(&db, [DONE, DONE + 10]).len(), 1, "acknowledged ones are lost");
    }

    #[test]
    fn a_changed_and_a_foreign_record_are_noticed() {
        let (_directory, db) = store();
        let present =
            (0..1000).find(|&number| State::after(7, 0, DONE).holds(number)).expect("some");
        db.put(key(0, present), value(0, present, DONE + 5)).expect("room");
        assert_eq!(problems(&db, [DONE; THREADS]).len(), 1);
        let (_directory, db) = store();
        db.put(key(THREADS, 1), value(THREADS, 1, 1)).expect("room");
        assert_eq!(problems(&db, [DONE; THREADS]).len(), 1);
    }
}
