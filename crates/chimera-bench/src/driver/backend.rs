//! [`Backend`]: the persistence seam that stores are measured on.

use std::io;
use std::path::Path;
use std::sync::Arc;

use chimera::{Db, Options};
use chimera_pmem::instrumented::InstrumentedOptions;
use chimera_pmem::{Environment, Hardware, HardwareOptions, Instrumented, Pmem, RealEnvironment};

use crate::error::Result;

/// A backend that benchmarks know how to make.
pub(crate) trait Backend: Pmem {
    /// A backend with nothing mapped.
    fn make(hardware: HardwareOptions, instrumented: InstrumentedOptions) -> io::Result<Self>;
    /// The hardware in it.
    fn hardware(&self) -> &Hardware;
}

impl Backend for Hardware {
    fn make(hardware: HardwareOptions, _: InstrumentedOptions) -> io::Result<Self> {
        Self::new(hardware)
    }

    fn hardware(&self) -> &Hardware {
        self
    }
}

impl Backend for Instrumented<Hardware> {
    fn make(hardware: HardwareOptions, instrumented: InstrumentedOptions) -> io::Result<Self> {
        Ok(Self::new(Hardware::new(hardware)?, instrumented))
    }

    fn hardware(&self) -> &Hardware {
        self.inner()
    }
}

/// Opens or creates a store. Its random numbers follow from `seed`.
pub(crate) fn open<B: Backend>(
    path: &Path,
    options: &Options,
    instrumented: InstrumentedOptions,
    seed: u64,
) -> Result<Db<B>> {
    let pmem = B::make(options.hardware_options(), instrumented).map_err(|source| {
        crate::BenchError::Memory { what: "the address space of a store", source }
    })?;
    let environment: Arc<dyn Environment> = Arc::new(RealEnvironment::with_seed(seed));
    Ok(Db::open_on(pmem, &environment, path, options)?)
}
