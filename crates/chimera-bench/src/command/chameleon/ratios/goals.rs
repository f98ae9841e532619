//! What was measured, against what it is to be.

use super::super::sides::{
    CHAMELEON, DRAM_HASH, PMEM_HASH, PMEM_LSM_F, PMEM_LSM_NF, PMEM_LSM_PINK, Side, WRITE_INTENSIVE,
};
use super::{GET, OVERWRITE, PUT, Point, SHARES};
use crate::report::StoreRow;
use crate::report::chameleon::{GoalRow, ShareRow, SideRow};
use crate::results::series::{Results, Series};
use crate::results::statistics::{median, range, ratio};

/// What ratios of throughput are to be at least.
const GOALS: [(&str, &str, &str, f64); 6] = [
    (PUT, CHAMELEON, PMEM_LSM_F, 2.5),
    (PUT, CHAMELEON, PMEM_HASH, 4.0),
    (GET, CHAMELEON, PMEM_LSM_NF, 2.0),
    (GET, CHAMELEON, PMEM_LSM_PINK, 1.3),
    (GET, CHAMELEON, PMEM_HASH, 1.2),
    (PUT, WRITE_INTENSIVE, CHAMELEON, 1.25),
];
/// What DRAM is to be of that of `dram-hash`, at most.
const DRAM_GOAL: f64 = 0.3;

fn series_of<'a>(
    results: &'a Results,
    side: &'a str,
    work: &'a str,
) -> impl Iterator<Item = &'a Series> {
    results.series.iter().filter(move |one| one.engine == side && one.operation == work)
}

/// A row for each side. What is compared with `dram-hash` is absent without it.
pub(super) fn side_rows(results: &Results, stores: &[StoreRow]) -> Vec<SideRow> {
    let longest = |side: &str, is_it: fn(&str) -> bool| {
        let all = results.series.iter();
        let of_side = all.filter(|one| one.engine == side && is_it(&one.operation));
        of_side.map(|one| one.latencies.max()).max().unwrap_or_default()
    };
    let row = |store: &StoreRow| {
        let side = &store.facts.engine;
        SideRow {
            side: side.clone(),
            durability: store.facts.durability.clone(),
            dram_bytes_per_key: store.dram_bytes_per_key,
            dram_of_dram_hash: dram_of(stores, side, DRAM_HASH),
            put_ns_max: longest(side, |work| work == PUT || work == OVERWRITE),
            get_ns_max: longest(side, |work| work.starts_with(GET)),
        }
    };
    stores.iter().map(row).collect()
}

/// DRAM per key of one over that of another.
fn dram_of(stores: &[StoreRow], side: &str, than: &str) -> Option<f64> {
    let of = |side: &str| stores.iter().find(|store| store.facts.engine == side);
    let (side, than) = (of(side)?, of(than)?);
    Some(ratio(side.dram_bytes_per_key, than.dram_bytes_per_key))
}

/// A row for each side with levels, and each point.
pub(super) fn share_rows(
    sides: &[Side],
    points: &[Point],
    shares: &[Vec<Vec<f64>>],
) -> Vec<ShareRow> {
    let with_levels = sides.iter().zip(shares).filter(|(side, _)| side.has_levels());
    let rows = with_levels.flat_map(|(side, shares)| {
        points.iter().zip(shares).map(|(point, shares)| ShareRow {
            side: side.name.to_owned(),
            gets: point.gets.to_owned(),
            records: point.records,
            share: ratio(shares.iter().sum(), shares.len() as f64),
        })
    });
    rows.collect()
}

