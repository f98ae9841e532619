//! [`overhead`]: what the allocator itself costs, without anything charged.
//!
//! Block caches with RocksDB's own allocator, with ours in a mapped file, and, where it is built in, with libmemkind's, by turns on
//! the same database. All memory is of the same kind then, so what differs is the allocator. Ratios are of runs that follow each
//! other, and their median is what is said.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::drive::{Load, drive, fill, remove};
use super::options::StudyOptions;
use super::plan::VALUE_BYTES;
use super::result::Part;
use super::statistics::median;
use crate::arena::Arena;
use crate::database::has_memkind;
use crate::error::{Error, Result};
use crate::placement::{Components, Placement, Sizes};
use crate::workload::{Mix, Shared};

/// Threads.
const THREADS: usize = 2;
/// Loads: reads alone, and half of it writes.
const MIXES: [Mix; 2] = [Mix::YcsbC, Mix::YcsbA];

/// Whose allocator a block cache uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contender {
    /// RocksDB's own.
    RocksDb,
    /// Ours.
    Chimera,
    /// That of the published study.
    Memkind,
}

/// What a contender costs beside RocksDB's own allocator.
#[derive(Clone, Debug, Serialize)]
pub struct OverheadRow {
    /// The load.
    pub mix: Mix,
    /// The contender.
    pub contender: Contender,
    /// Operations per second of RocksDB's own allocator, by turns with those of the contender.
    pub rocksdb_ops_per_s: Vec<f64>,
    /// Operations per second.
    pub ops_per_s: Vec<f64>,
    /// Median of the ratios, less 1, in percent: above 0 the contender is slower.
    pub slower_percent: f64,
    /// The same at a quarter and at three quarters of all.
    pub quartiles_percent: [f64; 2],
    /// Share of lookups that hit, in the last repetition.
    pub hit_ratio: f64,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct Overhead {
    /// A row for each load and contender.
    pub rows: Vec<OverheadRow>,
    /// Repetitions.
    pub repetitions: usize,
}

/// Runs that [`overhead`] consists of.
///
/// # Errors
/// As [`StudyOptions::check`].
pub fn overhead_runs(options: &StudyOptions) -> Result<usize> {
    options.check()?;
    Ok(MIXES.len() * contenders().len() * options.repetitions)
}

fn contenders() -> Vec<Contender> {
    let mut contenders = vec![Contender::RocksDb, Contender::Chimera];
    contenders.extend(has_memkind().then_some(Contender::Memkind));
    contenders
}

/// Measures it; `progress` is told before each run.
///
/// # Errors
/// When options make no sense, persistent memory is not to be had, or RocksDB fails.
pub fn overhead(options: &StudyOptions, progress: &mut dyn FnMut(&str)) -> Result<Overhead> {
    options.check()?;
    let site = Site {
        options,
        arena: options.open_arena(&[Part::Hits])?,
        sizes: options.sizes(Part::Hits),
        path: options.database_path(),
    };
    let mut rows = Vec::new();
    for mix in MIXES {
        rows.extend(site.rows(mix, progress)?);
    }
    drop(site);
    Ok(Overhead { rows, repetitions: options.repetitions })
}

/// Where the runs take place.
struct Site<'a> {
    options: &'a StudyOptions,
    arena: Arc<Arena>,
    sizes: Sizes,
    path: PathBuf,
}

/// The database goes, also where a run fails.
impl Drop for Site<'_> {
    fn drop(&mut self) {
        let _ = remove(&self.path);
    }
}

impl Site<'_> {
    fn load(&self, repetition: u64) -> Load {
        Load {
            threads: THREADS,
            operations: self.options.operations(),
            key_bytes: 16,
            value_bytes: VALUE_BYTES,
            seed: self.options.seed.wrapping_add(repetition),
        }
    }

    fn components(&self, contender: Contender) -> Result<Components> {
        let (arena, pmem): (_, &Path) = (Some(&self.arena), &self.options.pmem);
        match contender {
            Contender::RocksDb => Components::new(Placement::DRAM, self.sizes, arena, None),
            Contender::Chimera => Components::new(Placement::CACHE, self.sizes, arena, None),
            Contender::Memkind => Components::with_memkind(self.sizes, pmem),
        }
    }

    /// Operations per second of one run, and the share of lookups that hit.
    fn run(&self, mix: Mix, contender: Contender, repetition: u64) -> Result<(f64, f64)> {
        let database = self.components(contender)?.open(&self.path)?;
        let shared = Shared::new(mix, self.options.records());
        let load = self.load(repetition);
        // The cache is full before anything is timed.
        drive(&database, &shared, &Load { seed: !load.seed, ..load })?;
        let before = database.counts()?;
        let measured = drive(&database, &shared, &load)?;
        let counts = database.counts()?;
        let hits = counts.block_cache_hits - before.block_cache_hits;
        let misses = counts.block_cache_misses - before.block_cache_misses;
        if counts.cache_refused > 0 {
            // A cache that is smaller than the one beside it is compared with nothing.
            let what = format!("{} blocks had no room in persistent memory", counts.cache_refused);
            return Err(Error::Measurement(what));
        }
        Ok((measured.ops_per_s(), hits as f64 / (hits + misses).max(1) as f64))
    }

    fn rows(&self, mix: Mix, progress: &mut dyn FnMut(&str)) -> Result<Vec<OverheadRow>> {
        remove(&self.path)?;
        let filled = self.components(Contender::RocksDb)?.open(&self.path)?;
        fill(&filled, self.options.records(), &self.load(0))?;
        drop(filled);
        let contenders = contenders();
        let mut rates = vec![Vec::new(); contenders.len()];
        let mut hit_ratios = vec![0.0; contenders.len()];
        for repetition in 0..self.options.repetitions {
            for step in 0..contenders.len() {
                // Each one goes first in its turn.
                let at = (step + repetition) % contenders.len();
                progress(&format!("{mix:?} {:?}", contenders[at]));
                let (ops_per_s, hit_ratio) = self.run(mix, contenders[at], repetition as u64)?;
                rates[at].push(ops_per_s);
                hit_ratios[at] = hit_ratio;
            }
        }
        let of = |at: usize| row(mix, contenders[at], &rates[0], &rates[at], hit_ratios[at]);
        Ok((1..contenders.len()).map(of).collect())
    }
}

fn row(mix: Mix, contender: Contender, own: &[f64], rates: &[f64], hit_ratio: f64) -> OverheadRow {
    let mut slower: Vec<f64> =
        own.iter().zip(rates).map(|(own, rate)| (own / rate - 1.0) * 100.0).collect();
    slower.sort_by(f64::total_cmp);
    let at = |part: usize| {
        let index = slower.len().saturating_sub(1) * part / 4;
        slower.get(index).copied().unwrap_or(0.0)
    };
    OverheadRow {
        mix,
        contender,
        slower_percent: median(&slower),
        quartiles_percent: [at(1), at(3)],
        rocksdb_ops_per_s: own.to_vec(),
        ops_per_s: rates.to_vec(),
        hit_ratio,
    }
}
