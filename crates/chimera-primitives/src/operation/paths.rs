//! E2, E3 and E11: from node to node.

use chimera_pmem::{Extent, Pmem, Site};

use super::cell::{Cell, Contender, Experiment};
use super::nodes::common_entries;
use super::random::{Places, mix};
use super::{Measured, Region, Trial};
use crate::error::{PrimitivesError, Result};
use crate::layout::{Geometry, Layout, LayoutKind, LayoutVisitor, Node, NodeShape, Scratch, Walk};

const PREPARE: Site = Site::new("primitives.study.prepare");

/// Bytes of an inner node, as in the paper's figure.
const INNER_BYTES: u64 = 256;
/// Children of an inner node: keys of 8 and pointers of 16 bytes behind a line of metadata.
const CHILDREN: u64 = 8;
/// Where the pointers lie: behind the keys.
const CHILDREN_AT: u64 = 64 + 64;

/// A path from inner node to inner node and to a leaf (E2). Each level has nodes of its own, as many as there is room for, so
/// that every step leads to another line.
struct Descent {
    levels: u64,
    /// Nodes of a level.
    nodes: u64,
    region: Region,
    /// Pointers of the inner nodes, where they are in DRAM: one node after the other.
    dram: Option<Vec<[u64; INNER_BYTES as usize / 8]>>,
    places: u64,
}

/// The trial of a path.
pub(super) fn descent<P: Measured>(
    cell: &Cell,
    pmem: &P,
    region: Region,
    places_max: u64,
) -> Result<Box<dyn Trial<P>>> {
    let Contender::Inner(in_dram) = cell.contender else {
        return Err(PrimitivesError::Shape("inner nodes are in DRAM or not".to_owned()));
    };
    let levels = u64::from(cell.size);
    let nodes = region.bytes / INNER_BYTES / (levels + 1);
    if nodes < CHILDREN {
        return Err(PrimitivesError::Shape("the region has no room for levels".to_owned()));
    }
    // With few places all of it is to be in the cache.
    let nodes = nodes.min(places_max.max(CHILDREN));
    let dram = in_dram.then(|| vec![[0; INNER_BYTES as usize / 8]; (levels * nodes) as usize]);
    let mut descent = Descent { levels, nodes, region, dram, places: places_max.max(1) };
    descent.make(pmem.plain());
    Ok(Box::new(descent))
}

impl Descent {
    fn at(&self, level: u64, node: u64) -> u64 {
        self.region.at + (level * self.nodes + node) * INNER_BYTES
    }

    /// Which node of the next level a child is.
    fn child(&self, level: u64, node: u64, child: u64) -> u64 {
        mix((level << 48) ^ (node << 4) ^ child) % self.nodes
    }

    fn make<P: Pmem>(&mut self, pmem: &P) {
        for level in 0..=self.levels {
            for node in 0..self.nodes {
                let mut image = [0_u64; INNER_BYTES as usize / 8];
                for child in 0..CHILDREN {
                    let to = self.child(level, node, child);
                    let word = (CHILDREN_AT / 8 + 2 * child) as usize;
                    image[word] = to;
                }
                let number = (level * self.nodes + node) as usize;
                match &mut self.dram {
                    Some(nodes) if level < self.levels => nodes[number] = image,
                    _ => {
                        let bytes: Vec<u8> =
                            image.iter().flat_map(|word| word.to_le_bytes()).collect();
                        let to = Extent::new_checked(self.at(level, node), INNER_BYTES);
                        pmem.copy(to, &bytes, PREPARE);
                    }
                }
            }
        }
    }
}

impl<P: Measured> Trial<P> for Descent {
    fn places(&self) -> u64 {
        self.places
    }

