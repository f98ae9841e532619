//! [`VerifyReads`]: whether a get verifies the sum of the value that it hands out.

use std::fmt;
use std::str::FromStr;

/// Whether a get verifies the sum of the value that it hands out. A get is a call of `get`, `get_with`,
/// `multi_get`, `multi_get_with` or `contains_key`.
///
/// In each mode a get verifies that the key is the one it was asked for, that key, version and place of the record
/// match their checksum, and that everything it reads lies where it can. In each mode it hands out a value as
/// somebody wrote it, never a mixture of two. The modes differ in one thing: whether a value that has changed
/// *on the medium* since it was written is noticed by the get.
///
/// Everything else verifies always: listings, exports, backups, updates and swaps, records that reclamation moves,
/// [`check`](crate::Db::check) and the [scrub](crate::Options::scrub_every).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum VerifyReads {
    /// Each get does. A damaged value is never handed out.
    #[default]
    Always,
    /// One get in [`SAMPLED_ONE_IN`](Self::SAMPLED_ONE_IN) of each session does, its first one included. A damaged
    /// value may be handed out, and a session that gets nothing else notices it after so many gets.
    Sampled,
    /// No get does. A damaged value is handed out until the scrub, a `check` or a listing finds it.
    Never,
}

impl VerifyReads {
    /// With [`Sampled`](Self::Sampled) one get in so many verifies the sum of its value. A prime: a program that
    /// gets the same keys in rounds would otherwise verify the same few of them each time.
    pub const SAMPLED_ONE_IN: u32 = 17;

    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Always, Self::Sampled, Self::Never];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Sampled => "sampled",
            Self::Never => "never",
        }
    }

    /// Whether the next get of a session verifies the sum of its value. `left` is the session's, 0 at first: so
    /// many gets do not before the next one does.
    #[inline]
    pub(crate) fn is_turn(self, left: &mut u32) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Sampled => {
                let is_turn = *left == 0;
                *left = if is_turn { Self::SAMPLED_ONE_IN } else { *left } - 1;
                is_turn
            }
        }
    }
}

impl fmt::Display for VerifyReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for VerifyReads {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mode = Self::ALL.into_iter().find(|mode| mode.name() == text);
        mode.ok_or_else(|| format!("unknown mode `{text}`: there are always, sampled, never"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for mode in VerifyReads::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        let error = "often".parse::<VerifyReads>().expect_err("no such mode");
        assert!(error.contains("sampled"), "{error}");
    }

    #[test]
    fn sampled_is_the_first_get_and_then_one_in_so_many() {
        let mut left = 0;
        let turns = (0..100).filter(|_| VerifyReads::Sampled.is_turn(&mut left));
        let turns: Vec<u32> = turns.collect();
        assert_eq!(turns, [0, 17, 34, 51, 68, 85]);
        assert!((0..100).all(|_| VerifyReads::Always.is_turn(&mut left)));
        assert!(!(0..100).any(|_| VerifyReads::Never.is_turn(&mut left)));
    }
}
