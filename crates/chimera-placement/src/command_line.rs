//! What the user may say.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use chimera_placement::database::CacheKind;
use chimera_placement::placement::Placement;
use chimera_placement::study::{Part, StudyOptions};
use chimera_placement::{Error, Result};
use chimera_pmem::instrumented::Profile;

/// By how much `--quick` divides all sizes.
const QUICK_SCALE_DOWN: u64 = 50;

/// RocksDB with block cache and memtables in DRAM, in persistent memory or in both.
#[derive(Debug, Parser)]
#[command(name = "chimera-placement", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs the placement study: the published workloads, shares, YCSB, and reads that mostly hit.
    Run(StudyArguments),
    /// Measures what the allocator itself costs beside RocksDB's own, with nothing injected.
    Overhead(LoadArguments),
    /// Writes numbered records to a database, and says after each thousand how many there are.
    Fill(RecordArguments),
    /// Checks records that `fill` wrote.
    Verify(RecordArguments),
}

/// What `run` and `overhead` have in common.
#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// Divides all sizes by 50 and runs each workload once: within a minute.
    #[arg(long)]
    quick: bool,
    /// Directory for databases, and for persistent memory unless --pmem is given. It has to be there.
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    path: PathBuf,
    /// Directory of persistent memory, on a DAX mount where there is one [default: that of --path].
    #[arg(long, value_name = "DIR")]
    pmem: Option<PathBuf>,
    /// Fails where the directory of persistent memory is not on a DAX file system.
    #[arg(long)]
    require_dax: bool,
    /// Divides all published sizes [default: 1, or 50 with --quick].
    #[arg(long, value_name = "N")]
    scale_down: Option<u64>,
    /// Operations of each thread; 0 for as many as there are records, as db_bench does.
    #[arg(long, value_name = "N", default_value_t = 0)]
    operations: u64,
    /// Repetitions of each workload, or pairs of `overhead` [default: 5, or 1 with --quick].
    #[arg(long, value_name = "N")]
    repetitions: Option<usize>,
    /// Which block cache.
    #[arg(long, value_enum, default_value_t = CacheKind::Lru)]
    cache: CacheKind,
    /// Seed of keys and values.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Prints all results as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl LoadArguments {
    /// Options of a run without parts, with nothing injected.
    pub(crate) fn options(&self) -> StudyOptions {
        StudyOptions {
            path: self.path.clone(),
            pmem: self.pmem.clone().unwrap_or_else(|| self.path.clone()),
            require_dax: self.require_dax,
            parts: Vec::new(),
            placements: Vec::new(),
            profile: Profile::Dram,
            processor_cache_bytes: 0,
            is_direct: false,
            scale_down: self.scale_down.unwrap_or(if self.quick { QUICK_SCALE_DOWN } else { 1 }),
            operations: self.operations,
            repetitions: self.repetitions.unwrap_or(if self.quick { 1 } else { 5 }),
            cache_kind: self.cache,
            seed: self.seed,
            command: std::env::args().collect::<Vec<_>>().join(" "),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct StudyArguments {
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    /// Parts to run, all unless given.
    #[arg(long = "part", value_name = "PART", value_enum, value_delimiter = ',')]
    parts: Vec<Part>,
    /// Placements to run beside dram, all of a part unless given: such as cache, both-40, tier-lz4.
    #[arg(long = "placement", value_name = "NAME", value_delimiter = ',')]
    placements: Vec<Placement>,
    /// Which persistent memory to model: optane-100, cxl-nvcmm, hikv-nvm, or dram for nothing. On DAX nothing is modelled.
    #[arg(long, default_value = "optane-100")]
    profile: Profile,
    /// Bytes of a modelled processor cache in front of persistent memory; 0 for none, so that each read goes to the media.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    processor_cache: u64,
    /// Reads and writes databases past the system's page cache, so that a miss costs a read of the disk. Needs --path on a disk.
    #[arg(long)]
    direct: bool,
    /// Directory for a report: one HTML page, and all results as JSON.
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,
}

/// The least and the most that a modelled processor cache may have, beside none.
const PROCESSOR_CACHE_BYTES: std::ops::RangeInclusive<u64> = 1 << 16..=1 << 30;

impl StudyArguments {
    /// What the study is asked for.
    pub(crate) fn study_options(&self) -> Result<StudyOptions> {
        let wrong = |text: String| Err(Error::Option(text));
        if self.processor_cache != 0 && !PROCESSOR_CACHE_BYTES.contains(&self.processor_cache) {
            return wrong(format!("--processor-cache is 0, or {PROCESSOR_CACHE_BYTES:?} bytes"));
        }
        if self.processor_cache != 0 && self.profile == Profile::Dram {
            return wrong("--processor-cache has no effect with --profile dram".to_owned());
        }
        let all = [Part::Published, Part::Shares, Part::Ycsb, Part::Hits];
        Ok(StudyOptions {
            parts: if self.parts.is_empty() { all.to_vec() } else { self.parts.clone() },
            placements: self.placements.clone(),
            profile: self.profile,
            processor_cache_bytes: self.processor_cache,
            is_direct: self.direct,
            ..self.load.options()
        })
    }
}

/// Where persistent memory comes from.
#[derive(Debug, Args)]
pub(crate) struct PmemArguments {
    /// Directory of persistent memory, on a DAX mount where there is one. Needed by every placement but dram.
    #[arg(long, value_name = "DIR")]
    pub(crate) pmem: Option<PathBuf>,
    /// Fails where the directory of persistent memory is not on a DAX file system.
    #[arg(long)]
    pub(crate) require_dax: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArguments {
    /// The database.
    pub(crate) database: PathBuf,
    /// Records.
    #[arg(long)]
    pub(crate) records: u64,
    /// Where block cache and memtables lie: dram, cache, memtable, both, tier; see docs/PLACEMENT.md.
    #[arg(long, default_value = "both")]
    pub(crate) placement: Placement,
    /// Bytes of the block cache.
    #[arg(long, value_name = "BYTES", default_value_t = 8 << 20)]
    pub(crate) cache_bytes: u64,
    /// Bytes of a memtable.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    pub(crate) write_buffer_bytes: u64,
    #[command(flatten)]
    pub(crate) pmem: PmemArguments,
}
