//! [`Totals`]: what a store held when it was closed in order.

/// What a store held when it was closed in order. The sums depend on no order, so that several threads can add to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Live records, or [`UNCOUNTED`](Self::UNCOUNTED).
    pub(crate) records: u64,
    /// Sum of the hashes of their keys, modulo 2^64.
    pub(crate) key_sum: u64,
    /// Sum over the engine's structures which notices that a part of them is older.
    pub(crate) state_sum: u64,
}

impl Totals {
    /// Nobody knows how many records there were.
    pub(crate) const UNCOUNTED: u64 = u64::MAX;

    /// Adds a record: the hash of its key, and where it lies.
    #[inline]
    pub(crate) fn add(&mut self, hash: u64, location: u64) {
        self.records = self.records.wrapping_add(1);
        self.key_sum = self.key_sum.wrapping_add(hash);
        self.add_state(hash, location);
    }

    /// Adds a pair of words of which neither may be older, nor belong to another one.
    #[inline]
    pub(crate) fn add_state(&mut self, one: u64, other: u64) {
        let factor = u128::from(other.wrapping_add(0x9e37_79b9_7f4a_7c15));
        let product = u128::from(one ^ 0x9fb2_1c65_1e98_df25) * factor;
        self.state_sum = self.state_sum.wrapping_add(product as u64 ^ (product >> 64) as u64);
    }

    /// Adds what another thread has added up.
    pub(crate) fn merge(&mut self, other: Self) {
        self.records = self.records.wrapping_add(other.records);
        self.key_sum = self.key_sum.wrapping_add(other.key_sum);
        self.state_sum = self.state_sum.wrapping_add(other.state_sum);
    }

    /// What is left of this without another one.
    pub(crate) fn without(self, other: Self) -> Self {
        Self {
            records: self.records.wrapping_sub(other.records),
            key_sum: self.key_sum.wrapping_sub(other.key_sum),
            state_sum: self.state_sum.wrapping_sub(other.state_sum),
        }
    }

    /// What is wrong with a store that held this when it was closed, and in which `found` was found now.
    pub(crate) fn difference(self, found: Self) -> Option<String> {
        if self.records != found.records && self.records != Self::UNCOUNTED {
            let (closed, found) = (self.records, found.records);
            return Some(format!(
                "the store was closed with {closed} records, and {found} were found"
            ));
        }
        if self.key_sum != found.key_sum {
            return Some("the store was closed with other keys than were found".to_owned());
        }
        let what = "a part of the store is older than its closing, or lies in another place";
        (self.state_sum != found.state_sum).then(|| what.to_owned())
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(records: &[(u64, u64)]) -> Totals {
        let mut totals = Totals::default();
        for &(hash, location) in records {
            totals.add(hash, location);
        }
        totals
    }

    #[test]
    fn the_order_of_records_and_who_adds_them_make_no_difference() {
        let all = of(&[(1, 8), (2, 16), (u64::MAX, 24)]);
        assert_eq!(all, of(&[(u64::MAX, 24), (1, 8), (2, 16)]));
        let mut merged = of(&[(2, 16)]);
        merged.merge(of(&[(1, 8), (u64::MAX, 24)]));
        assert_eq!(merged, all);
        assert_eq!(Totals::from_words(&all.to_words()), all);
        assert_eq!(all.difference(merged), None);
        assert_eq!(all.without(of(&[(2, 16), (1, 8)])), of(&[(u64::MAX, 24)]));
    }

    #[test]
    fn records_that_were_not_counted_make_no_difference() {
        let mut closed = of(&[(1, 8)]);
        closed.records = Totals::UNCOUNTED;
        assert_eq!(closed.difference(Totals { records: 5, ..closed }), None);
        let other = Totals { key_sum: 7, ..closed };
        assert!(closed.difference(other).is_some_and(|says| says.contains("other keys")));
    }

    #[test]
    fn a_record_that_is_missing_another_one_or_elsewhere_is_noticed() {
        let all = of(&[(1, 8), (2, 16), (3, 24)]);
        let says = |records: &[(u64, u64)]| all.difference(of(records)).unwrap_or_default();
        assert!(says(&[(1, 8), (2, 16)]).contains("closed with 3 records, and 2 were found"));
        assert!(says(&[(1, 8), (2, 16), (4, 24)]).contains("other keys"));
        assert!(says(&[(1, 8), (2, 16), (3, 32)]).contains("older"));
        assert!(says(&[(1, 16), (2, 8), (3, 24)]).contains("older"), "exchanged");
    }
}
