use std::collections::BTreeSet;

use chimera_pmem::{Environment, SteppedEnvironment};

use super::*;

const BLOCKS: u64 = 24;

fn blocks(hollow: &Hollow) -> BTreeSet<u64> {
    hollow.all().into_iter().flatten().collect()
}

#[test]
fn ranges_are_those_of_a_set_of_blocks() {
    let environment = SteppedEnvironment::in_memory(7);
    let below = |end: u64| environment.random_u64() % end;
    for _ in 0..200 {
        let (mut hollow, mut expected) = (Hollow::default(), BTreeSet::new());
        for _ in 0..20 {
            let start = below(BLOCKS);
            let range = start..start + 1 + below(BLOCKS - start);
            let is_any = range.clone().any(|block| expected.contains(&block));
            let is_all = range.clone().all(|block| expected.contains(&block));
            assert_eq!((hollow.has_any(&range), hollow.has_all(&range)), (is_any, is_all));
            if below(2) == 0 {
                expected.extend(range.clone());
                hollow.add(range);
            } else {
                range.clone().for_each(|block| {
                    expected.remove(&block);
                });
                hollow.remove(range);
            }
            assert_eq!(blocks(&hollow), expected);
            let all = hollow.all();
            assert!(all.windows(2).all(|pair| pair[0].end < pair[1].start), "{all:?} touch");
        }
    }
}
