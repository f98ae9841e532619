//! [`Common`]: the arguments that all subcommands have.

use std::path::PathBuf;
use std::time::Duration;

use chimera::EngineKind;
use chimera::baselines::RecordLayout;
use chimera::{Durability, VerifyReads};
use chimera_pmem::Medium;
use chimera_pmem::instrumented::Profile;

use super::given::Given;
use crate::driver::engine::EngineChoice;
use crate::driver::setup::{MediumChoice, OrderChoice, Setup, Sizing};
use crate::driver::tuning::Tuning;
use crate::error::{BenchError, Result};
use crate::workload::Keys;

/// Records and operations of `--quick`.
pub(super) const QUICK_RECORDS: u64 = 20_000;
/// Repetitions of `--quick`.
const QUICK_REPETITIONS: usize = 2;
/// Records and operations otherwise.
pub(super) const RECORDS: u64 = 1_000_000;
/// Repetitions otherwise.
const REPETITIONS: usize = 5;

/// The arguments that all subcommands have. A subcommand refuses those that it does not use.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// Those of all that are given.
    #[command(flatten)]
    pub given: Given,
    /// Engines, separated by commas; several take turns in one run (core and ycsb). `dram-map` is a
    /// baseline: hash maps in DRAM, without any durability; `hikv-wal` is HiKV with a write-ahead log;
    /// `fptree`, `fptree-cached` and `nvtree` are the trees that HiKV is measured against
    #[arg(long, value_delimiter = ',', default_value = "viper", help_heading = "Store")]
    pub engine: Vec<EngineChoice>,
    /// Directory to create the store in; removed at the end
    #[arg(
        long,
        default_value = "chimera-bench-data",
        value_name = "DIRECTORY",
        help_heading = "Store"
    )]
    pub path: PathBuf,
    /// Remove a store that a benchmark left in the directory; no other is ever removed
    #[arg(long, help_heading = "Store")]
    pub overwrite: bool,
    /// Leave the store there at the end
    #[arg(long, help_heading = "Store")]
    pub keep: bool,
    /// `path` takes what the directory is on, `anonymous` uses memory without files; `fsdax`, `tmpfs`
    /// or `file` insist that the directory is on that medium
    #[arg(long, default_value = "path", value_parser = medium, help_heading = "Store")]
    pub medium: MediumChoice,
    /// What an acknowledged write survives: auto, immediate, group:MILLISECONDS, process
    #[arg(long, default_value = "auto", help_heading = "Store")]
    pub durability: Durability,
    /// Persistent memory to imitate: `dram` (none), `optane-100[:<DIMMs>]`, `cxl-nvcmm`,
    /// `hikv-nvm[:<persist ns>[:<read ns>]]`; timings are then modelled (docs/DEVICE-MODEL.md)
    #[arg(long, default_value = "dram", help_heading = "Store")]
    pub profile: Profile,
    /// Record layout: checked, published
    #[arg(long, default_value = "checked", help_heading = "Store")]
    pub layout: RecordLayout,
    /// Allocate and touch the whole pool beforehand (the default)
    #[arg(long, conflicts_with = "growing", help_heading = "Store")]
    pub populate: bool,
    /// Let the pool grow while it is measured
    #[arg(long, help_heading = "Store")]
    pub growing: bool,
    /// Publish the store's metrics every so often, for `chimera stats --watch --path DIRECTORY`
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1")]
    #[arg(help_heading = "Store")]
    pub publish_metrics: Option<f64>,
    /// Time one operation in so many for the store's own metrics; 0 for none [default: the store's]
    #[arg(long, value_name = "N", help_heading = "Store")]
    pub latency_sampling: Option<u32>,
    /// Whether gets verify the sums of values: always, sampled (one get in 17), never. Several, separated by commas,
    /// take turns in one run (core and ycsb): the difference is what verifying costs
    #[arg(long, value_name = "MODE", value_delimiter = ',', default_value = "always")]
    #[arg(help_heading = "Store")]
    pub verify_reads: Vec<VerifyReads>,
    /// Whether keys are kept in their order: none, asynchronous (the tree learns of a write later), synchronous, partitioned
    /// (as asynchronous, in several trees with a range of keys each). Several take turns in one run (core and ycsb): the
    /// difference is what order costs
    #[arg(long, value_name = "UPDATES", value_delimiter = ',', default_value = "none")]
    #[arg(num_args = 0..=1, default_missing_value = "asynchronous", help_heading = "Store")]
    pub order: Vec<OrderChoice>,
    /// Trees of a partitioned order, which have equal ranges of the keys
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(2..=64))]
    #[arg(value_name = "N", help_heading = "Store")]
    pub trees: u8,

    /// Records loaded before what is measured [default: 1000000]
    #[arg(long, value_name = "N", help_heading = "Work")]
    pub records: Option<u64>,
    /// Operations of each kind in each repetition, of all threads together [default: as records]
    #[arg(long, value_name = "N", help_heading = "Work")]
    pub operations: Option<u64>,
    /// End each phase after this time instead; inserts end after --operations at the latest
    #[arg(long, value_name = "SECONDS", help_heading = "Work")]
    pub duration: Option<f64>,
    /// Bytes per key [default: 16; memory: 8]
    #[arg(long, value_name = "BYTES", help_heading = "Work")]
    pub key_size: Option<u32>,
    /// Bytes per value [default: 200; memory: 8]
    #[arg(long, value_name = "BYTES", help_heading = "Work")]
    pub value_size: Option<u32>,
    /// A store for keys and values of any size, in which these have one
    #[arg(long, help_heading = "Work")]
    pub any_size: bool,
    /// The same with normally distributed sizes: the means as above, a fifth of them as deviation
    #[arg(long, help_heading = "Work")]
    pub mixed_sizes: bool,
    /// Threads; several numbers, separated by commas, are measured one after the other
    #[arg(long, value_delimiter = ',', default_value = "1", help_heading = "Work")]
    pub threads: Vec<usize>,
    /// Everything random follows from it
    #[arg(long, default_value_t = 42, help_heading = "Work")]
    pub seed: u64,

    /// Throughput passes, of which the median is told. Latency is measured in one more for every three [default: 5]
    #[arg(long, value_name = "N", help_heading = "Measurement")]
    pub repetitions: Option<usize>,
    /// Tiny sizes, done within seconds, where no size is given
    #[arg(long, help_heading = "Measurement")]
    pub quick: bool,
    /// Do not count fences, lines and media accesses
    #[arg(long, help_heading = "Measurement")]
    pub no_counters: bool,
    /// Draw throughput and latency
    #[arg(long, value_name = "FILE.svg", help_heading = "Measurement")]
    pub plot: Option<PathBuf>,
}

