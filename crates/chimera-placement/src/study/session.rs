//! [`run`]: the workloads of the study, each with its placements by turns.
//!
//! The repetitions of a workload are interleaved: every placement once, then every placement again, each time beginning with
//! another one. So a change of the machine's speed meets all placements.

use std::path::Path;
use std::sync::Arc;

use chimera_pmem::instrumented::ReadModel;

use super::drive::{Load, Measured, drive, fill, remove};
use super::findings::{READINGS, findings};
use super::options::{StudyOptions, cores};
use super::plan::{Group, VALUE_BYTES, plan};
use super::result::{Charged, ComponentBytes, Latency, Row, RunKey, Study};
use super::statistics::{median, spread};
use crate::arena::Arena;
use crate::database::Counts;
use crate::error::Result;
use crate::placement::{Components, Placement, Sizes};
use crate::workload::{Mix, Shared};

/// Runs that the study consists of.
///
/// # Errors
/// As [`StudyOptions::check`].
pub fn runs(options: &StudyOptions) -> Result<usize> {
    options.check()?;
    let mut count = 0;
    for part in &options.parts {
        for group in plan(*part)? {
            count += group.placements.iter().filter(|placement| options.wants(**placement)).count();
        }
    }
    Ok(count * options.repetitions)
}

/// Runs the study; `progress` is told before each run which one it is.
///
/// # Errors
/// When options make no sense, persistent memory is not to be had, or RocksDB fails.
pub fn run(options: &StudyOptions, progress: &mut dyn FnMut(&str)) -> Result<Study> {
    options.check()?;
    let arena = options.open_arena(&options.parts)?;
    let is_dax = arena.region().is_dax();
    let mut rows = Vec::new();
    for part in &options.parts {
        for mut group in plan(*part)? {
            group.placements.retain(|placement| options.wants(*placement));
            rows.extend(run_group(options, &group, &arena, progress)?);
        }
    }
    let settings = options.settings(is_dax);
    let findings = findings(&rows, &settings);
    Ok(Study { settings, rows, findings, readings: READINGS.to_vec() })
}

/// What the repetitions of one placement gave.
struct Repeated {
    ops_per_s: Vec<f64>,
    mean_us: Vec<f64>,
    all: Measured,
    last: Option<Once>,
}

fn run_group(
    options: &StudyOptions,
    group: &Group,
    arena: &Arc<Arena>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    let place = Site::new(options, group, arena);
    let empty = |_| -> Result<Repeated> {
        Ok(Repeated { ops_per_s: vec![], mean_us: vec![], all: Measured::new()?, last: None })
    };
    let mut repeated = group.placements.iter().map(empty).collect::<Result<Vec<_>>>()?;
    for repetition in 0..options.repetitions {
        for step in 0..group.placements.len() {
            let at = (step + repetition) % group.placements.len();
            let placement = group.placements[at];
            progress(&format!(
                "{:?} {:?} {}",
                group.part,
                group.mix,
                key_of(group, placement).label()
            ));
            let once = place.run(placement, repetition as u64)?;
            let of = &mut repeated[at];
            of.ops_per_s.push(once.measured.ops_per_s());
            of.mean_us.push(once.measured.mean_us());
            of.all.add(&once.measured);
            of.last = Some(once);
        }
    }
    drop(place);
    let rows = group.placements.iter().zip(repeated);
    Ok(rows.filter_map(|(placement, repeated)| row(group, *placement, repeated)).collect())
}

fn key_of(group: &Group, placement: Placement) -> RunKey {
    RunKey {
        part: group.part,
        mix: group.mix,
        key_bytes: group.key_bytes,
        threads: group.threads,
        placement: placement.to_string(),
    }
}

fn row(group: &Group, placement: Placement, repeated: Repeated) -> Option<Row> {
    let last = repeated.last?;
    let median_ops_per_s = median(&repeated.ops_per_s);
    Some(Row {
        key: key_of(group, placement),
        is_oversubscribed: group.threads > cores(),
        median_ops_per_s,
        spread: spread(&repeated.ops_per_s),
        mean_us: median(&repeated.mean_us),
        ops_per_s: repeated.ops_per_s,
        reads: Latency::of(&repeated.all.reads),
        writes: Latency::of(&repeated.all.writes),
        counts: last.counts,
        cache: last.cache,
        memtable: last.memtable,
        charged: last.charged,
        freed_bytes: last.cache.pmem + last.memtable.pmem,
        overflow_bytes: last.overflow_bytes,
    })
}

/// One run.
struct Once {
    measured: Measured,
    counts: Counts,
    cache: ComponentBytes,
    memtable: ComponentBytes,
    charged: Charged,
    overflow_bytes: u64,
}

