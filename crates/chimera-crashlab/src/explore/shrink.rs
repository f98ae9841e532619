//! Making a case that fails as small as it will go.

use super::campaign::{Found, replay};
use super::case::Case;

/// Runs that shrinking may take.
const RUNS_MAX: u32 = 3_000;

/// A smaller case that fails, too: without every epoch and every action that can be missed.
pub(crate) fn shrink(found: Found) -> Found {
    let mut best = found;
    let mut runs = 0;
    let mut tries = |case: Case| {
        runs += 1;
        if runs > RUNS_MAX {
            return None;
        }
        replay(&case).map(|violation| Found { case, violation })
    };
    loop {
        let before = size(&best.case);
        for number in (0..best.case.epochs.len()).rev() {
            let mut case = best.case.clone();
            case.epochs.remove(number);
            if !case.epochs.is_empty()
                && let Some(smaller) = tries(case)
            {
                best = smaller;
            }
        }
        for epoch in (0..best.case.epochs.len()).rev() {
            for action in (0..best.case.epochs[epoch].actions.len()).rev() {
                let mut case = best.case.clone();
                case.epochs[epoch].actions.remove(action);
                if let Some(smaller) = tries(case) {
                    best = smaller;
                }
            }
        }
        if size(&best.case) == before {
            return best;
        }
    }
}

fn size(case: &Case) -> usize {
    case.epochs.iter().map(|epoch| 1 + epoch.actions.len()).sum()
}
