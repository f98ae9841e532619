//! [`LossLog`]: what of the pool salvage has left out.

use std::collections::BTreeSet;

use chimera_pmem::Environment;

use crate::sync::{Mutex, lock_relaxing};
use crate::types::check::Damage;
use crate::types::error::Error;
use crate::types::losses::Losses;

/// What of the pool salvage has left out: every place once, whoever comes to it and however often. Written to in pools
/// that are salvaged alone, by whoever passes over damage instead of returning an error.
#[derive(Debug, Default)]
pub(crate) struct LossLog(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    /// Offsets in the pool, at most as many as are counted.
    places: BTreeSet<u64>,
    first: Option<Damage>,
}

impl LossLog {
    /// Notes that what lies at byte `at` of the pool is left out.
    #[cold]
    pub(crate) fn note(&self, environment: &dyn Environment, at: u64, what: &str) {
        let mut noted = lock_relaxing(&self.0, environment);
        if (noted.places.len() as u64) < Losses::COUNT_MAX {
            noted.places.insert(at);
        }
        if noted.first.as_ref().is_none_or(|first| at < first.at) {
            noted.first = Some(Damage { at, what: what.to_owned() });
        }
    }

    /// As [`note`](Self::note), of damage that was found as an error; of another error at byte `otherwise`.
    #[cold]
    pub(crate) fn note_error(&self, environment: &dyn Environment, error: &Error, otherwise: u64) {
        match error {
            Error::Corrupted { what, at } => self.note(environment, *at, what),
            other => self.note(environment, otherwise, &other.to_string()),
        }
    }

    /// All of it.
    pub(crate) fn report(&self, environment: &dyn Environment) -> Losses {
        let noted = lock_relaxing(&self.0, environment);
        Losses { count: noted.places.len() as u64, first: noted.first.clone() }
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
        log.note(&environment, 500, "a record");
        log.note_error(&environment, &Error::corrupted("a segment", 300), 0);
        log.note(&environment, 500, "a record");
        log.note(&environment, 400, "another record");
        let Losses { count, first } = log.report(&environment);
        assert_eq!((count, first), (3, Some(Damage { at: 300, what: "a segment".to_owned() })));
    }

    #[test]
    fn an_error_that_names_no_place_is_noted_where_it_came_up() {
        let (log, environment) = (LossLog::default(), RealEnvironment::new());
        log.note_error(&environment, &Error::KeyCollisions, 8192);
        let first = log.report(&environment).first.expect("a loss");
        assert_eq!((first.at, first.what), (8192, Error::KeyCollisions.to_string()));
    }

    #[test]
    fn of_one_place_it_is_named_what_was_found_there_first() {
        let (log, environment) = (LossLog::default(), RealEnvironment::new());
        log.note(&environment, 500, "its word");
        log.note(&environment, 500, "what follows from that");
        log.note(&environment, 600, "another place");
        let Losses { count, first } = log.report(&environment);
        assert_eq!((count, first), (2, Some(Damage { at: 500, what: "its word".to_owned() })));
    }

    #[test]
    fn the_count_ends_somewhere() {
        let (log, environment) = (LossLog::default(), RealEnvironment::new());
        for at in (0..=Losses::COUNT_MAX).rev() {
            log.note(&environment, at, "a record");
        }
        let losses = log.report(&environment);
        assert_eq!(
            (losses.count, losses.first.map(|first| first.at)),
            (Losses::COUNT_MAX, Some(0))
        );
    }
}
