//! What the persistence seam finds at the place: the same code that opens a store decides here.

use std::io;
use std::path::Path;
use std::sync::Arc;

use chimera::Options;
use chimera_pmem::environment::{File, OpenMode};
use chimera_pmem::{Environment, FlushInstruction, Hardware, Medium, Pmem, RealEnvironment};
use serde::Serialize;

use super::place::{Occupant, Place};

/// Bytes of the temporary file: one huge page.
const PROBE_BYTES: u64 = 2 << 20;

/// What was found.
#[derive(Default, Serialize)]
pub(super) struct Probe {
    /// What the store lies on, or would.
    pub(super) medium: Option<Medium>,
    /// How that was found out.
    pub(super) method: &'static str,
    /// The instruction a store would flush with there.
    pub(super) flush_instruction: Option<FlushInstruction>,
    /// Whether a new mapping got huge pages; unknown where a store is already.
    pub(super) huge_pages: Option<bool>,
    /// Address space that could be reserved.
    pub(super) address_space_bytes: Option<u64>,
    /// What went wrong.
    pub(super) problem: Option<String>,
}

impl Probe {
    pub(super) fn run(place: &Place) -> Self {
        let mut probe = Self::default();
        if let Err(error) = probe.look(place) {
            probe.problem = Some(error.to_string());
        }
        probe
    }

    fn look(&mut self, place: &Place) -> io::Result<()> {
        let hardware = Hardware::new(Options::new().hardware_options()).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot reserve address space: {error}"))
        })?;
        self.address_space_bytes = Some(hardware.address_space_bytes());
        let environment = RealEnvironment::new();
        match place.occupant {
            Occupant::Store => {
                self.method = "by its superblock, mapped for reading";
                let path = place.path.join("superblock");
                let file = open(&environment, &path, OpenMode::Read)?;
                let length = file.length()? / 4096 * 4096;
                self.map(&hardware, &file, length)
            }
            Occupant::Device => {
                self.method = "it is a DAX device";
                let file = open(&environment, &place.path, OpenMode::Read)?;
                self.medium = Some(file.medium()?);
                Ok(())
            }
            Occupant::Nothing | Occupant::Directory | Occupant::File => {
                self.method = "by a temporary file, removed again";
                let file = temporary(&environment, place)?;
                self.medium = Some(file.medium()?);
                file.allocate(0, PROBE_BYTES)?;
                self.map(&hardware, &file, PROBE_BYTES)?;
                hardware.populate(0, PROBE_BYTES)?;
                self.huge_pages = Some(hardware.uses_huge_pages());
                Ok(())
            }
        }
    }

    fn map(&mut self, hardware: &Hardware, file: &Arc<dyn File>, length: u64) -> io::Result<()> {
        hardware.map(0, file, 0, length)?;
        self.medium = Some(hardware.medium());
        self.flush_instruction = Some(hardware.flush_instruction());
        Ok(())
    }
}

/// A file without a name in the place's directory.
fn temporary(environment: &RealEnvironment, place: &Place) -> io::Result<Arc<dyn File>> {
    let name = format!(".chimera-doctor-{}", environment.process_id());
    let path = place.directory.join(name);
    let file = open(environment, &path, OpenMode::CreateNew)?;
    environment.remove(&path)?;
    Ok(file)
}

fn open(environment: &RealEnvironment, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
    let verb = if mode == OpenMode::CreateNew { "create" } else { "open" };
    environment.open(path, mode).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot {verb} `{}`: {error}", path.display()))
    })
}
