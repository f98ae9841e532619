//! [`Machine`]: where a benchmark ran.

use std::fs;

use serde::{Deserialize, Serialize};

/// Where a benchmark ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the processor.
    pub cpu: String,
    /// Cores that the process may use.
    pub cores: usize,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// Release of the kernel.
    pub kernel: String,
    /// The instruction that flushed lines.
    pub flush_instruction: String,
}

/// Threads worth using.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Machine {
    /// This machine, where lines are flushed by `flush_instruction`.
    pub fn here(flush_instruction: String) -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self {
            cpu: cpu_of(&read("/proc/cpuinfo")),
            cores: cores(),
            memory_bytes: bytes_of(&read("/proc/meminfo"), "MemTotal"),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            flush_instruction,
        }
    }
}

/// Bytes of the largest cache of the first processor, as the system says; 0 where it does not.
pub(crate) fn last_level_cache_bytes() -> u64 {
    let of_index = |index: u32| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        fs::read_to_string(path).map(|text| cache_bytes_of(&text)).unwrap_or_default()
    };
    (0..8).map(of_index).max().unwrap_or_default()
}

/// A size as `32768K` or `32M`.
fn cache_bytes_of(text: &str) -> u64 {
    let text = text.trim();
    let (number, shift) = match text.strip_suffix('K') {
        Some(number) => (number, 10),
        None => (text.trim_end_matches('M'), if text.ends_with('M') { 20 } else { 0 }),
    };
    number.parse::<u64>().map_or(0, |number| number << shift)
}

/// The model in `/proc/cpuinfo`; the architecture where the system does not say.
fn cpu_of(cpuinfo: &str) -> String {
    field(cpuinfo, "model name").unwrap_or(std::env::consts::ARCH).to_owned()
}

/// The value of `name: value` in a text of lines.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim())
    })
}

/// Private memory of this process that is resident, in bytes: without pages of files, and so without
/// those of a pool on any file system. 0 where the system does not say.
pub(crate) fn private_resident_bytes() -> u64 {
    private_resident_of(&fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// Resident anonymous memory in `/proc/self/status`, in bytes.
fn private_resident_of(status: &str) -> u64 {
    bytes_of(status, "RssAnon")
}

/// A field in kilobytes, in bytes; 0 where it is missing.
pub fn bytes_of(text: &str, name: &str) -> u64 {
    let kilobytes = field(text, name).and_then(|text| text.strip_suffix(" kB"));
    kilobytes.and_then(|text| text.parse::<u64>().ok()).unwrap_or_default() * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_texts_are_understood() {
        assert_eq!(cpu_of("processor\t: 0\nmodel name\t: Fast One\nmodel name\t: B\n"), "Fast One");
        assert_eq!(cpu_of(""), std::env::consts::ARCH);
        assert_eq!(bytes_of("MemTotal:        1000 kB\nMemFree: 1 kB\n", "MemTotal"), 1_024_000);
        assert_eq!(bytes_of("nothing", "MemTotal"), 0);
        let sizes = ["32768K\n", "32M", "512", "", "K"].map(cache_bytes_of);
        assert_eq!(sizes, [32 << 20, 32 << 20, 512, 0, 0]);
        assert_eq!(private_resident_of("VmRSS:\t 9 kB\nRssAnon:\t     3 kB\n"), 3072);
    }

    #[test]
    fn this_machine_says_what_it_is() {
        let machine = Machine::here("clwb".to_owned());
        assert!(machine.cores >= 1);
        assert!(!machine.kernel.is_empty());
        assert!(machine.memory_bytes > 0);
        assert!(private_resident_bytes() > 0);
    }
}
