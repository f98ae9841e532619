//! [`Options`]: what the user may say; [`Plan`]: what follows from it.

use std::path::{Path, PathBuf};

use chimera_pmem::environment::OpenMode;
use chimera_pmem::{Environment, Medium, RealEnvironment};
use clap::Parser;

use crate::job::{Durability, KEY_BYTES, StoreKind};
use crate::protocol::{GROUP, Work};
use crate::{BenchError, Result};

const EXAMPLES_AND_EXIT_CODES: &str = "\
Examples:
  chimera-peers --quick                                  everything, tiny: no figures to quote
  chimera-peers --path /data --plot peers.svg            on the disk of /data
  chimera-peers --store viper,redb --values 20k --memory-limit 600M

Exit codes:
  0  done
  2  the command line is wrong
  3  the run could not be made: no room, no such directory, ...
  4  a store failed, or its process was killed; the report says which, and has what came before";

/// Stores unless told otherwise: one of ours with an order of keys, as scans need it.
const STORES: [StoreKind; 8] = [
    StoreKind::Viper,
    StoreKind::Hikv,
    StoreKind::Chameleon,
    StoreKind::ViperOrdered,
    StoreKind::Rocksdb,
    StoreKind::Lmdb,
    StoreKind::Redb,
    StoreKind::Fjall,
];
const VALUES: [u64; 5] = [100, 1000, 4000, 20_000, 100_000];
const QUICK_VALUES: [u64; 2] = [100, 20_000];
const THREADS: [usize; 2] = [1, 2];
const BYTES: u64 = 100_000_000;
const QUICK_BYTES: u64 = 200_000;
const REPETITIONS: usize = 5;
/// Records where each one waits for a sync.
const SYNCED_RECORDS: u64 = 1000;
const QUICK_SYNCED_RECORDS: u64 = 40;
/// Fewer would be no population.
const RECORDS_MIN: u64 = 10;
const PROBE_BYTES: u64 = 64 << 20;
const QUICK_PROBE_BYTES: u64 = 1 << 20;
/// `tmpfs`, where it is mounted for all.
const SHARED_MEMORY: &str = "/dev/shm";

/// Chimera beside RocksDB, LMDB, redb and fjall: all in one run, at matched durability, in turn phase by phase.
#[derive(Clone, Debug, Default, Parser)]
#[command(name = "chimera-peers", version, after_help = EXAMPLES_AND_EXIT_CODES, max_term_width = 100)]
pub struct Options {
    /// Directories to make stores in, on a plain file system or on tmpfs [default: the working directory and /dev/shm]
    #[arg(long = "path", value_name = "DIR", value_delimiter = ',')]
    pub paths: Vec<PathBuf>,
    /// Stores: viper, hikv, chameleon, each also with -ordered; rocksdb, lmdb, redb, fjall [default: all, of the ordered
    /// ones of ours viper-ordered]
    #[arg(long = "store", value_name = "NAME", value_delimiter = ',')]
    pub stores: Vec<StoreKind>,
    /// Durabilities [default: process on tmpfs, operation and window elsewhere]
    #[arg(long = "durability", value_name = "NAME", value_delimiter = ',', value_enum)]
    pub durabilities: Vec<Durability>,
    /// Bytes of values, such as 100,20k [default: 100,1k,4k,20k,100k; with --quick 100,20k]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = size)]
    pub values: Vec<u64>,
    /// Numbers of threads [default: 1,2; with --quick 1]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub threads: Vec<usize>,
    /// Bytes of keys and values of the fill; with `operation` no more than 1000 records [default: 100M; with --quick 200k]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub bytes: Option<u64>,
    /// Records of the fill, instead of bytes
    #[arg(long, value_name = "N", conflicts_with = "bytes")]
    pub records: Option<u64>,
    /// Operations of get, overwrite and 50/50; scans and batches are a hundredth [default: as many as records]
    #[arg(long, value_name = "N")]
    pub operations: Option<u64>,
    /// Stores made for each row, another one first each time [default: 5; with --quick 1]
    #[arg(long, value_name = "N")]
    pub repetitions: Option<usize>,
    /// Memory that the process of a store may use: by a control group, or where none can be made by RLIMIT_DATA
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory_limit: Option<u64>,
    /// Keys, values and choices follow from it [default: 42]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Everything, but tiny
    #[arg(long)]
    pub quick: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
    /// Draw figures into this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// A number of bytes, with k, M or G for thousands, millions and billions.
fn size(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'k')) => (&text[..at], 1000),
        Some((at, 'M')) => (&text[..at], 1_000_000),
        Some((at, 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    number.ok_or_else(|| format!("`{text}` is no number of bytes, such as 100, 20k, 600M or 2G"))
}

/// A directory, and what it lies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The directory.
    pub path: PathBuf,
    /// What it lies on.
    pub medium: Medium,
    /// Durabilities that are measured there.
    pub durabilities: Vec<Durability>,
}

