//! [`Workload`]: YCSB's mixes of operations, and the two of the Viper paper.

use std::str::FromStr;

use super::distribution::Distribution;

/// Shares of operations, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    /// Gets.
    pub get: u8,
    /// Overwrites.
    pub overwrite: u8,
    /// Inserts.
    pub insert: u8,
    /// Read-modify-writes.
    pub modify: u8,
    /// Scans of 1 to 100 records.
    pub scan: u8,
}

/// A workload with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Inserts into an empty store.
    Load,
    /// 50 % gets, 50 % overwrites.
    A,
    /// 95 % gets, 5 % overwrites.
    B,
    /// Gets.
    C,
    /// 95 % gets of new records, 5 % inserts.
    D,
    /// 95 % scans of 1 to 100 records, 5 % inserts. For stores that are ordered.
    E,
    /// 50 % gets, 50 % read-modify-writes.
    F,
    /// The paper's 50:50 of gets and overwrites (Viper, section 5.4).
    Half,
    /// The paper's 10:90 of gets and overwrites.
    Tenth,
}

impl Workload {
    /// Those that run unless told otherwise.
    pub(crate) const STANDARD: [Self; 6] =
        [Self::Load, Self::A, Self::B, Self::C, Self::D, Self::F];
    /// All there are.
    pub(crate) const ALL: [Self; 9] =
        [Self::Load, Self::A, Self::B, Self::C, Self::D, Self::E, Self::F, Self::Half, Self::Tenth];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::A => "a",
            Self::B => "b",
            Self::C => "c",
            Self::D => "d",
            Self::E => "e",
            Self::F => "f",
            Self::Half => "50:50",
            Self::Tenth => "10:90",
        }
    }

    /// The shares of operations; `None` for the load phase.
    pub(crate) fn mix(self) -> Option<Mix> {
        let shares =
            |get, overwrite, insert, modify| Mix { get, overwrite, insert, modify, scan: 0 };
        Some(match self {
            Self::Load => return None,
            Self::A | Self::Half => shares(50, 50, 0, 0),
            Self::B => shares(95, 5, 0, 0),
            Self::C => shares(100, 0, 0, 0),
            Self::D => shares(95, 0, 5, 0),
            Self::E => Mix { scan: 95, ..shares(0, 0, 5, 0) },
            Self::F => shares(50, 0, 0, 50),
            Self::Tenth => shares(10, 90, 0, 0),
        })
    }

    /// Which records it asks for in YCSB.
    pub(crate) fn distribution(self) -> Distribution {
        if self == Self::D { Distribution::Latest } else { Distribution::Zipfian }
    }
}

impl FromStr for Workload {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let named = |workload: &Self| workload.name() == text.to_ascii_lowercase();
        Self::ALL.into_iter().find(named).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no workload is called `{text}`; there are {names} and all")
        })
    }
}

/// One operation of a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Draw {
    Get,
    Overwrite,
    Insert,
    Modify,
    Scan,
}

impl Mix {
    /// The operation for a random word.
    #[inline(always)]
    pub(crate) fn draw(self, word: u64) -> Draw {
        let percent = super::random::reduce(word, 100) as u8;
        if percent < self.get {
            Draw::Get
        } else if percent < self.get + self.overwrite {
            Draw::Overwrite
        } else if percent < self.get + self.overwrite + self.insert {
            Draw::Insert
        } else if percent < self.get + self.overwrite + self.insert + self.modify {
            Draw::Modify
        } else {
            Draw::Scan
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::random::Random;

    #[test]
    fn names_are_understood_and_others_are_not() {
        for workload in Workload::ALL {
            assert_eq!(workload.name().parse(), Ok(workload));
        }
        assert_eq!("A".parse(), Ok(Workload::A));
        let error = "g".parse::<Workload>().expect_err("there is none");
        assert!(error.contains("50:50"), "{error}");
    }

    #[test]
    fn draws_come_in_their_shares() {
        let mut random = Random::new(1, 1);
        for workload in Workload::ALL {
            let Some(mix) = workload.mix() else { continue };
            assert_eq!(mix.get + mix.overwrite + mix.insert + mix.modify + mix.scan, 100);
            let mut counts = [0_i32; 5];
            for _ in 0..100_000 {
                counts[mix.draw(random.next()) as usize] += 1;
            }
            let shares = [mix.get, mix.overwrite, mix.insert, mix.modify, mix.scan];
            for (count, share) in counts.into_iter().zip(shares) {
                let off = (count - i32::from(share) * 1000).abs();
                assert!(off < if share == 0 { 1 } else { 1000 }, "{workload:?}: {counts:?}");
            }
        }
    }
}
