//! `chimera doctor`: what this machine and this directory can do for a store.
//!
//! - `place`: the directory, its file system, whether a store is there.
//! - `probe`: what the persistence seam finds there: medium, flushing, huge pages.
//! - `machine`: processor, memory, limits, settings of the system.
//! - `opening`: whether the store there can be opened.
//! - `durability`: which modes are possible, and which is in force by default.
//! - `advice`: what to change. `setup`: how a medium is made ready.
//!
//! A store at the path is opened for reading, which changes nothing, unless a process has it open. Its
//! superblock is mapped for reading, to learn the medium. Where there is no store, a temporary file is
//! used, which is removed as soon as it is open.

mod advice;
mod durability;
mod machine;
mod mounts;
mod opening;
mod place;
mod probe;
mod setup;
mod text;

use clap::Args;
use serde::Serialize;

use crate::commands::Context;
use crate::failure::Failure;

use advice::Advice;
use durability::Durabilities;
use machine::Machine;
use opening::Opening;
use place::Place;
use probe::Probe;
use setup::Step;

const EXAMPLES: &str = "\
Examples:
  chimera doctor
  chimera doctor --path /mnt/pmem/data
  chimera doctor --json

What --path says is examined, and nothing else. A directory need not exist: it is said what a store
there would have. A device must. Nothing is created and no store is changed. A store is opened for
reading, unless a process has it open.

Exit code 0: a store is there, or could be made. 3: the store cannot be opened, no store can be
made there, or there is no such device; the report is printed all the same where there is one.";

/// Say what this machine and this directory can do: medium, flushing, durability, limits
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {}

/// All that was found.
#[derive(Serialize)]
struct Diagnosis {
    place: Place,
    probe: Probe,
    opening: Opening,
    durability: Option<Durabilities>,
    /// How the medium is made ready.
    setup: Vec<Step>,
    machine: Machine,
    advice: Vec<Advice>,
}

impl Doctor {
    pub(crate) fn run(context: &mut Context) -> Result<(), Failure> {
        let place = Place::look(&context.path)
            .map_err(|source| Failure::Io { action: "look at the path", source })?;
        if place.is_absent_device() {
            return Err(Failure::NoDevice(place.path));
        }
        let probe = Probe::run(&place);
        let (opening, failure) = Opening::attempt(&place, &probe);
        let machine = Machine::look();
        let durability = probe.medium.map(Durabilities::on);
        let advice = advice::give(&place, &probe, &machine);
        let setup = probe.medium.map(|medium| setup::steps(medium, &place, &machine));
        let setup = setup.unwrap_or_default();
        let diagnosis = Diagnosis { place, probe, opening, durability, setup, machine, advice };
        if context.json {
            context.output.json(&diagnosis)?;
        } else {
            text::lines(&diagnosis).iter().try_for_each(|line| context.output.line(line))?;
        }
        failure.map_or(Ok(()), Err)
    }
}
