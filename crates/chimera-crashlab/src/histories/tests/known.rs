use super::Written;
use crate::histories::{Event, History, Operation, Outcome, SwapOutcome};

use Operation::{CompareAndSwap, Delete, FetchAdd, Get, Put};
use Outcome::{Found, Previous, Refused, Swap, WasNew, WasThere};

fn history() -> Written {
    Written::default()
}

#[test]
fn one_after_the_other() {
    let good = || {
        history()
            .reads(0, None)
            .puts(0, 5, true)
            .puts(1, 6, false)
            .does(0, CompareAndSwap { expected: 6, new: 8 }, Swap(SwapOutcome::Swapped))
            .does(0, CompareAndSwap { expected: 6, new: 9 }, Swap(SwapOutcome::Different))
            .does(0, CompareAndSwap { expected: 6, new: 9 }, Previous(Some(8)))
            .does(1, FetchAdd(2), Previous(Some(8)))
            .reads(0, Some(10))
            .does(0, Delete, WasThere(true))
    };
    good().does(1, Delete, WasThere(false)).must_be_good();
    good().does(1, FetchAdd(1), Previous(None)).reads(1, None).must_be_good();
    good()
        .does(1, CompareAndSwap { expected: 1, new: 2 }, Swap(SwapOutcome::Missing))
        .must_be_good();
    good().does(1, Delete, WasThere(true)).must_be_bad();
    good().reads(1, Some(10)).must_be_bad();
    good().puts(1, 1, false).must_be_bad();
    good().does(1, FetchAdd(1), Previous(Some(10))).must_be_bad();
    good()
        .does(1, CompareAndSwap { expected: 10, new: 2 }, Swap(SwapOutcome::Swapped))
        .must_be_bad();
}

#[test]
fn an_empty_history_is_good() {
    history().must_be_good();
    history().crashes().crashes().must_be_good();
}

#[test]
fn a_stale_read() {
    history().puts(0, 1, true).puts(0, 2, false).reads(1, Some(1)).must_be_bad();
    history().puts(0, 1, true).reads(1, None).must_be_bad();
    history().puts(0, 1, true).does(0, Delete, WasThere(true)).reads(1, Some(1)).must_be_bad();
}

#[test]
fn a_read_of_what_nobody_wrote() {
    history().puts(0, 1, true).reads(1, Some(7)).must_be_bad();
    history().begins(0, Put(1)).reads(1, Some(7)).must_be_bad();
}

#[test]
fn a_read_beside_a_write_sees_either() {
    let beside = |found| {
        history()
            .puts(0, 1, true)
            .begins(0, Put(2))
            .reads(1, Some(found))
            .ends(0, WasNew(false))
            .reads(1, Some(2))
    };
    beside(1).must_be_good();
    beside(2).must_be_good();
}

#[test]
fn reads_go_back_in_time_between_two_readers() {
    let first = || history().puts(0, 1, true).begins(0, Put(2)).reads(1, Some(2));
    first().reads(2, Some(2)).ends(0, WasNew(false)).must_be_good();
    first().reads(2, Some(1)).must_be_bad();
    // Two readers that overlap may see it in either order.
    let overlapping = history().puts(0, 1, true).begins(0, Put(2)).begins(1, Get).begins(2, Get);
    overlapping.ends(1, Found(Some(2))).ends(2, Found(Some(1))).must_be_good();
}

#[test]
fn a_lost_update() {
    let two = || {
        let both = history().puts(0, 10, true).begins(0, FetchAdd(1)).begins(1, FetchAdd(1));
        both.ends(0, Previous(Some(10)))
    };
    two().ends(1, Previous(Some(11))).reads(0, Some(12)).must_be_good();
    two().ends(1, Previous(Some(10))).must_be_bad();
    // Both report their own, and one of them is gone.
    two().ends(1, Previous(Some(11))).reads(0, Some(11)).must_be_bad();
}

#[test]
fn an_addition_that_takes_effect_twice() {
    history()
        .puts(0, 1, true)
        .does(0, FetchAdd(5), Previous(Some(1)))
        .reads(0, Some(11))
        .must_be_bad();
    let crashed = || history().puts(0, 1, true).begins(0, FetchAdd(5)).crashes();
    crashed().reads(0, Some(1)).must_be_good();
    crashed().reads(0, Some(6)).must_be_good();
    crashed().reads(0, Some(11)).must_be_bad();
}

#[test]
fn two_puts_that_were_both_first() {
    let both = || history().begins(0, Put(1)).begins(1, Put(2)).ends(0, WasNew(true));
    both().ends(1, WasNew(false)).reads(0, Some(2)).must_be_good();
    both().ends(1, WasNew(true)).must_be_bad();
    both().ends(1, WasNew(false)).reads(0, Some(1)).must_be_bad();
}

#[test]
fn a_put_that_does_not_say_whether_its_key_is_new_writes_all_the_same() {
    let both = || {
        let begun = history().begins(0, Put(1)).begins(1, Put(2));
        begun.ends(0, Outcome::Written).ends(1, Outcome::Written)
    };
    both().reads(0, Some(1)).must_be_good();
    both().reads(0, Some(2)).must_be_good();
    both().reads(0, None).must_be_bad();
    both().reads(0, Some(3)).must_be_bad();
}

