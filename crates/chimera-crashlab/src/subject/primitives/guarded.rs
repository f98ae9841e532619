//! A node whose changes are atomic.

use chimera_primitives::PrimitivesError;
use chimera_primitives::atomicity::{FailureAtomicity, GuardedNode};
use chimera_primitives::layout::{
    Geometry, Layout, LayoutKind, LayoutVisitor, NodeShape, Scratch, Search,
};

use super::{Map, from_bytes, to_bytes};
use crate::simulated::Simulated;
use crate::subject::{VALUE_BYTES, Value};

struct Guarded<L> {
    pmem: Simulated,
    node: GuardedNode,
    scratch: Scratch,
    layout: std::marker::PhantomData<L>,
}

struct Open {
    pmem: Simulated,
    kind: FailureAtomicity,
}

impl LayoutVisitor for Open {
    type Output = Result<Box<dyn Map>, PrimitivesError>;

    fn visit<L: Layout>(self) -> Self::Output {
        let value_bytes = VALUE_BYTES as u32;
        let shape = NodeShape { kind: L::KIND, key_bytes: 8, value_bytes, node_bytes: 320 };
        let node = GuardedNode::open::<L, _>(&self.pmem, 0, Geometry::new(shape)?, self.kind)?;
        let layout = std::marker::PhantomData::<L>;
        Ok(Box::new(Guarded { pmem: self.pmem, node, scratch: Scratch::default(), layout }))
    }
}

/// Opens the node.
pub(super) fn open(
    pmem: Simulated,
    layout: LayoutKind,
    kind: FailureAtomicity,
) -> Result<Box<dyn Map>, PrimitivesError> {
    layout.visit(Open { pmem, kind })
}

impl<L: Layout> Map for Guarded<L> {
    fn get(&mut self, key: u64) -> Result<Option<Value>, PrimitivesError> {
        let node = self.node.node(&self.pmem)?;
        let found = L::search(node, &[key], Search::Binary)?;
        Ok(found.map(|place| {
            let mut value = vec![0; VALUE_BYTES];
            node.read_value(place.index, &mut value);
            from_bytes(&value)
        }))
    }

    fn set(&mut self, key: u64, value: Option<&Value>) -> Result<(), PrimitivesError> {
        let Self { pmem, node, scratch, .. } = self;
        node.change(&*pmem, |node| {
            if let Some(place) = L::search(node, &[key], Search::Binary)? {
                L::erase(node, place, scratch)?;
            }
            let Some(value) = value else { return Ok(()) };
            let rank = L::rank_of(node, &[key])?;
            L::insert(node, rank, &[key], &to_bytes(value), scratch)
        })
    }

    fn check(&mut self, records: u64) -> Result<(), PrimitivesError> {
        let node = self.node.node(&self.pmem)?;
        if L::count(node)? as u64 == records && !L::recover(node, &mut self.scratch)?.repaired {
            return Ok(());
        }
        Err(PrimitivesError::Corrupted { what: "the node has other records", at: node.offset() })
    }

    fn pmem(&self) -> &Simulated {
        &self.pmem
    }
}
