//! [`ScrubStats`]: what verifying the store in the background has done.

use super::check::{CheckReport, Damage};

/// What the scrub, and each [`check`](crate::Db::check), has verified since the store was opened.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ScrubStats {
    /// Full passes that ended, those of `check` included.
    pub passes: u64,
    /// Records verified. One that is met in several passes is counted in each.
    pub records: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Damage found. What is met in several passes is counted in each.
    pub damages: u64,
    /// The last full pass that ended; none before the first one has.
    pub last_pass: Option<ScrubPass>,
    /// How far the pass in the background is, from 0 to 1; none where there is no scrub.
    pub pass_done_ratio: Option<f64>,
}

/// A full pass: everything was verified, from the beginning to the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ScrubPass {
    /// When it ended, in seconds since the Unix epoch.
    pub ended_unix_seconds: u64,
    /// Records verified.
    pub records: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Damage found.
    pub damages: u64,
    /// The first damage by position.
    pub first_damage: Option<Damage>,
}

impl ScrubStats {
    /// A full pass has ended, which found all of `found`.
    pub(crate) fn end_pass(&mut self, found: &CheckReport, ended_unix_seconds: u64) {
        self.passes += 1;
        self.last_pass = Some(ScrubPass {
            ended_unix_seconds,
            records: found.records,
            bytes: found.bytes,
            damages: found.damages,
            first_damage: found.first_damage.clone(),
        });
    }
}
