//! The experiments of the paper, E1 to E10, recovery as an eleventh, and allocation as a twelfth (DaMoN'20, sections 5.2 to 5.4).
//!
//! A [`Cell`] is one bar of one figure: an experiment, a contender, a size, a position. [`cells`] lists them all.
//! [`Trial`] makes a cell's structures in persistent memory and carries its operation out, once for each *place*: structures of
//! places are alike and far apart, so that whoever measures decides which of them are cached. No clock is in here.
//!
//! `nodes` has the experiments on one or two nodes, `paths` those on many (E2, E3, E11), `levels` those on runs (E6, E7),
//! `allocations` those on allocators.

mod allocations;
mod cell;
mod levels;
mod nodes;
mod paths;
mod random;

#[cfg(test)]
mod tests;

use chimera_pmem::{Hardware, Instrumented, Pmem};

pub use cell::{Cell, Contender, Experiment, Position, cells};
pub use random::Places;

use crate::error::Result;

/// A region of memory that a trial may use: from a line on, to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where it begins.
    pub at: u64,
    /// Its length.
    pub bytes: u64,
}

/// Memory whose use is timed or counted, and the way past that: structures are made without being measured.
pub trait Measured: Pmem {
    /// The memory itself.
    type Plain: Pmem;
    /// Leads to it.
    fn plain(&self) -> &Self::Plain;
}

impl Measured for Hardware {
    type Plain = Self;

    fn plain(&self) -> &Self {
        self
    }
}

impl<P: Pmem> Measured for Instrumented<P> {
    type Plain = P;

    fn plain(&self) -> &P {
        self.inner()
    }
}

/// One cell with its structures.
pub trait Trial<P: Measured> {
    /// Places that there are: operations that can be made before [`prepare`](Self::prepare) must be called again.
    fn places(&self) -> u64;

    /// Makes the structures of places from `first` on, `count` of them, as they are before the operation. Not measured.
    ///
    /// # Errors
    /// `Corrupted`, which is a fault of this crate here.
    fn prepare(&mut self, pmem: &P, first: u64, count: u64) -> Result<()>;

    /// Carries the operation out at a place. What is returned depends on what was read, so that nothing is left out.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    fn step(&mut self, pmem: &P, place: u64) -> Result<u64>;

    /// What one step is divided by in reports: levels of a path, nodes of a chain.
    fn units(&self) -> u64 {
        1
    }
}

/// Makes the trial of a cell in a region, with at most so many places.
///
/// # Errors
/// `Shape` when the region has no room for a single place, or sizes do not go together.
pub fn trial<P: Measured>(
    cell: &Cell,
    pmem: &P,
    region: Region,
    places_max: u64,
) -> Result<Box<dyn Trial<P>>> {
    match cell.experiment {
        Experiment::E2 => paths::descent(cell, pmem, region, places_max),
        Experiment::E3 | Experiment::E11 => paths::chain(cell, pmem, region, places_max),
        Experiment::E6 | Experiment::E7 => levels::trial(cell, pmem, region, places_max),
        Experiment::A1 => allocations::trial(cell, pmem, region, places_max),
        _ => nodes::trial(cell, pmem, region, places_max),
    }
}
