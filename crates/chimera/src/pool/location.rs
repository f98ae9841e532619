//! [`Location`]: where a record is, opaque to indexes.

use std::num::NonZeroU64;

/// Where a record is. Indexes keep it and give it back; only the engine that made it can read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(NonZeroU64);

impl Location {
    /// From its word; 0 means "none".
    #[inline(always)]
    pub fn from_raw(raw: u64) -> Option<Self> {
        NonZeroU64::new(raw).map(Self)
    }

    /// Its word, never 0.
    #[inline(always)]
    pub fn raw(self) -> u64 {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_but_zero_comes_back() {
        for raw in [1, 2, 1 << 40, u64::MAX] {
            assert_eq!(Location::from_raw(raw).map(Location::raw), Some(raw));
        }
        assert_eq!(Location::from_raw(0), None);
    }
}