impl Common {
    /// What is to be measured on each engine, with records of `sizes` bytes unless told otherwise.
    ///
    /// # Errors
    /// When the arguments make no sense.
    pub(crate) fn setups(&self, sizes: (u32, u32)) -> Result<Vec<Setup>> {
        for (number, engine) in self.engine.iter().enumerate() {
            if self.engine[..number].contains(engine) {
                return Err(BenchError::Arguments(format!("engine `{engine}` is given twice")));
            }
        }
        for (number, mode) in self.verify_reads.iter().enumerate() {
            if self.verify_reads[..number].contains(mode) {
                return Err(BenchError::Arguments(format!("mode `{mode}` is given twice")));
            }
        }
        for (number, order) in self.order.iter().enumerate() {
            if self.order[..number].contains(order) {
                return Err(BenchError::Arguments(format!("order `{order}` is given twice")));
            }
        }
        let mut setups = Vec::new();
        for engine in &self.engine {
            // A baseline verifies nothing in any mode.
            let (modes, orders) = match engine {
                EngineChoice::Store(_) | EngineChoice::HikvWal => {
                    (&self.verify_reads[..], &self.order[..])
                }
                EngineChoice::DramMap => (&[VerifyReads::Always][..], &[OrderChoice::None][..]),
                // Always ordered: of a tree the choice says only whether there are scans.
                EngineChoice::Tree(_) => (&[VerifyReads::Always][..], &self.order[..1]),
            };
            for (mode, order) in
                modes.iter().flat_map(|mode| orders.iter().map(move |order| (mode, order)))
            {
                let setup = self.setup_of(*engine, sizes)?;
                setups.push(Setup { verify_reads: *mode, order: *order, ..setup });
            }
        }
        self.check_given(&setups)?;
        Ok(setups)
    }

    /// What is to be measured where that is one engine of the store.
    ///
    /// # Errors
    /// When the arguments make no sense.
    pub(crate) fn setup(&self, sizes: (u32, u32)) -> Result<Setup> {
        if let (
            [engine @ (EngineChoice::Store(_) | EngineChoice::HikvWal)],
            [verify_reads],
            [order],
        ) = (&*self.engine, &*self.verify_reads, &*self.order)
        {
            let setup = self.setup_of(*engine, sizes)?;
            let setup = Setup { verify_reads: *verify_reads, order: *order, ..setup };
            self.check_given(std::slice::from_ref(&setup))?;
            return Ok(setup);
        }
        let what =
            "this measures one engine and one mode of the store; core and ycsb compare several";
        Err(BenchError::Arguments(what.to_owned()))
    }

