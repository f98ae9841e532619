//! Comparing what opening has found with what the pool held when it was closed in order.
//!
//! Until they are compared, opening changes nothing on media but the superblock: where a part is older or missing, the rest may be
//! needed once that part is put back.
//!
//! A pool that is salvaged goes on with a difference. Places that salvage leaves out may explain it: what is known of them is
//! subtracted. What remains is missing beside them, and is a loss of its own; or it cannot be known whether it is.

use chimera_pmem::Pmem;

use super::losses::LostTotals;
use super::{Held, Pool, TOTALS_AT};
use crate::sync::atomic::Ordering;
use crate::types::error::{Error, Result};
use crate::types::totals::Totals;

/// What the sums of an engine's totals add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sums {
    /// Records.
    Records,
    /// Parts of the store, each as a whole: they say nothing of a single record, and without one that is missing they agree.
    Parts,
}

/// What opening has found was compared with what the pool held when it was closed in order, if it was. Whoever has this may
/// change what was found.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct Compared(Option<Difference>);

#[derive(Clone, Copy, Debug)]
struct Difference {
    closed: Totals,
    found: Totals,
    sums: Sums,
}

/// What of a difference the places that are left out do not explain.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Unexplained {
    Nothing,
    /// It is not known whether there is anything.
    NotKnown,
    /// This.
    Missing(String),
}

impl Compared {
    /// How the pool differs from what it held, if it does. Only one that is salvaged goes on then.
    pub(crate) fn difference(self) -> Option<String> {
        self.0.and_then(|Difference { closed, found, .. }| closed.difference(found))
    }
}

impl<P: Pmem> Pool<P> {
    /// Compares what an engine has `found` with what the pool held when it was closed in order, if it was and no opening for
    /// writing has ended since. An engine calls this once, before it changes anything on media.
    ///
    /// # Errors
    /// `Corrupted` where it is something else, unless the pool is salvaged: records are missing, or a part is older.
    pub(crate) fn compare_with_closing(
        &self,
        salvage: bool,
        sums: Sums,
        found: impl FnOnce() -> Totals,
    ) -> Result<Compared> {
        let difference = match self.closed_totals {
            None => None,
            Some(closed) => {
                let found = found();
                match closed.difference(found) {
                    None => None,
                    Some(_) if salvage => Some(Difference { closed, found, sums }),
                    Some(what) => return Err(Error::corrupted(what, TOTALS_AT)),
                }
            }
        };
        self.begin_changes();
        Ok(Compared(difference))
    }

    /// From here on the engine may change what opening has found. One that compares in several steps says so itself.
    pub(crate) fn begin_changes(&self) {
        self.has_changes.store(true, Ordering::Release);
    }

    /// Whether the engine may have changed what opening has found.
    pub(crate) fn has_changes(&self) -> bool {
        self.has_changes.load(Ordering::Acquire)
    }

    /// Notes what of a difference the places do not explain that were noted as left out: all of them, by now.
    pub(crate) fn note_difference(&self, compared: Compared) {
        let Compared(Some(difference)) = compared else { return };
        let held = (!self.losses().is_empty()).then(|| self.losses.held(&*self.environment));
        match difference.without(held) {
            Unexplained::Nothing => {}
            Unexplained::NotKnown => self.losses.note_more(&*self.environment),
            Unexplained::Missing(what) => self.note_loss_of(Held::Nothing, TOTALS_AT, &what),
        }
    }
}

/// With what the message begins where other places are left out as well.
const BESIDE: &str = "the store differs from its closing by more than the other places explain";

