//! What the platform says about itself in sysfs and procfs.

use std::fs;
use std::ops::Range;
use std::path::Path;

/// Whether every persistent-memory region of the machine says that its processor caches survive a
/// power loss (eADR). `false` where there is none or nothing is said.
pub(super) fn caches_are_persistent() -> bool {
    caches_are_persistent_in(Path::new("/sys/bus/nd/devices"))
}

/// As [`caches_are_persistent`], looking in `devices`.
pub(super) fn caches_are_persistent_in(devices: &Path) -> bool {
    let Ok(entries) = fs::read_dir(devices) else { return false };
    let mut regions = 0;
    for entry in entries {
        let Ok(entry) = entry else { return false };
        if !entry.file_name().as_encoded_bytes().starts_with(b"region") {
            continue;
        }
        regions += 1;
        let domain = fs::read_to_string(entry.path().join("persistence_domain"));
        if !domain.is_ok_and(|domain| domain.trim() == "cpu_cache") {
            return false;
        }
    }
    regions > 0
}

/// Whether any mapping inside `addresses` lies on huge pages now, by `/proc/self/smaps`.
pub(super) fn huge_pages_in(addresses: Range<usize>) -> bool {
    fs::read_to_string("/proc/self/smaps").is_ok_and(|smaps| huge_pages_listed(&smaps, addresses))
}

/// As [`huge_pages_in`], reading `smaps`.
pub(super) fn huge_pages_listed(smaps: &str, addresses: Range<usize>) -> bool {
    let mut inside = false;
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        if let Some(field) = first.strip_suffix(':') {
            let huge = matches!(field, "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped");
            if inside && huge && words.next().is_some_and(|size| size != "0") {
                return true;
            }
        } else if let Some((start, _)) = first.split_once('-') {
            inside = usize::from_str_radix(start, 16).is_ok_and(|start| addresses.contains(&start));
        }
    }
    false
}