/// What is done: the options with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where.
    pub places: Vec<Place>,
    /// Who.
    pub stores: Vec<StoreKind>,
    /// Bytes of values.
    pub values: Vec<usize>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Bytes of keys and values of a fill.
    pub bytes: u64,
    /// Records of a fill, if these were given.
    pub records: Option<u64>,
    /// Records of a fill in which each waits for a sync, unless they were given.
    pub synced_records: u64,
    /// Operations of a phase, if these were given.
    pub operations: Option<u64>,
    /// Stores made for each row.
    pub repetitions: usize,
    /// Memory of a process.
    pub memory_limit: Option<u64>,
    /// Bytes of a probe.
    pub probe_bytes: u64,
    /// Everything random follows from it.
    pub seed: u64,
}

impl Options {
    /// What follows from the options.
    ///
    /// # Errors
    /// When they make no sense together; when a directory cannot be written to.
    pub fn plan(&self) -> Result<Plan> {
        let wrong = |text: &str| Err(BenchError::Arguments(text.to_owned()));
        let values = default(&self.values, if self.quick { &QUICK_VALUES } else { &VALUES });
        let threads = default(&self.threads, &THREADS[..if self.quick { 1 } else { 2 }]);
        let repetitions = self.repetitions.unwrap_or(if self.quick { 1 } else { REPETITIONS });
        if values.iter().any(|bytes| !(16..=1 << 30).contains(bytes)) {
            return wrong("--values are of 16 bytes to 1 GiB: a value tells whose it is");
        }
        if threads.contains(&0) || repetitions == 0 || self.operations == Some(0) {
            return wrong("--threads, --repetitions and --operations are 1 at least");
        }
        if self.records.is_some_and(|records| records < RECORDS_MIN) {
            return wrong("--records are 10 at least");
        }
        Ok(Plan {
            places: self.places()?,
            stores: default(&self.stores, &STORES),
            values: values.into_iter().map(|bytes| bytes as usize).collect(),
            threads,
            bytes: self.bytes.unwrap_or(if self.quick { QUICK_BYTES } else { BYTES }),
            records: self.records,
            synced_records: if self.quick { QUICK_SYNCED_RECORDS } else { SYNCED_RECORDS },
            operations: self.operations,
            repetitions,
            memory_limit: self.memory_limit,
            probe_bytes: if self.quick { QUICK_PROBE_BYTES } else { PROBE_BYTES },
            seed: self.seed.unwrap_or(42),
        })
    }

    /// Where stores are made. A directory that was not named is left out where it has none of the durabilities.
    fn places(&self) -> Result<Vec<Place>> {
        let is_default = self.paths.is_empty();
        let mut paths = self.paths.clone();
        if is_default {
            paths.push(PathBuf::from("."));
            paths.extend(Some(PathBuf::from(SHARED_MEMORY)).filter(|path| path.is_dir()));
        }
        let mut places: Vec<Place> = Vec::new();
        for path in paths {
            let medium = medium_of(&path)?;
            let in_memory = medium == Medium::Tmpfs;
            let usual = [Durability::Operation, Durability::Window];
            let usual = if in_memory { &[Durability::Process][..] } else { &usual };
            let mut durabilities = default(&self.durabilities, usual);
            durabilities.retain(|durability| !in_memory || *durability == Durability::Process);
            if !durabilities.is_empty() {
                places.push(Place { path, medium, durabilities });
            } else if !is_default {
                return Err(BenchError::Arguments(format!(
                    "`{}` is tmpfs, where nothing survives a power loss: --durability process, or another --path",
                    path.display()
                )));
            }
        }
        if places.is_empty() {
            let what = "nothing is left to measure: the working directory is on tmpfs; give --path";
            return Err(BenchError::Arguments(what.to_owned()));
        }
        Ok(places)
    }
}

fn default<T: Clone>(given: &[T], otherwise: &[T]) -> Vec<T> {
    if given.is_empty() { otherwise.to_vec() } else { given.to_vec() }
}

/// What a directory lies on.
fn medium_of(directory: &Path) -> Result<Medium> {
    let io = |action, source| BenchError::Io { action, path: directory.to_owned(), source };
    let scratch = tempfile::Builder::new().prefix("chimera-peers-").tempdir_in(directory);
    let scratch = scratch.map_err(|source| io("make a directory in", source))?;
    let file = RealEnvironment::new().open(&scratch.path().join("medium"), OpenMode::CreateNew);
    let file = file.map_err(|source| io("make a file in", source))?;
    file.medium().map_err(|source| io("look at", source))
}

impl Plan {
    /// Records of a fill.
    pub fn records_of(&self, value_bytes: usize, durability: Durability) -> u64 {
        self.records.unwrap_or_else(|| {
            let records = (self.bytes / (KEY_BYTES + value_bytes) as u64).max(RECORDS_MIN);
            match durability {
                Durability::Operation => records.min(self.synced_records),
                Durability::Window | Durability::Process => records,
            }
        })
    }

    /// Operations of a phase on a store that was filled with so many records.
    pub fn operations_of(&self, work: Work, records: u64) -> u64 {
        let operations = self.operations.unwrap_or(records);
        match work {
            Work::Fill => records,
            Work::Delete => records / 2,
            work if work.is_grouped() => operations.div_ceil(GROUP as u64),
            _ => operations,
        }
    }
}

#[cfg(test)]
mod tests;