    fn setup_of(&self, engine: EngineChoice, sizes: (u32, u32)) -> Result<Setup> {
        let quick = |quick, full| if self.quick { quick } else { full };
        let records = self.records.unwrap_or(quick(QUICK_RECORDS, RECORDS));
        let setup = Setup {
            engine,
            layout: self.layout,
            key_bytes: self.key_size.unwrap_or(sizes.0),
            value_bytes: self.value_size.unwrap_or(sizes.1),
            sizing: match (self.any_size, self.mixed_sizes) {
                (_, true) => Sizing::Mixed,
                (true, false) => Sizing::Any,
                (false, false) => Sizing::Fixed,
            },
            records,
            operations: self.operations.unwrap_or(records),
            duration: self.duration.map(duration).transpose()?,
            threads: self.threads.clone(),
            repetitions: self.repetitions.unwrap_or(if self.quick {
                QUICK_REPETITIONS
            } else {
                REPETITIONS
            }),
            seed: self.seed,
            profile: self.profile,
            medium: self.medium,
            durability: self.durability,
            growing: self.growing,
            reclaim: None,
            publish_metrics: self.publish_metrics.map(duration).transpose()?,
            latency_sampling: self.latency_sampling,
            verify_reads: VerifyReads::Always,
            order: OrderChoice::None,
            trees: usize::from(self.trees),
            barrier: false,
            pool: None,
            flush: true,
            block_shift_bytes: 0,
            tuning: matches!(engine, EngineChoice::Store(EngineKind::Chameleon))
                .then(|| Tuning::published(records)),
            counters: !self.no_counters,
            path: self.path.clone(),
            keep: self.keep,
            overwrite: self.overwrite,
        };
        check(&setup)?;
        Ok(setup)
    }
}

/// Options of stores that a tree has no use for.
const NOT_OF_TREES: [&str; 8] = [
    "any-size",
    "durability",
    "layout",
    "growing",
    "publish-metrics",
    "latency-sampling",
    "verify-reads",
    "trees",
];

/// Options of stores, which a baseline without one has no use for.
const OF_STORES: [&str; 11] = [
    "keep",
    "medium",
    "durability",
    "profile",
    "layout",
    "publish-metrics",
    "latency-sampling",
    "verify-reads",
    "order",
    "trees",
    "no-counters",
];

impl Common {
    /// Refuses what is given and has no effect on any of what is to be measured, or not on all of it where a report speaks of
    /// all.
    fn check_given(&self, setups: &[Setup]) -> Result<()> {
        if setups.iter().all(|setup| setup.engine == EngineChoice::DramMap) {
            self.given.refuse_all(&OF_STORES, "`dram-map` is no store")?;
        }
        if setups.iter().all(|setup| matches!(setup.engine, EngineChoice::Tree(_))) {
            self.given.refuse_all(&NOT_OF_TREES, "the trees of the study have no such option")?;
        }
        if self.medium == MediumChoice::Anonymous {
            let files = ["path", "overwrite", "keep", "growing", "publish-metrics"];
            self.given.refuse_all(&files, "memory without files has no directory, and one size")?;
        }
        if !self.order.contains(&OrderChoice::Partitioned) {
            self.given.refuse_all(&["trees"], "only --order partitioned has several trees")?;
        }
        if self.layout == RecordLayout::Published {
            for setup in setups {
                setup.engine.check_published_layout(setup.sizing == Sizing::Fixed)?;
            }
            self.given.refuse_all(&["verify-reads"], "the published layout has no sums")?;
        }
        Ok(())
    }
}

fn check(setup: &Setup) -> Result<()> {
    let invalid = |what: String| Err(BenchError::Arguments(what));
    if setup.records == 0 || setup.operations == 0 || setup.repetitions == 0 {
        return invalid("records, operations and repetitions must be at least 1".to_owned());
    }
    if setup.threads.is_empty() || setup.threads.iter().any(|threads| !(1..=64).contains(threads)) {
        return invalid("threads must be 1 to 64".to_owned());
    }
    if matches!(setup.engine, EngineChoice::Tree(_)) && setup.sizing == Sizing::Mixed {
        return invalid(format!("`{}` has records of one size", setup.engine));
    }
    if setup.key_bytes == 0 {
        return invalid("keys must have at least 1 byte".to_owned());
    }
    if setup.sizing == Sizing::Mixed && (setup.key_bytes < 8 || setup.value_bytes < 16) {
        return invalid("mixed sizes need keys of 8 and values of 16 bytes".to_owned());
    }
    if setup.sizing != Sizing::Fixed && setup.duration.is_some() {
        let what = "how much a log grows follows from operations: give --operations, no duration";
        return invalid(what.to_owned());
    }
    let numbers = setup.records.saturating_add(setup.operations.saturating_mul(4));
    let keys = Keys::new(setup.key_bytes as usize, setup.seed);
    if keys.number_max() < numbers {
        let (bytes, most) = (setup.key_bytes, keys.number_max());
        return invalid(format!(
            "keys of {bytes} bytes tell {most} records apart, this needs up to {numbers}"
        ));
    }
    Ok(())
}

fn duration(seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| BenchError::Arguments("a duration must be above 0 seconds".to_owned()))
}

fn medium(text: &str) -> std::result::Result<MediumChoice, String> {
    Ok(match text {
        "path" => MediumChoice::Path,
        "anonymous" => MediumChoice::Anonymous,
        "fsdax" => MediumChoice::Expect(Medium::FsDax),
        "devdax" => MediumChoice::Expect(Medium::DevDax),
        "tmpfs" => MediumChoice::Expect(Medium::Tmpfs),
        "file" | "plain-file" => MediumChoice::Expect(Medium::File),
        other => {
            let media = "path, anonymous, fsdax, devdax, tmpfs, file";
            return Err(format!("unknown medium `{other}`; media: {media}"));
        }
    })
}
