//! What to change, and why.

use chimera_pmem::{FlushInstruction, Medium};
use serde::Serialize;

use super::machine::Machine;
use super::mounts::Mount;
use super::place::{Occupant, Place};
use super::probe::Probe;
use crate::human::rounded_size;

/// Less free space than this is worth a word.
const FREE_BYTES_LOW: u64 = 64 << 20;

/// Something to know and what to do about it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Advice {
    pub(super) warning: String,
    pub(super) remedy: String,
}

fn advice(warning: impl Into<String>, remedy: impl Into<String>) -> Advice {
    Advice { warning: warning.into(), remedy: remedy.into() }
}

/// Everything that could be better.
pub(super) fn give(place: &Place, probe: &Probe, machine: &Machine) -> Vec<Advice> {
    let mut all = Vec::new();
    all.extend(probe.problem.as_ref().map(|problem| {
        advice(problem, "choose a directory that you may write to, or repair what it says")
    }));
    all.extend(about_occupant(place));
    all.extend(place.mount.as_ref().filter(|mount| mount.is_shared()).map(about_shared));
    all.extend(probe.medium.and_then(|medium| about_medium(medium, place, machine)));
    all.extend(about_flushing(probe));
    all.extend(about_space(place));
    all.extend(about_limits(probe, machine));
    all.extend(about_huge_pages(probe, place, machine));
    all
}

fn about_occupant(place: &Place) -> Option<Advice> {
    match place.occupant {
        Occupant::File => Some(advice(
            format!("`{}` is a file; a store is a directory", place.path.display()),
            "choose another path",
        )),
        Occupant::Device => Some(advice(
            format!("`{}` holds something else, or is not a DAX device", place.path.display()),
            "choose another one, or write zeros over its first 8192 bytes if nothing on it is needed",
        )),
        Occupant::UnreadableOnDevice => Some(advice(
            format!("the superblock on `{}` cannot be read", place.path.display()),
            "restore a copy of the store, or write zeros over its first 8192 bytes if nothing on it is needed",
        )),
        _ => None,
    }
}

fn about_shared(mount: &Mount) -> Advice {
    advice(
        format!("on `{}` file locks and shared mappings may not mean much", mount.file_system),
        "keep stores on a local file system",
    )
}

fn about_medium(medium: Medium, place: &Place, machine: &Machine) -> Option<Advice> {
    let dax_option = place.mount.as_ref().and_then(Mount::dax_option);
    let dax_refused = dax_option.is_some_and(|option| option != "dax=never");
    match medium {
        Medium::File if dax_refused => Some(advice(
            "the file system is mounted for direct access, but the kernel refuses MAP_SYNC",
            "with dax=inode set the directory's attribute (xfs_io -c 'chattr +x'); a virtio-pmem \
             device cannot do it; otherwise ask dmesg",
        )),
        Medium::File if place.device_can_dax == Some(true) => Some(advice(
            "the device can be mapped directly, but the file system is not mounted for it",
            "mount it with -o dax (ext4 with blocks of 4096 bytes, or xfs without reflink)",
        )),
        Medium::File if !machine.pmem_devices.is_empty() => Some(advice(
            format!("the store is not on this machine's {}", machine.pmem_devices.join(", ")),
            "make an ext4 or xfs file system there, mount it with -o dax, and use that",
        )),
        Medium::File => Some(advice(
            "a power loss takes the writes of the last window, 50 ms and a sync unless set otherwise",
            "ask for `immediate` durability, or call sync, where that matters",
        )),
        Medium::Tmpfs => Some(advice(
            "everything here is gone when the machine restarts",
            "use it for tests and benchmarks",
        )),
        _ => None,
    }
}

fn about_flushing(probe: &Probe) -> Option<Advice> {
    match probe.flush_instruction? {
        FlushInstruction::Clflush => Some(advice(
            "the processor flushes cache lines one after the other (clflush)",
            "expect slow writes; newer processors have clwb",
        )),
        FlushInstruction::None
            if FlushInstruction::detect() == FlushInstruction::None
                && probe.medium.is_some_and(Medium::is_persistent_memory) =>
        {
            Some(advice(
                "the processor has no instruction to flush a cache line to persistent memory",
                "do not trust this machine with data that must survive a power loss",
            ))
        }
        _ => None,
    }
}

fn about_space(place: &Place) -> Option<Advice> {
    let free = place.free_bytes.filter(|&free| free < FREE_BYTES_LOW)?;
    Some(advice(format!("only {} are free there", rounded_size(free)), "make room first"))
}

fn about_limits(probe: &Probe, machine: &Machine) -> Vec<Advice> {
    let mut all = Vec::new();
    if let Some(problem) = &probe.address_space_problem {
        all.push(advice(
            format!("no store can be opened, address space is refused: {problem}"),
            "raise the limit with `ulimit -v unlimited`",
        ));
    }
    if let Some(most) = machine.limit_address_space_bytes {
        all.push(advice(
            format!("address space is limited to {}: stores cannot hold more", rounded_size(most)),
            "raise the limit with `ulimit -v unlimited`",
        ));
    }
    if let Some(most) = machine.limit_file_bytes {
        all.push(advice(
            format!("files are limited to {}", rounded_size(most)),
            "raise the limit with `ulimit -f unlimited`, or create stores with small segments",
        ));
    }
    if machine.overcommit == Some(2) {
        all.push(advice(
            "memory is never overcommitted: the index may be refused memory that is free",
            "set vm.overcommit_memory to 0, or leave enough room below CommitLimit",
        ));
    }
    all
}

fn about_huge_pages(probe: &Probe, place: &Place, machine: &Machine) -> Vec<Advice> {
    let mut all = Vec::new();
    if machine.huge_pages.as_deref() == Some("never") {
        all.push(advice(
            "transparent huge pages are off: random reads are up to a third slower",
            "write `madvise` to /sys/kernel/mm/transparent_hugepage/enabled",
        ));
    }
    if probe.medium == Some(Medium::Tmpfs) && probe.huge_pages == Some(false) {
        let point =
            place.mount.as_ref().map_or("it".into(), |mount| mount.point.display().to_string());
        all.push(advice(
            "tmpfs gives no huge pages: benchmarks here are slower than they could be",
            format!("mount -o remount,huge=advise {point}"),
        ));
    }
    all
}
