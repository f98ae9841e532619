//! [`Search`]: looking for a key among keys that can be asked for by their rank.

use std::cmp::Ordering;

use serde::Serialize;

/// How an ordered node is searched. The last two are those that the paper names as conceivable and does not measure (I1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Search {
    /// From the first key on.
    Linear,
    /// By halves.
    Binary,
    /// Where the key would be if keys were spread evenly.
    Interpolation,
    /// In steps that double from the first key on, and then by halves.
    Exponential,
}

impl Search {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Linear, Self::Binary, Self::Interpolation, Self::Exponential];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Binary => "binary",
            Self::Interpolation => "interpolation",
            Self::Exponential => "exponential",
        }
    }
}

/// After so many steps interpolation goes on by halves: keys may be spread in any way.
const INTERPOLATIONS_MAX: usize = 6;

/// Keys in an order.
pub(crate) struct Ranked<C, F> {
    /// How many there are.
    pub(crate) count: usize,
    /// How the key of a rank compares with the one that is looked for.
    pub(crate) compare: C,
    /// The first word of the key of a rank.
    pub(crate) first: F,
}

impl<C: FnMut(usize) -> Ordering, F: FnMut(usize) -> u64> Ranked<C, F> {
    /// The rank of a key, or where it would be.
    pub(crate) fn search(&mut self, first_word: u64, how: Search) -> Result<usize, usize> {
        match how {
            Search::Linear => self.linear(),
            Search::Binary => self.binary(0, self.count),
            Search::Interpolation => self.interpolation(first_word),
            Search::Exponential => self.exponential(),
        }
    }

    fn linear(&mut self) -> Result<usize, usize> {
        for rank in 0..self.count {
            match (self.compare)(rank) {
                Ordering::Less => {}
                Ordering::Equal => return Ok(rank),
                Ordering::Greater => return Err(rank),
            }
        }
        Err(self.count)
    }

    fn binary(&mut self, mut low: usize, mut high: usize) -> Result<usize, usize> {
        while low < high {
            let middle = low.midpoint(high);
            match (self.compare)(middle) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    fn interpolation(&mut self, wanted: u64) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.count);
        for _ in 0..INTERPOLATIONS_MAX {
            if high - low < 3 {
                break;
            }
            let (least, most) = ((self.first)(low), (self.first)(high - 1));
            if wanted <= least || wanted >= most {
                break;
            }
            let part = u128::from(wanted - least) * (high - low - 1) as u128;
            let guess = low + (part / u128::from(most - least)) as usize;
            match (self.compare)(guess) {
                Ordering::Less => low = guess + 1,
                Ordering::Equal => return Ok(guess),
                Ordering::Greater => high = guess,
            }
        }
        self.binary(low, high)
    }

    fn exponential(&mut self) -> Result<usize, usize> {
        let (mut low, mut high) = (0, 1);
        while high <= self.count {
            match (self.compare)(high - 1) {
                Ordering::Less => low = high,
                Ordering::Equal => return Ok(high - 1),
                Ordering::Greater => return self.binary(low, high - 1),
            }
            high *= 2;
        }
        self.binary(low, self.count)
    }
}
