//! [`Machine`]: memory and files that a store is opened on.

use std::sync::Arc;
use std::time::Duration;

use chimera::{Db, Durability, Options, Result};
use chimera_pmem::environment::{MemoryFiles, SteppedEnvironment};
use chimera_pmem::{Environment, Hardware, Medium, Pmem};

use super::image::{Image, STORE};
use crate::chance::Chance;
use crate::file_memory::FileMemory;

/// Bytes by which the files of a store may grow while it is looked at.
const GROWTH_BYTES: u64 = 512 << 10;
/// Accesses of one process to a store: a hundred times what the longest ones make.
const ACCESSES_MAX: u64 = 50_000_000;
/// The start of the machine: a process that is killed leaves the same one to the next.
const BOOT: u64 = 1;
/// Numbers that the processes of a machine draw for themselves.
const DRAWS_EACH: u64 = 2048;

/// What a store lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Persistent memory.
    Memory,
    /// Plain files, of which only the kernel knows what was stored.
    PlainFile,
    /// Plain files with a journal.
    Journal {
        /// Each write is durable before it is acknowledged.
        immediate: bool,
    },
}

impl Place {
    /// Half of the stores lie on persistent memory.
    pub(super) fn random(chance: &mut Chance) -> Self {
        match chance.below(8) {
            0..4 => Self::Memory,
            4 => Self::PlainFile,
            5 => Self::Journal { immediate: true },
            _ => Self::Journal { immediate: false },
        }
    }

    pub(super) fn has_journal(self) -> bool {
        matches!(self, Self::Journal { .. })
    }

    pub(super) fn is_immediate(self) -> bool {
        self == Self::Journal { immediate: true }
    }

    fn medium(self) -> Medium {
        if self == Self::Memory { Medium::Simulated } else { Medium::File }
    }

    fn durability(self) -> Option<Durability> {
        match self {
            Self::Memory => None,
            Self::PlainFile => Some(Durability::Process),
            Self::Journal { immediate: true } => Some(Durability::Immediate),
            Self::Journal { immediate: false } => {
                Some(Durability::Group { max_delay: Duration::from_millis(50) })
            }
        }
    }

    /// Options for a store there: nothing happens unless a step is taken.
    pub(super) fn options(self, options: Options) -> Options {
        let options = options.populate_ahead_bytes(0).reclaim_percent(0).recovery_threads(1);
        match self.durability() {
            // The smallest journal that there is.
            Some(durability) => options.durability(durability).journal_bytes(16 << 10),
            None => options,
        }
    }

    /// Files with an image, for a process of this number.
    pub(super) fn machine(self, image: &Image, process: u64) -> Machine {
        let files = image.to_files(self.medium());
        let environment = Arc::new(SteppedEnvironment::with_files(BOOT, files.clone()));
        // The start of the machine and its random numbers follow from one seed.
        for _ in 0..process * DRAWS_EACH {
            environment.random_u64();
        }
        let bytes_max = image.length() + GROWTH_BYTES;
        Machine { place: self, files, environment, bytes_max, skipped: None }
    }
}

/// Files, and the process that has them.
pub(super) struct Machine {
    pub(super) place: Place,
    files: Arc<MemoryFiles>,
    pub(super) environment: Arc<SteppedEnvironment>,
    bytes_max: u64,
    /// The name of a check that its stores leave out: a fault that a campaign must find.
    pub(super) skipped: Option<&'static str>,
}

/// How to make the memory of a machine.
pub(super) trait Backend: Pmem {
    /// Memory for a store on these files.
    fn of(machine: &Machine, options: &Options) -> Self;

    /// Gives the files what the end of the process would leave in them.
    fn leave(&self);
}

impl Backend for FileMemory {
    fn of(machine: &Machine, _options: &Options) -> Self {
        Self::new(machine.bytes_max, machine.place.medium())
            .with_accesses_max(ACCESSES_MAX)
            .without(machine.skipped)
    }

    fn leave(&self) {
        self.write_back();
    }
}

/// With a journal, whose memory is private: the files have what was left from it.
impl Backend for Hardware {
    fn of(_machine: &Machine, options: &Options) -> Self {
        Self::new(options.hardware_options()).expect("address space")
    }

    fn leave(&self) {}
}

impl Machine {
    /// Opens the store.
    pub(super) fn open<B: Backend>(&self, options: &Options) -> Result<Db<B>> {
        let environment: Arc<dyn Environment> = self.environment.clone();
        Db::open_on(B::of(self, options), &environment, STORE, options)
    }

    /// The files, as the end of the process would leave them now.
    pub(super) fn killed<B: Backend>(&self, db: &Db<B>) -> Image {
        db.pmem().leave();
        self.image()
    }

    /// The files as they are.
    pub(super) fn image(&self) -> Image {
        Image::read(&self.files)
    }
}
