//! The same question answered by trying every order.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use crate::histories::{Event, History, Operation, Outcome, SwapOutcome};

/// Tiny histories to compare.
const CASES: u32 = 60_000;

struct Interval {
    operation: Operation,
    outcome: Option<Outcome>,
    begin: usize,
    /// Where it returned or the machine crashed; none when neither came.
    end: Option<usize>,
}

fn intervals(events: &[Event]) -> Vec<Interval> {
    let mut all: Vec<Interval> = Vec::new();
    let mut running: Vec<(u32, usize)> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match *event {
            Event::Invoke { thread, operation, .. } => {
                running.push((thread, all.len()));
                all.push(Interval { operation, outcome: None, begin: at, end: None });
            }
            Event::Return { thread, outcome } => {
                let place = running.iter().position(|(other, _)| *other == thread).unwrap();
                let (_, index) = running.swap_remove(place);
                all[index].outcome = Some(outcome);
                all[index].end = Some(at);
            }
            Event::Crash => {
                for (_, index) in running.drain(..) {
                    all[index].end = Some(at);
                }
            }
        }
    }
    all
}

/// Whether some order of all operations that returned, and of any of the others, has every result.
fn explained(all: &[Interval], left: u32, value: Option<u64>) -> bool {
    let is_left = |index: &usize| left >> index & 1 == 1;
    if (0..all.len()).filter(is_left).all(|index| all[index].outcome.is_none()) {
        return true;
    }
    (0..all.len()).filter(is_left).any(|next| {
        let waits = |other: usize| all[other].end.is_some_and(|end| end < all[next].begin);
        let rest = left & !(1 << next);
        // What never returned may also be left out, at any time.
        if all[next].outcome.is_none() && explained(all, rest, value) {
            return true;
        }
        if (0..all.len()).filter(is_left).any(waits) {
            return false;
        }
        let operation = all[next].operation;
        let agrees = all[next].outcome.is_none_or(|outcome| match (operation, outcome) {
            (_, Outcome::Refused | Outcome::Written) => true,
            (Operation::CompareAndSwap { expected, .. }, Outcome::Swap(SwapOutcome::Swapped)) => {
                value == Some(expected)
            }
            (Operation::CompareAndSwap { .. }, Outcome::Swap(SwapOutcome::Missing)) => {
                value.is_none()
            }
            (Operation::CompareAndSwap { expected, .. }, Outcome::Swap(_)) => {
                value.is_some_and(|value| value != expected)
            }
            (_, Outcome::WasNew(is)) => is == value.is_none(),
            (_, Outcome::WasThere(is)) => is == value.is_some(),
            (_, Outcome::Found(seen) | Outcome::Previous(seen)) => seen == value,
            (_, Outcome::Swap(_)) => unreachable!("only swaps say so"),
        });
        let after = match operation {
            _ if all[next].outcome == Some(Outcome::Refused) => value,
            Operation::Put(new) => Some(new),
            Operation::Delete => None,
            Operation::FetchAdd(delta) => value.map(|value| value.wrapping_add(delta)),
            Operation::CompareAndSwap { expected, new } if value == Some(expected) => Some(new),
            Operation::Get | Operation::CompareAndSwap { .. } => value,
        };
        agrees && explained(all, rest, after)
    })
}

/// A tiny history in which anything may have happened.
fn tiny(random: &mut Xoshiro256PlusPlus) -> History {
    let mut below = |bound: u64| random.next_u64() % bound;
    let mut history = History::new();
    let mut running = [None; 3];
    let mut begun = 0;
    for _ in 0..14 {
        let thread = below(3) as usize;
        if below(14) == 0 {
            history.crash();
            running = [None; 3];
        }
        let maybe = |number: u64| (number < 3).then_some(number);
        if let Some(operation) = running[thread].take() {
            let outcome = match operation {
                _ if below(12) == 0 => Outcome::Refused,
                Operation::Put(_) if below(8) == 0 => Outcome::Written,
                Operation::Put(_) => Outcome::WasNew(below(2) == 0),
                Operation::Get => Outcome::Found(maybe(below(4))),
                Operation::Delete => Outcome::WasThere(below(2) == 0),
                Operation::FetchAdd(_) => Outcome::Previous(maybe(below(4))),
                Operation::CompareAndSwap { .. } => match below(4) {
                    0 => Outcome::Swap(SwapOutcome::Swapped),
                    1 => Outcome::Swap(SwapOutcome::Different),
                    2 => Outcome::Swap(SwapOutcome::Missing),
                    _ => Outcome::Previous(maybe(below(4))),
                },
            };
            history.returns(thread as u32, outcome);
        } else if begun < 6 {
            begun += 1;
            let operation = match below(8) {
                0..3 => Operation::Put(below(3)),
                3..5 => Operation::Get,
                5 => Operation::Delete,
                6 => Operation::FetchAdd(below(2) + 1),
                _ => Operation::CompareAndSwap { expected: below(3), new: below(3) },
            };
            history.invoke(thread as u32, 1, operation);
            running[thread] = Some(operation);
        }
    }
    history
}

#[test]
fn the_search_agrees_with_trying_every_order() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut good = 0;
    for case in 0..CASES {
        let history = tiny(&mut random);
        let all = intervals(history.events());
        let expected = explained(&all, (1 << all.len()) - 1, None);
        let found = history.check();
        assert_eq!(found.is_ok(), expected, "case {case}: {found:?}\n{:#?}", history.events());
        good += u32::from(expected);
        let Err(violation) = found else { continue };
        // Without its last event it can be explained; with it, it cannot.
        let part = intervals(&violation.events);
        assert!(!explained(&part, (1 << part.len()) - 1, None), "case {case}: {violation}");
        let part = intervals(&violation.events[..violation.events.len() - 1]);
        assert!(explained(&part, (1 << part.len()) - 1, None), "case {case}: {violation}");
    }
    assert!(good > CASES / 20 && good < CASES * 19 / 20, "{good} of {CASES} are good");
}
