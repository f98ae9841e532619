//! `chameleon written`: bytes written and read, by cause (EuroSys'21, sections 2.5 and 3.7).

mod amplification;
mod sizes;

use super::super::benchmark::Benchmark;
use super::super::common::Common;
use super::super::given::Unused;
use super::shape::ShapeArguments;
use super::sides::{CHAMELEON, Side};
use crate::driver::backend::Backend;
use crate::driver::progress::Progress;
use crate::driver::setup::Setup;
use crate::error::Result;
use crate::published::paper;
use crate::report::chameleon::Written;
use crate::report::{Chameleon, Report};
use crate::results::series::Results;
use amplification::{CASES, amplification};
use sizes::of_size;

/// Bytes of keys, as in the paper's section 3.7.
fn key_bytes() -> u32 {
    paper("chameleondb").value("section3.7.key_bytes") as u32
}

/// Arguments of `chameleon written`.
#[derive(Clone, Debug, clap::Args)]
pub struct WrittenArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
    /// What all benchmarks of ChameleonDB have. The index is measured with one shard, unless given.
    #[command(flatten)]
    pub shape: ShapeArguments,
    /// Stores whose bytes are counted by the size of values, separated by commas
    #[arg(long, value_delimiter = ',', help_heading = "Store")]
    #[arg(default_value = "chameleon,pmem-hash,dram-hash")]
    pub sides: Vec<Side>,
    /// Bytes of values, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "64,256,1024,4096,16384,65536")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=(1 << 20)))]
    #[arg(value_name = "BYTES", help_heading = "Work")]
    pub value_sizes: Vec<u32>,
    /// MiB of keys and values that are put for each size of values [default: 64; quick: 2]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..1 << 20))]
    #[arg(value_name = "MIB", help_heading = "Work")]
    pub put_mib: Option<u64>,
}

/// Why options of files and of time have no effect.
const IN_MEMORY: &str = "counts come from anonymous memory, on one thread";

impl Benchmark for WrittenArguments {
    const UNUSED: &'static [Unused] = &[
        ("path", IN_MEMORY),
        ("overwrite", IN_MEMORY),
        ("keep", IN_MEMORY),
        ("medium", IN_MEMORY),
        ("durability", IN_MEMORY),
        ("profile", IN_MEMORY),
        ("populate", IN_MEMORY),
        ("growing", IN_MEMORY),
        ("publish-metrics", IN_MEMORY),
        ("latency-sampling", "nothing is timed"),
        ("threads", IN_MEMORY),
        ("repetitions", "counts are exact"),
        ("records", "give --put-mib"),
        ("operations", "give --put-mib"),
        ("key-size", "keys have 16 bytes, as published"),
        ("value-size", "give --value-sizes"),
        ("mixed-sizes", "give --value-sizes"),
    ];

    fn common(&self) -> &Common {
        &self.common
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        self.shape.setups(&self.common, &self.sides)
    }

    /// What is counted does not depend on a latency profile, and lies in anonymous memory.
    fn measure<B: Backend>(&self, setups: &[Setup]) -> Result<(Report, Results)> {
        let setup = &setups[0];
        let bytes = self.put_mib.unwrap_or(if self.common.quick { 2 } else { 64 }) << 20;
        let progress = Progress::new(CASES.len() + setups.len() * self.value_sizes.len());
        let mut amplifications = Vec::new();
        let plain: Side = CHAMELEON.parse().expect("there is such a store");
        let tuning = self.shape.tuning(&plain, 1);
        for case in CASES {
            progress.step(&format!("index, {}", case.name));
            amplifications.extend(amplification(setup, tuning, case)?);
        }
        let (mut rows, mut stores) = (Vec::new(), Vec::new());
        for (side, setup) in self.sides.iter().zip(setups) {
            let mut of_side = None;
            for value_bytes in &self.value_sizes {
                progress.step(&format!("values of {value_bytes} bytes, {side}"));
                let records = (bytes / u64::from(key_bytes() + value_bytes)).max(1);
                let tuning = Some(self.shape.tuning(side, records));
                let (key_bytes, value_bytes) = (key_bytes(), *value_bytes);
                let setup = Setup { records, key_bytes, value_bytes, tuning, ..setup.clone() };
                let (row, store) = of_size(&setup, side)?;
                rows.push(row);
                of_side.get_or_insert(store);
            }
            stores.extend(of_side);
        }
        let written = Written { amplifications, rows };
        let results = Results::default();
        // Stores are said to be what they are with the first size.
        let first = &written.rows[0];
        let (records, value_bytes) = (first.records, first.value_bytes);
        let setup =
            Setup { records, operations: 0, key_bytes: key_bytes(), value_bytes, ..setup.clone() };
        let report = Report::new("chameleon written", &setup, stores, &results);
        Ok((Report { chameleon: Some(Chameleon::Written(written)), ..report }, results))
    }
}
