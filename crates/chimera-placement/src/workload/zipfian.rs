//! [`Zipfian`]: ranks whose frequency falls with a power of the rank (Gray et al., SIGMOD 1994, as YCSB has it).

/// The exponent of YCSB.
const THETA: f64 = 0.99;

/// Ranks of a number of items.
#[derive(Clone, Debug)]
pub(super) struct Zipfian {
    items: u64,
    zeta: f64,
    alpha: f64,
    eta: f64,
    /// Frequency of the second rank over that of the first.
    second: f64,
}

impl Zipfian {
    /// Ranks of `items` items, at least 2.
    pub(super) fn new(items: u64) -> Self {
        let items = items.max(2);
        let zeta: f64 = (1..=items).map(|item| (item as f64).powf(-THETA)).sum();
        let second = 0.5_f64.powf(THETA);
        let eta = (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - (1.0 + second) / zeta);
        Self { items, zeta, alpha: 1.0 / (1.0 - THETA), eta, second }
    }

    /// The rank for a `fraction` from 0 to below 1.
    pub(super) fn rank(&self, fraction: f64) -> u64 {
        let scaled = fraction * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + self.second {
            return 1;
        }
        let rank = self.items as f64 * (self.eta * fraction - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.items - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Random;
    use super::*;

    #[test]
    fn shares_follow_the_law() {
        let (items, draws) = (10_000, 400_000);
        let (zipfian, mut random) = (Zipfian::new(items), Random::new(3, 0));
        let mut counts = vec![0_u32; items as usize];
        for _ in 0..draws {
            counts[zipfian.rank(random.fraction()) as usize] += 1;
        }
        let law = |ranks: u64| -> f64 {
            let sum = |to: u64| (1..=to).map(|item| (item as f64).powf(-THETA)).sum::<f64>();
            sum(ranks) / sum(items)
        };
        for ranks in [1, 2, 10, 100, 1000, 5000] {
            let found: u32 = counts[..ranks as usize].iter().sum();
            let found = f64::from(found) / f64::from(draws);
            assert!(
                (found - law(ranks)).abs() < 0.03,
                "{ranks}: {found} instead of {}",
                law(ranks)
            );
        }
    }
}
