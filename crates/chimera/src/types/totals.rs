//! [`Totals`]: what a store held when it was closed in order.

/// What a store held when it was closed in order. The sums depend on no order, so that several threads can add to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Live records.
    pub(crate) records: u64,
    /// Sum of the hashes of their keys, modulo 2^64.
    pub(crate) key_sum: u64,
    /// Sum over the engine's structures which notices that a part of them is older.
    pub(crate) state_sum: u64,
}

impl Totals {
    /// Words that it has on media.
    pub(crate) const WORDS: usize = 3;

    /// For media.
    pub(crate) fn to_words(self) -> [u64; Self::WORDS] {
        [self.records, self.key_sum, self.state_sum]
    }

    /// From media: the first words of a slice.
    pub(crate) fn from_words(words: &[u64]) -> Self {
        Self { records: words[0], key_sum: words[1], state_sum: words[2] }
    }
}
