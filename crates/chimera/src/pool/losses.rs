//! [`LossLog`]: what of the pool salvage has left out.

use std::collections::BTreeSet;

use chimera_pmem::Environment;

use crate::sync::{Mutex, lock_relaxing};
use crate::types::check::Damage;
use crate::types::error::Error;
use crate::types::losses::Losses;
use crate::types::totals::Totals;

/// What of the pool salvage has left out: every place once, whoever comes to it and however often. Written to in pools
/// that are salvaged alone, by whoever passes over damage instead of returning an error.
#[derive(Debug, Default)]
pub(crate) struct LossLog(Mutex<LossState>);

#[derive(Debug, Default)]
struct LossState {
    /// Offsets in the pool, at most as many as are counted.
    places: BTreeSet<u64>,
    first: Option<Damage>,
    held: LostTotals,
    may_be_more: bool,
}

/// What a place that opening leaves out held of the store, as it was when that was closed in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Nothing that opening has not counted.
    Nothing,
    /// A record: the hash of its key, and its location.
    Record { hash: u64, location: u64 },
    /// A record at this location, of which key is not known.
    Located { location: u64 },
    /// A record or none; which one is not known.
    One,
    /// A record, or none, of a key that opening has counted once too often, because it could not tell.
    Twice,
    /// It is not known how much.
    Unknown,
}

/// What all these places held.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LostTotals {
    /// Records that are known.
    pub(super) known: Totals,
    /// Records at most that are not.
    pub(super) ones: u64,
    /// Where the last of these lies of which that is known.
    pub(super) located: Option<u64>,
    /// Records at most that were counted twice.
    pub(super) twice: u64,
    /// Any number of others.
    pub(super) is_open: bool,
}

impl LostTotals {
    fn add(&mut self, held: Held) {
        match held {
            Held::Nothing => {}
            Held::Record { hash, location } => self.known.add(hash, location),
            Held::Located { location } => {
                (self.ones, self.located) = (self.ones + 1, Some(location));
            }
            Held::One => self.ones += 1,
            Held::Twice => self.twice += 1,
            Held::Unknown => self.is_open = true,
        }
    }
}

impl LossLog {
    /// Notes that what lies at byte `at` of the pool is left out, and what it held. A place that was noted before held what was
    /// said first, unless that is not known any more.
    #[cold]
    pub(crate) fn note(&self, environment: &dyn Environment, at: u64, what: &str, held: Held) {
        let mut noted = lock_relaxing(&self.0, environment);
        let is_counted = (noted.places.len() as u64) < Losses::COUNT_MAX;
        if (is_counted && noted.places.insert(at)) || held == Held::Unknown {
            noted.held.add(held);
        } else if !is_counted && held != Held::Nothing {
            // It may have been noted before.
            noted.held.add(Held::Unknown);
        }
        if noted.first.as_ref().is_none_or(|first| at < first.at) {
            noted.first = Some(Damage { at, what: what.to_owned() });
        }
    }

    /// As [`note`](Self::note), of damage that was found as an error; of another error at byte `otherwise`.
    #[cold]
    pub(crate) fn note_error(
        &self,
        environment: &dyn Environment,
        error: &Error,
        otherwise: u64,
        held: Held,
    ) {
        match error {
            Error::Corrupted { what, at } => self.note(environment, *at, what, held),
            other => self.note(environment, otherwise, &other.to_string(), held),
        }
    }

    /// Notes that there may be more than was noted.
    #[cold]
    pub(super) fn note_more(&self, environment: &dyn Environment) {
        lock_relaxing(&self.0, environment).may_be_more = true;
    }

    /// What all places held.
    pub(super) fn held(&self, environment: &dyn Environment) -> LostTotals {
        lock_relaxing(&self.0, environment).held
    }

