//! The threshold of the Get-Protect Mode.
//!
//! It is as far above the 99th percentile of gets at rest as in the paper, or what was asked for, whichever is higher. So the mode
//! can be left on any machine: a threshold near or below what gets take at rest is always exceeded, and the mode never ends.

use crate::published::paper;
use crate::report::chameleon::Threshold;

/// The published threshold.
pub(super) fn published_ns() -> u64 {
    paper("chameleondb").value("figure16.threshold_ns") as u64
}

/// The threshold where this one is asked for, and the 99th percentile at rest is that.
pub(super) fn decide(asked_ns: u64, rest_p99_ns: u64) -> Threshold {
    let published = |what: &str| paper("chameleondb").value(&format!("figure16.{what}_ns"));
    let over_rest = published("threshold") / published("rest_p99");
    let relative_ns = (rest_p99_ns as f64 * over_rest).round() as u64;
    let ns = asked_ns.max(relative_ns);
    Threshold { ns, asked_ns, rest_p99_ns, over_rest, is_relative: ns > asked_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mode ends below so many percent of the threshold.
    const CALM_PERCENT: u64 = 80;

    #[test]
    fn what_was_asked_for_is_in_force_where_it_is_above_what_gets_take_at_rest() {
        for rest in [1, 650, 1300] {
            let threshold = decide(published_ns(), rest);
            assert_eq!((threshold.ns, threshold.is_relative), (2000, false), "{rest}");
        }
        assert_eq!(decide(9000, 2600).ns, 9000);
    }

    #[test]
    fn the_mode_can_be_left_whatever_gets_take_at_rest() {
        for rest in [1400, 2000, 2600, 100_000] {
            let threshold = decide(published_ns(), rest);
            assert!(threshold.is_relative && threshold.rest_p99_ns == rest, "{threshold:?}");
            assert!(rest < threshold.ns / 100 * CALM_PERCENT, "{threshold:?}");
        }
        assert_eq!(decide(2000, 2600).ns, 4000);
    }
}