#[test]
fn two_swaps_of_the_same_value() {
    let swap = |new| CompareAndSwap { expected: 1, new };
    let both = || history().puts(0, 1, true).begins(0, swap(2)).begins(1, swap(3));
    let swapped = Swap(SwapOutcome::Swapped);
    both().ends(0, swapped).ends(1, Swap(SwapOutcome::Different)).reads(0, Some(2)).must_be_good();
    both().ends(0, swapped).ends(1, swapped).must_be_bad();
}

#[test]
fn the_same_value_written_again() {
    // The put of 5 that runs must not be taken for done because 5 is there already.
    history()
        .puts(0, 5, true)
        .begins(1, Put(5))
        .puts(0, 7, false)
        .reads(0, Some(5))
        .ends(1, WasNew(false))
        .must_be_good();
}

#[test]
fn a_crash_loses_what_was_acknowledged() {
    history().puts(0, 1, true).crashes().reads(0, None).must_be_bad();
    history().puts(0, 1, true).puts(0, 2, false).crashes().reads(0, Some(1)).must_be_bad();
    history().puts(0, 1, true).puts(0, 2, false).crashes().reads(0, Some(2)).must_be_good();
    let deleted = || history().puts(0, 1, true).does(0, Delete, WasThere(true)).crashes();
    deleted().reads(0, None).must_be_good();
    deleted().reads(0, Some(1)).must_be_bad();
}

#[test]
fn a_value_that_was_read_reverts_in_a_crash() {
    let read = || history().puts(0, 1, true).begins(0, Put(2)).reads(1, Some(2)).crashes();
    read().reads(0, Some(2)).must_be_good();
    read().reads(0, Some(1)).must_be_bad();
}

#[test]
fn what_was_in_progress_may_survive_or_not() {
    let crashed = || history().puts(0, 1, true).begins(0, Put(2)).begins(1, Delete).crashes();
    crashed().reads(0, Some(1)).must_be_good();
    crashed().reads(0, Some(2)).must_be_good();
    crashed().reads(0, None).must_be_good();
    crashed().reads(0, Some(3)).must_be_bad();
}

#[test]
fn what_was_in_progress_is_there_after_a_crash_and_then_gone() {
    let crashed = || history().begins(0, Put(1)).crashes();
    crashed().reads(0, Some(1)).reads(0, None).must_be_bad();
    crashed().reads(0, Some(1)).crashes().reads(0, None).must_be_bad();
    crashed().reads(0, Some(1)).crashes().reads(0, Some(1)).must_be_good();
}

#[test]
fn what_was_in_progress_takes_effect_after_the_crash() {
    history().begins(0, Put(1)).crashes().reads(0, None).reads(0, Some(1)).must_be_bad();
    history().begins(0, Put(1)).crashes().reads(0, None).crashes().reads(0, Some(1)).must_be_bad();
    history().begins(0, Put(1)).crashes().puts(0, 2, true).reads(0, Some(1)).must_be_bad();
}

#[test]
fn what_was_refused_changes_nothing() {
    let refused = || history().puts(0, 1, true).does(0, Put(2), Refused);
    refused().reads(1, Some(1)).must_be_good();
    refused().reads(1, Some(2)).must_be_bad();
}

#[test]
fn keys_are_checked_apart_and_the_bad_one_is_named() {
    let mut history = History::new();
    for key in 1..=3 {
        history.invoke(key as u32, key, Put(key));
    }
    for key in 1..=3 {
        history.returns(key as u32, WasNew(true));
    }
    assert_eq!(history.check(), Ok(()));
    history.crash();
    history.read(9, 1, Some(1));
    history.read(9, 2, Some(3));
    history.read(9, 3, Some(3));
    let violation = history.check().unwrap_err();
    assert_eq!(violation.key, 2);
    assert_eq!(violation.values, [Some(2)]);
    let text = violation.to_string();
    for part in ["key 2", "thread 2 returns put(2): new", "crash", "thread 9 returns get: 3"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn the_shortest_part_that_shows_it_is_given() {
    // The put of 2 answers wrongly, but only later: what the first read saw has an explanation.
    let history = history()
        .puts(0, 1, true)
        .begins(0, Put(2))
        .reads(1, Some(2))
        .ends(0, WasNew(true))
        .reads(1, Some(2));
    let violation = history.0.check().unwrap_err();
    let last = violation.events.last();
    assert_eq!(last, Some(&Event::Return { thread: 0, outcome: WasNew(true) }), "{violation}");
    assert_eq!(violation.events.len(), 6);
}

#[test]
fn many_in_progress_at_once() {
    let mut history = History::new();
    for thread in 0..16 {
        history.invoke(thread, 1, FetchAdd(1));
    }
    history.invoke(16, 1, Put(100));
    history.returns(16, WasNew(true));
    for thread in 0..16 {
        history.returns(thread, Previous(Some(115 - u64::from(thread))));
    }
    history.read(0, 1, Some(116));
    assert_eq!(history.check(), Ok(()));
    history.read(0, 1, Some(115));
    assert!(history.check().is_err());
}

#[test]
#[should_panic(expected = "two things at a time")]
fn a_thread_does_one_thing_at_a_time() {
    let _ = history().begins(0, Get).begins(0, Get);
}

#[test]
#[should_panic(expected = "has no outcome like")]
fn an_outcome_fits_its_operation() {
    let _ = history().does(0, Get, WasThere(true));
}
