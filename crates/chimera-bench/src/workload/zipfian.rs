//! [`Zipfian`]: ranks by Zipf's law, the way YCSB draws them.

/// Draws ranks `0..items` with a probability that falls with the rank: `1 / (rank + 1)^theta`.
///
/// The method is that of Gray et al., "Quickly generating billion-record synthetic databases" (SIGMOD
/// 1994), as in YCSB's `ZipfianGenerator`: ranks 0 and 1 are exact, the others follow a continuous
/// curve. The number of items can grow; the sum over all items is continued, not computed anew.
///
/// # Cost
/// A draw takes one power of floating-point numbers, some 20 ns. Making it takes one for each item.
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: u64,
    theta: f64,
    /// Sum of `1 / i^theta` over `1..=items`.
    zeta: f64,
    zeta_two: f64,
    alpha: f64,
    eta: f64,
    half_power: f64,
}

impl Zipfian {
    /// Ranks of `items` items, at least 1, with an exponent above 0 and below 1.
    pub fn new(items: u64, theta: f64) -> Self {
        let mut zipfian = Self {
            items: 0,
            theta,
            zeta: 0.0,
            zeta_two: 1.0 + 0.5_f64.powf(theta),
            alpha: 1.0 / (1.0 - theta),
            eta: 0.0,
            half_power: 0.5_f64.powf(theta),
        };
        zipfian.grow(items.max(1));
        zipfian
    }

    /// Items there are.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Adds items up to `items` in all.
    pub fn grow(&mut self, items: u64) {
        for item in self.items + 1..=items {
            self.zeta += (item as f64).powf(-self.theta);
        }
        self.items = self.items.max(items);
        let items = self.items as f64;
        self.eta = (1.0 - (2.0 / items).powf(1.0 - self.theta)) / (1.0 - self.zeta_two / self.zeta);
    }

    /// The rank for a `fraction` from 0 to below 1.
    #[inline]
    pub fn rank(&self, fraction: f64) -> u64 {
        let scaled = fraction * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + self.half_power {
            return 1.min(self.items - 1);
        }
        let rank = self.items as f64 * (self.eta * fraction - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.items - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::random::Random;

    fn counts(zipfian: &Zipfian, draws: u64) -> Vec<u64> {
        let mut random = Random::new(11, 0);
        let mut counts = vec![0; zipfian.items() as usize];
        for _ in 0..draws {
            counts[zipfian.rank(random.fraction()) as usize] += 1;
        }
        counts
    }

    /// The share of the first `ranks` ranks by the law.
    fn law(items: u64, theta: f64, ranks: u64) -> f64 {
        let sum = |to: u64| (1..=to).map(|item| (item as f64).powf(-theta)).sum::<f64>();
        sum(ranks) / sum(items)
    }

    #[test]
    fn shares_follow_the_law() {
        for theta in [0.5, 0.8, 0.99] {
            let items = 10_000;
            let draws = 1_000_000;
            let counts = counts(&Zipfian::new(items, theta), draws);
            for ranks in [1, 2, 10, 100, 1000, 5000] {
                let found = counts[..ranks as usize].iter().sum::<u64>() as f64 / draws as f64;
                let expected = law(items, theta, ranks);
                // The continuous curve is up to some percent off in the middle.
                let off = (found - expected).abs();
                assert!(off < 0.03, "theta {theta}, {ranks} ranks: {found} instead of {expected}");
            }
            // The two exact ranks.
            for rank in [0, 1] {
                let found = counts[rank as usize] as f64 / draws as f64;
                let expected = law(items, theta, rank + 1) - law(items, theta, rank);
                assert!((found / expected - 1.0).abs() < 0.05, "{found} instead of {expected}");
            }
        }
    }

    #[test]
    fn growing_gives_what_making_it_at_once_does() {
        let at_once = Zipfian::new(5000, 0.99);
        let mut grown = Zipfian::new(10, 0.99);
        for items in [11, 12, 3000, 5000] {
            grown.grow(items);
        }
        assert_eq!(grown.items(), 5000);
        for step in 0..1000 {
            let fraction = f64::from(step) / 1000.0;
            assert_eq!(grown.rank(fraction), at_once.rank(fraction));
        }
    }

    #[test]
    fn few_items_stay_in_range() {
        for items in 1..5 {
            let zipfian = Zipfian::new(items, 0.99);
            for step in 0..1000 {
                assert!(zipfian.rank(f64::from(step) / 1000.0) < items);
            }
        }
    }
}
