//! Options, and what the platform says about itself.

use std::fs;

use super::*;
use crate::hardware::platform::{caches_are_persistent_in, huge_pages_listed};

#[test]
fn the_flush_choice_is_honoured() {
    let with = |flush| Hardware::new(HardwareOptions { flush, ..HardwareOptions::default() });
    let memory = with(FlushChoice::Auto).unwrap();
    assert_eq!(memory.flush_instruction(), FlushInstruction::detect());
    assert_eq!(with(FlushChoice::Never).unwrap().flush_instruction(), FlushInstruction::None);
    for instruction in FlushInstruction::ALL {
        let memory = with(FlushChoice::Instruction(instruction));
        if instruction.is_available() {
            assert_eq!(memory.unwrap().flush_instruction(), instruction);
        } else {
            assert_eq!(memory.unwrap_err().kind(), io::ErrorKind::Unsupported);
        }
    }
}

#[test]
fn memory_is_flushed_even_where_nothing_is_durable() {
    // Benchmarks on emulated media need the instructions.
    assert_eq!(anonymous(1).flush_instruction(), FlushInstruction::detect());
    let never = HardwareOptions { flush: FlushChoice::Never, ..HardwareOptions::default() };
    assert_eq!(anonymous_with(1, never).flush_instruction(), FlushInstruction::None);
}

#[test]
fn caches_persist_only_when_every_region_says_so() {
    let devices = tempfile::tempdir().unwrap();
    let region = |name: &str, domain: &str| {
        fs::create_dir_all(devices.path().join(name)).unwrap();
        fs::write(devices.path().join(name).join("persistence_domain"), domain).unwrap();
    };
    assert!(!caches_are_persistent_in(&devices.path().join("missing")));
    assert!(!caches_are_persistent_in(devices.path()), "no region");
    fs::create_dir(devices.path().join("nmem0")).unwrap();
    assert!(!caches_are_persistent_in(devices.path()), "no region either");
    region("region0", "cpu_cache\n");
    assert!(caches_are_persistent_in(devices.path()));
    region("region1", "memory_controller\n");
    assert!(!caches_are_persistent_in(devices.path()));
    region("region1", "cpu_cache\n");
    assert!(caches_are_persistent_in(devices.path()));
    fs::create_dir(devices.path().join("region2")).unwrap();
    assert!(!caches_are_persistent_in(devices.path()), "a region that does not say");
}

#[test]
fn huge_pages_are_found_in_the_right_mapping() {
    let smaps = "\
7f0000000000-7f0000200000 rw-p 00000000 00:00 0 \n\
Size:               2048 kB\n\
AnonHugePages:         0 kB\n\
VmFlags: rd wr mr mw me ac\n\
7f0000400000-7f0000600000 rw-s 00000000 00:01 77   /dev/shm/pool\n\
ShmemPmdMapped:     2048 kB\n";
    assert!(!huge_pages_listed(smaps, 0x7f00_0000_0000..0x7f00_0040_0000));
    assert!(huge_pages_listed(smaps, 0x7f00_0000_0000..0x7f00_0060_0000));
    assert!(!huge_pages_listed(smaps, 0..0x7f00_0040_0000));
    assert!(!huge_pages_listed("", 0..usize::MAX));
}

#[test]
fn huge_pages_are_reported_when_the_system_grants_them() {
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let granted = setting.is_ok_and(|text| text.contains("[madvise]") || text.contains("[always]"));
    let options = HardwareOptions { huge_pages: true, ..HardwareOptions::default() };
    let memory = anonymous_with(2048, options);
    assert!(!memory.uses_huge_pages(), "nothing is touched yet");
    memory.populate(0, 2048 * PAGE).unwrap();
    if granted {
        assert!(memory.uses_huge_pages());
    }
}
