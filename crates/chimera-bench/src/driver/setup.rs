//! [`Setup`]: what is to be measured, decided.

use std::path::PathBuf;
use std::time::Duration;

use chimera::baselines::{Consistency, RecordLayout};
use chimera::{Demand, Durability, EngineKind, Options, TreeUpdates, VerifyReads};
use chimera_pmem::Medium;
use chimera_pmem::instrumented::{InstrumentedOptions, Profile};

use super::engine::EngineChoice;
use super::tuning::Tuning;
use crate::error::Result;

/// How much a populated pool allocates at a time, and the only part of it in which a background task
/// would be woken.
const STEP_BYTES: u64 = 4 << 20;
/// Room in a populated pool beyond what records need, so that a step ahead of them always fits.
const SLACK_BYTES: u64 = 16 << 20;

/// What a store is to lie on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumChoice {
    /// Whatever the path is on.
    Path,
    /// Anonymous memory.
    Anonymous,
    /// The path, which must be on this medium.
    Expect(Medium),
}

impl std::fmt::Display for Sizing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Fixed => "fixed",
            Self::Any => "any",
            Self::Mixed => "mixed",
        })
    }
}

/// Space reclamation in the background, where it is not the store's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reclaim {
    /// See [`Options::reclaim_percent`].
    pub(crate) percent: u32,
    pub(crate) bytes_per_second: u64,
}

/// Which store is made, and with how long records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizing {
    /// A store for keys of one size and values of one size.
    Fixed,
    /// A store for records of any size; all have the same.
    Any,
    /// A store for records of any size, with sizes distributed normally.
    Mixed,
}

/// What is to be measured, decided: the arguments with every default filled in.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) engine: EngineChoice,
    pub(crate) layout: RecordLayout,
    pub(crate) key_bytes: u32,
    pub(crate) value_bytes: u32,
    pub(crate) sizing: Sizing,
    pub(crate) records: u64,
    pub(crate) operations: u64,
    pub(crate) duration: Option<Duration>,
    pub(crate) threads: Vec<usize>,
    pub(crate) repetitions: usize,
    pub(crate) seed: u64,
    pub(crate) profile: Profile,
    pub(crate) medium: MediumChoice,
    pub(crate) durability: Durability,
    pub(crate) growing: bool,
    pub(crate) reclaim: Option<Reclaim>,
    pub(crate) publish_metrics: Option<Duration>,
    pub(crate) latency_sampling: Option<u32>,
    pub(crate) verify_reads: VerifyReads,
    pub(crate) order: OrderChoice,
    /// Trees of a partitioned order.
    pub(crate) trees: usize,
    /// Whether scans hold up writers.
    pub(crate) barrier: bool,
    /// Threads that apply the changes of the order themselves, which has none of its own then.
    pub(crate) pool: Option<usize>,
    pub(crate) flush: bool,
    pub(crate) block_shift_bytes: u32,
    /// What is ChameleonDB's, or one of the stores' that it is compared with.
    pub(crate) tuning: Option<Tuning>,
    pub(crate) counters: bool,
    pub(crate) path: PathBuf,
    pub(crate) keep: bool,
    pub(crate) overwrite: bool,
}

/// Whether keys are kept in their order, and when its tree learns of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OrderChoice {
    /// They are not.
    #[default]
    None,
    /// Later.
    Asynchronous,
    /// Before the write returns.
    Synchronous,
    /// Later, in several trees, each of which has a fixed range of keys (HiKV-par).
    Partitioned,
}

impl std::fmt::Display for OrderChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Asynchronous => "asynchronous",
            Self::Synchronous => "synchronous",
            Self::Partitioned => "partitioned",
        })
    }
}

impl std::str::FromStr for OrderChoice {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let all = [Self::None, Self::Asynchronous, Self::Synchronous, Self::Partitioned];
        let named = all.into_iter().find(|choice| choice.to_string() == text);
        named.ok_or_else(|| {
            format!("unknown order `{text}`; {}", all.map(|it| it.to_string()).join(", "))
        })
    }
}

/// What results call an engine whose gets verify in this way, and whose keys are kept so.
pub(crate) fn name_of(engine: &str, verify_reads: VerifyReads, order: OrderChoice) -> String {
    let mut name = engine.to_owned();
    if verify_reads != VerifyReads::Always {
        name = format!("{name}-{verify_reads}");
    }
    match order {
        OrderChoice::None => name,
        OrderChoice::Asynchronous => name + "-ordered",
        OrderChoice::Synchronous => name + "-ordered-synchronous",
        OrderChoice::Partitioned => name + "-ordered-partitioned",
    }
}

