use std::collections::BTreeSet;

use chimera_pmem::{Environment, SteppedEnvironment};

use super::*;

const BLOCKS: u64 = 24;

fn blocks(holes: &Holes) -> BTreeSet<u64> {
    holes.all().into_iter().flatten().collect()
}

#[test]
fn ranges_are_those_of_a_set_of_blocks() {
    let environment = SteppedEnvironment::in_memory(7);
    let below = |end: u64| environment.random_u64() % end;
    for _ in 0..200 {
        let (mut holes, mut expected) = (Holes::default(), BTreeSet::new());
        for _ in 0..20 {
            let start = below(BLOCKS);
            let range = start..start + 1 + below(BLOCKS - start);
            let is_any = range.clone().any(|block| expected.contains(&block));
            let is_all = range.clone().all(|block| expected.contains(&block));
            assert_eq!((holes.has_any(&range), holes.has_all(&range)), (is_any, is_all));
            if below(2) == 0 {
                expected.extend(range.clone());
                holes.add(range);
            } else {
                range.clone().for_each(|block| {
                    expected.remove(&block);
                });
                holes.remove(range);
            }
            assert_eq!(blocks(&holes), expected);
            let all = holes.all();
            assert!(all.windows(2).all(|pair| pair[0].end < pair[1].start), "{all:?} touch");
        }
    }
}
