//! Which durability modes are possible on a medium, and which is in force by default.

use chimera::Durability;
use chimera_pmem::Medium;
use serde::Serialize;

/// The modes on a medium.
#[derive(Serialize)]
pub(super) struct Durabilities {
    pub(super) effective: Durability,
    pub(super) why: &'static str,
    pub(super) modes: Vec<Mode>,
}

/// One mode.
#[derive(Serialize)]
pub(super) struct Mode {
    pub(super) name: &'static str,
    pub(super) possible: bool,
    pub(super) meaning: &'static str,
}

impl Durabilities {
    pub(super) fn on(medium: Medium) -> Self {
        let persistent = medium.is_persistent_memory();
        let effective = if persistent { Durability::Immediate } else { Durability::Process };
        let mode = |name, possible, meaning| Mode { name, possible, meaning };
        Self {
            effective,
            why: why(medium),
            modes: vec![
                mode(
                    "immediate",
                    persistent,
                    "a write survives a power loss once it is acknowledged",
                ),
                mode(
                    "group",
                    persistent,
                    "a write survives a power loss after a delay of your choice",
                ),
                mode("process", true, "a write survives the end of the process, such as kill -9"),
            ],
        }
    }
}

/// What makes a medium what it is.
pub(super) fn nature(medium: Medium) -> &'static str {
    match medium {
        Medium::FsDax => "MAP_SYNC is granted: a flushed cache line is durable",
        Medium::DevDax => "a DAX character device: a flushed cache line is durable",
        Medium::File => "MAP_SYNC is refused: the page cache is between memory and the disk",
        Medium::Tmpfs => "the file system keeps its files in memory",
        Medium::Anonymous | Medium::Simulated => "nothing is kept",
    }
}

fn why(medium: Medium) -> &'static str {
    match medium {
        Medium::FsDax | Medium::DevDax => "flush and fence are all that a power-safe write needs",
        Medium::File => {
            "the kernel writes pages back in any order, so a power loss can tear an open store"
        }
        Medium::Tmpfs | Medium::Anonymous | Medium::Simulated => {
            "memory is gone when the machine stops"
        }
    }
}
