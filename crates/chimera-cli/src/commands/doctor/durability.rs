//! Which durability modes are possible on a medium, and which is in force by default.

use std::time::Duration;

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
        let mode = |name, asked: Durability, meaning| {
            let possible = asked.effective_on(medium).is_ok();
            Mode { name, possible, meaning }
        };
        let power_loss = "a write survives a power loss once it is acknowledged";
        let delayed = "a write survives a power loss after a delay of your choice";
        let kill = "a write survives the end of the process, such as kill -9";
        let group = Durability::Group { max_delay: Duration::from_millis(50) };
        Self {
            effective: Durability::Auto.effective_on(medium).unwrap_or(Durability::Process),
            why: why(medium),
            modes: vec![
                mode("immediate", Durability::Immediate, power_loss),
                mode("group", group, delayed),
                mode("process", Durability::Process, kill),
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
            "a journal keeps what the kernel writes back in any order; its syncs are shared"
        }
        Medium::Tmpfs | Medium::Anonymous | Medium::Simulated => {
            "memory is gone when the machine stops"
        }
    }
}
