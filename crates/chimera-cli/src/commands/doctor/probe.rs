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
/// Mappings are multiples of this.
const PAGE_BYTES: u64 = 4096;

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
    /// Address space that was reserved for a store at first.
    pub(super) address_space_bytes: Option<u64>,
    /// Why none could be.
    pub(super) address_space_problem: Option<String>,
    /// Why the medium is not known.
    pub(super) problem: Option<String>,
}

impl Probe {
    pub(super) fn run(place: &Place) -> Self {
        let mut probe = Self::default();
        let hardware = match Hardware::new(Options::new().hardware_options()) {
            Ok(hardware) => {
                probe.address_space_bytes = Some(hardware.address_space_bytes());
                Some(hardware)
            }
            Err(error) => {
                probe.address_space_problem = Some(error.to_string());
                None
            }
        };
        if let Err(error) = probe.look(place, hardware.as_ref()) {
            probe.problem = Some(error.to_string());
        }
        probe
    }

    fn look(&mut self, place: &Place, hardware: Option<&Hardware>) -> io::Result<()> {
        let environment = RealEnvironment::new();
        let file = match place.occupant {
            Occupant::Store => {
                self.method = "by its superblock, mapped for reading";
                open(&environment, &place.path.join("superblock"), OpenMode::Read)?
            }
            Occupant::StoreOnDevice
            | Occupant::UnreadableOnDevice
            | Occupant::BlankDevice
            | Occupant::Device => {
                self.method = "by the device itself, mapped for reading";
                open(&environment, &place.path, OpenMode::Read)?
            }
            Occupant::Nothing | Occupant::Directory | Occupant::File => {
                self.method = "by a temporary file, removed again";
                temporary(&environment, place)?
            }
        };
        self.medium = Some(file.medium()?);
        if place.occupant.is_device() {
            // Mapping for writing is no test: the kernel grants it on a read-only region, too.
            let writable = open(&environment, &place.path, OpenMode::ReadWrite);
            self.problem = writable.err().map(|error| error.to_string());
        }
        let Some(hardware) = hardware else { return Ok(()) };
        if file.is_read_only() {
            let length = file.length()?.min(file.mapping_alignment().max(PROBE_BYTES));
            hardware.map(0, &file, 0, length / PAGE_BYTES * PAGE_BYTES)?;
        } else {
            file.allocate(0, PROBE_BYTES).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot allocate 2 MiB there: {error}"))
            })?;
            hardware.map(0, &file, 0, PROBE_BYTES)?;
            hardware.populate(0, PROBE_BYTES)?;
            self.huge_pages = Some(hardware.uses_huge_pages());
        }
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
