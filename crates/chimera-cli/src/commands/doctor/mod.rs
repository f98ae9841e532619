//! `chimera doctor`: what this machine and this directory can do for a store.
//!
//! - `place`: the directory, its file system, whether a store is there.
//! - `probe`: what the persistence seam finds there: medium, flushing, huge pages.
//! - `machine`: processor, memory, limits, settings of the system.
//! - `durability`: which modes are possible, and which is in force by default.
//! - `advice`: what to change.
//!
//! A store at the path is never opened: its superblock is mapped for reading, to learn the medium.
//! Where there is none, a temporary file is used, which is removed as soon as it is open.

mod advice;
mod durability;
mod machine;
mod mounts;
mod place;
mod probe;
mod text;

use clap::Args;
use serde::Serialize;

use crate::commands::Context;
use crate::failure::Failure;

use advice::Advice;
use durability::Durabilities;
use machine::Machine;
use place::Place;
use probe::Probe;

const EXAMPLES: &str = "\
Examples:
  chimera doctor
  chimera doctor --path /mnt/pmem/data
  chimera doctor --json

The store need not exist; nothing is created and no store is changed.";

/// Say what this machine and this directory can do: medium, flushing, durability, limits
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {}

/// All that was found.
#[derive(Serialize)]
struct Diagnosis {
    place: Place,
    probe: Probe,
    durability: Option<Durabilities>,
    machine: Machine,
    advice: Vec<Advice>,
}

impl Doctor {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let place = Place::look(&context.path)
            .map_err(|source| Failure::Io { action: "look at the path", source })?;
        let probe = Probe::run(&place);
        let machine = Machine::look();
        let durability = probe.medium.map(Durabilities::on);
        let advice = advice::give(&place, &probe, &machine);
        let diagnosis = Diagnosis { place, probe, durability, machine, advice };
        if context.json {
            return context.output.json(&diagnosis);
        }
        text::lines(&diagnosis).iter().try_for_each(|line| context.output.line(line))
    }
}