/// Where the runs of a group take place.
struct Site<'a> {
    options: &'a StudyOptions,
    group: &'a Group,
    arena: &'a Arc<Arena>,
    sizes: Sizes,
}

/// The database goes, also where a run fails: it may be all that fills the memory of a `tmpfs`.
impl Drop for Site<'_> {
    fn drop(&mut self) {
        let _ = remove(&self.path());
    }
}

impl<'a> Site<'a> {
    fn new(options: &'a StudyOptions, group: &'a Group, arena: &'a Arc<Arena>) -> Self {
        Self { options, group, arena, sizes: options.sizes(group.part) }
    }

    fn path(&self) -> std::path::PathBuf {
        self.options.database_path()
    }

    fn load(&self, repetition: u64) -> Load {
        Load {
            threads: self.group.threads,
            operations: self.options.operations(),
            key_bytes: self.group.key_bytes,
            value_bytes: VALUE_BYTES,
            seed: self.options.seed.wrapping_add(repetition),
        }
    }

    /// Makes the database that the runs begin with: an empty one, or one with all records. A database that no run changes is made
    /// once.
    fn prepare(&self, path: &Path, load: &Load) -> Result<()> {
        if self.group.mix.begins_loaded() && !self.group.mix.writes() && path.exists() {
            return Ok(());
        }
        remove(path)?;
        if self.group.mix.begins_loaded() {
            let components = Components::new(Placement::DRAM, self.sizes, None, None)?;
            fill(&components.open(path)?, self.options.records(), load)?;
        }
        Ok(())
    }

    fn run(&self, placement: Placement, repetition: u64) -> Result<Once> {
        let path = self.path();
        let load = self.load(repetition);
        self.prepare(&path, &load)?;
        let model = self.options.model(self.arena.region().is_dax());
        let components = Components::new(placement, self.sizes, Some(self.arena), model.as_ref())?
            .direct(self.options.is_direct);
        let database = components.open(&path)?;
        let shared = Shared::new(self.group.mix, self.options.records());
        if self.group.mix == Mix::YcsbC {
            // The cache is full before anything is timed. The same threads draw other records.
            drive(&database, &shared, &Load { seed: !load.seed, ..load })?;
        }
        let before = (database.counts()?, charged(model.as_deref()));
        let measured = drive(&database, &shared, &load)?;
        let counts = since(before.0, database.counts()?);
        let now = charged(model.as_deref());
        let charged = Charged {
            reads: now.reads - before.1.reads,
            media_reads: now.media_reads - before.1.media_reads,
            waited_ns: now.waited_ns - before.1.waited_ns,
        };
        let (cache, memtable, overflow_bytes) = bytes(&components, &counts);
        Ok(Once { measured, counts, cache, memtable, charged, overflow_bytes })
    }
}

fn charged(model: Option<&ReadModel>) -> Charged {
    let counts = model.map(ReadModel::counts).unwrap_or_default();
    let (reads, media_reads) = (counts.reads, counts.media_reads);
    Charged { reads, media_reads, waited_ns: counts.waited_ns }
}

/// What was counted between two moments; bytes are those of the later one.
fn since(before: Counts, now: Counts) -> Counts {
    Counts {
        block_cache_hits: now.block_cache_hits - before.block_cache_hits,
        block_cache_misses: now.block_cache_misses - before.block_cache_misses,
        block_cache_adds: now.block_cache_adds - before.block_cache_adds,
        tier_hits: now.tier_hits - before.tier_hits,
        memtable_hits: now.memtable_hits - before.memtable_hits,
        memtable_misses: now.memtable_misses - before.memtable_misses,
        stall_us: now.stall_us - before.stall_us,
        pmem_cache_hits: now.pmem_cache_hits - before.pmem_cache_hits,
        cache_refused: now.cache_refused - before.cache_refused,
        ..now
    }
}

/// Bytes of block cache and memtables, and what had no room.
fn bytes(components: &Components, counts: &Counts) -> (ComponentBytes, ComponentBytes, u64) {
    let mut overflow = 0;
    let mut of = |heap: Option<&Arc<crate::heap::Heap>>, own: u64| {
        let Some(heap) = heap else { return ComponentBytes { dram: own, pmem: 0 } };
        let report = heap.report();
        overflow += report.overflow_bytes;
        ComponentBytes { dram: report.dram_bytes + report.overflow_bytes, pmem: report.pmem_bytes }
    };
    let mut cache = of(components.cache.as_ref(), counts.cache_usage_bytes);
    let memtable = of(components.memtable.as_ref(), counts.memtable_bytes);
    if let Some(tier) = &components.tier {
        let report = tier.report();
        cache.dram += report.index_bytes;
        cache.pmem += report.pmem_bytes;
    }
    (cache, memtable, overflow)
}
