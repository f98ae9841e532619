//! `variants`: the paper's other versions of Viper (Figure 11).

use std::path::Path;

use chimera::{Db, EngineKind};
use chimera_pmem::instrumented::Profile;
use chimera_pmem::{Hardware, Instrumented};

use super::benchmark::Benchmark;
use super::common::Common;
use super::core::phases;
use super::given::{NOT_KEPT, Unused};
use crate::driver::backend::Backend;
use crate::driver::counting::count;
use crate::driver::engine::EngineChoice;
use crate::driver::pass::{Pass, Plan, measures};
use crate::driver::phase::Phase;
use crate::driver::progress::Progress;
use crate::driver::setup::Setup;
use crate::driver::store::Create;
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::{BenchError, Result};
use crate::published::paper;
use crate::report::Report;
use crate::results::rows::StoreRow;
use crate::results::series::Results;

/// Arguments of `variants`.
#[derive(Clone, Debug, clap::Args)]
pub struct VariantsArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
}

/// A version of the engine.
struct Variant {
    name: &'static str,
    setup: Setup,
}

/// Data in persistent memory with the index in DRAM; both in DRAM, nothing flushed, which no model of a device slows down; pages
/// across DIMM borders.
fn variants(setup: &Setup) -> [Variant; 3] {
    let base = setup.clone();
    let unaligned_bytes = paper("viper").value("figure11.unaligned_bytes") as u32;
    [
        Variant { name: "viper", setup: base.clone() },
        Variant { name: "dram", setup: in_dram(&base) },
        Variant { name: "unaligned", setup: Setup { block_shift_bytes: unaligned_bytes, ..base } },
    ]
}

fn in_dram(setup: &Setup) -> Setup {
    Setup { flush: false, profile: Profile::Dram, ..setup.in_memory() }
}

fn named(phases: &[Phase], variant: &str) -> Vec<Phase> {
    let name = |phase: &Phase| format!("{}/{variant}", phase.name);
    phases.iter().map(|phase| Phase { name: name(phase), ..phase.clone() }).collect()
}

/// One pass over a store, which is removed. What a report says of it.
fn measured<S: Create>(
    plan: &Plan<'_>,
    (path, pass): (&Path, Pass),
    workspace: &Workspace,
    results: &mut Results,
    progress: &Progress,
) -> Result<StoreRow> {
    let finished = plan.run::<S>(path, pass, results, progress)?;
    let row = finished.row(plan.data);
    finished.discard(workspace)?;
    Ok(row)
}

impl Benchmark for VariantsArguments {
    const UNUSED: &'static [Unused] = &[NOT_KEPT];

    fn common(&self) -> &Common {
        &self.common
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        let setup = self.common.setup((16, 200))?;
        if setup.engine != EngineChoice::Store(EngineKind::Viper) {
            let what = format!("the versions are Viper's, not those of `{}`", setup.engine);
            return Err(BenchError::Arguments(what));
        }
        Ok(vec![setup])
    }

    fn measure<B: Backend>(&self, setups: &[Setup]) -> Result<(Report, Results)> {
        let setup = &setups[0];
        let workspace = Workspace::prepare(setup)?;
        let data = Data::new(setup);
        let phases = phases(&data, false);
        let variants = variants(setup);
        let passes = measures(setup.repetitions);
        let steps = passes.len() * setup.threads.len() * variants.len() * (phases.len() + 2)
            + variants.len();
        let progress = Progress::new(steps);
        let mut results = Results::default();
        let mut row = None;
        for (number, measure) in passes.into_iter().enumerate() {
            for threads in &setup.threads {
                for turn in 0..variants.len() {
                    // Each comes first in its turn.
                    let Variant { name, setup } = &variants[(turn + number) % variants.len()];
                    let phases = named(&phases, name);
                    let plan = Plan { setup, data: &data, load_name: None, phases: &phases };
                    let path = workspace.store(if *name == "dram" { "viper" } else { name })?;
                    let pass = Pass { number, threads: *threads, measure };
                    let at = (path.as_path(), pass);
                    let stored = if setup.profile == Profile::Dram {
                        measured::<Db<Hardware>>(&plan, at, &workspace, &mut results, &progress)?
                    } else {
                        measured::<Db<B>>(&plan, at, &workspace, &mut results, &progress)?
                    };
                    if *name == "viper" {
                        row = Some(stored);
                    }
                }
            }
        }
        if setup.counters {
            // Not for the one that flushes nothing: its flushes are counted where they are asked for.
            for Variant { name, setup } in variants.iter().filter(|variant| variant.setup.flush) {
                progress.step("counting");
                let phases = named(&phases, name);
                let all = count::<Db<Instrumented<Hardware>>>(setup, None, &phases, 0.5)?;
                results.enter_counted(&setup.name(), &all);
            }
        }
        let order = |name: &str| phases.iter().position(|phase| name.starts_with(&phase.name));
        results.series.sort_by_key(|series| order(&series.operation));
        let row = row.expect("every variant was measured");
        Ok((Report::new("variants", setup, vec![row], &results), results))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_not_modelled_as_a_device() {
        let setup = Setup { profile: Profile::Optane100 { dimms: 6 }, ..Setup::small() };
        let [viper, dram, unaligned] = variants(&setup);
        assert_eq!([viper.setup.profile, unaligned.setup.profile], [setup.profile; 2]);
        assert_eq!(
            (dram.name, dram.setup.profile, dram.setup.flush),
            ("dram", Profile::Dram, false)
        );
    }
}
