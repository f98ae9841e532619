//! A1: taking a node from an allocator, and giving it back.

use chimera_pmem::{Extent, Pmem, Site};

use super::cell::{Cell, Contender};
use super::{Measured, Region, Trial};
use crate::allocation::{Grouped, PerNode};
use crate::error::{PrimitivesError, Result};

const PREPARE: Site = Site::new("primitives.study.prepare");

enum Allocator {
    Each(PerNode),
    Groups(Grouped),
}

struct Allocations {
    region: Region,
    node_bytes: u64,
    places: u64,
    grouped: bool,
    frees: bool,
    allocator: Allocator,
    /// The nodes that were taken before the measurement, one for each place.
    taken: Vec<u64>,
}

/// The trial of an allocator.
pub(super) fn trial<P: Measured>(
    cell: &Cell,
    pmem: &P,
    region: Region,
    places_max: u64,
) -> Result<Box<dyn Trial<P>>> {
    let Contender::Allocation(grouped, frees) = cell.contender else {
        return Err(PrimitivesError::Shape("that is not about allocation".to_owned()));
    };
    let node_bytes = u64::from(cell.size);
    // A word of links and one of state for each.
    let places = (region.bytes / (node_bytes + 64)).min(places_max);
    if places == 0 {
        return Err(PrimitivesError::Shape("the region has no room for a node".to_owned()));
    }
    let (allocator, taken) = make(pmem.plain(), region, (node_bytes, places), (grouped, frees))?;
    Ok(Box::new(Allocations { region, node_bytes, places, grouped, frees, allocator, taken }))
}

/// Where the links of all places lie: in front.
fn links_bytes(places: u64) -> u64 {
    (8 * places).next_multiple_of(64)
}

/// An allocator of which nothing is taken, or a node for each place.
fn make<P: Pmem>(
    pmem: &P,
    region: Region,
    (node_bytes, places): (u64, u64),
    (grouped, frees): (bool, bool),
) -> Result<(Allocator, Vec<u64>)> {
    let at = region.at + links_bytes(places);
    let metadata = if grouped { Grouped::bytes(0, places) } else { PerNode::bytes(0, places) };
    let front = links_bytes(places) + metadata.next_multiple_of(64);
    pmem.zero(Extent::new_checked(region.at, front), PREPARE);
    let mut allocator = if grouped {
        Allocator::Groups(Grouped::open(pmem, at, node_bytes, places)?)
    } else {
        Allocator::Each(PerNode::open(pmem, at, node_bytes, places)?)
    };
    let mut taken = Vec::new();
    for place in (0..places).filter(|_| frees) {
        taken.push(match &mut allocator {
            Allocator::Each(each) => each.allocate(pmem, region.at + 8 * place)?,
            Allocator::Groups(groups) => groups.allocate(pmem)?,
        });
    }
    Ok((allocator, taken))
}

impl<P: Measured> Trial<P> for Allocations {
    fn places(&self) -> u64 {
        self.places
    }

    fn prepare(&mut self, pmem: &P, first: u64, _: u64) -> Result<()> {
        if first == 0 {
            let sizes = (self.node_bytes, self.places);
            (self.allocator, self.taken) =
                make(pmem.plain(), self.region, sizes, (self.grouped, self.frees))?;
        }
        Ok(())
    }

    #[inline]
    fn step(&mut self, pmem: &P, place: u64) -> Result<u64> {
        let link = self.region.at + 8 * place;
        match (&mut self.allocator, self.frees) {
            (Allocator::Each(each), false) => each.allocate(pmem, link),
            (Allocator::Each(each), true) => each.deallocate(pmem, link).map(|()| place),
            (Allocator::Groups(groups), false) => groups.allocate(pmem),
            (Allocator::Groups(groups), true) => {
                groups.deallocate(pmem, self.taken[place as usize]);
                Ok(place)
            }
        }
    }
}
