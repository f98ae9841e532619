//! [`Benchmark`]: what subcommands have in common.

use chimera_pmem::instrumented::Profile;
use chimera_pmem::{Hardware, Instrumented};

use super::common::Common;
use super::given::Unused;
use crate::driver::backend::Backend;
use crate::driver::setup::Setup;
use crate::error::Result;
use crate::report::{Report, plot};
use crate::results::series::Results;

/// A subcommand's arguments, and its work.
pub(super) trait Benchmark {
    /// Those of the arguments that all subcommands have which this one does not use, and why. They are refused.
    const UNUSED: &'static [Unused];

    /// Those arguments that all subcommands have.
    fn common(&self) -> &Common;
    /// What is to be measured on each engine: one setup at least, and one where engines are not compared.
    fn setups(&self) -> Result<Vec<Setup>>;
    /// Measures it.
    fn measure<B: Backend>(&self, setups: &[Setup]) -> Result<(Report, Results)>;
}

/// What is to be measured, where all that is given has an effect.
pub(super) fn decide<M: Benchmark>(benchmark: &M) -> Result<Vec<Setup>> {
    benchmark.common().given.refuse(M::UNUSED)?;
    benchmark.setups()
}

/// Measures on the backend that the latency profile needs.
pub(super) fn measure<M: Benchmark>(benchmark: &M) -> Result<(Report, Results, &Common)> {
    let setups = decide(benchmark)?;
    if let Some(path) = &benchmark.common().plot {
        plot::check(path)?;
    }
    let (report, results) = match setups[0].profile {
        Profile::Dram => benchmark.measure::<Hardware>(&setups)?,
        _ => benchmark.measure::<Instrumented<Hardware>>(&setups)?,
    };
    Ok((report, results, benchmark.common()))
}
