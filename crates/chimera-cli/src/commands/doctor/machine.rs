//! The machine: processor, persistent-memory regions, memory, limits, settings of the system.

use std::fs;
use std::path::Path;

use chimera_pmem::{Environment, FlushInstruction, RealEnvironment, transactions_commit};
use rustix::process::{Resource, getrlimit};
use serde::Serialize;

/// What the machine is and what it allows.
#[derive(Serialize)]
pub(super) struct Machine {
    pub(super) processor: Option<String>,
    pub(super) architecture: &'static str,
    pub(super) kernel: Option<String>,
    /// Threads that can run at the same time.
    pub(super) cores: usize,
    /// Flush instructions of the processor, best first.
    pub(super) flush_instructions: Vec<FlushInstruction>,
    /// Whether hardware transactions commit, which ordered stores can use then.
    pub(super) transactions: bool,
    /// Persistent-memory regions and what the platform saves of them at a power loss.
    pub(super) regions: Vec<Region>,
    /// Whether caches survive a power loss; unknown without regions that say so.
    pub(super) eadr: Option<bool>,
    /// Character devices of persistent memory.
    pub(super) dax_devices: Vec<String>,
    /// Block devices of persistent memory.
    pub(super) pmem_devices: Vec<String>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) memory_available_bytes: Option<u64>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub(super) huge_pages: Option<String>,
    /// The same for tmpfs, beside the mount's own option.
    pub(super) huge_pages_tmpfs: Option<String>,
    pub(super) overcommit: Option<u64>,
    /// Limits of this process; none is unlimited.
    pub(super) limit_address_space_bytes: Option<u64>,
    pub(super) limit_locked_bytes: Option<u64>,
    pub(super) limit_open_files: Option<u64>,
    pub(super) limit_file_bytes: Option<u64>,
}

/// A persistent-memory region.
#[derive(Serialize)]
pub(super) struct Region {
    pub(super) name: String,
    /// `cpu_cache` (caches are saved), `memory_controller`, or what else the platform says.
    pub(super) persistence_domain: Option<String>,
}

impl Machine {
    pub(super) fn look() -> Self {
        let regions = regions();
        let meminfo = read("/proc/meminfo").unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
        let limit = |resource| getrlimit(resource).current;
        let is_available = |instruction: &FlushInstruction| {
            *instruction != FlushInstruction::None && instruction.is_available()
        };
        Self {
            processor: field(&cpuinfo, "model name").map(str::to_owned),
            architecture: std::env::consts::ARCH,
            kernel: read("/proc/sys/kernel/osrelease"),
            cores: RealEnvironment::new().parallelism(),
            flush_instructions: FlushInstruction::ALL.into_iter().filter(is_available).collect(),
            transactions: transactions_commit(),
            eadr: eadr(&regions),
            regions,
            dax_devices: names("/sys/bus/dax/devices", "dax"),
            pmem_devices: names("/sys/block", "pmem"),
            memory_bytes: kibibytes(&meminfo, "MemTotal"),
            memory_available_bytes: kibibytes(&meminfo, "MemAvailable"),
            huge_pages: chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
            huge_pages_tmpfs: chosen("/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
            overcommit: read("/proc/sys/vm/overcommit_memory").and_then(|text| text.parse().ok()),
            limit_address_space_bytes: limit(Resource::As),
            limit_locked_bytes: limit(Resource::Memlock),
            limit_open_files: limit(Resource::Nofile),
            limit_file_bytes: limit(Resource::Fsize),
        }
    }
}

/// Whether every region says that caches survive; unknown without regions or without their word.
fn eadr(regions: &[Region]) -> Option<bool> {
    let domains: Option<Vec<_>> =
        regions.iter().map(|region| region.persistence_domain.as_deref()).collect();
    let domains = domains.filter(|domains| !domains.is_empty())?;
    Some(domains.iter().all(|domain| *domain == "cpu_cache"))
}

fn regions() -> Vec<Region> {
    let directory = "/sys/bus/nd/devices";
    let region = |name: String| Region {
        persistence_domain: read(Path::new(directory).join(&name).join("persistence_domain")),
        name,
    };
    names(directory, "region").into_iter().map(region).collect()
}

/// The text of a small file, without white space around it.
fn read(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// Names in a directory that begin with `prefix`, sorted.
fn names(directory: &str, prefix: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort_unstable();
    names
}

/// The choice in brackets: `always [madvise] never`.
fn chosen(path: &str) -> Option<String> {
    let text = read(path)?;
    let choice = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    choice.map(str::to_owned)
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then_some(value.trim())
    })
}

/// The value of the line `name: 123 kB`, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let number: u64 = field(text, name)?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(number << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_procfs_are_found() {
        let text = "MemTotal:       1024 kB\nmodel name\t: A: B\n";
        assert_eq!(kibibytes(text, "MemTotal"), Some(1 << 20));
        assert_eq!(kibibytes(text, "MemFree"), None);
        assert_eq!(field(text, "model name"), Some("A: B"));
    }

    #[test]
    fn caches_survive_when_every_region_says_so() {
        let region = |domain: Option<&str>| Region {
            name: "region0".to_owned(),
            persistence_domain: domain.map(str::to_owned),
        };
        assert_eq!(eadr(&[]), None);
        assert_eq!(eadr(&[region(Some("cpu_cache"))]), Some(true));
        let mixed = [region(Some("cpu_cache")), region(Some("memory_controller"))];
        assert_eq!(eadr(&mixed), Some(false));
        assert_eq!(eadr(&[region(Some("cpu_cache")), region(None)]), None);
    }
}
