//! E1, E4, E5, E8, E9 and E10: operations on one or two nodes.
//!
//! Nodes of all places are alike: an image of each is made once and copied. Keys of a node are 0, 2, 4 and so on, in the order
//! in which the paper inserts them where the position matters, and in no order elsewhere.

use chimera_pmem::{Extent, Pmem, Site};

use super::cell::{Cell, Contender, Experiment, Position};
use super::random::mix;
use super::{Measured, Region, Trial};
use crate::allocation::{Grouped, PerNode};
use crate::error::{PrimitivesError, Result};
use crate::layout::{
    Direction, Geometry, Layout, LayoutKind, LayoutVisitor, Node, NodeShape, Place, Scratch,
    Search, Split,
};

/// Structures are made with it; no crash is of interest here.
const PREPARE: Site = Site::new("primitives.study.prepare");

/// Nodes that an operation uses.
const NODES: u64 = 2;

/// The trial of a cell on nodes.
pub(super) fn trial<P: Measured>(
    cell: &Cell,
    pmem: &P,
    region: Region,
    places_max: u64,
) -> Result<Box<dyn Trial<P>>> {
    let Some(kind) = cell.contender.layout() else {
        return Err(PrimitivesError::Shape(format!("{} is about no layout", cell.experiment)));
    };
    kind.visit(Make { cell: *cell, pmem, region, places_max })
}

struct Make<'a, P> {
    cell: Cell,
    pmem: &'a P,
    region: Region,
    places_max: u64,
}

impl<P: Measured> LayoutVisitor for Make<'_, P> {
    type Output = Result<Box<dyn Trial<P>>>;

    fn visit<L: Layout>(self) -> Self::Output {
        let trial: NodeTrial<L> =
            NodeTrial::new(self.cell, self.pmem.plain(), self.region, self.places_max)?;
        Ok(Box::new(trial))
    }
}

/// Where new nodes of a split come from.
enum Source {
    /// They are there already.
    Ready,
    Each(PerNode),
    Groups(Grouped),
}

struct NodeTrial<L> {
    cell: Cell,
    geometry: Geometry,
    region: Region,
    places: u64,
    /// What the nodes of a place are before the operation.
    images: [Vec<u8>; NODES as usize],
    /// The key that is looked for, inserted or erased, and where it is.
    key: Vec<u64>,
    rank: usize,
    place: Place,
    moved: usize,
    source: Source,
    scratch: Scratch,
    layout: std::marker::PhantomData<L>,
}

fn value() -> [u8; 16] {
    *b"a value of bytes"
}

/// Numbers of a node's keys in the order of their insertion.
fn numbers(count: usize, is_ordered: bool) -> Vec<u64> {
    let mut all: Vec<u64> = (0..count as u64).collect();
    if !is_ordered {
        all.sort_by_key(|number| mix(*number));
    }
    all
}

impl<L: Layout> NodeTrial<L> {
    fn new<P: Pmem>(cell: Cell, pmem: &P, region: Region, places_max: u64) -> Result<Self> {
        let geometry = Geometry::new(NodeShape::published(L::KIND, cell.size))?;
        let node_bytes = geometry.node_bytes();
        let allocates = matches!(cell.contender, Contender::Allocated(..));
        let of_allocator = |places: u64| match cell.contender {
            Contender::Allocated(_, true) => Grouped::bytes(node_bytes, places),
            Contender::Allocated(_, false) => PerNode::bytes(node_bytes, places),
            _ => 0,
        };
        let each = NODES * node_bytes + if allocates { node_bytes + 16 } else { 0 };
        let places = (region.bytes / each).min(places_max).max(1);
        let needed = places * NODES * node_bytes;
        if needed + of_allocator(places) > region.bytes && allocates || needed > region.bytes {
            return Err(PrimitivesError::Shape("the region has no room for a node".to_owned()));
        }
        let mut trial = Self {
            cell,
            geometry,
            region,
            places,
            images: [Vec::new(), Vec::new()],
            key: vec![0],
            rank: 0,
            place: Place { rank: 0, index: 0 },
            moved: geometry.entries / 4,
            source: Source::Ready,
            scratch: Scratch::default(),
            layout: std::marker::PhantomData,
        };
        trial.make_images(pmem)?;
        Ok(trial)
    }

    fn at(&self, place: u64, number: u64) -> u64 {
        self.region.at + (place * NODES + number) * self.geometry.node_bytes()
    }

    fn insert_all<P: Pmem>(node: Node<'_, P>, keys: impl Iterator<Item = u64>) -> Result<()> {
        let mut scratch = Scratch::default();
        for key in keys {
            let rank = L::rank_of(node, &[key])?;
            L::insert(node, rank, &[key], &value(), &mut scratch)?;
        }
        Ok(())
    }