impl Difference {
    /// What remains of it without what all places held that are left out, if there are any.
    fn without(self, held: Option<LostTotals>) -> Unexplained {
        let Self { closed, found, sums } = self;
        let Some(LostTotals { known, ones, located, twice, is_open }) = held else {
            return closed.difference(found).map_or(Unexplained::Nothing, Unexplained::Missing);
        };
        let mut rest = closed.without(found).without(known);
        if closed.records == Totals::UNCOUNTED {
            rest.records = 0;
        }
        if rest == Totals::default() {
            return Unexplained::Nothing;
        }
        if is_open {
            return Unexplained::NotKnown;
        }
        let mut unknown = ones;
        if let (Some(location), 1, Sums::Records) = (located, ones, sums) {
            // Nothing else being missing, the hash that is missing is that of its key.
            let mut record = Totals::default();
            record.add(rest.key_sum, location);
            (rest, unknown) = (rest.without(record), 0);
        }
        // As a number with a sign it may be below zero: then more was found than there was.
        if rest.records.wrapping_add(twice) > unknown + twice {
            let (closed, found, most) = (closed.records, found.records, known.records + ones);
            return Unexplained::Missing(format!(
                "{BESIDE}: it was closed with {closed} records, {found} were found, and at most {most} can be left out there"
            ));
        }
        if unknown > 0 && sums == Sums::Records {
            return Unexplained::NotKnown;
        }
        let of_sums = Totals { records: 0, ..rest }.difference(Totals::default());
        of_sums
            .map_or(Unexplained::Nothing, |what| Unexplained::Missing(format!("{BESIDE}: {what}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a store holds with these records.
    fn of(records: &[(u64, u64)]) -> Totals {
        let mut totals = Totals::default();
        for (hash, location) in records {
            totals.add(*hash, *location);
        }
        totals
    }

    const CLOSED: [(u64, u64); 4] = [(1, 8), (2, 16), (3, 24), (4, 32)];

    /// What remains of the difference of [`CLOSED`] and these records, of which some are known to be left out.
    fn rest(found: &[(u64, u64)], known: &[(u64, u64)], ones: u64, is_open: bool) -> Unexplained {
        let (closed, found) = (of(&CLOSED), of(found));
        let held = LostTotals { known: of(known), ones, is_open, ..LostTotals::default() };
        Difference { closed, found, sums: Sums::Records }.without(Some(held))
    }

    #[track_caller]
    fn assert_missing(rest: &Unexplained, words: &str) {
        let Unexplained::Missing(what) = rest else { panic!("{rest:?}") };
        assert!(
            what.contains("by more than the other places explain") && what.contains(words),
            "{what}"
        );
    }

    #[test]
    fn records_that_are_known_to_be_left_out_are_subtracted() {
        assert_eq!(rest(&CLOSED[1..], &CLOSED[..1], 0, false), Unexplained::Nothing);
        assert_eq!(rest(&CLOSED[2..], &CLOSED[..2], 0, false), Unexplained::Nothing);
        let missing = rest(&CLOSED[2..], &CLOSED[..1], 0, false);
        assert_missing(
            &missing,
            "closed with 4 records, 2 were found, and at most 1 can be left out",
        );
        // One that was left out, and was none of the store: it is older.
        let older = rest(&CLOSED[..3], &[(5, 40)], 0, false);
        assert_missing(&older, "with other keys");
        let older = rest(&CLOSED[..3], &[(4, 40)], 0, false);
        assert_missing(&older, "older than its closing");
        let more = rest(&[&CLOSED[..], &[(5, 40)]].concat(), &[], 0, false);
        assert_missing(&more, "closed with 4 records, 5 were found");
        // It is counted twice: as found, and as left out.
        assert_missing(&rest(&CLOSED, &CLOSED[..1], 0, false), "4 were found, and at most 1");
    }

    #[test]
    fn a_record_that_is_not_known_explains_one_at_most() {
        assert_eq!(rest(&CLOSED[1..], &[], 1, false), Unexplained::NotKnown);
        assert_eq!(rest(&CLOSED[2..], &CLOSED[..1], 1, false), Unexplained::NotKnown);
        assert_eq!(rest(&CLOSED[2..], &[], 2, false), Unexplained::NotKnown);
        // It was none.
        assert_eq!(rest(&CLOSED[1..], &CLOSED[..1], 1, false), Unexplained::Nothing);
        assert_eq!(
            rest(&[(1, 8), (2, 16), (3, 24), (4, 40)], &[], 1, false),
            Unexplained::NotKnown
        );
        assert_missing(&rest(&CLOSED[2..], &[], 1, false), "2 were found, and at most 1");
        assert_missing(&rest(&CLOSED[3..], &CLOSED[..1], 1, false), "1 were found, and at most 2");
    }

    #[test]
    fn a_single_record_whose_place_is_known_explains_itself_alone() {
        let rest = |found: &[(u64, u64)], known: &[(u64, u64)], ones| {
            let (closed, found) = (of(&CLOSED), of(found));
            let located = Some(8);
            let held = LostTotals { known: of(known), ones, located, ..LostTotals::default() };
            Difference { closed, found, sums: Sums::Records }.without(Some(held))
        };
        assert_eq!(rest(&CLOSED[1..], &[], 1), Unexplained::Nothing);
        assert_eq!(rest(&CLOSED[2..], &CLOSED[1..2], 1), Unexplained::Nothing);
        assert_missing(&rest(&CLOSED[2..], &[], 1), "2 were found, and at most 1");
        // Another one is missing, or older.
        assert_missing(&rest(&CLOSED[..3], &[], 1), "older");
        assert_missing(&rest(&[(2, 16), (3, 24), (4, 40)], &[], 1), "older");
        assert_missing(&rest(&[(2, 16), (3, 24), (4, 32), (5, 40)], &[], 1), "4 were found");
        // Not one of two.
        assert_eq!(rest(&CLOSED[2..], &[], 2), Unexplained::NotKnown);
    }

    #[test]
    fn a_place_that_led_to_any_number_may_explain_everything() {
        assert_eq!(rest(&[], &[], 0, true), Unexplained::NotKnown);
        assert_eq!(rest(&[(5, 40)], &CLOSED[..1], 1, true), Unexplained::NotKnown);
        assert_eq!(rest(&CLOSED[1..], &CLOSED[..1], 0, true), Unexplained::Nothing);
    }

    #[test]
    fn without_any_place_the_difference_is_what_is_missing() {
        let without = |found| {
            let (closed, found) = (of(&CLOSED), of(found));
            Difference { closed, found, sums: Sums::Records }.without(None)
        };
        let Unexplained::Missing(what) = without(&CLOSED[1..]) else {
            panic!("something is missing")
        };
        assert_eq!(what, "the store was closed with 4 records, and 3 were found");
    }

    #[test]
    fn sums_of_parts_tell_whether_a_part_is_missing_whatever_record_is() {
        let closed = Totals { records: 4, key_sum: 0, state_sum: 77 };
        let rest = |records, state_sum, ones, twice| {
            let found = Totals { records, key_sum: 0, state_sum };
            let held = LostTotals { ones, twice, ..LostTotals::default() };
            Difference { closed, found, sums: Sums::Parts }.without(Some(held))
        };
        assert_eq!(rest(3, 77, 1, 0), Unexplained::Nothing);
        assert_missing(&rest(3, 76, 1, 0), "older than its closing");
        assert_missing(&rest(2, 77, 1, 0), "2 were found, and at most 1");
        assert_missing(&rest(3, 77, 0, 0), "3 were found, and at most 0");
        // One was counted twice.
        for (records, ones, twice) in [(5, 0, 1), (5, 1, 1), (3, 1, 1), (6, 0, 2)] {
            assert_eq!(rest(records, 77, ones, twice), Unexplained::Nothing);
        }
        for (records, ones, twice) in [(6, 0, 1), (3, 0, 1), (2, 1, 1), (5, 1, 0)] {
            assert_missing(&rest(records, 77, ones, twice), "closed with 4 records");
        }
        assert_missing(&rest(5, 76, 0, 1), "older than its closing");
    }
}
