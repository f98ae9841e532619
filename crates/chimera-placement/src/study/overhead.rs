//! [`overhead`]: what the allocator itself costs, without anything charged.
//!
//! Block caches with RocksDB's own allocator, and with ours in a mapped file, by
//! turns on the same database. Persistent memory is on the same medium as DRAM then, so what differs is the allocator. Ratios are
//! of runs that follow each other, and their median is what is said.

use serde::Serialize;

use super::drive::{Load, drive, fill, remove};
use super::options::StudyOptions;
use super::plan::VALUE_BYTES;
use super::result::Part;
use super::statistics::median;
use crate::error::Result;
use crate::placement::{Components, Placement};
use crate::workload::{Mix, Shared};

/// Threads.
const THREADS: usize = 2;

/// What a placement costs beside RocksDB's own allocator.
#[derive(Clone, Debug, Serialize)]
pub struct OverheadRow {
    /// The load.
    pub mix: Mix,
    /// The placement.
    pub placement: String,
    /// Operations per second of RocksDB's own allocator, in each pair.
    pub dram_ops_per_s: Vec<f64>,
    /// Operations per second of the placement, in each pair.
    pub ops_per_s: Vec<f64>,
    /// Median of the ratios of the pairs, less 1, in percent: above 0 the placement is slower.
    pub slower_percent: f64,
    /// The same of the pair at a quarter and at three quarters of all.
    pub quartiles_percent: [f64; 2],
    /// Share of lookups that hit.
    pub hit_ratio: f64,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct Overhead {
    /// A row for each load and placement.
    pub rows: Vec<OverheadRow>,
    /// Repetitions.
    pub pairs: usize,
}

/// Measures it; `progress` is told before each pair.
///
/// # Errors
/// When options make no sense, persistent memory is not to be had, or RocksDB fails.
pub fn overhead(options: &StudyOptions, progress: &mut dyn FnMut(&str)) -> Result<Overhead> {
    options.check()?;
    let arena = options.open_arena()?;
    let sizes = options.sizes(Part::Hits);
    let path = options.database_path();
    let mut rows = Vec::new();
    for mix in [Mix::YcsbC, Mix::YcsbA] {
        let load = Load {
            threads: THREADS,
            operations: options.operations(),
            key_bytes: 16,
            value_bytes: VALUE_BYTES,
            seed: options.seed,
        };
        remove(&path)?;
        let filled = Components::new(Placement::DRAM, sizes, None, None)?.open(&path)?;
        fill(&filled, options.records(), &load)?;
        drop(filled);
        let measure = |placement: Placement, pair: u64| -> Result<(f64, f64)> {
            let components = Components::new(placement, sizes, Some(&arena), None)?;
            let database = components.open(&path)?;
            let shared = Shared::new(mix, options.records());
            let load = Load { seed: load.seed.wrapping_add(pair), ..load };
            drive(&database, &shared, &Load { seed: !load.seed, ..load })?;
            let before = database.counts();
            let measured = drive(&database, &shared, &load)?;
            let counts = database.counts();
            let hits = counts.block_cache_hits - before.block_cache_hits;
            let misses = counts.block_cache_misses - before.block_cache_misses;
            Ok((measured.ops_per_s(), hits as f64 / (hits + misses).max(1) as f64))
        };
        let (mut dram, mut ours, mut hit_ratio) = (Vec::new(), Vec::new(), 0.0);
        for pair in 0..options.repetitions as u64 {
            progress(&format!("{mix:?} pair {}", pair + 1));
            // Each side goes first every other time.
            let first_is_dram = pair % 2 == 0;
            let order = if first_is_dram {
                [Placement::DRAM, Placement::CACHE]
            } else {
                [Placement::CACHE, Placement::DRAM]
            };
            for placement in order {
                let (ops_per_s, hits) = measure(placement, pair)?;
                if placement == Placement::DRAM {
                    dram.push(ops_per_s);
                } else {
                    ours.push(ops_per_s);
                    hit_ratio = hits;
                }
            }
        }
        rows.push(row(mix, Placement::CACHE, dram, ours, hit_ratio));
    }
    remove(&path)?;
    Ok(Overhead { rows, pairs: options.repetitions })
}

fn row(
    mix: Mix,
    placement: Placement,
    dram: Vec<f64>,
    ours: Vec<f64>,
    hit_ratio: f64,
) -> OverheadRow {
    let mut slower: Vec<f64> =
        dram.iter().zip(&ours).map(|(dram, ours)| (dram / ours - 1.0) * 100.0).collect();
    slower.sort_by(f64::total_cmp);
    let at =
        |part: usize| slower.get(slower.len().saturating_sub(1) * part / 4).copied().unwrap_or(0.0);
    OverheadRow {
        mix,
        placement: placement.to_string(),
        slower_percent: median(&slower),
        quartiles_percent: [at(1), at(3)],
        dram_ops_per_s: dram,
        ops_per_s: ours,
        hit_ratio,
    }
}