impl Setup {
    /// What results call it: the engine, and how gets verify where that is not the default.
    pub(crate) fn name(&self) -> String {
        if let EngineChoice::Tree(tree) = self.engine {
            return tree.name().to_owned();
        }
        name_of(&self.engine.to_string(), self.verify_reads, self.order)
    }

    /// Whether stores lie in anonymous memory.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.medium == MediumChoice::Anonymous
    }

    /// Options of a new store in a pool with room for `demand`, populated unless it is to grow.
    ///
    /// # Errors
    /// When no pool has room for it.
    pub(crate) fn options(&self, demand: &Demand) -> Result<Options> {
        let shift = self.block_shift_bytes;
        let options = self.options_to_open().viper(|viper| viper.block_shift_bytes(shift));
        let bytes = options.pool_bytes_for(demand)?.saturating_add(SLACK_BYTES);
        let bytes = bytes + self.tuning.map_or(0, |tuning| tuning.index_bytes(demand.live));
        let options = match (self.is_anonymous(), self.growing) {
            (true, _) => options.anonymous(bytes),
            (false, true) => options,
            (false, false) => options.capacity_bytes(bytes),
        };
        Ok(if self.growing {
            options
        } else {
            options.populate_ahead_bytes(STEP_BYTES).populate_at_open(true)
        })
    }

    /// Options that open what [`options`](Self::options) created.
    pub(crate) fn options_to_open(&self) -> Options {
        let updates = match self.order {
            OrderChoice::Synchronous => TreeUpdates::Synchronous,
            _ => TreeUpdates::Asynchronous,
        };
        let options = Options::new()
            .viper(|viper| viper.layout(self.layout))
            .hikv(|hikv| hikv.layout(self.layout))
            .durability(self.durability)
            .verify_reads(self.verify_reads)
            .ordered(self.order != OrderChoice::None)
            .order(|order| order.updates(updates).barrier(self.barrier))
            .scrub_every(None)
            .flush(self.flush);
        // Keys are random words, so that equal ranges have equally many.
        let options = match self.order {
            OrderChoice::Partitioned => options.order(|order| order.trees(self.trees)),
            _ => options,
        };
        let options = match self.pool {
            Some(threads) => options.order(|order| order.threads(0).queues(threads)),
            None => options,
        };
        let options = match self.engine {
            EngineChoice::Store(kind) => options.engine(kind),
            EngineChoice::HikvWal => options
                .engine(EngineKind::Hikv)
                .hikv(|hikv| hikv.consistency(Consistency::WriteAheadLog)),
            EngineChoice::DramMap | EngineChoice::Tree(_) => options,
        };
        let options = match self.tuning {
            Some(tuning) => tuning.apply(options),
            None => options,
        };
        let options = match self.sizing {
            Sizing::Fixed => options.fixed_size(self.key_bytes, self.value_bytes),
            Sizing::Any | Sizing::Mixed => options,
        };
        let options = match self.reclaim {
            Some(Reclaim { percent, bytes_per_second }) => {
                options.reclaim_percent(percent).reclaim_bytes_per_second(bytes_per_second)
            }
            None => options,
        };
        let options = match self.publish_metrics {
            Some(every) => options.publish_metrics(every),
            None => options,
        };
        match self.latency_sampling {
            Some(every) => options.latency_sampling(every),
            None => options,
        }
    }

    /// How timed passes under a latency profile are instrumented.
    pub(crate) fn timed(&self) -> InstrumentedOptions {
        InstrumentedOptions::timed(self.profile)
    }

    /// This setup in anonymous memory.
    pub(crate) fn in_memory(&self) -> Self {
        Self { medium: MediumChoice::Anonymous, durability: Durability::Auto, ..self.clone() }
    }

    /// This setup in anonymous memory, with everything in place beforehand: for counting.
    pub(crate) fn for_counting(&self) -> Self {
        Self { growing: false, duration: None, ..self.in_memory() }
    }

    /// A small one, for tests.
    #[cfg(test)]
    pub(crate) fn small() -> Self {
        Self {
            engine: EngineChoice::Store(EngineKind::Viper),
            layout: RecordLayout::Checked,
            key_bytes: 16,
            value_bytes: 200,
            sizing: Sizing::Fixed,
            records: 1000,
            operations: 1000,
            duration: None,
            threads: vec![1],
            repetitions: 1,
            seed: 42,
            profile: Profile::Dram,
            medium: MediumChoice::Path,
            durability: Durability::Auto,
            growing: false,
            reclaim: None,
            publish_metrics: None,
            latency_sampling: None,
            verify_reads: VerifyReads::Always,
            order: OrderChoice::None,
            trees: 4,
            barrier: false,
            pool: None,
            flush: true,
            block_shift_bytes: 0,
            tuning: None,
            counters: true,
            path: "unused".into(),
            keep: false,
            overwrite: false,
        }
    }
}