    /// All of it.
    pub(crate) fn report(&self, environment: &dyn Environment) -> Losses {
        let noted = lock_relaxing(&self.0, environment);
        Losses {
            count: noted.places.len() as u64,
            first: noted.first.clone(),
            may_be_more: noted.may_be_more,
        }
    }
}

#[cfg(test)]
mod tests {
    use chimera_pmem::RealEnvironment;

    use super::*;

    #[test]
    fn a_place_counts_once_and_the_lowest_is_named() {
        let (log, environment) = (LossLog::default(), RealEnvironment::new());
        assert!(log.report(&environment).is_empty());
        log.note(&environment, 500, "a record", Held::Nothing);
        log.note_error(&environment, &Error::corrupted("a segment", 300), 0, Held::Nothing);
        log.note(&environment, 500, "a record", Held::Nothing);
        log.note(&environment, 400, "another record", Held::Nothing);
        let Losses { count, first, .. } = log.report(&environment);
        assert_eq!((count, first), (3, Some(Damage { at: 300, what: "a segment".to_owned() })));
    }

    #[test]
    fn an_error_that_names_no_place_is_noted_where_it_came_up() {
        let (log, environment) = (LossLog::default(), RealEnvironment::new());
        log.note_error(&environment, &Error::KeyCollisions, 8192, Held::Nothing);
        let first = log.report(&environment).first.expect("a loss");
        assert_eq!((first.at, first.what), (8192, Error::KeyCollisions.to_string()));
    }

    #[test]
    fn of_one_place_it_is_named_what_was_found_there_first() {
        let (log, environment) = (LossLog::default(), RealEnvironment::new());
        log.note(&environment, 500, "its word", Held::Nothing);
        log.note(&environment, 500, "what follows from that", Held::Nothing);
        log.note(&environment, 600, "another place", Held::Nothing);
        let Losses { count, first, .. } = log.report(&environment);
        assert_eq!((count, first), (2, Some(Damage { at: 500, what: "its word".to_owned() })));
    }

    #[test]
    fn the_count_ends_somewhere() {
        let (log, environment) = (LossLog::default(), RealEnvironment::new());
        for at in (0..=Losses::COUNT_MAX).rev() {
            log.note(&environment, at, "a record", Held::Nothing);
        }
        let losses = log.report(&environment);
        assert_eq!(
            (losses.count, losses.first.map(|first| first.at)),
            (Losses::COUNT_MAX, Some(0))
        );
    }

    #[test]
    fn what_a_place_held_counts_once_and_what_is_not_known_always() {
        let (log, environment) = (LossLog::default(), RealEnvironment::new());
        let note = |at, held| log.note(&environment, at, "a record", held);
        let record = Held::Record { hash: 3, location: 500 };
        for (at, held) in [(500, record), (500, record), (500, Held::One), (600, Held::One)] {
            note(at, held);
        }
        note(700, Held::Nothing);
        note(700, record);
        let mut known = Totals::default();
        known.add(3, 500);
        let held = log.held(&environment);
        assert_eq!((held.known, held.ones, held.located, held.is_open), (known, 1, None, false));
        note(800, Held::Located { location: 800 });
        note(800, Held::Located { location: 800 });
        note(900, Held::Twice);
        let held = log.held(&environment);
        assert_eq!((held.ones, held.located, held.twice), (2, Some(800), 1));
        note(600, Held::Unknown);
        assert!(log.held(&environment).is_open);
    }

    #[test]
    fn what_places_beyond_the_count_held_is_not_known() {
        let (log, environment) = (LossLog::default(), RealEnvironment::new());
        for at in 0..Losses::COUNT_MAX {
            log.note(&environment, at, "a record", Held::One);
        }
        log.note(&environment, 0, "a record", Held::Nothing);
        let held = log.held(&environment);
        assert_eq!((held.ones, held.is_open), (Losses::COUNT_MAX, false));
        log.note(&environment, Losses::COUNT_MAX, "a record", Held::One);
        assert!(log.held(&environment).is_open);
    }
}