/// All ratios whose both stores were measured: those with a goal first.
pub(super) fn goals(results: &Results, stores: &[StoreRow], threads: &[usize]) -> Vec<GoalRow> {
    let mut rows = Vec::new();
    if let Some(dram) = dram_of(stores, CHAMELEON, DRAM_HASH) {
        rows.push(GoalRow {
            what: GoalRow::DRAM.to_owned(),
            side: CHAMELEON.to_owned(),
            than: DRAM_HASH.to_owned(),
            threads: 0,
            ratio: dram,
            ratio_min: dram,
            ratio_max: dram,
            goal: Some(DRAM_GOAL),
        });
    }
    let of_gets = GOALS.into_iter().filter(|goal| goal.0 == GET);
    let of_puts = GOALS.into_iter().filter(|goal| goal.0 == PUT);
    // The same elsewhere, where no goal is set.
    let gets = of_gets.flat_map(|(_, side, than, _)| SHARES.map(|share| (share.2, side, than)));
    let overwrites = of_puts.map(|(_, side, than, _)| (OVERWRITE, side, than));
    let with_goal = GOALS.map(|(work, side, than, goal)| (work, side, than, Some(goal)));
    let others = gets.chain(overwrites).map(|(work, side, than)| (work, side, than, None));
    for (work, side, than, goal) in with_goal.into_iter().chain(others) {
        let of_threads = threads.iter().filter_map(|threads| {
            let row = throughputs(results, (work, side, than), *threads)?;
            Some(GoalRow { goal, ..row })
        });
        rows.extend(of_threads);
    }
    rows
}

/// The ratio of throughputs of two stores, pass by pass.
fn throughputs(
    results: &Results,
    (work, side, than): (&str, &str, &str),
    threads: usize,
) -> Option<GoalRow> {
    let of = |side| series_of(results, side, work).find(|one| one.threads == threads);
    let (one, other) = (of(side)?, of(than)?);
    let pairs = one.throughputs.iter().zip(&other.throughputs);
    let ratios: Vec<_> = pairs.map(|(one, other)| ratio(*one, *other)).collect();
    Some(GoalRow {
        what: work.to_owned(),
        side: side.to_owned(),
        than: than.to_owned(),
        threads,
        ratio: median(&ratios),
        ratio_min: range(&ratios).0,
        ratio_max: range(&ratios).1,
        goal: None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::report::Facts;
    use crate::results::measured::Measured;

    fn facts(engine: &str) -> Facts {
        Facts {
            engine: engine.to_owned(),
            medium: "tmpfs".to_owned(),
            durability: "batched".to_owned(),
            flush_instruction: "clwb".to_owned(),
            huge_pages: false,
        }
    }

    fn store(engine: &str, dram_bytes_per_key: f64) -> StoreRow {
        StoreRow {
            facts: facts(engine),
            dram_bytes_per_key,
            space_amplification: 1.0,
            verified_records: None,
        }
    }

    #[test]
    fn ratios_are_of_the_same_pass_and_are_compared_with_their_goals() {
        let mut results = Results::default();
        for (side, work, rates) in [
            (CHAMELEON, PUT, [500, 400, 300]),
            (PMEM_HASH, PUT, [100, 100, 100]),
            (WRITE_INTENSIVE, PUT, [500, 400, 300]),
            (CHAMELEON, GET, [100, 100, 130]),
            (PMEM_HASH, GET, [100, 200, 100]),
            (CHAMELEON, OVERWRITE, [100, 100, 100]),
            (PMEM_HASH, OVERWRITE, [100, 100, 100]),
        ] {
            for operations in rates {
                let elapsed = Duration::from_secs(1);
                let measured = Measured { operations, elapsed, histogram: None };
                results.add(&facts(side), work, 2, measured);
            }
        }
        let stores = [store(CHAMELEON, 8.0), store(PMEM_HASH, 1.0), store(DRAM_HASH, 32.0)];
        let rows = goals(&results, &stores, &[2]);
        let found: Vec<_> =
            rows.iter().map(|row| (&*row.what, &*row.than, row.ratio, row.is_met())).collect();
        let expected = [
            ("DRAM", DRAM_HASH, 0.25, Some(true)),
            (PUT, PMEM_HASH, 4.0, Some(true)),
            (GET, PMEM_HASH, 1.0, Some(false)),
            (PUT, CHAMELEON, 1.0, Some(false)),
            (OVERWRITE, PMEM_HASH, 1.0, None),
        ];
        assert_eq!(found, expected);
        assert_eq!((rows[1].ratio_min, rows[1].ratio_max), (3.0, 5.0));
        assert!(goals(&results, &stores[1..], &[1]).is_empty(), "of other threads and stores");
        assert_eq!(side_rows(&results, &stores)[0].dram_of_dram_hash, Some(0.25));
        assert_eq!(side_rows(&results, &stores[..1])[0].dram_of_dram_hash, None);
    }
}
