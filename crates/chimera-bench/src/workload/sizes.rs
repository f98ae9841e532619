//! [`Sizes`]: how long keys or values are.

/// Different sizes that are drawn from, each as likely as the others.
const QUANTILES: usize = 256;
/// Mean over standard deviation: 16 and 3.2, 200 and 40 in the paper.
const MEAN_PER_DEVIATION: f64 = 5.0;

/// Sizes in bytes.
#[derive(Clone, Debug)]
pub enum Sizes {
    /// All the same.
    Fixed(usize),
    /// Distributed normally.
    Normal(Box<[u32; QUANTILES]>),
}

impl Sizes {
    /// Distributed normally around `mean` with a fifth of it as standard deviation (Viper, section
    /// 5.3.3), but never below `least`.
    pub fn normal(mean: usize, least: usize) -> Self {
        let deviation = mean as f64 / MEAN_PER_DEVIATION;
        let weight = |size: usize| (-((size as f64 - mean as f64) / deviation).powi(2) / 2.0).exp();
        let all: f64 = (0..=2 * mean).map(weight).sum();
        let (mut size, mut below) = (0, weight(0));
        let mut quantiles = [0; QUANTILES];
        for (number, quantile) in quantiles.iter_mut().enumerate() {
            let wanted = all * (number as f64 + 0.5) / QUANTILES as f64;
            while below < wanted && size < 2 * mean {
                size += 1;
                below += weight(size);
            }
            *quantile = size.max(least) as u32;
        }
        Self::Normal(Box::new(quantiles))
    }

    /// The size that belongs to a random word.
    #[inline(always)]
    pub fn of(&self, word: u64) -> usize {
        match self {
            Self::Fixed(size) => *size,
            Self::Normal(quantiles) => quantiles[word as usize % QUANTILES] as usize,
        }
    }

    /// The mean of all.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(size) => *size as f64,
            Self::Normal(all) => {
                all.iter().map(|size| f64::from(*size)).sum::<f64>() / QUANTILES as f64
            }
        }
    }

    /// The longest.
    pub fn max(&self) -> usize {
        match self {
            Self::Fixed(size) => *size,
            Self::Normal(quantiles) => quantiles[QUANTILES - 1] as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_sizes_have_the_paper_s_mean_and_deviation() {
        for (mean, deviation) in [(16.0, 3.2), (200.0, 40.0), (1000.0, 200.0)] {
            let sizes = Sizes::normal(mean as usize, 1);
            let Sizes::Normal(all) = &sizes else { panic!() };
            assert!((sizes.mean() - mean).abs() < 0.01 * mean, "{}", sizes.mean());
            let squares: f64 = all.iter().map(|size| (f64::from(*size) - mean).powi(2)).sum();
            let found = (squares / QUANTILES as f64).sqrt();
            assert!((found - deviation).abs() < 0.05 * deviation, "{found} around {mean}");
            assert_eq!(sizes.max(), *all.iter().max().expect("some") as usize);
        }
    }

    #[test]
    fn no_size_is_below_the_least() {
        let sizes = Sizes::normal(16, 8);
        assert!((0..256).all(|word| sizes.of(word) >= 8));
        assert!((0..256).any(|word| sizes.of(word) == 8));
    }
}
