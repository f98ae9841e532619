//! [`Distribution`]: which records are asked for; [`Chooser`]: one thread's way to choose them.

use std::sync::Arc;

use super::random::{Random, mix, reduce};
use super::zipfian::Zipfian;

/// Which records are asked for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Each as often as any other.
    Uniform,
    /// By Zipf's law, the favourites scattered over the key space.
    Zipfian,
    /// By Zipf's law, the newest record most often.
    Latest,
}

/// Chooses records for one thread, of `0..loaded` and of those the thread has inserted.
#[derive(Clone, Debug)]
pub(crate) enum Chooser {
    Uniform { loaded: u64 },
    Zipfian { loaded: u64, zipfian: Arc<Zipfian> },
    Latest { loaded: u64, zipfian: Zipfian },
}

impl Chooser {
    /// `zipfian` has `loaded` items, and is not used for uniform choices.
    pub(crate) fn new(distribution: Distribution, loaded: u64, zipfian: &Arc<Zipfian>) -> Self {
        match distribution {
            Distribution::Uniform => Self::Uniform { loaded },
            Distribution::Zipfian => Self::Zipfian { loaded, zipfian: zipfian.clone() },
            Distribution::Latest => Self::Latest { loaded, zipfian: Zipfian::clone(zipfian) },
        }
    }

    /// A record, where the thread has inserted those of `first..next` itself.
    #[inline(always)]
    pub(crate) fn choose(&mut self, random: &mut Random, first: u64, next: u64) -> u64 {
        match self {
            Self::Uniform { loaded } => random.below(*loaded),
            Self::Zipfian { loaded, zipfian } => {
                // As in YCSB: the rank through a hash, so that favourites are not neighbours.
                reduce(mix(zipfian.rank(random.fraction())), *loaded)
            }
            Self::Latest { loaded, zipfian } => {
                let inserted = next - first;
                if *loaded + inserted > zipfian.items() {
                    zipfian.grow(*loaded + inserted);
                }
                let rank = zipfian.rank(random.fraction());
                if rank < inserted { next - 1 - rank } else { *loaded - 1 - (rank - inserted) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chooser(distribution: Distribution, loaded: u64) -> Chooser {
        Chooser::new(distribution, loaded, &Arc::new(Zipfian::new(loaded, 0.99)))
    }

    #[test]
    fn scrambled_favourites_are_as_hot_but_not_neighbours() {
        let mut random = Random::new(5, 0);
        let mut counts = vec![0_u64; 10_000];
        let mut chooser = chooser(Distribution::Zipfian, 10_000);
        for _ in 0..200_000 {
            counts[chooser.choose(&mut random, 0, 0) as usize] += 1;
        }
        let mut order: Vec<_> = (0..10_000_usize).collect();
        order.sort_by_key(|number| std::cmp::Reverse(counts[*number]));
        // About 1 / zeta(10000, 0.99) = 10 % fall on the favourite.
        assert!((18_000..24_000).contains(&counts[order[0]]), "{}", counts[order[0]]);
        let neighbours = order[..20].windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 10);
        assert!(neighbours.count() < 3, "{:?}", &order[..20]);
    }

    #[test]
    fn latest_prefers_what_was_inserted_last_and_never_leaves_what_is_there() {
        let mut random = Random::new(5, 0);
        let mut chooser = chooser(Distribution::Latest, 1000);
        let (first, mut next) = (5000, 5000);
        let mut newest = 0;
        for round in 0..10_000 {
            let number = chooser.choose(&mut random, first, next);
            assert!(number < 1000 || (first..next).contains(&number), "{number}");
            let last = if next > first { next - 1 } else { 999 };
            newest += u64::from(number == last);
            next += u64::from(round % 20 == 0);
        }
        // 1 / zeta(1000..1500, 0.99) is about an eighth.
        assert!((1000..1700).contains(&newest), "{newest}");
    }

    #[test]
    fn uniform_reaches_all() {
        let mut random = Random::new(5, 0);
        let mut chooser = chooser(Distribution::Uniform, 10);
        let mut seen = [false; 10];
        for _ in 0..1000 {
            seen[chooser.choose(&mut random, 0, 0) as usize] = true;
        }
        assert_eq!(seen, [true; 10]);
    }
}
