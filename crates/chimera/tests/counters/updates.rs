//! Stores of records of any size: updates and swaps.

use chimera::{Session, Swap};
use chimera_pmem::Operation;
use chimera_pmem::instrumented::Counters;

use super::lines::{Flushes, Log, Once, PAGE, fences, span};
use super::variable::{key, open};
use super::{Counted, assert_all_fences, assert_fences, assert_flushes, assert_untouched, counted};

const RECORDS: u64 = 500;
/// Runs `work` on a store with values of 200 bytes.
fn on_filled(work: impl FnOnce(&mut Session<Counted>)) -> Counters {
    on_updated(None, work)
}

/// As [`on_filled`], where the word at `at` of every value was updated before.
fn on_updated(at: Option<usize>, work: impl FnOnce(&mut Session<Counted>)) -> Counters {
    let db = open();
    let mut session = db.session();
    for number in 0..RECORDS {
        assert!(session.put(key(number, 16), [1; 200]).unwrap());
    }
    if let Some(at) = at {
        for number in 0..RECORDS {
            session.fetch_add_u64(key(number, 16), at, 0).unwrap();
        }
    }
    counted(&db, Operation::Other, || work(&mut session))
}

/// Flushes and fences when every record is written anew with a value of so many bytes, by updates in order.
fn rewritten(value_bytes: usize) -> (Flushes, u64) {
    let mut log = Log::new(PAGE);
    let old: Vec<u64> = (0..RECORDS).map(|_| log.take(span(16, 200))).collect();
    let (mut flushes, mut all_fences) = (Flushes::default(), 0);
    for retired in old {
        let bytes = span(16, value_bytes);
        let at = log.take(bytes);
        flushes += Once::default().record(at, bytes).retire(retired).flushes();
        all_fences += fences(at, bytes) + 1;
    }
    (flushes, all_fences)
}

fn assert_in_place(counters: &Counters, operations: u64) {
    assert_fences(counters, Operation::UpdateInPlace, operations, 1);
    let expected = Flushes { lines: operations, again: 0 };
    assert_flushes(&counters.of(Operation::UpdateInPlace), expected);
}

#[test]
fn the_first_update_of_a_counter_that_was_put_as_one_costs_one_line_and_one_fence() {
    let counters = on_filled(|session| {
        for number in 0..RECORDS {
            // A new record of the key, and a new key.
            assert!(!session.put_counter(key(number, 16), [1; 200], 96).unwrap());
            assert!(session.put_counter(key(RECORDS + number, 16), [1; 200], 96).unwrap());
        }
        for number in 0..2 * RECORDS {
            assert!(session.fetch_add_u64(key(number, 16), 96, 3).unwrap().is_some());
        }
    });
    assert_in_place(&counters, 2 * RECORDS);
}

#[test]
fn a_put_of_a_counter_costs_what_a_put_does() {
    let cost = |is_counter: bool| {
        let counters = on_filled(|session| {
            for number in RECORDS..2 * RECORDS {
                let key = key(number, 16);
                let is_new = if is_counter {
                    session.put_counter(key, [1; 200], 8).unwrap()
                } else {
                    session.put(key, [1; 200]).unwrap()
                };
                assert!(is_new);
            }
        });
        let of_inserts = counters.of(Operation::Insert);
        (of_inserts.lines_flushed, of_inserts.fences)
    };
    assert_eq!(cost(true), cost(false));
}

#[test]
fn an_update_of_8_bytes_costs_one_line_and_one_fence() {
    for at in [0, 96, 192] {
        let counters = on_updated(Some(at), |session| {
            for round in 0..2_u64 {
                for number in 0..RECORDS {
                    let before = session.fetch_add_u64(key(number, 16), at, 3).unwrap();
                    assert_eq!(before, Some(0x0101_0101_0101_0101 + 3 * round));
                }
            }
        });
        assert_in_place(&counters, 2 * RECORDS);
        assert_eq!(counters.total().fences, 2 * RECORDS);
    }
}