    /// Makes the nodes of one place, and keeps what they are.
    fn make_images<P: Pmem>(&mut self, pmem: &P) -> Result<()> {
        let geometry = self.geometry;
        let entries = geometry.entries;
        let rank = match self.cell.position {
            Position::Middle => entries / 2,
            Position::Last => entries - 1,
            _ => 0,
        };
        self.key = vec![2 * rank as u64];
        self.rank = rank;
        let nodes = [self.at(0, 0), self.at(0, 1)];
        let [first, second] =
            [Node::at(pmem, &geometry, nodes[0])?, Node::at(pmem, &geometry, nodes[1])?];
        [first, second].into_iter().for_each(L::format);
        let keys = |numbers: Vec<u64>, base: u64| numbers.into_iter().map(move |n| base + 2 * n);
        match self.cell.experiment {
            Experiment::E4 => {
                let others = keys(numbers(entries, true), 0).filter(|key| *key != self.key[0]);
                Self::insert_all(first, others)?;
                self.rank = L::rank_of(first, &self.key)?;
            }
            Experiment::E5 => Self::insert_all(first, keys(numbers(entries, false), 0))?,
            Experiment::E9 => {
                Self::insert_all(first, keys(numbers(entries, false), 1 << 20))?;
                let to_smaller = self.cell.position == Position::ToSmaller;
                let base = if to_smaller { 0 } else { 1 << 30 };
                Self::insert_all(second, keys(numbers(entries / 2 - 1, false), base))?;
            }
            Experiment::E10 => {
                Self::insert_all(first, keys(numbers(entries / 2, false), 0))?;
                Self::insert_all(second, keys(numbers(entries / 2 - 1, false), 1 << 20))?;
            }
            _ => Self::insert_all(first, keys(numbers(entries, true), 0))?,
        }
        if let Some(place) = L::search(first, &self.key, Search::Binary)? {
            self.place = place;
        }
        for (image, node) in self.images.iter_mut().zip([first, second]) {
            image.resize(geometry.node_bytes() as usize, 0);
            pmem.read(node.extent(), image);
        }
        self.make_source(pmem)
    }

    /// The allocator that new nodes come from, empty.
    fn make_source<P: Pmem>(&mut self, pmem: &P) -> Result<()> {
        let Contender::Allocated(_, grouped) = self.cell.contender else { return Ok(()) };
        let at = self.at(self.places, 0);
        let (bytes, nodes) = (self.geometry.node_bytes(), self.places);
        let front = at..self.region.at + self.region.bytes;
        let metadata = if grouped { Grouped::bytes(0, nodes) } else { PerNode::bytes(0, nodes) };
        let metadata = metadata.next_multiple_of(64).min(front.end - front.start);
        pmem.zero(Extent::new_checked(at, metadata), PREPARE);
        self.source = if grouped {
            Source::Groups(Grouped::open(pmem, at, bytes, nodes)?)
        } else {
            Source::Each(PerNode::open(pmem, at, bytes, nodes)?)
        };
        Ok(())
    }

    fn split<P: Pmem>(&mut self, pmem: &P, place: u64) -> Result<u64> {
        let how = match self.cell.contender {
            Contender::Copied(_) => Split::Copy,
            _ => Split::Move,
        };
        let new = match &mut self.source {
            Source::Ready => self.at(place, 1),
            // The link of the second node of the place, which is not used otherwise.
            Source::Each(each) => {
                let link = self.region.at + (place * NODES + 1) * self.geometry.node_bytes();
                each.allocate(pmem, link)?
            }
            Source::Groups(groups) => {
                let node = groups.allocate(pmem)?;
                groups.node_at(node)
            }
        };
        let node = Node::at(pmem, &self.geometry, self.at(place, 0))?;
        let new = Node::at(pmem, &self.geometry, new)?;
        L::split(node, new, how, &mut self.scratch)?;
        Ok(self.scratch.separator[0])
    }
}

impl<P: Measured, L: Layout> Trial<P> for NodeTrial<L> {
    fn places(&self) -> u64 {
        self.places
    }

    fn prepare(&mut self, pmem: &P, first: u64, count: u64) -> Result<()> {
        let pmem = pmem.plain();
        for place in first..first + count {
            for (number, image) in (0..).zip(&self.images) {
                let to = Extent::new_checked(self.at(place, number), self.geometry.node_bytes());
                pmem.copy(to, image, PREPARE);
            }
        }
        self.make_source(pmem)
    }

    #[inline]
    fn step(&mut self, pmem: &P, place: u64) -> Result<u64> {
        let node = Node::at(pmem, &self.geometry, self.at(place, 0))?;
        let other_at = self.at(place, 1);
        let scratch = &mut self.scratch;
        match self.cell.experiment {
            Experiment::E1 => {
                let how = match self.cell.contender {
                    Contender::Searched(_, how) => how,
                    _ => Search::Linear,
                };
                let found = L::search(node, &self.key, how)?;
                Ok(found.map_or(u64::MAX, |place| place.index as u64))
            }
            Experiment::E4 => {
                L::insert(node, self.rank, &self.key, &value(), scratch)?;
                Ok(place)
            }
            Experiment::E8 => {
                L::erase(node, self.place, scratch)?;
                Ok(place)
            }
            Experiment::E9 => {
                let other = Node::at(pmem, &self.geometry, other_at)?;
                let direction = match self.cell.position {
                    Position::ToSmaller => Direction::ToSmaller,
                    _ => Direction::ToLarger,
                };
                L::balance(node, other, self.moved, direction, scratch)?;
                Ok(place)
            }
            Experiment::E10 => {
                let other = Node::at(pmem, &self.geometry, other_at)?;
                L::merge(node, other, scratch)?;
                Ok(place)
            }
            _ => self.split(pmem, place),
        }
    }
}

/// Entries that all layouts have in nodes of this size (E3): those of the ones with a search structure.
pub(super) fn common_entries(node_bytes: u32) -> Result<usize> {
    let geometries =
        LayoutKind::ALL.map(|kind| Geometry::new(NodeShape::published(kind, node_bytes)));
    let mut least = usize::MAX;
    for geometry in geometries {
        least = least.min(geometry?.entries);
    }
    Ok(least)
}
