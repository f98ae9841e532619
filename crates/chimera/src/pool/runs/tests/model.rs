//! Runs by chance against a model.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Take(usize, u32),
    /// The run at this part of those that are held.
    Free(prop::sample::Index),
    Reopen,
    /// A reader finds the same.
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..KINDS.len(), 1..=6_u32).prop_map(|(kind, blocks)| Step::Take(kind, blocks)),
        1 => (0..KINDS.len(), 10..=16_u32).prop_map(|(kind, blocks)| Step::Take(kind, blocks)),
        6 => any::<prop::sample::Index>().prop_map(Step::Free),
        1 => Just(Step::Reopen),
        1 => Just(Step::Look),
    ]
}

/// Whether the model has room for a run, free or fresh.
fn has_room(held: &Held, blocks: u32) -> bool {
    let is_taken = |block: u64| {
        held.range(..=block)
            .next_back()
            .is_some_and(|(&first, run)| block < first + u64::from(run.0))
    };
    (0..64 / PER_SEGMENT).any(|segment| {
        let blocks_of_it = segment * PER_SEGMENT..(segment + 1) * PER_SEGMENT;
        let mut free = 0;
        blocks_of_it.into_iter().any(|block| {
            free = if is_taken(block) { 0 } else { free + 1 };
            free == blocks
        })
    })
}

fn check(pool: &Pool<Media>, held: &Held) {
    check_free(pool, held).unwrap();
    let counts = pool.count_runs(&KINDS);
    let in_use: u64 = counts.kinds.iter().map(|of| of.blocks).sum();
    assert_eq!(in_use + counts.free_blocks, pool.used_blocks());
    assert_eq!(counts.kinds.iter().map(|of| of.runs).sum::<u64>(), held.len() as u64);
}

fn run_steps(steps: &[Step]) {
    let mut pool = new_pool();
    let mut runs: Vec<(Run, u64)> = Vec::new();
    for (mark, step) in (1..).zip(steps) {
        match step {
            Step::Take(kind, blocks) => match take_marked(&pool, KINDS[*kind], *blocks, mark) {
                Ok(run) => {
                    fill(&pool, &run);
                    runs.push((run, mark));
                }
                Err(Error::PoolFull { .. }) => assert!(!has_room(&held(&runs), *blocks)),
                Err(error) => panic!("{error}"),
            },
            Step::Free(_) if runs.is_empty() => {}
            Step::Free(index) => {
                let (run, _) = runs.swap_remove(index.index(runs.len()));
                pool.free_run(run).unwrap();
            }
            Step::Reopen => {
                let expected = held(&runs);
                pool = open(&pool.pmem.image()).unwrap();
                runs = recover(&pool).unwrap();
                assert_eq!(held(&runs), expected);
            }
            Step::Look => {
                let reader = PoolOptions { read_only: true, ..options() };
                let image = pool.pmem.image();
                let other = open_with(&Media::default(), &image, &reader).unwrap();
                assert_eq!(held(&recover(&other).unwrap()), held(&runs));
                assert_eq!(other.pmem.image(), image);
            }
        }
        check(&pool, &held(&runs));
    }
    for (run, _) in runs {
        pool.free_run(run).unwrap();
    }
    check(&pool, &Held::new());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn runs_are_as_in_the_model(steps in prop::collection::vec(step(), 1..80)) {
        run_steps(&steps);
    }
}
