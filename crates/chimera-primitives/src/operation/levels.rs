//! E6 and E7: moving a buffer from DRAM to a run, and merging four runs.

use std::collections::{BTreeMap, HashMap};

use chimera_pmem::{Extent, Pmem, Site};

use super::cell::{Cell, Contender};
use super::random::mix;
use super::{Measured, Region, Trial};
use crate::atomicity::{FailureAtomicity, L0_RUNS, Merge, MergeInto, RunBuffer, RunGeometry, Runs};
use crate::error::{PrimitivesError, Result};

const PREPARE: Site = Site::new("primitives.study.prepare");

/// Entries of a buffer in DRAM.
type Entry = [u8; 16];

/// What data in DRAM is kept in.
enum C0 {
    Sorted(BTreeMap<u64, Entry>),
    Unsorted(HashMap<u64, Entry>),
}

struct Level {
    cell: Cell,
    geometry: RunGeometry,
    region: Region,
    places: u64,
    kind: FailureAtomicity,
    c0: C0,
    buffer: RunBuffer,
    /// What a place is before the operation, without its logs.
    image: Vec<u8>,
    open: Vec<Runs>,
    sorted: Vec<(u64, Entry)>,
}

/// The trial of runs.
pub(super) fn trial<P: Measured>(
    cell: &Cell,
    pmem: &P,
    region: Region,
    places_max: u64,
) -> Result<Box<dyn Trial<P>>> {
    let geometry = RunGeometry::published(u64::from(cell.size));
    let (sorted, kind) = match cell.contender {
        Contender::Moved(sorted, kind) => (sorted, kind),
        Contender::Filled(sorted) => (sorted, FailureAtomicity::NoFa),
        Contender::Merged(_, _, _, kind) => (true, kind),
        _ => return Err(PrimitivesError::Shape("that is not about runs".to_owned())),
    };
    let bytes = Runs::bytes(geometry, L0_RUNS * geometry.entries).next_multiple_of(64);
    let places = (region.bytes / bytes).min(places_max);
    if places == 0 {
        return Err(PrimitivesError::Shape("the region has no room for runs".to_owned()));
    }
    let c0 = if sorted { C0::Sorted(BTreeMap::new()) } else { C0::Unsorted(HashMap::new()) };
    let mut level = Level {
        cell: *cell,
        geometry,
        region,
        places,
        kind,
        c0,
        buffer: RunBuffer::default(),
        image: Vec::new(),
        open: Vec::new(),
        sorted: Vec::new(),
    };
    level.fill();
    level.make_image(pmem.plain())?;
    Ok(Box::new(level))
}

impl Level {
    fn second(&self) -> usize {
        L0_RUNS * self.geometry.entries
    }

    fn place_bytes(&self) -> u64 {
        Runs::bytes(self.geometry, self.second()).next_multiple_of(64)
    }

    fn at(&self, place: u64) -> u64 {
        self.region.at + place * self.place_bytes()
    }

    /// Fills the buffer in DRAM, as writes come: in no order.
    fn fill(&mut self) {
        for number in 0..self.geometry.entries as u64 {
            let (key, value) = (mix(number), *b"a value of bytes");
            match &mut self.c0 {
                C0::Sorted(map) => drop(map.insert(key, value)),
                C0::Unsorted(map) => drop(map.insert(key, value)),
            }
        }
    }

    /// Empties the buffer.
    fn forget(&mut self) {
        match &mut self.c0 {
            C0::Sorted(map) => map.clear(),
            C0::Unsorted(map) => map.clear(),
        }
    }

    /// The entries of the buffer in their order, as a run has them.
    fn gather(&mut self) {
        self.buffer.clear();
        match &self.c0 {
            C0::Sorted(map) => {
                for (key, value) in map {
                    self.buffer.push(&[*key], value);
                }
            }
            C0::Unsorted(map) => {
                self.sorted.clear();
                self.sorted.extend(map.iter().map(|(key, value)| (*key, *value)));
                self.sorted.sort_unstable_by_key(|(key, _)| *key);
                for (key, value) in &self.sorted {
                    self.buffer.push(&[*key], value);
                }
            }
        }
    }

    /// Makes one place as it is before the operation: empty (E6), or four full runs (E7).
    fn make_image<P: Pmem>(&mut self, pmem: &P) -> Result<()> {
        let extent = Extent::new_checked(self.at(0), self.place_bytes());
        pmem.zero(extent, PREPARE);
        let runs =
            Runs::open(pmem, self.at(0), self.geometry, self.second(), FailureAtomicity::NoFa)?;
        if let Contender::Merged(_, _, duplicates, _) = self.cell.contender {
            for run in 0..L0_RUNS as u64 {
                let mut buffer = RunBuffer::default();
                for number in 0..self.geometry.entries as u64 {
                    let key = if duplicates { number } else { number * L0_RUNS as u64 + run };
                    buffer.push(&[key], b"a value of bytes");
                }
                runs.push(pmem, &buffer)?;
            }
        }
        self.image.resize(extent.length() as usize, 0);
        pmem.read(extent, &mut self.image);
        for place in 0..self.places {
            let at = self.at(place);
            pmem.copy(Extent::new_checked(at, self.place_bytes()), &self.image, PREPARE);
            self.open.push(Runs::open(pmem, at, self.geometry, self.second(), self.kind)?);
        }
        Ok(())
    }
}

impl<P: Measured> Trial<P> for Level {
    fn places(&self) -> u64 {
        self.places
    }

    fn prepare(&mut self, pmem: &P, first: u64, count: u64) -> Result<()> {
        let pmem = pmem.plain();
        for place in first..first + count {
            // `Run_Ptr` alone says which runs are free.
            let line = &self.image[..64];
            pmem.copy(Extent::new_checked(self.at(place), 64), line, PREPARE);
        }
        Ok(())
    }

    #[inline]
    fn step(&mut self, pmem: &P, place: u64) -> Result<u64> {
        let runs = self.open[place as usize];
        match self.cell.contender {
            Contender::Filled(_) => {
                self.forget();
                self.fill();
            }
            Contender::Merged(k_way, buffered, _, _) => {
                let how = if k_way { Merge::KWay } else { Merge::TwoWay };
                let into = if buffered { MergeInto::Buffered } else { MergeInto::Direct };
                runs.merge(pmem, how, into)?;
            }
            _ => {
                self.gather();
                runs.push(pmem, &self.buffer)?;
            }
        }
        Ok(place)
    }
}