/// It takes the word out of the record's checksum, once.
#[test]
fn the_first_update_of_a_record_costs_an_overwrite() {
    let (flushes, fences) = rewritten(200);
    for at in [0, 96, 192] {
        let counters = on_filled(|session| {
            for number in 0..RECORDS {
                session.fetch_add_u64(key(number, 16), at, 3).unwrap();
            }
        });
        assert_all_fences(&counters, Operation::Update, RECORDS, fences);
        assert_flushes(&counters.of(Operation::Update), flushes);
        assert_eq!(counters.of(Operation::UpdateInPlace).operations, 0);
    }
}

#[test]
fn swaps_of_8_bytes_are_made_in_place_or_not_at_all() {
    let counters = on_updated(Some(8), |session| {
        for number in 0..RECORDS {
            let was = 0x0101_0101_0101_0101;
            let swapped = session.compare_and_swap_u64(key(number, 16), 8, was, 7);
            assert_eq!(swapped.unwrap(), Some(was));
            let refused = session.compare_and_swap_u64(key(number, 16), 8, was, 8);
            assert_eq!(refused.unwrap(), Some(7));
        }
    });
    let in_place = counters.of(Operation::UpdateInPlace);
    assert_eq!((in_place.operations, in_place.fences), (2 * RECORDS, RECORDS));
    assert_flushes(&in_place, Flushes { lines: RECORDS, again: 0 });
    assert_eq!(in_place.lines_flushed_clean, 0);
}

/// Longer, shorter, empty, of the same length, and where the last word is not whole.
#[test]
fn any_other_update_costs_a_get_and_an_overwrite() {
    for length in [300, 100, 0, 200, 203] {
        let counters = on_filled(|session| {
            for number in 0..RECORDS {
                let changed = session.update(key(number, 16), |value| {
                    value.clear();
                    value.resize(length, 2);
                });
                assert!(changed.unwrap());
            }
        });
        let (flushes, fences) = rewritten(length);
        assert_all_fences(&counters, Operation::Update, RECORDS, fences);
        assert_flushes(&counters.of(Operation::Update), flushes);
        assert_eq!(counters.of(Operation::Get).operations, RECORDS);
        assert_untouched(&counters.of(Operation::Get));
    }
}

#[test]
fn swaps_of_values_cost_an_overwrite_unless_a_word_differs_or_none() {
    let other = |at: usize| {
        let mut value = [1; 200];
        value[at] = 9;
        value
    };
    let counters = on_filled(|session| {
        for number in 0..RECORDS {
            let key = key(number, 16);
            assert_eq!(session.compare_and_swap(&key, [1; 200], [1; 200]).unwrap(), Swap::Swapped);
            assert_eq!(
                session.compare_and_swap(&key, [2; 200], [3; 200]).unwrap(),
                Swap::Different
            );
            assert_eq!(session.compare_and_swap(&key, [1; 9], [3; 200]).unwrap(), Swap::Different);
        }
    });
    assert_untouched(&counters.total());
    let swap_a_word = |session: &mut Session<Counted>| {
        for number in 0..RECORDS {
            let swap = session.compare_and_swap(key(number, 16), [1; 200], other(17)).unwrap();
            assert_eq!(swap, Swap::Swapped);
        }
    };
    let counters = on_updated(Some(16), swap_a_word);
    assert_in_place(&counters, RECORDS);
    assert_eq!(counters.of(Operation::Update).operations, 0);
    let counters = on_filled(swap_a_word);
    assert_flushes(&counters.of(Operation::Update), rewritten(200).0);
    assert_eq!(counters.of(Operation::UpdateInPlace).operations, 0);
    let counters = on_filled(|session| {
        for number in 0..RECORDS {
            let swap = session.compare_and_swap(key(number, 16), [1; 200], [2; 50]).unwrap();
            assert_eq!(swap, Swap::Swapped);
        }
    });
    assert_fences(&counters, Operation::Update, RECORDS, 3);
    assert_flushes(&counters.of(Operation::Update), rewritten(50).0);
    assert_eq!(counters.of(Operation::Get).operations, 0);
}