    /// Nothing changes a path.
    fn prepare(&mut self, _: &P, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn step(&mut self, pmem: &P, place: u64) -> Result<u64> {
        let mut node = mix(place) % self.nodes;
        for level in 0..self.levels {
            // Another child at each level, which depends on nothing that was read.
            let child = mix(place ^ level << 32) % CHILDREN;
            let word = CHILDREN_AT + 16 * child;
            node = match &self.dram {
                Some(nodes) => nodes[(level * self.nodes + node) as usize][word as usize / 8],
                None => pmem.load_u64(self.at(level, node) + word),
            };
            if node >= self.nodes {
                return PrimitivesError::corrupted(
                    "an inner node leads nowhere",
                    self.at(level, 0),
                );
            }
        }
        Ok(pmem.load_u64(self.at(self.levels, node) + 64))
    }

    fn units(&self) -> u64 {
        self.levels
    }
}

/// A chain of full nodes that lie in no order (E3, E11). A step goes through some of them, from where the last one ended.
struct Chain<L> {
    geometry: Geometry,
    cell: Cell,
    first: u64,
    next: u64,
    nodes: u64,
    scratch: Scratch,
    layout: std::marker::PhantomData<L>,
}

/// Nodes of a step.
const STEP_NODES: u64 = 8;

/// The trial of a chain.
pub(super) fn chain<P: Measured>(
    cell: &Cell,
    pmem: &P,
    region: Region,
    places_max: u64,
) -> Result<Box<dyn Trial<P>>> {
    let kind = cell.contender.layout().unwrap_or(LayoutKind::Sorted);
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
        let Self { cell, pmem, region, places_max } = self;
        let pmem = pmem.plain();
        let geometry = Geometry::new(NodeShape::published(L::KIND, cell.size))?;
        let nodes = (region.bytes / geometry.node_bytes()).min(STEP_NODES * places_max).max(1);
        if nodes * geometry.node_bytes() > region.bytes {
            return Err(PrimitivesError::Shape("the region has no room for a node".to_owned()));
        }
        let mut scratch = Scratch::default();
        let node = Node::at(pmem, &geometry, region.at)?;
        L::format(node);
        for key in 0..common_entries(cell.size)? as u64 {
            L::insert(node, key as usize, &[key], &[1; 16], &mut scratch)?;
        }
        let mut image = vec![0; geometry.node_bytes() as usize];
        pmem.read(node.extent(), &mut image);
        let at = |number: u64| region.at + number * geometry.node_bytes();
        let order: Vec<u64> = Places::new(nodes, 7).take(nodes as usize).collect();
        let next_at = geometry.next_at as usize;
        for (number, place) in order.iter().enumerate() {
            let next = at(order[(number + 1) % order.len()]);
            image[next_at..][..8].copy_from_slice(&next.to_le_bytes());
            pmem.copy(Extent::new_checked(at(*place), geometry.node_bytes()), &image, PREPARE);
        }
        let first = at(order[0]);
        let layout = std::marker::PhantomData::<L>;
        Ok(Box::new(Chain { geometry, cell, first, next: first, nodes, scratch, layout }))
    }
}

impl<P: Measured, L: Layout> Trial<P> for Chain<L> {
    fn places(&self) -> u64 {
        self.nodes.div_ceil(STEP_NODES)
    }

    /// Iterating changes nothing, and recovery finds nothing to mend.
    fn prepare(&mut self, _: &P, first: u64, _: u64) -> Result<()> {
        if first == 0 {
            self.next = self.first;
        }
        Ok(())
    }

    #[inline]
    fn step(&mut self, pmem: &P, _: u64) -> Result<u64> {
        let walk = match self.cell.contender {
            Contender::BySlots => Walk::Slots,
            _ => Walk::Bitmap,
        };
        let (mut sum, mut at) = (0_u64, self.next);
        for _ in 0..STEP_NODES {
            let node = Node::at(pmem, &self.geometry, at)?;
            if self.cell.experiment == Experiment::E11 {
                sum += L::recover(node, &mut self.scratch)?.entries as u64;
                // The separator that an inner node in DRAM is made of.
                let mut least = u64::MAX;
                L::iterate(node, Walk::Bitmap, |index| least = least.min(node.key_first(index)))?;
                sum ^= least;
            } else {
                L::iterate(node, walk, |index| sum = sum.wrapping_add(node.key_first(index)))?;
            }
            at = node.next();
        }
        self.next = at;
        Ok(sum)
    }

    fn units(&self) -> u64 {
        STEP_NODES
    }
}
